"""The memory files on a real file system: what is read, what survives a write, what a swap hands back."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from support.faults import NoExchange

from memd.errors import IoFailure, NoSpace, ReadOnly, StoreError, StoreUnreadable
from memd.store.files import Displaced, Files, Image, Signature
from memd.store.place import Place, locate
from memd.store.whole import READ_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = os.geteuid() == 0


@pytest.fixture(params=["exchange", "link"])
def files(request: pytest.FixtureRequest) -> Files:
    """File systems with and without an exchange of names keep the same promises."""
    return Files() if request.param == "exchange" else NoExchange()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Where the memory file is."""
    return locate(str(tmp_path), "MEMORY.md")


@pytest.fixture
def umask_0777() -> Iterator[None]:
    """The umask of some containers."""
    before = os.umask(0o777)
    yield
    os.umask(before)


def _path(place: Place) -> Path:
    return Path(place.path)


def _replace(files: Files, place: Place, data: bytes) -> Displaced:
    image = files.read(place)
    temp = files.write_temp(place, data, image)
    return files.swap(place, temp, exists=image.data is not None, expected=image.data)


def _names(place: Place) -> list[str]:
    return sorted(os.listdir(place.directory))


class ForeignOwner(Files):
    """A kernel that lets nobody give a file away."""

    def _keep_owner(self, descriptor: int, place: Place, like: Image) -> None:
        super()._keep_owner(-1, place, like)


class TestRead:
    def test_a_file_is_read_whole_with_what_a_stat_tells(self, place: Place) -> None:
        """Bytes, mode, owner and signature."""
        _path(place).write_bytes(b"\xff\0text")
        _path(place).chmod(0o640)
        status = _path(place).stat()
        image = Files().read(place)
        assert (b"\xff\0text", 0o640, status.st_uid, status.st_gid) == (image.data, image.mode, image.uid, image.gid)
        assert Files().signature(place) == image.signature
        assert not image.in_place

    def test_a_missing_file_is_no_error(self, place: Place) -> None:
        """A store that was never written has none."""
        assert Image(None) == Files().read(place)
        assert Signature() == Files().signature(place)

    def test_a_missing_directory_is_one(self, tmp_path: Path) -> None:
        """It may be a disk that is not mounted: never an empty store."""
        (tmp_path / "gone").mkdir()
        place = locate(str(tmp_path / "gone"), "MEMORY.md")
        (tmp_path / "gone").rmdir()
        with pytest.raises(StoreUnreadable, match="is missing"):
            Files().read(place)

    def test_what_is_no_file_is_unreadable(self, place: Place) -> None:
        """A directory; and a FIFO, which must not block the daemon."""
        _path(place).mkdir()
        with pytest.raises(StoreUnreadable, match="is a directory"):
            Files().read(place)
        _path(place).rmdir()
        os.mkfifo(place.path)
        with pytest.raises(StoreUnreadable, match="not a regular file"):
            Files().read(place)

    def test_a_link_put_in_its_place_is_not_followed(self, place: Place, tmp_path: Path) -> None:
        """Links are judged when the place is found, not here."""
        (tmp_path / "secret").write_text("secret")
        _path(place).symlink_to("secret")
        with pytest.raises(StoreUnreadable, match="ELOOP"):
            Files().read(place)

    def test_a_huge_file_is_left_untouched(self, place: Place) -> None:
        """It is told by its size, without reading it."""
        with _path(place).open("wb") as file:
            file.truncate(50 * 1024 * 1024)
        with pytest.raises(StoreUnreadable, match=r"52,428,800 bytes"):
            Files().read(place)
        with _path(place).open("wb") as file:
            file.truncate(READ_LIMIT)
        assert READ_LIMIT == len(Files().read(place).data or b"")

    @pytest.mark.skipif(ROOT, reason="root reads everything")
    def test_a_file_without_permission_is_unreadable(self, place: Place) -> None:
        """The error has errno, mode and owner."""
        _path(place).write_text("text")
        _path(place).chmod(0)
        with pytest.raises(StoreUnreadable, match="EACCES, mode 0000, owner"):
            Files().read(place)

    def test_a_file_with_several_links_is_written_in_place(self, place: Place, tmp_path: Path) -> None:
        """So is a mount point: its device is not its directory's."""
        _path(place).write_text("text")
        os.link(place.path, tmp_path / "other")
        assert Files().read(place).in_place
        (tmp_path / "other").unlink()
        elsewhere = Place(place.configured, place.directory, place.name, place.device + 1, place.inode)
        assert Files().read(elsewhere).in_place


