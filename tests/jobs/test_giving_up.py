"""Reviews that wait for quiet, are given up for a turn on their endpoint, or are cancelled by a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from support.jobs import URL, JobWorld, flush, outcomes, review
from trio.testing import wait_all_tasks_blocked

from memd.errors import ReviewFailed

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock

DOWN = ReviewFailed("connection refused")


class TestForeground:
    async def test_it_waits_for_quiet(self, tmp_path: Path, autojump_clock: MockClock) -> None:
        """Not while a turn of its session runs, nor for two seconds after it; another session's turn is no reason."""
        world = JobWorld(tmp_path)
        async with world.running():
            world.foreground.begin("s-1", world.clock())
            world.foreground.begin("s-9", world.clock())
            await world.accept(review())
            await trio.sleep(600)
            assert [] == world.worker.attempts
            world.foreground.end("s-1", world.clock())
            world.runner.wake()
            await trio.sleep(1.9)
            assert [] == world.worker.attempts
            assert ["ok"] == outcomes(await world.ended("j-1", within_s=2))

    async def test_a_turn_that_nobody_ends(self, tmp_path: Path, autojump_clock: MockClock) -> None:
        """Is given up after an hour."""
        world = JobWorld(tmp_path)
        async with world.running():
            world.foreground.begin("s-1", world.clock())
            await world.accept(review())
            await trio.sleep(3599)
            assert [] == world.worker.attempts
            assert ["ok"] == outcomes(await world.ended("j-1", within_s=70))

    @pytest.mark.parametrize(
        ("session", "endpoint", "stops"),
        [
            ("s-1", URL + "/", True),
            ("s-1", "http://other.test/v1", False),
            ("s-1", None, False),
            ("s-2", URL, False),
        ],
    )
    async def test_a_turn_on_its_endpoint_stops_it(
        self, session: str, endpoint: str | None, stops: bool, tmp_path: Path, autojump_clock: MockClock
    ) -> None:
        """Its own session's only; it resumes when that is quiet, what it cost is kept, and it counts as no failure."""
        world = JobWorld(tmp_path)
        world.worker.takes_s = 10
        async with world.running():
            await world.accept(review())
            await trio.sleep(5)
            world.foreground.begin(session, world.clock())
            world.runner.give_up(session, endpoint)
            await trio.sleep(20)
            assert (0 if stops else 1) == len(world.commits.done)
            assert 0 == world.worker.at_work
            world.foreground.end(session, world.clock())
            world.runner.wake()
            (job,) = await world.ended("j-1", within_s=15)
        assert ("ok", 0, 1, 200 if stops else 100) == (job.outcome, job.failures, job.attempts, job.input)
        assert 1 == len(world.commits.done)

    async def test_a_flush_is_not_stopped(self, tmp_path: Path, autojump_clock: MockClock) -> None:
        """It is part of what the user waits for."""
        world = JobWorld(tmp_path)
        async with world.running():
            world.foreground.begin("s-1", world.clock())
            await world.accept(flush())
            await trio.sleep(0.5)
            world.runner.give_up("s-1", URL)
            assert ["ok"] == outcomes(await world.ended("j-1", within_s=2))


class TestCancel:
    @pytest.mark.parametrize("at", ["queued", "waiting", "running"])
    async def test_a_person_cancels(self, at: str, tmp_path: Path, autojump_clock: MockClock) -> None:
        """Wherever it is; it ends as cancelled, its copies go, nothing is committed."""
        world = JobWorld(tmp_path)
        async with world.running():
            if at == "queued":
                world.foreground.begin("s-1", world.clock())
            if at == "waiting":
                world.worker.failing = DOWN
            world.worker.takes_s = 0.5 if at == "waiting" else 60
            await world.accept(review())
            await trio.sleep(1)
            (job,) = world.queue.live()
            assert at == job.state
            job = await world.runner.cancel(job, reason="not now")
            assert ("cancelled", "not now", "done") == (job.outcome, job.reason, job.state)
            assert [] == world.queue.live()
            assert [] == await world.jobs.messages(job.ranges)
            await trio.sleep(1000)
            assert job == await world.runner.cancel(job, reason="again")
        assert [] == world.commits.calls
        assert ["cancelled"] == [event.data["outcome"] for event in world.profile.told("job.finished")]

    async def test_too_late(self, tmp_path: Path, autojump_clock: MockClock) -> None:
        """What is being committed is committed, and says so."""
        world = JobWorld(tmp_path)
        world.commits.hold = trio.Event()
        async with world.running():
            await world.accept(review())
            await world.commits.reached.wait()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(world.ended, "j-1")
                nursery.start_soon(_cancelled, world, "ok")
                await wait_all_tasks_blocked()
                world.commits.hold.set()


async def _cancelled(world: JobWorld, outcome: str) -> None:
    (job,) = world.queue.live()
    assert outcome == (await world.runner.cancel(job, reason="too late")).outcome
