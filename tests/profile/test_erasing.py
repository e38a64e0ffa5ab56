"""memd.profile.erasing: a redaction through all files and the journal, and what stands in its way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from msgspec.structs import replace as changed
from support.faults import FailingJournal, RacingHand, TornSwap
from support.hosts import CALLER, Host, add, held, remove, replace

from memd.errors import Busy, Conflict, IoFailure, NoSuchRevision, StoreError
from memd.profile.erasing import Erasing
from memd.profile.history import Selector
from memd.profile.memory_store import Foreign
from memd.store.masking import Mask
from memd.store.reserve import Reserve

if TYPE_CHECKING:
    from pathlib import Path

    from support.hosts import Life
    from trio.testing import MockClock

    from memd.store.redaction import Redacted

TEXT = "hunter2"


def erasing(life: Life) -> Erasing:
    return Erasing(life.profiles, life.committer, life.host.runner)


async def erase(life: Life, text: str | None = TEXT, revision: int | None = None) -> Redacted:
    found = erasing(life)
    with found.as_one():
        await found.choose(life.profile.name, text=text, revision=revision)
        await found.from_files(changed(CALLER, reason=f"no more {TEXT}"))
        return await found.from_journal()


def append(path: str, text: str) -> None:
    with open(path, "ab") as file:
        file.write(text.encode())


def holding(root: Path) -> list[str]:
    return sorted(str(path) for path in root.rglob("*") if path.is_file() and TEXT.encode() in path.read_bytes())


async def test_every_profile_is_searched(tmp_path: Path, autojump_clock: MockClock) -> None:
    """The journal is one for all; a file that kept the text would bring it back."""
    host = Host(tmp_path, profiles={"p": "p", "q": "q", "also-p": "p"})
    async with host.life() as life:
        await life.add(f"pin {TEXT}", "tea")
        other = life.profiles.by_name["q"]
        await other.submit(add(f"theirs {TEXT}", target="user")).wait()
        await erase(life)
        assert ["pin [redacted]", "tea"] == life.texts()
        assert "theirs [redacted]\n" == (tmp_path / "q/USER.md").read_text()
        rows, _ = await life.profile.list_revisions()
        assert ("redact", "no more [redacted]") == (rows[0].record.kind, rows[0].record.reason)
    assert [] == holding(tmp_path)


async def test_displaced_files_are_waited_for(tmp_path: Path, autojump_clock: MockClock) -> None:
    """What a swap takes out by surprise is kept by name until it is adopted, with the old text in it."""
    host = Host(tmp_path)
    async with host.life() as life:
        await life.add(f"pin {TEXT}")
    host.files = RacingHand(lambda path: append(path, "§\nmeanwhile\n"))
    async with host.life() as life:
        await erase(life)
        assert ["pin [redacted]", "meanwhile"] == life.texts()
        assert [] == host.temps()
    assert [] == holding(tmp_path)


async def test_a_late_writer_does_not_bring_it_back(tmp_path: Path, autojump_clock: MockClock) -> None:
    """A shell that had the old file open: what it writes is taken in, and the bytes kept for that are masked as well."""
    host = Host(tmp_path)
    async with host.life() as life:
        await life.add(f"pin {TEXT}")
        with host.memory.open("ab") as shell:
            found = erasing(life)
            await found.choose("p", text=TEXT, revision=None)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(found.from_files, CALLER)
                await trio.sleep(0.5)
                shell.write("§\nlate words\n".encode())
                shell.flush()
            await found.from_journal()
        assert ["pin [redacted]", "late words"] == life.texts()
    assert [] == holding(tmp_path)


async def test_what_cannot_be_adopted_is_told(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Not waited for without end."""
    host = Host(tmp_path)
    async with host.life() as life:
        await life.add(f"pin {TEXT}")
        found = erasing(life)
        await found.choose("p", text=TEXT, revision=None)
        hand = Foreign(life.store.document, b"by hand")
        with held(host.directory / "MEMORY.md.lock"):
            life.store.take_in(hand)
            with pytest.raises(Busy) as caught:
                await found._wait_let_go(life.store)
        assert "unknown" == caught.value.outcome


