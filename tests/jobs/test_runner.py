"""Jobs at work, in virtual time: order, lanes, back-off, giving up, crashes; each ends exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from support.jobs import TEA, JobWorld, ScriptedWorker, flush, outcomes, review

from memd.errors import Busy, NoSuchJob, ReviewFailed, StoreDisabled
from memd.jobs.lanes import LONGEST_US
from memd.jobs.ports import JobCommit
from memd.jobs.schedule import DAY_US
from memd.store.work import RangeRecord, RefusedRecord

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock

DOWN = ReviewFailed("connection refused")


async def test_a_review_runs_once_and_is_committed(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Reviewed, committed, told, its copies gone, its costs in the account."""
    world = JobWorld(tmp_path)
    async with world.running():
        await world.accept(review())
        (job,) = await world.ended("j-1")
        assert ("done", "ok", [1]) == (job.state, job.outcome, job.committed)
        assert ("openai", "tiny", 1, 1) == (job.reviewer, job.model, job.attempts, job.steps)
        assert (100, 40, 10) == (job.input, job.cached, job.output)
        assert (["j-1"], ["I like tea"]) == (
            world.commits.calls,
            [one.text for one in world.worker.attempts[0].messages],
        )
        assert "what it found" == job.summary
        assert [] == await world.jobs.messages([RangeRecord("s-1", 1, 9)])
        (started,), (finished,) = world.profile.told("job.started"), world.profile.told("job.finished")
        assert ("j-1", "s-1", "review") == (started.job, started.session, started.data["kind"])
        assert ("ok", [1], 1000) == (finished.data["outcome"], finished.data["committed"], finished.data["took_ms"])
        (spent,) = await world.jobs.spent(world.ledger.today)
        assert (100, 40, 10) == (spent.input, spent.cached, spent.output)
        with pytest.raises(NoSuchJob):
            await world.queue.get("other", "j-1")


async def test_nothing_to_save_is_a_normal_answer(tmp_path: Path, autojump_clock: MockClock) -> None:
    """And commits nothing."""
    world = JobWorld(tmp_path)
    world.worker.operations = []
    async with world.running():
        await world.accept(review())
        assert ["nothing"] == outcomes(await world.ended("j-1"))
    assert [] == world.commits.calls