class TestWrite:
    def test_a_new_file_is_private_whatever_the_umask(self, place: Place, files: Files, umask_0777: None) -> None:
        """0600."""
        _replace(files, place, b"new")
        assert (b"new", 0o600) == (_path(place).read_bytes(), _path(place).stat().st_mode & 0o777)
        assert ["MEMORY.md"] == _names(place)

    def test_mode_and_attributes_survive(self, place: Place, files: Files, umask_0777: None) -> None:
        """A group may share the file."""
        _path(place).write_text("old")
        _path(place).chmod(0o660)
        try:
            os.setxattr(place.path, "user.colour", b"blue")
        except OSError:
            pytest.skip("no extended attributes here")
        _replace(files, place, b"new").close()
        assert 0o660 == _path(place).stat().st_mode & 0o777
        assert b"blue" == os.getxattr(place.path, "user.colour")

    @pytest.mark.skipif(not ROOT, reason="only root can give a file away")
    def test_owner_and_group_survive(self, place: Place, files: Files) -> None:
        """As root they can be kept."""
        _path(place).write_text("old")
        os.chown(place.path, 12_345, 54_321)
        _replace(files, place, b"new").close()
        status = _path(place).stat()
        assert (12_345, 54_321) == (status.st_uid, status.st_gid)

    def test_an_owner_that_cannot_be_kept_is_read_only(self, tmp_path: Path) -> None:
        """Nothing is written and nothing left behind."""
        place = locate(str(tmp_path), "MEMORY.md")
        _path(place).write_text("old")
        with pytest.raises(ReadOnly, match="cannot keep"):
            ForeignOwner().write_temp(place, b"new", replace(Files().read(place), uid=4711))
        assert (["MEMORY.md"], "old") == (_names(place), _path(place).read_text())

    def test_a_file_that_was_taken_away_meanwhile_is_not_read_only(self, files: Files, place: Place) -> None:
        """As ``git checkout`` does for a moment: the new version takes its place."""
        _path(place).write_bytes(b"old\n")
        image = files.read(place)
        _path(place).unlink()
        temp = files.write_temp(place, b"new\n", image)
        files.swap(place, temp, exists=True, expected=image.data).close()
        assert (b"new\n", ["MEMORY.md"]) == (_path(place).read_bytes(), _names(place))

    @pytest.mark.skipif(ROOT, reason="root writes everything")
    def test_a_read_only_file_or_directory_is_told_as_such(self, place: Place) -> None:
        """With path, mode and errno; what could be replaced in spite of its mode is not."""
        _path(place).write_text("old")
        _path(place).chmod(0o444)
        with pytest.raises(ReadOnly, match="mode 0444") as caught:
            Files().write_temp(place, b"new", Files().read(place))
        assert (errno.EACCES, place.path) == (caught.value.errno, caught.value.path)
        _path(place).chmod(0o600)
        os.chmod(place.directory, 0o555)
        try:
            with pytest.raises(ReadOnly):
                Files().write_temp(place, b"new", Files().read(place))
        finally:
            os.chmod(place.directory, 0o700)
        assert ["MEMORY.md"] == _names(place)

    def test_a_full_disk_leaves_the_old_file_and_no_temp_file(self, place: Place) -> None:
        """Here a limit of the process stands for the disk: the same write fails in its middle."""
        _path(place).write_text("old")
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        try:
            with pytest.raises(NoSpace, match="the old file is intact"):
                Files().write_temp(place, b"x" * 5000, Files().read(place))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert (["MEMORY.md"], "old") == (_names(place), _path(place).read_text())