async def test_what_waits_to_be_journaled_is_masked_too(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Nobody waits for it, but it would come behind the redaction."""
    host = Host(tmp_path)
    async with host.life() as life:
        found = erasing(life)
        found.mask = Mask([TEXT])
        life.profile.emit("config.changed", data={"keys": [TEXT]})
        assert 1 == (await found.from_journal()).tables["event"]
    assert [] == holding(tmp_path)


async def test_what_the_file_holds_is_taken_in_first(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Written by hand a moment before."""
    host = Host(tmp_path)
    async with host.life() as life:
        await life.add("tea")
        host.append(f"§\nby hand {TEXT}\n")
        await erase(life)
        assert ["tea", "by hand [redacted]"] == life.texts()
    assert [] == holding(tmp_path)


async def test_a_limit_does_not_keep_a_secret(tmp_path: Path, autojump_clock: MockClock) -> None:
    """The mark may be longer than what it hides."""
    host = Host(tmp_path)
    async with host.life() as life:
        await life.add("abcd " * 20)
        for store in life.profile.stores.values():
            store.limits = changed(store.limits, chars=100)
        await erase(life, "abcd")
        assert [] == life.texts()
        await life.add("x " * 20 + "yyyy")
        await erase(life, "yyyy")
        assert ["x " * 20 + "[redacted]"] == life.texts()


async def test_an_answer_is_not_given_again(tmp_path: Path, autojump_clock: MockClock) -> None:
    """The call is not made again either; other answers are."""
    host = Host(tmp_path)
    for _ in range(2):
        async with host.life() as life:
            if not life.texts():
                await life.do(add(f"pin {TEXT}", request_id="r1"))
                await life.do(add("tea", request_id="r2"))
                await life.do(replace("pin", "pin in the vault", request_id="r3"))
                await erase(life)
            for mutation in (add(f"pin {TEXT}", request_id="r1"), replace("pin", "pin in the vault", request_id="r3")):
                with pytest.raises(Conflict, match="has been redacted"):
                    await life.do(mutation)
            assert (await life.do(add("tea", request_id="r2"))).replayed


async def test_undo_and_restore_of_what_was_redacted(tmp_path: Path, autojump_clock: MockClock) -> None:
    """An addition can be taken out, a removal cannot be taken back, the last change is not the redaction."""
    host = Host(tmp_path)
    async with host.life() as life:
        added = await life.add(f"pin {TEXT}")
        await life.add(TEXT, "tea")
        removed = await life.do(remove("tea"))
        await life.do(add(f"gone {TEXT}"))
        gone = await life.do(remove(f"gone {TEXT}"))
        await erase(life)
        assert ["pin [redacted]"] == life.texts()
        found = await life.profile.undo(Selector(revision=gone.revision), CALLER)
        assert [(gone.changes[0].id, "what it said before was redacted and cannot be put back")] == list(
            found.conflicts
        )
        await life.profile.restore("memory", removed.revision - 1, CALLER)
        assert ["pin [redacted]", "tea"] == life.texts()
        await life.profile.undo(Selector(revision=added.revision), CALLER)
        assert ["tea"] == life.texts()
        assert ["restore", "undo"] == (await life.kinds())[-2:]


async def test_a_revision_of_another_profile_is_none(tmp_path: Path, autojump_clock: MockClock) -> None:
    """As in show."""
    host = Host(tmp_path, profiles={"p": "p", "q": "q"})
    async with host.life() as life:
        done = await life.profiles.by_name["q"].submit(add("theirs")).wait()
        for number in (done.revision, 99):
            with pytest.raises(NoSuchRevision):
                await erase(life, None, number)


async def test_a_file_that_cannot_be_swapped_stops_it(tmp_path: Path, autojump_clock: MockClock) -> None:
    """The journal is not touched, and the next try does it all."""
    host = Host(tmp_path)
    async with host.life() as life:
        await life.add(f"pin {TEXT}")
    files = host.files = TornSwap(1)
    async with host.life() as life:
        with pytest.raises(StoreError):
            await erase(life)
        assert 0 == files.times
        rows, _ = await life.profile.list_revisions()
        assert not any(change.redacted for row in rows for change in row.record.changes if row.record.kind == "change")
        await erase(life)
    assert [] == holding(tmp_path)


async def test_on_a_full_disk_the_reserve_is_spent(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Redacting has to work when nothing else does."""
    plan = FailingJournal()
    host = Host(tmp_path, connect=plan.connect)
    host.reserve = Reserve(tmp_path / "state/reserve", size=4096)
    host.reserve.keep()
    async with host.life() as life:
        await life.add(f"pin {TEXT}")
        found = erasing(life)
        found.mask = Mask([TEXT])
        await found.from_files(CALLER)
        plan.fail("VACUUM", name="SQLITE_FULL")
        await found.from_journal()
        assert not host.reserve.kept
    assert [] == holding(tmp_path)


@pytest.mark.parametrize(("text", "outcome"), [(f"pin {TEXT}", "unknown"), ("tea", "none")])
async def test_what_is_half_done_is_not_called_undone(
    tmp_path: Path, text: str, outcome: str, autojump_clock: MockClock
) -> None:
    """The journal has changed nothing, but the entry in the file is masked already, where there was one."""
    plan = FailingJournal()
    host = Host(tmp_path, connect=plan.connect)
    async with host.life() as life:
        await life.add(text)
        plan.fail("INSERT OR REPLACE INTO meta VALUES (?, 1)")
        with pytest.raises(IoFailure) as caught:
            await erase(life)
        assert outcome == caught.value.outcome


async def test_a_text_that_somebody_puts_back_is_not_called_gone(tmp_path: Path, autojump_clock: MockClock) -> None:
    """The error names the file."""
    host = Host(tmp_path)
    async with host.life() as life:
        await life.add(f"pin {TEXT}")
        found = erasing(life)
        await found.choose("p", text=TEXT, revision=None)
        await found.from_files(changed(CALLER, reason=TEXT))
        rows, _ = await life.profile.list_revisions(limit=1)
        assert "[redacted]" == rows[0].record.reason
        host.append(f"§\nagain {TEXT}\n")
        with pytest.raises(IoFailure, match=r"MEMORY\.md again or still") as caught:
            await found.from_journal()
        assert "unknown" == caught.value.outcome
        await erase(life)
    assert [] == holding(tmp_path)


async def test_what_is_switched_off_is_told(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Its file is not looked at."""
    host = Host(tmp_path)
    async with host.life() as life:
        life.profile.stores["user"].enabled = False
        await erase(life)
        (notice,) = erasing(life).notices()
        assert ("not_redacted", True) == (notice.name, "USER.md" in notice.message)


async def test_a_directory_that_cannot_be_looked_at_is_not_called_clean(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """The text may be in it; where, is said, and that it has to be run again."""
    host = Host(tmp_path)
    async with host.life() as life:
        await life.add(f"pin {TEXT}")
        found = erasing(life)
        await found.choose("p", text=TEXT, revision=None)
        await found.from_files(CALLER)
        host.directory.rename(tmp_path / "away")
        with pytest.raises(IoFailure, match="cannot be looked at") as caught:
            await found.from_journal()
        assert ("unknown", str(host.directory)) == (caught.value.outcome, caught.value.extra["path"])
        (tmp_path / "away").rename(host.directory)
        await found.from_journal()