async def test_one_at_a_time_for_an_endpoint(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Flushes first, then the oldest; other endpoints are not waited for."""
    world = JobWorld(tmp_path)
    async with world.running():
        await world.accept(review(1), review(2), flush(3))
        await world.ended("j-1", "j-2", "j-3")
    assert 1 == world.worker.most
    assert ["j-3", "j-1", "j-2"] == [attempt.job.id for attempt in world.worker.attempts]


async def test_a_commit_does_not_hold_the_endpoint(tmp_path: Path, autojump_clock: MockClock) -> None:
    """While one job is committed to a disk that hangs, the next is reviewed."""
    world = JobWorld(tmp_path)
    world.commits.hold = trio.Event()
    async with world.running():
        await world.accept(review(1), review(2))
        with trio.move_on_after(60):
            await world.ended("j-1")
        assert ["j-1", "j-2"] == [attempt.job.id for attempt in world.worker.attempts]
        world.commits.hold.set()
        assert ["ok", "ok"] == outcomes(await world.ended("j-1", "j-2"))


async def test_a_dead_endpoint_drains_when_it_comes_back(tmp_path: Path, autojump_clock: MockClock) -> None:
    """A hundred sessions' jobs: tried by one at a time, more and more seldom, none lost; then all at once."""
    world = JobWorld(tmp_path)
    world.worker.failing = DOWN
    async with world.running():
        await world.accept(*(review(number) for number in range(1, 101)))
        await trio.sleep(3600)
        asked = len(world.worker.attempts)
        assert 10 < asked < 3600 * 1_000_000 / LONGEST_US + 10
        live = world.queue.live("p")
        assert (100, {"waiting"}, {"connection refused"}) == (
            len(live),
            {job.state for job in live},
            {job.reason for job in live},
        )
        world.worker.failing = None
        ended = await world.ended(*(f"j-{number}" for number in range(1, 101)), within_s=300 + 100 * 2)
    assert {"ok"} == set(outcomes(ended))
    assert 100 == len(world.commits.done)
    assert 1 == world.worker.most


async def test_an_endpoint_is_left_alone_as_long_as_it_asks(tmp_path: Path, autojump_clock: MockClock) -> None:
    """``Retry-After`` is kept to."""
    world = JobWorld(tmp_path)
    world.worker.failing = ReviewFailed("too many requests", retry_after_s=90)
    async with world.running():
        await world.accept(review())
        await trio.sleep(89)
        assert 1 == len(world.worker.attempts)
        world.worker.failing = None
        assert ["ok"] == outcomes(await world.ended("j-1", within_s=5))


async def test_the_next_in_line_takes_over(tmp_path: Path, autojump_clock: MockClock) -> None:
    """At once, for an endpoint that is down as for a key that is wrong; the first is asked again once it may work."""
    for failing in (DOWN, ReviewFailed("wrong key", permanent=True)):
        world = JobWorld(tmp_path / failing.message, review={"fallback": ["rules"]})
        world.path.mkdir()
        world.worker.failing = failing
        world.workers.append(ScriptedWorker("rules", None))
        async with world.running():
            await world.accept(review())
            (job,) = await world.ended("j-1", within_s=5)
        assert ("ok", "rules", 2) == (job.outcome, job.reviewer, job.attempts)


async def test_when_none_is_left_it_has_failed(tmp_path: Path, autojump_clock: MockClock) -> None:
    """For good, and it says why."""
    world = JobWorld(tmp_path)
    world.worker.failing = ReviewFailed("the model is not there", permanent=True)
    async with world.running():
        await world.accept(review())
        (job,) = await world.ended("j-1")
    assert ("failed", "the model is not there", 1) == (job.outcome, job.reason, job.failures)
    assert ["failed"] == [event.data["outcome"] for event in world.profile.told("job.finished")]


async def test_a_model_that_answers_rubbish_is_not_asked_for_ever(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Three failures of a turn, then it stops; it cost what it cost."""
    world = JobWorld(tmp_path)
    world.worker.operations = []
    world.worker.then = ReviewFailed("no JSON")
    async with world.running():
        await world.accept(review())
        (job,) = await world.ended("j-1")
    assert ("failed", 3, 3) == (job.outcome, job.failures, len(world.worker.attempts))
    assert job.reason is not None
    assert "failed 3 times in this turn; the last: no JSON" in job.reason
    assert (300, 120, 30) == (job.input, job.cached, job.output)


async def test_review_and_flush_of_a_turn_share_the_counter(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Another turn has its own."""
    world = JobWorld(tmp_path)
    world.worker.failures = 2
    world.worker.operations = []
    world.worker.then = ReviewFailed("refused", permanent=True)
    async with world.running():
        await world.accept(flush(1, session="s", turn="t"))
        await world.ended("j-1")
        await world.accept(review(2, session="s", turn="t"), review(3, session="s", turn="u"))
        second, third = await world.ended("j-2", "j-3")
    assert second.reason is not None
    assert "failed 3 times in this turn" in second.reason
    assert ["j-1", "j-3"] == [attempt.job.id for attempt in world.worker.attempts]
    assert third.reason is not None
    assert third.reason.endswith("the last: refused")


async def test_what_was_found_before_a_failure_is_kept(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Partial, with the reason; not tried again."""
    world = JobWorld(tmp_path)
    world.worker.then = ReviewFailed("cut off")
    async with world.running():
        await world.accept(review())
        (job,) = await world.ended("j-1")
    assert ("partial", "cut off", [1]) == (job.outcome, job.reason, job.committed)
    assert 1 == len(world.worker.attempts)


async def test_a_reviewer_that_hangs_has_a_limit(tmp_path: Path, autojump_clock: MockClock) -> None:
    """The wall clock of the settings; then its endpoint is left alone for a while."""
    world = JobWorld(tmp_path, review={"timeout_s": 20})
    world.worker.failing = DOWN
    world.worker.takes_s = 1e5
    async with world.running():
        await world.accept(review())
        await trio.sleep(21)
        (job,) = world.queue.live()
        assert ("waiting", "the reviewer took longer than 20 s ([review] timeout_s)") == (job.state, job.reason)
        assert 0 == world.worker.at_work


async def test_a_bug_is_the_jobs_outcome(tmp_path: Path, autojump_clock: MockClock) -> None:
    """The others go on."""
    world = JobWorld(tmp_path)
    world.worker.failing = KeyError("oops")
    async with world.running():
        await world.accept(review(1))
        (job,) = await world.ended("j-1")
        assert ("failed", "a bug in the reviewer openai: KeyError") == (job.outcome, job.reason)
        world.worker.failing = None
        world.commits.failing = [ValueError("oops")]
        await world.accept(review(2), review(3))
        assert ["failed", "ok"] == outcomes(await world.ended("j-2", "j-3"))
    assert ["openai: 'oops'", "commit: oops"] == world.bugs


async def test_a_store_that_cannot_be_written_is_waited_for(tmp_path: Path, autojump_clock: MockClock) -> None:
    """The reviewer is not asked again for it."""
    world = JobWorld(tmp_path)
    world.commits.failing = [Busy("locked"), Busy("locked")]
    async with world.running():
        await world.accept(review())
        (job,) = await world.ended("j-1", within_s=60)
    assert ("ok", 1, 3) == (job.outcome, len(world.worker.attempts), len(world.commits.calls))


async def test_what_cannot_be_committed_fails_loudly(tmp_path: Path, autojump_clock: MockClock) -> None:
    """With the error's words."""
    world = JobWorld(tmp_path)
    world.commits.failing = [StoreDisabled("user is switched off")]
    async with world.running():
        await world.accept(review())
        (job,) = await world.ended("j-1")
    assert ("failed", "nothing was committed: user is switched off") == (job.outcome, job.reason)


async def test_without_stores_nobody_is_asked(tmp_path: Path, autojump_clock: MockClock) -> None:
    """A job that could not write fails before it costs anything."""
    world = JobWorld(tmp_path, stores={"memory": False, "user": False})
    async with world.running():
        await world.accept(flush())
        (job,) = await world.ended("j-1")
    assert "failed" == job.outcome
    assert job.reason is not None
    assert "switched off" in job.reason
    assert [] == world.worker.attempts


async def test_the_days_tokens(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Once spent, jobs wait for the next day; those of the reviewer that costs nothing do not. A restart forgets nothing."""
    world = JobWorld(tmp_path / "first", review={"tokens_per_day": 200})
    world.path.mkdir()
    async with world.running():
        await world.accept(*(review(number) for number in range(1, 11)))
        await trio.sleep(3600)
        assert [2, 8] == [len(world.commits.done), len(world.queue.live())]
        assert {"the day's 200 tokens are spent ([review] tokens_per_day)"} == {
            job.reason for job in world.queue.live()
        }
        assert [200, 90] == [attempt.tokens_left for attempt in world.worker.attempts]
    again = world.crashed(tmp_path / "again")
    async with again.running():
        await trio.sleep(3600)
        assert 2 == len(world.commits.done)
        await trio.sleep(DAY_US / 1_000_000)
        assert 4 == len(world.commits.done)
        again.workers = [ScriptedWorker("rules", None)]
        await trio.sleep(DAY_US / 1_000_000)
        assert 10 == len(world.commits.done)


async def test_the_tokens_of_a_job(tmp_path: Path, autojump_clock: MockClock) -> None:
    """It is not tried again beyond them."""
    world = JobWorld(tmp_path, review={"tokens_per_job": 150}, turn={"failure_budget": 100})
    world.worker.operations = []
    world.worker.then = ReviewFailed("no JSON")
    async with world.running():
        await world.accept(review())
        (job,) = await world.ended("j-1")
    assert ("failed", 2) == (job.outcome, len(world.worker.attempts))
    assert job.reason is not None
    assert "used 220 tokens" in job.reason


async def test_a_stop_queues_it_again(tmp_path: Path, autojump_clock: MockClock) -> None:
    """At once, whatever the reviewer does; what it cost so far is written down."""
    world = JobWorld(tmp_path / "before")
    world.path.mkdir()
    world.worker.takes_s = 1e5
    async with world.running():
        await world.accept(review())
        await trio.sleep(1)
        began = trio.current_time()
    assert began == trio.current_time()
    again = world.crashed(tmp_path / "after")
    again.worker.takes_s = 0.1
    async with again.running():
        (job,) = await again.ended("j-1")
    assert ("ok", 1, 200) == (job.outcome, job.attempts, job.input)


async def test_a_lease_is_renewed_while_work_goes_on(tmp_path: Path, autojump_clock: MockClock) -> None:
    """And the account follows."""
    world = JobWorld(tmp_path, review={"lease_s": 9})
    world.worker.takes_s = 30
    async with world.running():
        await world.accept(review())
        await trio.sleep(25)
        kept = await world.jobs.job("p", "j-1")
        assert kept is not None
        assert ("running", "daemon", 100) == (kept.state, kept.holder, kept.input)
        assert kept.lease_us > world.clock()
        await world.ended("j-1")


async def test_copies_past_keeping(tmp_path: Path, autojump_clock: MockClock) -> None:
    """There is nothing to review any more; it is said."""
    world = JobWorld(tmp_path)
    async with world.running():
        await world.accept(review(ranges=[RangeRecord("gone", 5, 9)]))
        (job,) = await world.ended("j-1")
    assert "failed" == job.outcome
    assert job.reason is not None
    assert "past keeping" in job.reason


async def test_a_profile_that_is_not_served(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Its jobs wait until it is."""
    world = JobWorld(tmp_path)
    profile = world.profiles.pop("p")
    async with world.running():
        await world.accept(review())
        await trio.sleep(600)
        assert ["waiting"] == [job.state for job in world.queue.live()]
        world.profiles["p"] = profile
        assert ["ok"] == outcomes(await world.ended("j-1", within_s=70))


async def test_a_store_that_is_nearly_full(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Makes the next review a consolidation; a flush is none."""
    world = JobWorld(tmp_path)
    world.profile.chars["user"] = 85
    async with world.running():
        await world.accept(review(1), flush(2))
        await world.ended("j-1", "j-2")
        world.profile.chars["user"] = 84
        await world.accept(review(3))
        await world.ended("j-3")
    wanted = {attempt.job.id: attempt.job.consolidate for attempt in world.worker.attempts}
    assert {"j-2": False, "j-1": True, "j-3": False} == wanted


@pytest.mark.parametrize(
    ("commit", "then", "outcome"),
    [
        (JobCommit(committed=[1]), None, "ok"),
        (JobCommit(staged=["p-1"]), None, "ok"),
        (JobCommit(committed=[1], refused=[RefusedRecord(TEA, "over_limit")]), None, "ok"),
        (JobCommit(refused=[RefusedRecord(TEA, "over_limit")]), None, "nothing"),
        (JobCommit(conflicts=[RefusedRecord(TEA, "conflict")]), None, "nothing"),
        (JobCommit(staged=["p-1"]), ReviewFailed("cut off"), "partial"),
        (JobCommit(refused=[RefusedRecord(TEA, "over_limit")]), ReviewFailed("cut off"), "failed"),
    ],
)
async def test_what_it_comes_to(
    commit: JobCommit, then: ReviewFailed | None, outcome: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    """By what was committed or staged; what was refused, and what had changed meanwhile, is listed with its name."""
    world = JobWorld(tmp_path)
    world.commits.done["j-1"] = commit
    world.worker.then = then
    async with world.running():
        await world.accept(review())
        (job,) = await world.ended("j-1")
    assert outcome == job.outcome
    assert (list(commit.committed), list(commit.staged)) == (job.committed, job.staged)
    assert (list(commit.refused), list(commit.conflicts)) == (job.refused, job.conflicts)
    (told,) = world.profile.told("job.finished")
    assert (len(job.refused), len(job.conflicts)) == (told.data["refused"], told.data["conflicts"])