class TestSwap:
    def test_what_was_there_is_handed_back(self, place: Place, files: Files) -> None:
        """Its bytes; its name is gone, its descriptor is open for a second look."""
        _path(place).write_bytes(b"old")
        with _path(place).open("ab") as shell:
            displaced = _replace(files, place, b"new")
            assert (b"old", "", b"new") == (displaced.data, displaced.path, _path(place).read_bytes())
            assert ["MEMORY.md"] == _names(place)
            shell.write(b" and late")
        assert b"old and late" == displaced.look_again()
        displaced.close()
        displaced.close()
        assert displaced.look_again() is None

    def test_a_new_file_displaces_nothing(self, place: Place, files: Files) -> None:
        """There is nothing to look at again."""
        displaced = _replace(files, place, b"new")
        assert (Displaced(None), b"new") == (displaced, _path(place).read_bytes())
        assert displaced.look_again() is None

    def test_a_file_that_somebody_made_meanwhile_is_not_lost(self, place: Place, files: Files) -> None:
        """Its name is kept too, until what is in it is safe."""
        temp = files.write_temp(place, b"ours", Image(None))
        _path(place).write_bytes(b"theirs")
        displaced = files.swap(place, temp, exists=False)
        assert (b"theirs", b"ours") == (displaced.data, _path(place).read_bytes())
        assert b"theirs" == Path(displaced.path).read_bytes()
        displaced.close()

    def test_surprising_bytes_keep_their_name(self, place: Place, files: Files) -> None:
        """A crash now must not lose what a person wrote between our look and our rename."""
        _path(place).write_bytes(b"old")
        temp = files.write_temp(place, b"ours", files.read(place))
        _path(place).write_bytes(b"old, edited")
        displaced = files.swap(place, temp, exists=True, expected=b"old")
        assert b"old, edited" == Path(displaced.path).read_bytes()
        assert [(displaced.path, b"old, edited")] == files.leftovers(place)
        displaced.close()

    def test_a_file_that_somebody_deleted_meanwhile_is_written(self, place: Place) -> None:
        """The newer content stands."""
        _path(place).write_bytes(b"old")
        temp = Files().write_temp(place, b"new", Files().read(place))
        _path(place).unlink()
        displaced = Files().swap(place, temp, exists=True, expected=b"old")
        assert (None, b"new", ["MEMORY.md"]) == (displaced.data, _path(place).read_bytes(), _names(place))

    def test_a_directory_put_in_its_place_is_put_back(self, place: Place) -> None:
        """The swap fails and everything is as somebody else left it."""
        _path(place).write_bytes(b"old")
        temp = Files().write_temp(place, b"new", Files().read(place))
        _path(place).unlink()
        _path(place).mkdir()
        (_path(place) / "inside").write_text("kept")
        with pytest.raises(IoFailure):
            Files().swap(place, temp, exists=True, expected=b"old")
        assert (["MEMORY.md"], "kept") == (_names(place), (_path(place) / "inside").read_text())

    def test_a_huge_file_put_in_its_place_is_put_back(self, place: Place) -> None:
        """It is no lack of room."""
        _path(place).write_bytes(b"old")
        temp = Files().write_temp(place, b"new", Files().read(place))
        _path(place).write_bytes(b"x" * (READ_LIMIT + 1))
        with pytest.raises(IoFailure) as caught:
            Files().swap(place, temp, exists=True, expected=b"old")
        assert not isinstance(caught.value, NoSpace)
        assert ([READ_LIMIT + 1], ["MEMORY.md"]) == ([_path(place).stat().st_size], _names(place))

    def test_a_failed_swap_leaves_the_target_and_no_temp_file(self, place: Place, files: Files) -> None:
        """Here the directory is gone under it."""
        _path(place).write_bytes(b"old")
        temp = files.write_temp(place, b"new", files.read(place))
        Path(temp).unlink()
        with pytest.raises(StoreError, match="replace"):
            files.swap(place, temp, exists=True, expected=b"old")
        assert (b"old", ["MEMORY.md"]) == (_path(place).read_bytes(), _names(place))

    def test_readers_always_see_one_whole_version(self, place: Place, files: Files) -> None:
        """A descriptor opened before stays on the old one."""
        _path(place).write_bytes(b"old" * 1000)
        with _path(place).open("rb") as reader:
            _replace(files, place, b"new" * 1000).close()
            assert b"old" * 1000 == reader.read()
        assert b"new" * 1000 == _path(place).read_bytes()


