"""Group commit: what rides together, who is answered when, and what a failing journal does to those who wait."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio
from support.faults import FULL, FailingJournal
from support.hosts import Crash
from trio.testing import MockClock, wait_all_tasks_blocked

from memd.errors import IoFailure, NoSpace, StoreError
from memd.store.committer import GROUP_BYTES, LAZY_S, Committer
from memd.store.records import (
    ChangeRecord,
    EventRecord,
    Part,
    RenderingRecord,
    RevisionRecord,
    SessionRecord,
    SnapshotRecord,
    TurnRecord,
)
from memd.store.reserve import Reserve
from memd.store.threads import InlineRunner

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from memd.store.journal import Journal


@asynccontextmanager
async def _running(journal: Journal, reserve: Reserve | None = None) -> AsyncIterator[Committer]:
    committer = Committer(journal, InlineRunner(), next_revision=1, next_seq=1, reserve=reserve)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(committer.run)
        await wait_all_tasks_blocked()
        yield committer
        committer.close()


def _part(number: int, *, action: str = "add", size: int = 0) -> Part:
    change = ChangeRecord(action, "e", b"a", b"b", 0, 0, "agent")
    return Part(
        revisions=[RevisionRecord(revision=number, store=1, us=number, origin="agent", changes=[change])],
        renderings=[RenderingRecord(store=1, revision=number, us=1, data=b"x" * size, entries=[])] if size else [],
        events=[EventRecord(us=number, topic="t", profile="p")],
    )


def _revisions(journal: Journal) -> list[int]:
    return [row[0] for row in journal.connection.execute("SELECT revision FROM revision ORDER BY revision")]


async def _outcome(committer: Committer, part: Part) -> str:
    try:
        await committer.commit(part)
    except StoreError as error:
        return f"{error.wire_name} {error.outcome}"
    return "done"


class TestGroups:
    async def test_what_waits_together_is_one_group(self, journal: Journal, autojump_clock: MockClock) -> None:
        """One fsync for all; events are numbered and callbacks called in the order they came."""
        called: list[int] = []
        async with _running(journal) as committer:
            before = committer.statistics()
            async with trio.open_nursery() as nursery:
                for number in range(1, 6):
                    nursery.start_soon(committer.commit, _part(number), lambda number=number: called.append(number))
            after = committer.statistics()
        assert (1, 1, 5) == (after.groups - before.groups, after.fsyncs - before.fsyncs, after.parts - before.parts)
        assert sorted(called) == [1, 2, 3, 4, 5]
        seqs = [row[0] for row in journal.connection.execute("SELECT us FROM event ORDER BY seq")]
        assert called == seqs
        assert 5 == committer.seq

    async def test_it_is_durable_before_the_callback(self, journal: Journal, autojump_clock: MockClock) -> None:
        """And the callback is called before the caller goes on."""
        found: list[list[int]] = []
        async with _running(journal) as committer:
            await committer.commit(_part(1), lambda: found.append(_revisions(journal)))
            assert [[1]] == found

    async def test_a_group_is_bounded_in_bytes(self, journal: Journal, autojump_clock: MockClock) -> None:
        """What does not fit waits for the next; one part always fits."""
        async with _running(journal) as committer, trio.open_nursery() as nursery:
            for number in range(1, 4):
                nursery.start_soon(committer.commit, _part(number, size=GROUP_BYTES + 1))
        assert 3 == committer.statistics().groups

    async def test_numbers_are_given_out_once(self, journal: Journal, autojump_clock: MockClock) -> None:
        """Also when their group fails."""
        committer = Committer(journal, InlineRunner(), next_revision=7, next_seq=1)
        assert [7, 8] == [committer.take_revision(), committer.take_revision()]
        assert "<Committer 0 waiting, revision 9, seq 1>" == repr(committer)

    async def test_what_nobody_waits_for_rides_along(self, journal: Journal, autojump_clock: MockClock) -> None:
        """With the next group, or after a second by itself."""
        async with _running(journal) as committer:
            called: list[float] = []
            committer.add(_part(1), lambda: called.append(trio.current_time()))
            await committer.commit(_part(2))
            assert ([1, 2], 1) == (_revisions(journal), committer.statistics().groups)
            begun = trio.current_time()
            committer.add(_part(3), lambda: called.append(trio.current_time()))
            await trio.sleep(2 * LAZY_S)
            assert [1, 2, 3] == _revisions(journal)
            assert pytest.approx(begun + LAZY_S, abs=0.01) == called[-1]

    async def test_a_flush_does_not_wait(self, journal: Journal, autojump_clock: MockClock) -> None:
        """At the end every second counts."""
        async with _running(journal) as committer:
            committer.flush()
            committer.add(_part(1))
            committer.flush()
            await trio.sleep(0.001)
            assert [1] == _revisions(journal)

    async def test_a_session_is_durable_when_its_ticket_settles(
        self, journal: Journal, autojump_clock: MockClock
    ) -> None:
        """With its snapshot and turns, in the next group."""
        session = SessionRecord(id="s", profile="p", key=None, snapshot="h", seen_us=1)
        snapshot = SnapshotRecord(id="h", body=b"b")
        turn = TurnRecord(session="s", turn="t", user=True, status="open", us=1)
        async with _running(journal) as committer:
            await committer.put_session(session, snapshot, [turn]).wait()
            assert ([session], {"h": snapshot}, [turn]) == journal.sessions()

    async def test_a_commit_cannot_be_cancelled(self, journal: Journal, autojump_clock: MockClock) -> None:
        """It would be unknown what became of it."""
        async with _running(journal) as committer:
            with trio.CancelScope() as scope:
                scope.cancel()
                await committer.commit(_part(1))
            assert [1] == _revisions(journal)

    async def test_the_end_leaves_nothing_behind(self, journal: Journal, autojump_clock: MockClock) -> None:
        """Everything handed in before ``close`` is durable, also what nobody waits for."""
        async with _running(journal) as committer:
            committer.add(_part(1))
        assert [1] == _revisions(journal)

    async def test_questions_are_asked_between_groups(self, journal: Journal, autojump_clock: MockClock) -> None:
        """What SQLite says comes back as an error of the store."""
        async with _running(journal) as committer:
            assert [] == await committer.query(_revisions, journal)
            with pytest.raises(IoFailure, match="no such table"):
                await committer.query(lambda: journal.connection.execute("SELECT * FROM missing"))

    async def test_a_long_log_is_copied_back(self, journal: Journal, autojump_clock: MockClock) -> None:
        """After the group, not in it."""
        async with _running(journal) as committer:
            await committer.commit(_part(1, size=9_000_000))
            await committer.commit(_part(2))
        assert not journal.wal_due


class TestFailures:
    async def test_a_group_that_fails_for_certain(
        self, journal: Journal, autojump_clock: MockClock, plan: FailingJournal
    ) -> None:
        """Everybody in it hears so, callbacks are not called, and the next group goes on."""
        called: list[int] = []
        async with _running(journal) as committer:
            plan.fail("INSERT OR REPLACE INTO revision")
            with pytest.raises(IoFailure) as caught:
                await committer.commit(_part(1), lambda: called.append(1))
            assert "none" == caught.value.outcome
            await committer.commit(_part(2))
        assert ([2], []) == (_revisions(journal), called)

    async def test_a_session_of_a_group_that_fails(
        self, journal: Journal, autojump_clock: MockClock, plan: FailingJournal
    ) -> None:
        """Its ticket fails."""
        async with _running(journal) as committer:
            plan.fail("COMMIT")
            ticket = committer.put_session(SessionRecord(id="s", profile="p", key=None, snapshot="h", seen_us=1))
            with pytest.raises(IoFailure):
                await ticket.wait()

    async def test_while_the_journal_cannot_be_opened_nothing_is_taken(
        self, journal: Journal, autojump_clock: MockClock, plan: FailingJournal
    ) -> None:
        """The group it failed in is unknown; what comes later was never tried. It is opened again by itself."""
        async with _running(journal) as committer:
            plan.fail("COMMIT", done=True, opening=3)
            assert "io_error unknown" == await _outcome(committer, _part(1))
            assert "io_error none" == await _outcome(committer, _part(2))
            await trio.sleep(5)
            assert journal.is_open
            assert "done" == await _outcome(committer, _part(3))
        assert [1, 3] == _revisions(journal)

    async def test_it_is_opened_again_although_nobody_asks(
        self, journal: Journal, autojump_clock: MockClock, plan: FailingJournal
    ) -> None:
        """Readers of history need it, too; and attempts are a second apart."""
        async with _running(journal) as committer:
            before = plan.opened
            plan.fail("COMMIT", opening=4)
            await _outcome(committer, _part(1))
            await trio.sleep(10)
            assert [] == await committer.query(_revisions, journal)
            assert 5 == plan.opened - before

    async def test_a_failing_rollback_does_not_end_it(
        self, journal: Journal, autojump_clock: MockClock, plan: FailingJournal
    ) -> None:
        """The connection is gone then, although what failed is certain."""
        async with _running(journal) as committer:
            plan.fail("INSERT OR REPLACE INTO revision", "ROLLBACK", opening=1)
            assert "io_error none" == await _outcome(committer, _part(1))
            await trio.sleep(3)
            assert "done" == await _outcome(committer, _part(2))
        assert [2] == _revisions(journal)

    async def test_what_rides_along_waits_for_the_journal(
        self, journal: Journal, autojump_clock: MockClock, plan: FailingJournal
    ) -> None:
        """Nobody waits for it, so that nobody has to be told."""
        async with _running(journal) as committer:
            plan.fail("COMMIT", opening=2)
            await _outcome(committer, _part(1))
            committer.add(_part(2))
            await trio.sleep(10)
        assert [2] == _revisions(journal)

    async def test_it_ends_although_the_journal_does_not_come_back(
        self, journal: Journal, autojump_clock: MockClock, plan: FailingJournal
    ) -> None:
        """A stop must not hang on a broken disk."""
        with trio.fail_after(10):
            async with _running(journal) as committer:
                plan.fail("COMMIT", opening=1000)
                await _outcome(committer, _part(1))
                committer.add(_part(2))

    async def test_a_blocked_committer_takes_nothing(self, journal: Journal, autojump_clock: MockClock) -> None:
        """When the journal's path leads elsewhere."""
        async with _running(journal) as committer:
            committer.block(IoFailure("the journal was replaced", outcome="none"))
            assert "io_error none" == await _outcome(committer, _part(1))
        assert [] == _revisions(journal)

    async def test_a_crash_leaves_nobody_waiting(
        self, journal: Journal, autojump_clock: MockClock, plan: FailingJournal
    ) -> None:
        """Whoever waits hears that it is unknown, whatever ends the task; otherwise the process could not end."""
        outcomes: list[str] = []

        async def client(committer: Committer, number: int) -> None:
            outcomes.append(await _outcome(committer, _part(number)))

        with pytest.raises(ExceptionGroup) as caught:  # noqa: PT012 - the task's end is what is tested
            async with _running(journal) as committer:
                plan.fail("INSERT OR REPLACE INTO revision", crash=True)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(client, committer, 1)
                    nursery.start_soon(client, committer, 2)
        assert caught.group_contains(Crash)
        assert ["io_error unknown", "io_error unknown"] == outcomes


