"""Where a memory file really is, and which links are followed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from memd.errors import IoFailure, StoreUnreadable
from memd.store.place import Place, identity, in_git_work_tree, is_mount_point, locate, make_directory


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A profile's directory, without links on its way."""
    path = Path(os.path.realpath(tmp_path)) / "profile"
    path.mkdir()
    return path


def test_a_plain_file_is_where_it_is_configured(directory: Path) -> None:
    """Whether it exists yet or not; identity is that of the directory."""
    place = locate(str(directory), "MEMORY.md")
    status = directory.stat()
    assert Place(f"{directory}/MEMORY.md", str(directory), "MEMORY.md", status.st_dev, status.st_ino) == place
    assert f"{directory}/MEMORY.md" == place.path
    assert (status.st_dev, status.st_ino) == identity(str(directory))


def test_a_linked_directory_is_resolved(directory: Path) -> None:
    """So that two ways to one directory are one store."""
    (directory.parent / "alias").symlink_to(directory)
    by_alias = locate(str(directory.parent / "alias"), "MEMORY.md")
    plain = locate(str(directory), "MEMORY.md")
    assert (plain.path, plain.inode) == (by_alias.path, by_alias.inode)
    assert f"{directory.parent}/alias/MEMORY.md" == by_alias.configured


@pytest.mark.parametrize("target", ["notes.md", "sub/notes.md", "./sub/../notes.md"])
def test_a_relative_link_within_the_directory_is_followed(directory: Path, target: str) -> None:
    """The temp file will be made beside the real target."""
    (directory / "sub").mkdir()
    real = Path(os.path.normpath(directory / target))
    real.write_text("text")
    (directory / "MEMORY.md").symlink_to(target)
    assert str(real) == locate(str(directory), "MEMORY.md").path


def test_a_link_to_an_allowed_root_is_followed(directory: Path) -> None:
    """Any other place needs the setting, and the error names it."""
    other = directory.parent / "other"
    other.mkdir()
    (other / "notes.md").write_text("text")
    (directory / "MEMORY.md").symlink_to(other / "notes.md")
    place = locate(str(directory), "MEMORY.md", roots=(str(other),))
    assert (f"{other}/notes.md", identity(str(other))) == (place.path, (place.device, place.inode))
    assert place == locate(str(directory), "MEMORY.md", home=str(directory.parent))
    with pytest.raises(StoreUnreadable, match="symlink_roots"):
        locate(str(directory), "MEMORY.md", home="/nowhere")


def test_a_name_that_only_begins_like_a_root_is_outside(directory: Path) -> None:
    """``/a/bc`` is not under ``/a/b``."""
    other = Path(f"{directory}-more")
    other.mkdir()
    (other / "notes.md").write_text("text")
    (directory / "MEMORY.md").symlink_to(other / "notes.md")
    with pytest.raises(StoreUnreadable, match="outside its directory"):
        locate(str(directory), "MEMORY.md", roots=(str(directory),), home="/nowhere")


def test_a_link_that_leaves_through_a_linked_directory_is_outside(directory: Path) -> None:
    """It is the real position that counts."""
    other = directory.parent / "other"
    other.mkdir()
    (other / "notes.md").write_text("text")
    (directory / "sub").symlink_to(other)
    (directory / "MEMORY.md").symlink_to("sub/notes.md")
    with pytest.raises(StoreUnreadable, match="outside its directory"):
        locate(str(directory), "MEMORY.md", home="/nowhere")


@pytest.mark.parametrize("target", ["gone.md", "gone/notes.md"])
def test_a_dangling_link_is_an_error_and_no_empty_store(directory: Path, target: str) -> None:
    """Nothing is made in its target's place."""
    (directory / "MEMORY.md").symlink_to(target)
    with pytest.raises(StoreUnreadable, match="does not exist"):
        locate(str(directory), "MEMORY.md")
    assert ["MEMORY.md"] == os.listdir(directory)


