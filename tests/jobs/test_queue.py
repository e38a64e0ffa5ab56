"""The queue: what lives, in which order, and how what is waited for becomes durable."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from msgspec.structs import replace
from support.jobs import TEA, JobWorld, flush, outcomes, review

from memd.errors import Conflict, IoFailure
from memd.jobs import states
from memd.store.journal import Journal
from memd.store.masking import Mask

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.faults import FailingJournal
    from trio.testing import MockClock


@pytest.fixture
def world(tmp_path: Path, plan: FailingJournal) -> Iterator[JobWorld]:
    """A world whose journal fails when it is told to, with nobody who could review."""
    (tmp_path / "w").mkdir()
    found = JobWorld(tmp_path / "w")
    found.journal = Journal(found.path / "journal.db", connect=plan.connect, boot_id="boot")
    found.workers = []
    yield found
    plan.heal()


async def test_flushes_come_first_then_the_oldest(world: JobWorld, autojump_clock: MockClock) -> None:
    """What waits for a compressor is waited for."""
    async with world.running():
        await world.accept(review(2), review(1), flush(3))
        assert ["j-3", "j-1", "j-2"] == [job.id for job in world.queue.live()]
        assert [] == world.queue.live("q")
        assert "<JobQueue 3 jobs>" == repr(world.queue)


async def test_an_end_is_tried_until_it_is_durable(
    world: JobWorld, plan: FailingJournal, autojump_clock: MockClock
) -> None:
    """It is told once, and only then."""
    async with world.running():
        await world.accept(review())
        await trio.sleep(2)
        (job,) = world.queue.live()
        plan.fail("COMMIT", "COMMIT", "COMMIT")
        ended = await world.queue.cancel(job, reason="no")
        assert [ended] == await world.queue.listed("p")
        assert 1 == len(world.profile.told("job.finished"))
        assert 1 == world.queue.outcomes["cancelled"]
    assert trio.current_time() > 2


async def test_what_must_be_durable_says_when_it_is_not(
    world: JobWorld, plan: FailingJournal, autojump_clock: MockClock
) -> None:
    """The caller decides what then."""
    async with world.running():
        await world.accept(review())
        (job,) = world.queue.live()
        plan.fail("COMMIT")
        with pytest.raises(IoFailure):
            await world.queue.keep(replace(job, summary="s"))


async def test_one_that_is_being_accepted_is_nobodys(world: JobWorld, autojump_clock: MockClock) -> None:
    """It can neither be taken nor be extended by another."""
    async with world.running():
        await world.accept(review())
        await trio.sleep(0.1)
        (job,) = world.queue.live()
        assert job == world.queue.extendable("p", "s-1")
        world.queue.reserve(job)
        assert (None, False, []) == (world.queue.extendable("p", "s-1"), world.queue.free(job), world.queue.queued())
        world.queue.withdraw(job)
        assert (job, True) == (world.queue.extendable("p", "s-1"), world.queue.free(job))


async def test_what_can_take_in_more(world: JobWorld, autojump_clock: MockClock) -> None:
    """A review of that session; not a flush, not the one of ended sessions, not one at work or decided."""
    async with world.running():
        rest = review(2, session="s-1", key="rest:x:1-1")
        await world.accept(flush(1, session="s-1"), rest)
        assert None is world.queue.extendable("p", "s-1")
        found = world.queue.extendable("p", "")
        assert found is not None
        assert "j-2" == found.id
        await world.accept(review(3, decided=True, operations=[TEA]))
        assert None is world.queue.extendable("p", "s-3")


async def test_only_what_waits_can_be_hurried(world: JobWorld, autojump_clock: MockClock) -> None:
    """No client is waited for then."""
    async with world.running():
        await world.accept(review(offered_us=world.clock() + 10**9))
        (job,) = world.queue.live()
        assert (0, "queued") == (world.queue.hurry(job).offered_us, world.queue.hurry(job).state)
        taken = world.queue.move(states.lease(job, token="t", holder="client", until_us=world.clock() + 10**9))
        with pytest.raises(Conflict, match="is leased"):
            world.queue.hurry(taken)
        world.workers = []
        ended = await world.queue.finish(taken, "nothing", reason=None)
        assert ["nothing"] == outcomes([ended])


async def test_what_is_in_memory_is_masked(world: JobWorld, autojump_clock: MockClock) -> None:
    """Everything a redaction finds in a job that lives."""
    async with world.running():
        job = review(decided=True, operations=[TEA], summary="likes tea", turn="tea time", reason="tea")
        await world.accept(job)
        world.queue.count_failures(job, 2)
        world.queue.redact(Mask(["tea time", "likes tea"]))
        (found,) = world.queue.live()
        assert ("[redacted]", "[redacted]", "[redacted]", "j-1") == (
            found.operations[0].content,
            found.summary,
            found.turn,
            found.id,
        )
        assert 2 == world.queue.failures(found)