class TestFullDisk:
    async def test_what_only_removes_gets_the_reserve(
        self, journal: Journal, autojump_clock: MockClock, plan: FailingJournal, tmp_path: Path
    ) -> None:
        """In a mixed group the others hear that there is no room."""
        reserve = Reserve(tmp_path / "reserve", size=4096)
        assert reserve.keep()
        outcomes: dict[int, str] = {}

        async def client(committer: Committer, number: int, action: str) -> None:
            outcomes[number] = await _outcome(committer, _part(number, action=action))

        async with _running(journal, reserve) as committer:
            plan.fail("COMMIT", name=FULL)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(client, committer, 1, "add")
                nursery.start_soon(client, committer, 2, "remove")
        assert {1: "no_space none", 2: "done"} == outcomes
        assert ([2], False) == (_revisions(journal), reserve.kept)

    async def test_without_a_reserve_removals_fail_as_well(
        self, journal: Journal, autojump_clock: MockClock, plan: FailingJournal
    ) -> None:
        """For certain."""
        async with _running(journal) as committer:
            plan.fail("COMMIT", name=FULL)
            with pytest.raises(NoSpace):
                await committer.commit(_part(1, action="remove"))

    async def test_what_adds_does_not_spend_it(
        self, journal: Journal, autojump_clock: MockClock, plan: FailingJournal, tmp_path: Path
    ) -> None:
        """It is kept for those who need it."""
        reserve = Reserve(tmp_path / "reserve", size=4096)
        reserve.keep()
        async with _running(journal, reserve) as committer:
            plan.fail("COMMIT", name=FULL)
            assert "no_space none" == await _outcome(committer, _part(1))
        assert reserve.kept
