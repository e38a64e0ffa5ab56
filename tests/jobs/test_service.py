"""Jobs as the rest of the daemon sees them: turns to jobs, sessions that idle, what people and clients ask."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
import trio
from support.jobs import START_US, Commits, FakeProfile, ScriptedWorker, flush, outcomes

from memd.errors import Conflict, IoFailure, NoSuchJob, ReviewFailed
from memd.jobs import Found, Jobs, Parts, Source, TurnEnd, Used, records_of, texts_of
from memd.jobs.copies import Said
from memd.store.committer import Committer
from memd.store.jobs import JobJournal
from memd.store.records import EventRecord, Part
from memd.store.threads import InlineRunner
from memd.store.work import DeskRecord, MessageRecord, WorkPart

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.faults import FailingJournal
    from trio.testing import MockClock

    from memd.store.journal import Journal


class Service:
    """Jobs over a real journal, with a scripted reviewer."""

    def __init__(self, journal: Journal, **sections: Any) -> None:
        self.journal = journal
        self.worker = ScriptedWorker()
        self.commits = Commits()
        self.profile = FakeProfile(**{"review": {"interval": 2, "idle_s": 2.0}, **sections})
        self.alive = {"s", "a", "b"}
        self.turns = 0
        self.random = 0

    def clock(self) -> int:
        return START_US + int(trio.current_time() * 1_000_000)

    def token(self, size: int) -> bytes:
        self.random += 1
        return self.random.to_bytes(size, "big")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Service]:
        seq = self.journal.newest()[1] + 1
        self.committer = Committer(self.journal, InlineRunner(), next_revision=1, next_seq=seq)
        self.jobs = Jobs(
            Parts(
                journal=JobJournal(self.committer),
                profiles={"p": self.profile},
                workers=lambda _: [self.worker],
                commit=self.commits,
                clock=self.clock,
                token=self.token,
                on_bug=lambda where, error: None,
            )
        )
        async with trio.open_nursery() as outer:
            outer.start_soon(self.committer.run)
            await self.jobs.load()
            async with trio.open_nursery() as inner:
                inner.start_soon(lambda: self.jobs.run(alive=self.alive.__contains__))
                yield self
                inner.cancel_scope.cancel()
            self.committer.close()

    async def turn(self, session: str = "s", *, says: str = "I like tea") -> str | None:
        """A turn from its beginning to its end; the review that it brings about."""
        self.turns += 1
        turn = f"t{self.turns}"
        self.jobs.turn_began(session, "http://agent.test")
        first = self.jobs.counting.take_numbers("p", session, 1)
        said = [Said("user", says)]
        messages = records_of(said, texts_of(said), Source("p", session, first, self.clock(), turn, user_turn=True))
        self.jobs.turn_over(session)
        counted = self.jobs.turn_ended(self.profile, TurnEnd("p", session, turn, counts=True), messages)
        try:
            await self.committer.commit(Part(work=counted.work))
        except IoFailure:
            self.jobs.settle(counted, durable=False)
        else:
            self.jobs.settle(counted, durable=True)
        return self.jobs.counting.planned("p", session, turn)

    async def close(self, session: str) -> None:
        counted = self.jobs.session_closed(self.profile, session)
        await self.committer.commit(Part(work=counted.work))
        self.jobs.settle(counted, durable=True)


async def test_turns_become_a_review(journal: Journal, autojump_clock: MockClock) -> None:
    """At the interval, after two quiet seconds; what it saw is what was said."""
    service = Service(journal)
    async with service.running():
        assert None is await service.turn()
        job = await service.turn(says="in the morning")
        assert job is not None
        assert "daemon" == service.jobs.placement(job)
        (ended,) = [await service.jobs.wait("p", job, 60)]
        assert ("ok", 2) == (ended.outcome, ended.turns)
        assert ["I like tea", "in the morning"] == [one.text for one in service.worker.attempts[0].messages]
        assert {"ok": 1} == service.jobs.statistics().outcomes
        assert {"p": (100, 40, 10)} == service.jobs.statistics().tokens


async def test_an_agents_write_sets_its_session_back(journal: Journal, autojump_clock: MockClock) -> None:
    """Its own, told by the event; not one of a job, or of a person."""
    service = Service(journal)
    async with service.running():
        await service.turn()
        for origin, job in (("user", None), ("agent", "j-9"), ("review", "j-9")):
            service.jobs.heard(_changed("s", origin, job))
        assert 1 == service.jobs.counting.unseen("p", "s")
        service.jobs.heard(_changed("s", "agent", None))
        assert 0 == service.jobs.counting.unseen("p", "s")
        assert None is await service.turn()


def _changed(session: str, origin: str, job: str | None) -> EventRecord:
    return EventRecord(us=1, topic="memory.changed", profile="p", session=session, job=job, data={"origin": origin})


async def test_sessions_that_end_or_idle_are_reviewed_together(journal: Journal, autojump_clock: MockClock) -> None:
    """One closes, one is left alone for an hour."""
    service = Service(journal)
    async with service.running():
        await service.turn("a")
        await service.turn("b", says="b says")
        await service.close("a")
        await trio.sleep(3500)
        assert [] == service.worker.attempts
        await trio.sleep(200)
        (attempt,) = service.worker.attempts
        assert ["I like tea", "b says"] == [one.text for one in attempt.messages]
        assert ["ok"] == outcomes(await service.jobs.queue.listed("p"))


async def test_a_session_that_expired_leaves_its_count(journal: Journal, autojump_clock: MockClock) -> None:
    """As one that was closed does."""
    service = Service(journal)
    async with service.running():
        await service.turn("a")
        service.alive.discard("a")
        await trio.sleep(61)
        assert ([], 1) == (service.jobs.counting.sessions(), service.jobs.counting.unseen("p"))


async def test_copies_are_not_kept_for_ever(journal: Journal, autojump_clock: MockClock) -> None:
    """A day of keeping, for messages that never were enough for a review."""
    service = Service(journal, review={"interval": 100, "keep_messages_days": 1})
    async with service.running():
        await service.turn()
        await trio.sleep(80_000)
        assert [(1,)] == journal.connection.execute("SELECT count(*) FROM message").fetchall()
        await trio.sleep(14_000)
        assert [(0,)] == journal.connection.execute("SELECT count(*) FROM message").fetchall()


async def test_a_turn_that_cannot_be_written_is_due_again(
    journal: Journal, plan: FailingJournal, autojump_clock: MockClock
) -> None:
    """The count is spent with the job or not at all; a review that waits is extended or is what it was."""
    service = Service(journal)
    async with service.running():
        await service.turn()
        plan.fail("COMMIT")
        assert None is await service.turn()
        await trio.sleep(5)
        assert ([], 2) == (service.jobs.queue.live(), service.jobs.counting.unseen("p", "s"))
        service.jobs.turn_began("s", None)
        job = await service.turn()
        service.jobs.turn_began("s", None)
        assert job is not None
        assert job == await service.turn() or await service.turn() == job
        plan.fail("COMMIT")
        service.jobs.turn_began("s", None)
        await service.turn()
        (live,) = service.jobs.queue.live()
        assert live.id == job


async def test_a_review_that_waits_takes_in_more(journal: Journal, autojump_clock: MockClock) -> None:
    """Coalesced: one job while its endpoint is down, however many turns go by."""
    service = Service(journal)
    service.worker.failing = _down()
    async with service.running():
        for _ in range(6):
            await service.turn()
            await trio.sleep(30)
        (live,) = service.jobs.queue.live()
        assert (6, 1) == (live.turns, len(live.ranges))
        (notice,) = service.jobs.notices()
        assert "reviewer_down" == notice.name
        assert "http://model.test/v1 does not answer (refused): 1 reviews and flushes wait" in notice.message
        service.worker.failing = None
        assert "ok" == (await service.jobs.wait("p", live.id, 600)).outcome
        assert [] == service.jobs.notices()


def _down() -> Exception:
    return ReviewFailed("refused")


async def test_a_job_of_its_own(journal: Journal, plan: FailingJournal, autojump_clock: MockClock) -> None:
    """A flush with its messages: accepted as a whole or not at all."""
    service = Service(journal)
    async with service.running():
        job = flush(1)
        message = MessageRecord(owner="j-1", number=1, profile="p", us=1, role="user", text="keep this")
        plan.fail("COMMIT")
        with pytest.raises(IoFailure):
            await service.jobs.put(job, WorkPart(messages=[message]))
        assert [] == service.jobs.queue.live()
        await service.jobs.put(job, WorkPart(messages=[message]))
        assert "ok" == (await service.jobs.wait("p", "j-1", 60)).outcome


class TestPeople:
    async def test_now(self, journal: Journal, autojump_clock: MockClock) -> None:
        """What no review has seen, however little; what waits; nothing of nothing."""
        service = Service(journal, review={"interval": 100})
        async with service.running():
            with pytest.raises(NoSuchJob, match="nothing of session s"):
                await service.jobs.run_now(service.profile, session="s")
            await service.turn()
            job = await service.jobs.run_now(service.profile, session="s")
            assert "ok" == (await service.jobs.wait("p", job.id, 60)).outcome
            with pytest.raises(Conflict, match="is done"):
                await service.jobs.run_now(service.profile, job=job.id)
            with pytest.raises(NoSuchJob):
                await service.jobs.run_now(service.profile, job="j-none")

    async def test_what_waits_is_run_at_once(self, journal: Journal, autojump_clock: MockClock) -> None:
        """Though its time has not come."""
        service = Service(journal)
        service.worker.failing = _later()
        async with service.running():
            await service.turn()
            job = await service.turn()
            assert job is not None
            await trio.sleep(10)
            service.worker.failing = None
            assert "waiting" == (await service.jobs.queue.get("p", job)).state
            assert job == (await service.jobs.run_now(service.profile, session="s")).id

    async def test_a_wait_ends(self, journal: Journal, autojump_clock: MockClock) -> None:
        """With the job as it is then."""
        service = Service(journal)
        service.worker.takes_s = 100
        async with service.running():
            await service.turn()
            job = await service.turn()
            assert job is not None
            began = trio.current_time()
            assert "running" == (await service.jobs.wait("p", job, 50)).state
            assert 50 == trio.current_time() - began
            assert "cancelled" == (await service.jobs.cancel("p", job, reason="enough")).outcome
            with pytest.raises(NoSuchJob):
                await service.jobs.wait("q", job, 50)


def _later() -> Exception:
    return ReviewFailed("busy", retry_after_s=1000)


class TestClients:
    CLIENT: ClassVar[dict[str, Any]] = {"review": {"interval": 1, "reviewer": "client", "lease_s": 30}}

    async def test_the_session_does_it(self, journal: Journal, autojump_clock: MockClock) -> None:
        """Offered, claimed, submitted; committed by the daemon."""
        service = Service(journal, **self.CLIENT)
        async with service.running():
            job = await service.turn()
            assert job is not None
            assert "client" == service.jobs.placement(job)
            claimed = await service.jobs.clients.claim("p", job, "s", lease_s=30)
            assert ("running", "client", 32) == (claimed.state, claimed.holder, len(claimed.lease))
            await trio.sleep(20)
            await service.jobs.clients.renew("p", job, claimed.lease, lease_s=30)
            await trio.sleep(20)
            found = Found([DeskRecord("user", "add", "tea")], used=Used(input=5, output=2, steps=1, model="big"))
            ended = await service.jobs.clients.submit("p", job, claimed.lease, found, summary="likes tea")
            assert ("ok", "client", "big", 5, "likes tea") == (
                ended.outcome,
                ended.reviewer,
                ended.model,
                ended.input,
                ended.summary,
            )
            assert [] == service.worker.attempts

    async def test_one_that_does_not_come_or_does_not_submit(self, journal: Journal, autojump_clock: MockClock) -> None:
        """The daemon's own reviewer takes the job."""
        service = Service(journal, **self.CLIENT)
        async with service.running():
            job = await service.turn()
            assert job is not None
            await trio.sleep(29)
            assert [] == service.worker.attempts
            assert "ok" == (await service.jobs.wait("p", job, 10)).outcome
            job = await service.turn()
            assert job is not None
            claimed = await service.jobs.clients.claim("p", job, "s", lease_s=30)
            await trio.sleep(29)
            assert 1 == len(service.worker.attempts)
            assert "ok" == (await service.jobs.wait("p", job, 10)).outcome
            with pytest.raises(Conflict, match="has ended"):
                await service.jobs.clients.submit("p", job, claimed.lease, Found())

    async def test_one_that_gives_it_back(self, journal: Journal, autojump_clock: MockClock) -> None:
        """Its failure is counted, and the daemon goes on."""
        service = Service(journal, **self.CLIENT)
        async with service.running():
            job = await service.turn()
            assert job is not None
            claimed = await service.jobs.clients.claim("p", job, "s", lease_s=30)
            await service.jobs.clients.fail("p", job, claimed.lease, "no model")
            ended = await service.jobs.wait("p", job, 10)
            assert ("ok", 1, "openai") == (ended.outcome, ended.failures, ended.reviewer)

    async def test_what_is_anothers(self, journal: Journal, autojump_clock: MockClock) -> None:
        """Another session's job, one that is taken, one that was never there; a wrong lease."""
        service = Service(journal, **self.CLIENT)
        async with service.running():
            job = await service.turn()
            assert job is not None
            with pytest.raises(Conflict, match="is about session s"):
                await service.jobs.clients.claim("p", job, "b", lease_s=30)
            await service.jobs.clients.claim("p", job, "s", lease_s=30)
            with pytest.raises(Conflict, match="is running and cannot be claimed"):
                await service.jobs.clients.claim("p", job, "s", lease_s=30)
            with pytest.raises(NoSuchJob):
                await service.jobs.clients.claim("q", job, "s", lease_s=30)
            with pytest.raises(Conflict, match="lease"):
                await service.jobs.clients.renew("p", job, "guess", lease_s=30)


async def test_a_restart_knows_counts_jobs_and_turns(journal: Journal, autojump_clock: MockClock) -> None:
    """As they were."""
    service = Service(journal)
    service.worker.takes_s = 1000
    async with service.running():
        await service.turn()
        await service.turn()
        await service.turn()
        await trio.sleep(5)
    again = Service(journal)
    async with again.running():
        assert 1 == again.jobs.counting.unseen("p", "s")
        (live,) = again.jobs.queue.live()
        assert "ok" == (await again.jobs.wait("p", live.id, 60)).outcome
