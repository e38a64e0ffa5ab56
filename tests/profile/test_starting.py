"""Starting: after a stop, a crash at any step, a power loss, and with a journal that is gone, damaged or older."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
import trio
from support.faults import CrashingFiles, RacingHand
from support.hosts import Host, add, held, remove, replace

from memd.errors import StoreUnreadable
from memd.store.files import Files

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine with one profile whose entries are older than what a person writes next."""
    found = Host(tmp_path)
    found.lag_s = 60
    return found


async def _crash(host: Host, step: str, mutation: object) -> None:
    """One more life, which ends in the middle of a write."""
    host.files = Files()
    async with host.life() as life:
        life.store.files = CrashingFiles(step)
        await life.do(mutation)  # type: ignore[arg-type]  # a Mutation
    host.files = Files()


class TestStop:
    async def test_everything_is_there_again(self, host: Host, autojump_clock: MockClock) -> None:
        """Entries, ids, revisions, remembered requests."""
        async with host.life() as life:
            done = await life.do(add("alpha", request_id="r"))
            await life.add("beta")
            ids, revision = life.ids(), life.profile.state("memory").revision
        async with host.life() as life:
            assert (ids, revision) == (life.ids(), life.profile.state("memory").revision)
            again = await life.do(add("alpha", request_id="r"))
            assert (True, done.revision, done.entry) == (again.replayed, again.revision, again.entry)
            assert ["change", "change"] == await life.kinds()

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("alpha\n", ["alpha"]),
            ("", []),
            ("alpha\n§\nbeta\n§\ngamma\n", ["alpha", "beta", "gamma"]),
            ("new\n", ["new"]),
        ],
    )
    async def test_any_difference_is_an_edit(
        self, host: Host, text: str, expected: list[str], autojump_clock: MockClock
    ) -> None:
        """Adopted before the first connection, although it drops entries and equals an older state."""
        async with host.life() as life:
            await life.add("alpha")
            await life.add("beta")
        host.write(text)
        async with host.life() as life:
            assert (expected, text) == (life.texts(), host.read())
            assert "outside" == (await life.kinds())[-1]

    async def test_what_memd_never_wrote_is_taken_in(self, host: Host, autojump_clock: MockClock) -> None:
        """The first start beside files that an agent kept already; their bytes stay."""
        text = "one\r\n§\r\n\r\n§\r\ntwo"
        host.write(text)
        async with host.life() as life:
            assert (["one", "two"], text) == (life.texts(), host.read())

    async def test_no_id_is_given_out_twice(self, host: Host, autojump_clock: MockClock) -> None:
        """Not even after its entry is gone and memd was restarted."""
        async with host.life() as life:
            await life.add("alpha")
            first = life.ids()["alpha"]
            await life.do(remove("alpha"))
        async with host.life() as life:
            await life.add("alpha")
            assert first != life.ids()["alpha"]