def test_links_in_a_circle_are_given_up(directory: Path) -> None:
    """As an error of the store, not of the daemon."""
    (directory / "MEMORY.md").symlink_to("b")
    (directory / "b").symlink_to("MEMORY.md")
    with pytest.raises(StoreUnreadable, match="too many links"):
        locate(str(directory), "MEMORY.md")


def test_the_links_of_others_are_not_followed(directory: Path) -> None:
    """Neither a link nor a target that belongs to another user."""
    (directory / "notes.md").write_text("text")
    (directory / "MEMORY.md").symlink_to("notes.md")
    with pytest.raises(StoreUnreadable, match="belongs to uid"):
        locate(str(directory), "MEMORY.md", uid=os.geteuid() + 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_the_target_of_another_user_is_not_followed(directory: Path) -> None:
    """The link is ours; what it leads to is not."""
    (directory / "notes.md").write_text("text")
    os.chown(directory / "notes.md", 12_345, 12_345)
    (directory / "MEMORY.md").symlink_to("notes.md")
    with pytest.raises(StoreUnreadable, match=r"leads to .* belongs to uid 12345"):
        locate(str(directory), "MEMORY.md")


def test_a_missing_directory_is_an_error(directory: Path) -> None:
    """And so is a file in its place."""
    with pytest.raises(StoreUnreadable, match="cannot be used"):
        locate(str(directory / "gone"), "MEMORY.md")
    (directory / "file").write_text("")
    with pytest.raises(StoreUnreadable, match=r"cannot be used|not a directory"):
        locate(str(directory / "file"), "MEMORY.md")
    assert (0, 0) == identity(str(directory / "gone"))
    assert (0, 0) == identity(str(directory / "file"))


def test_directories_are_private_whatever_the_umask(tmp_path: Path) -> None:
    """0700, the parents that are missing too; one that exists keeps its mode."""
    before = os.umask(0o777)
    try:
        make_directory(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert [0o700, 0o700] == [path.stat().st_mode & 0o777 for path in (tmp_path / "a", tmp_path / "a" / "b")]
    (tmp_path / "a").chmod(0o755)
    make_directory(tmp_path / "a" / "b")
    assert 0o755 == (tmp_path / "a").stat().st_mode & 0o777


def test_a_directory_that_cannot_be_made_is_a_typed_error(tmp_path: Path) -> None:
    """The message names the step."""
    (tmp_path / "file").write_text("")
    with pytest.raises(IoFailure, match="create the directory"):
        make_directory(tmp_path / "file" / "below")


def test_a_git_work_tree_is_seen_from_below(directory: Path) -> None:
    """What lies in it may be pushed."""
    assert not in_git_work_tree(str(directory))
    (directory.parent / ".git").mkdir()
    assert in_git_work_tree(str(directory))


def test_a_plain_file_is_no_mount_point(tmp_path: Path) -> None:
    """What is one is in ``tests/e2e/test_odd_places.py``, as it takes a mount; here one that is always there."""
    path = tmp_path / "MEMORY.md"
    path.touch()
    with path.open("rb") as file:
        assert not is_mount_point(file.fileno(), str(tmp_path))
        assert not is_mount_point(file.fileno(), str(tmp_path / "gone"))
    with open("/proc/version", "rb") as file:
        assert is_mount_point(file.fileno(), "/") is (sys.platform == "linux")


def test_a_path_that_cannot_be_looked_for_is_a_typed_error(tmp_path: Path) -> None:
    """Here a name is longer than any can be; nothing is made."""
    with pytest.raises(IoFailure, match="look for"):
        make_directory(tmp_path / ("x" * 300) / "memories")
    assert [] == list(tmp_path.iterdir())


def test_what_cannot_be_looked_at_is_no_git_work_tree() -> None:
    """It is for a hint only."""
    assert not in_git_work_tree(f"/{'x' * 300}/memories")