class TestRewrite:
    @pytest.mark.parametrize("data", [b"short", b"a longer text than before", b""])
    def test_all_links_see_the_new_bytes(self, place: Place, tmp_path: Path, data: bytes) -> None:
        """Longer or shorter than before."""
        _path(place).write_bytes(b"the text before")
        os.link(place.path, tmp_path / "other")
        Files().rewrite(place, data)
        assert [data, data] == [_path(place).read_bytes(), (tmp_path / "other").read_bytes()]

    def test_a_failure_is_typed(self, place: Place) -> None:
        """Nothing is created."""
        with pytest.raises(StoreError, match="rewrite"):
            Files().rewrite(place, b"new")
        assert [] == _names(place)


class TestCheckpointAndLeftovers:
    def test_a_checkpoint_needs_no_file(self, place: Place) -> None:
        """The directory is fsynced all the same."""
        Files().checkpoint(place)
        _path(place).write_text("x")
        Files().checkpoint(place)

    def test_a_failed_checkpoint_is_typed(self, tmp_path: Path) -> None:
        """Here the directory is gone."""
        (tmp_path / "gone").mkdir()
        place = locate(str(tmp_path / "gone"), "MEMORY.md")
        (tmp_path / "gone").rmdir()
        with pytest.raises(IoFailure, match="fsync"):
            Files().checkpoint(place)

    def test_leftovers_tell_what_was_never_in_the_file(self, place: Place, tmp_path: Path) -> None:
        """A ``.new`` was not swapped: its bytes are nobody's. Other files, and other stores' files, are not ours to judge."""
        Files().write_temp(place, b"unfinished", Image(None))
        (tmp_path / ".MEMORY.md.memd-1-aa.tmp").write_bytes(b"displaced")
        (tmp_path / ".MEMORY.md.memd-1-ab.tmp").mkdir()
        (tmp_path / ".MEMORY.md.swp").write_bytes(b"an editor's")
        (tmp_path / ".USER.md.memd-1-aa.tmp").write_bytes(b"another store's")
        found = [data for _, data in Files().leftovers(place)]
        assert [b"", b"displaced", None] == sorted(found, key=lambda data: (data is None, data or b""))

    def test_discarding_twice_is_fine(self, place: Place) -> None:
        """Whoever was first."""
        temp = Files().write_temp(place, b"x", Image(None))
        Files().discard(temp)
        Files().discard(temp)
        assert [] == _names(place)

    def test_what_cannot_be_discarded_now_is_discarded_later(self, place: Place, tmp_path: Path) -> None:
        """With the next version that is written, or the next checkpoint."""
        files, stuck = Files(), tmp_path / ".MEMORY.md.memd-1-aa.tmp"
        laters: tuple[Callable[[], None], ...] = (
            lambda: files.discard(files.write_temp(place, b"x", Image(None))),
            lambda: files.checkpoint(place),
        )
        for later in laters:
            stuck.mkdir()  # which no unlink removes
            files.discard(str(stuck))
            stuck.rmdir()
            stuck.write_bytes(b"displaced")
            later()
            assert [] == _names(place)
            stuck.write_bytes(b"somebody else's")
            later()
            assert [stuck.name] == _names(place)
            stuck.unlink()

    def test_a_descriptor_that_tells_nothing(self) -> None:
        """The time is unknown then, and closing it harms nobody."""
        lost = Displaced(b"x", 1 << 20)
        assert 0 == lost.written_us()
        assert lost.look_again() is None
        lost.close()
        assert -1 == lost.descriptor