class TestCrash:
    @pytest.mark.parametrize("step", ["after_temp", "before_swap", "mid_swap", "after_swap"])
    async def test_at_every_step_a_write_is_done_once(self, host: Host, step: str, autojump_clock: MockClock) -> None:
        """Whoever repeats it under its id has it once, and no temp file stays."""
        async with host.life() as life:
            await life.add("alpha")
        mutation = replace("alpha", "beta", request_id="r")
        await _crash(host, step, mutation)
        async with host.life() as life:
            journaled = step != "after_temp"
            assert ["beta" if journaled else "alpha"] == life.texts()
            done = await life.do(mutation)
            assert (journaled, ["beta"], "beta\n") == (done.replayed, life.texts(), host.read())
            assert (["change", "change"], []) == (await life.kinds(), host.temps())

    async def test_a_hand_between_our_look_and_our_swap_survives_a_crash_right_after(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """What was displaced still has a name."""

        class RacedAndKilled(CrashingFiles, RacingHand):
            def __init__(self) -> None:
                CrashingFiles.__init__(self, "after_swap")
                RacingHand.__init__(self, _append)

        async with host.life() as life:
            await life.add("alpha")
        host.files = Files()
        async with host.life() as life:
            life.store.files = RacedAndKilled()
            await life.add("beta")
        assert ("alpha\n§\nbeta\n", 1) == (host.read(), len(host.temps()))
        host.files = Files()
        async with host.life() as life:
            assert (["alpha", "beta", "by hand"], []) == (sorted(life.texts()), host.temps())

    async def test_an_edit_that_was_adopted_and_not_swapped_in_is_rolled_forward(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """Its bytes are in the file still, and in the result."""
        async with host.life() as life:
            await life.add("alpha")
        host.files = Files()
        async with host.life() as life:
            host.append("by hand\n")
            life.store.files = CrashingFiles("before_swap")
            await life.add("beta")
        assert "alpha\nby hand\n" == host.read()
        host.files = Files()
        async with host.life() as life:
            assert ["alpha", "by hand", "beta"] == life.texts()
            assert ["change", "outside", "change"] == await life.kinds()

    @pytest.mark.parametrize("text", ["alpha\n§\nbetas\n", "all new\n"])
    async def test_an_edit_made_while_nobody_ran_is_adopted(
        self, host: Host, text: str, autojump_clock: MockClock
    ) -> None:
        """It is neither the head nor the state before it."""
        async with host.life("crash") as life:
            await life.add("alpha", "beta")
        host.write(text)
        async with host.life() as life:
            assert (text.rstrip().split("\n§\n"), text) == (life.texts(), host.read())

    async def test_a_new_file_that_never_came_to_be_is_written(self, host: Host, autojump_clock: MockClock) -> None:
        """Whether there was none or an empty one."""
        for empty in (False, True):
            shutil.rmtree(host.directory, ignore_errors=True)
            host.journal_path.unlink(missing_ok=True)
            if empty:
                host.write("")
            await _crash(host, "before_swap", add("alpha"))
            async with host.life() as life:
                assert (["alpha"], "alpha\n") == (life.texts(), host.read())

    async def test_what_a_temp_file_of_nobodys_group_holds_is_not_adopted(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """A crash before the journal's commit: it was neither acknowledged nor ever in the file."""
        await _crash(host, "after_temp", add("never"))
        assert 1 == len(host.temps())
        async with host.life() as life:
            assert ([], []) == (life.texts(), host.temps())

    async def test_while_a_lock_is_held_the_start_does_not_hang(self, host: Host, autojump_clock: MockClock) -> None:
        """The edit is adopted once the other program lets go."""
        async with host.life() as life:
            await life.add("alpha")
        host.append("by hand\n")
        with held(host.directory / "MEMORY.md.lock"), trio.fail_after(5):
            async with host.life("crash") as life:
                assert ["alpha"] == life.texts()
        async with host.life() as life:
            assert ["alpha", "by hand"] == life.texts()

    async def test_an_unreadable_file_does_not_keep_memd_from_starting(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """The last good state is served as stale."""
        async with host.life() as life:
            await life.add("alpha")
        host.memory.unlink()
        host.memory.mkdir()
        async with host.life() as life:
            assert (["alpha"], "stale") == (life.texts(), life.profile.state("memory").condition)
            host.memory.rmdir()


class TestPowerLoss:
    async def _lose(self, host: Host, *, after_checkpoint: int) -> list[str]:
        """Two entries that are checkpointed, then so many that are not; returns all of them."""
        async with host.life("crash") as life:
            await life.add("alpha", "beta")
            await trio.sleep(10)
            texts = [f"entry {number}" for number in range(after_checkpoint)]
            for text in texts:
                await life.add(text)
        host.boot = "boot-2"
        return ["alpha", "beta", *texts]

    @pytest.mark.parametrize("cut", [0, 3, 14])
    async def test_a_torn_file_is_written_again(self, host: Host, cut: int, autojump_clock: MockClock) -> None:
        """A prefix, NULs, nothing: every acknowledged write is there."""
        expected = await self._lose(host, after_checkpoint=3)
        data = host.memory.read_bytes()
        host.memory.write_bytes(data[:cut] + b"\0" * 8)
        async with host.life() as life:
            assert (expected, data) == (life.texts(), host.memory.read_bytes())

    async def test_an_older_state_is_rolled_forward(self, host: Host, autojump_clock: MockClock) -> None:
        """Any since the file checkpoint."""
        expected = await self._lose(host, after_checkpoint=5)
        host.write("\n§\n".join(expected[:4]) + "\n")
        async with host.life() as life:
            assert expected == life.texts()

    async def test_a_checkpointed_file_does_not_vanish_by_itself(self, host: Host, autojump_clock: MockClock) -> None:
        """So somebody deleted it; the journal has it still."""
        await self._lose(host, after_checkpoint=0)
        host.memory.unlink()
        async with host.life() as life:
            assert [] == life.texts()
            assert ["store_emptied"] == [notice.name for notice in life.profile.state("memory").notices]

    async def test_a_file_that_was_never_checkpointed_may_be_missing(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """It is written again."""
        async with host.life("crash") as life:
            await life.add("alpha")
        host.memory.unlink()
        host.boot = "boot-2"
        async with host.life() as life:
            assert (["alpha"], "alpha\n") == (life.texts(), host.read())

    async def test_a_torn_temp_file_is_not_adopted(self, host: Host, autojump_clock: MockClock) -> None:
        """It is half of a version that the journal has; other text in it would be a hand's."""
        expected = await self._lose(host, after_checkpoint=1)
        (host.directory / ".MEMORY.md.memd-1-aa.tmp").write_bytes(b"alpha\n\xc2\xa7\nbe\0\0\0")
        (host.directory / ".MEMORY.md.memd-1-ab.tmp").write_text("\n§\n".join([*expected, "by hand"]))
        async with host.life() as life:
            assert (sorted([*expected, "by hand"]), []) == (sorted(life.texts()), host.temps())

    async def test_a_state_from_before_the_checkpoint_is_a_persons(self, host: Host, autojump_clock: MockClock) -> None:
        """The disk had a newer one for certain: somebody restored it."""
        async with host.life() as life:
            await life.add("old")
            await life.do(replace("old", "alpha"))
        await self._lose(host, after_checkpoint=1)
        host.write("old\n")
        async with host.life() as life:
            assert ["old"] == life.texts()


class TestJournal:
    async def test_a_lost_journal_loses_history_only(self, host: Host, autojump_clock: MockClock) -> None:
        """The files are the memory."""
        async with host.life() as life:
            await life.add("alpha", "beta")
        host.journal_path.unlink()
        async with host.life() as life:
            assert (["alpha", "beta"], ["outside"]) == (life.texts(), await life.kinds())

    async def test_a_damaged_rendering_is_never_written(self, host: Host, autojump_clock: MockClock) -> None:
        """The newest that verifies is the head; the file's own bytes are adopted on top."""
        async with host.life() as life:
            await life.add("alpha")
            await life.add("beta")
            life.journal.connection.execute("UPDATE rendering SET data=x'00ff' WHERE revision=2")
        async with host.life() as life:
            assert (["alpha", "beta"], "alpha\n§\nbeta\n") == (life.texts(), host.read())

    async def test_a_journal_from_a_backup_takes_the_newer_file(self, host: Host, autojump_clock: MockClock) -> None:
        """What it does not know is an outside edit."""
        async with host.life() as life:
            await life.add("alpha")
        backup = host.journal_path.read_bytes()
        async with host.life() as life:
            await life.add("beta")
        host.journal_path.write_bytes(backup)
        async with host.life() as life:
            assert ["alpha", "beta"] == life.texts()


class TestMoved:
    async def test_another_directory_under_the_name_is_not_an_empty_store(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """A disk that is not mounted: nothing is taken for deleted, and nothing is written into it."""
        async with host.life() as life:
            await life.add("alpha")
        host.directory.rename(host.root / "disk")
        host.directory.mkdir()
        async with host.life() as life:
            assert (["alpha"], "stale") == (life.texts(), life.profile.state("memory").condition)
            with pytest.raises(StoreUnreadable, match="not the directory"):
                await life.add("beta")
            assert not host.memory.exists()
        shutil.rmtree(host.directory)
        (host.root / "disk").rename(host.directory)
        async with host.life() as life:
            await life.add("beta")
            assert ["alpha", "beta"] == life.texts()

    async def test_a_directory_restored_from_a_backup_is_taken(self, host: Host, autojump_clock: MockClock) -> None:
        """It is another one, but the file is in it."""
        async with host.life() as life:
            await life.add("alpha")
        shutil.copytree(host.directory, host.root / "copy")
        shutil.rmtree(host.directory)
        (host.root / "copy").rename(host.directory)
        for _ in range(2):
            async with host.life() as life:
                assert (["alpha"], "ok") == (life.texts(), life.profile.state("memory").condition)


def _append(path: str) -> None:
    with open(path, "ab") as file:
        file.write(b"by hand\n")
