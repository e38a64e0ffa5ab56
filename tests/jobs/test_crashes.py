"""A crash at every state of a job: the next start goes on, the job ends exactly once, it commits exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from support.jobs import Commits, JobWorld, review

from memd.errors import ReviewFailed
from memd.jobs.schedule import MOST_TRIES

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock

DOWN = ReviewFailed("connection refused")
POINTS = ["queued", "leased", "running", "waiting", "decided", "committed", "done"]


def _stop_at(world: JobWorld, point: str) -> None:
    """Have a job get no further than a point."""
    if point == "queued":
        world.foreground.begin("s-1", world.clock())
    elif point == "leased":
        world.jobs.messages = _for_ever  # type: ignore[assignment,method-assign]  # a journal that does not answer
    elif point == "waiting":
        world.worker.failing = DOWN
    elif point == "running":
        world.worker.takes_s = 1e5
    elif point == "decided":
        world.commits.hold = trio.Event()
    elif point == "committed":
        world.commits.hold_after = trio.Event()


async def _reach(world: JobWorld, point: str) -> None:
    """Bring a job to a point, and the journal with it."""
    _stop_at(world, point)
    await world.accept(review())
    if point == "done":
        await world.ended("j-1")
        return
    if point in ("decided", "committed"):
        await world.commits.reached.wait()
    else:
        await trio.sleep(1.5)
    (job,) = world.queue.live()
    assert point in (job.state, "decided" if job.decided else "", "committed" if world.commits.done else "")
    await world.committer.settle()


async def _for_ever(ranges: object) -> list[object]:
    await trio.sleep(80_000)
    return [ranges]


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("lazily", [False, True], ids=["written", "unwritten"])
async def test_a_crash_at_each_state(point: str, lazily: bool, tmp_path: Path, autojump_clock: MockClock) -> None:
    """The next start goes on where it was: the job ends exactly once, and what it wanted is committed exactly once."""
    commits = Commits()
    world = JobWorld(tmp_path / "before", commits=commits)
    world.path.mkdir()
    async with world.running():
        if lazily:  # what nobody waits for never gets into the journal
            world.jobs.add = lambda part, committed=None: None  # type: ignore[method-assign]
        await _reach(world, point)
        again = world.crashed(tmp_path / "after")
        commits.hold = commits.hold_after = None
        world.runner.wake = lambda: None  # type: ignore[method-assign]  # it is dead: what it would still do is not done
        async with again.running():
            if point != "done":
                (job,) = await again.ended("j-1", within_s=600)
                assert 1 == len(again.profile.told("job.finished"))
            job = await again.queue.get("p", "j-1")
            assert ("done", "ok", [1]) == (job.state, job.outcome, job.committed)
            assert [] == await again.jobs.messages(job.ranges)
            assert [] == again.queue.live()
            again_asked = len(again.worker.attempts)
    assert 1 == len(commits.done)
    reviewed_before = point in ("decided", "committed", "done")
    assert (0 if reviewed_before else 1) == again_asked


async def test_a_job_that_kills_the_daemon_is_given_up(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Not tried for ever."""
    world = JobWorld(tmp_path / "0")
    world.path.mkdir()
    for number in range(1, MOST_TRIES + 2):
        world.worker.takes_s = 1e5
        async with world.running():
            if number == 1:
                await world.accept(review())
            await trio.sleep(3)
            if number > MOST_TRIES:
                break
            world = world.crashed(tmp_path / str(number))
    (finished,) = world.profile.told("job.finished")
    assert "failed" == finished.data["outcome"]
    assert f"after {MOST_TRIES} attempts" in finished.data["reason"]
    assert [] == world.worker.attempts
