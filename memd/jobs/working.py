"""Work on one job: its messages, its reviewer, what that wants, the commit, the outcome.

What comes in: a job that was taken, and who reviews it. What goes out: the job moved on: decided and ended, or given back. What must not
be here: which job comes next (``runner``), what a reviewer does, how operations are committed.

A worker holds its endpoint's lane while its reviewer is at work, never longer; nothing is committed before the reviewer has ended and
what it wants is durable. Whatever interrupts a worker, the job is given back in the same step: there is no state that only a task knows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import trio
from msgspec.structs import replace

from memd.errors import ReviewFailed, StoreError, WireError
from memd.jobs import states
from memd.jobs.ports import Attempt, Found, Used
from memd.jobs.schedule import DAY_US
from memd.profile.stored import WorkPart
from memd.profile.values import TARGETS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from memd.jobs.lanes import Lanes
    from memd.jobs.ledger import Ledger
    from memd.jobs.ports import JobCommit, JobProfile, Journal, Worker
    from memd.jobs.queue import JobQueue
    from memd.jobs.schedule import Schedule
    from memd.jobs.states import Outcome
    from memd.profile.stored import JobRecord, MessageRecord

STORE_AGAIN_US = 5_000_000
"""Between attempts while a store cannot be written, or the journal not be read."""
MODEL_AGAIN_US = 10_000_000
"""Before a model that answered with nothing of use is asked again; doubled with each time."""


@dataclass(frozen=True, slots=True)
class Means:
    """What a worker works with.

    ``commit`` brings a job's operations in, at most once however often it is called for the job; ``token`` gives unguessable texts;
    ``on_bug`` hears of a reviewer that fails in a way it should not.
    """

    queue: JobQueue
    journal: Journal
    profiles: Mapping[str, JobProfile]
    schedule: Schedule
    lanes: Lanes
    ledger: Ledger
    commit: Callable[[JobProfile, JobRecord], Awaitable[JobCommit]]
    clock: Callable[[], int]
    token: Callable[[], str]
    on_bug: Callable[[str, Exception], None]


@dataclass(slots=True)
class Slot:
    """A job at work.

    ``given_up``: why it was told to stop; ``cancelled``: for good; ``committing``: it is past that, and ends by itself. ``done`` is set
    when nobody works on it any more.
    """

    job: str
    lease: str
    lane: str
    worker: Worker | None
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    given_up: str = ""
    cancelled: bool = False
    committing: bool = False
    done: trio.Event = field(default_factory=trio.Event)
    found: Found = field(default_factory=Found)
    charged: Used = field(default_factory=Used)


class Working:
    """Works on jobs, each in a task of its own: ``work``."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._queue = means.queue
        self._clock = means.clock

    def __repr__(self) -> str:
        return f"<Working on {self._queue!r}>"

    async def work(self, slot: Slot) -> None:
        """Work on the job in a slot; it has moved on, or is queued again, when this returns or is cancelled."""
        try:
            with slot.scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._beat, slot)
                    await self._steps(slot)
                    nursery.cancel_scope.cancel()
        finally:
            self._means.lanes.leave(slot.lane, slot.job)
            self._give_back(slot)
            slot.done.set()

    async def _beat(self, slot: Slot) -> None:
        """Renew the lease, and write down what was used, for as long as the worker is at work."""
        lease_s = self._profile(slot).settings.review.lease_s
        while True:
            await trio.sleep(lease_s / 3)
            job = self._held(slot)
            if job is not None:
                until_us = self._clock() + lease_s * 1_000_000
                self._move(slot, states.renew(job, until_us=until_us))

    async def _steps(self, slot: Slot) -> None:
        job = self._held(slot)
        if job is None:
            return
        if not job.decided:
            messages = await self._messages(slot, job)
            if messages is None or not await self._review(slot, self._queue.begin(job), messages):
                return
        else:
            self._queue.begin(job)
        self._means.lanes.leave(slot.lane, slot.job)
        self._queue.changed()
        slot.committing = True
        await self._bring_in(slot)

    async def _messages(self, slot: Slot, job: JobRecord) -> Sequence[MessageRecord] | None:
        """The copies it is about; None if there are none, and the job has moved on."""
        try:
            found = await self._means.journal.messages(job.ranges)
        except StoreError as error:
            self._move(
                slot, states.retry(job, until_us=self._clock() + STORE_AGAIN_US, reason=error.message, counts=False)
            )
            return None
        if found:
            return found
        reason = "the copies of its messages are past keeping ([review] keep_messages_days)"
        await self._finish(slot, job, "failed", reason)
        return None

    async def _review(self, slot: Slot, job: JobRecord, messages: Sequence[MessageRecord]) -> bool:
        """Have it reviewed. True if that led somewhere: it is decided, durably."""
        profile = self._profile(slot)
        job = replace(job, consolidate=job.kind == "review" and _is_tight(profile))
        self._queue.move(job)
        attempt = Attempt(job, messages, self._tokens_left(job, profile), self._failures_left(job, profile))
        said, failure = await self._ask(slot, profile, attempt)
        found = slot.found
        job = self._queue.count_failures(self._charge(slot), found.failures)
        if failure is None or found.failures or found.used.steps:
            self._means.lanes.worked(slot.lane)
        job = replace(job, refused=[*job.refused, *found.refused])
        if failure is not None and not found.operations:
            self._failed(slot, job, failure)
            return False
        reason = failure.message if failure is not None else None
        ended = "partial" if failure is not None else "ok"
        decided = states.decide(job, found.operations, ended=ended, summary=said, reason=reason)
        try:
            await self._queue.keep(decided)
        except StoreError as error:
            until_us = self._clock() + STORE_AGAIN_US
            self._move(slot, states.retry(decided, until_us=until_us, reason=error.message, counts=False))
            return False
        return True

    async def _ask(self, slot: Slot, profile: JobProfile, attempt: Attempt) -> tuple[str, ReviewFailed | None]:
        worker = slot.worker
        if worker is None:
            msg = "a job that is not decided has a reviewer"
            raise RuntimeError(msg)
        timeout_s = profile.settings.review.timeout_s
        try:
            with trio.fail_after(timeout_s):
                said = await worker.attempt(profile, attempt, slot.found)
        except trio.TooSlowError:
            return "", ReviewFailed(f"the reviewer took longer than {timeout_s} s ([review] timeout_s)")
        except ReviewFailed as failure:
            return "", failure
        except Exception as error:  # noqa: BLE001 - a reviewer's bug is the job's outcome, not the daemon's end
            self._means.on_bug(worker.kind, error)
            return "", ReviewFailed(f"a bug in the reviewer {worker.kind}: {type(error).__name__}", permanent=True)
        if slot.found.failures >= attempt.failures_left:
            return said, ReviewFailed(f"stopped after {slot.found.failures} failures in this turn", permanent=True)
        return said, None

    def _failed(self, slot: Slot, job: JobRecord, failure: ReviewFailed) -> None:
        """It led nowhere: to the next reviewer, to another attempt, or to waiting for the endpoint."""
        worker, now_us = slot.worker, self._clock()
        if failure.permanent and worker is not None:
            self._means.schedule.passed_over.setdefault(job.id, set()).add((worker.kind, worker.endpoint))
            until_us, counts = now_us, True
        elif slot.found.used.steps or slot.found.failures:
            until_us, counts = now_us + MODEL_AGAIN_US * 2**job.tries, True
        else:
            self._means.lanes.failed(slot.lane, failure.message, now_us=now_us, asked_s=failure.retry_after_s)
            until_us, counts = now_us, False  # the schedule knows another reviewer, or how long to wait for this one
        if counts:
            job = self._queue.count_failures(job, 1)
        self._move(slot, states.retry(job, until_us=until_us, reason=failure.message, counts=counts))

    async def _bring_in(self, slot: Slot) -> None:
        job = self._held(slot)
        if job is None:
            return
        if not job.operations:
            await self._finish(slot, job, "nothing", job.reason)
            return
        try:
            done = await self._means.commit(self._profile(slot), job)
        except StoreError as error:
            until_us = self._clock() + STORE_AGAIN_US
            self._move(slot, states.retry(job, until_us=until_us, reason=error.message, counts=False))
            return
        except WireError as error:
            await self._finish(slot, job, "failed", f"nothing was committed: {error.message}")
            return
        except Exception as error:  # noqa: BLE001 - as a reviewer's
            self._means.on_bug("commit", error)
            await self._finish(slot, job, "failed", f"nothing was committed: a bug, {type(error).__name__}")
            return
        job = self._held(slot) or job
        job = replace(
            job,
            committed=list(done.committed),
            staged=list(done.staged),
            refused=[*job.refused, *done.refused],
            conflicts=list(done.conflicts),
        )
        await self._finish(slot, job, _outcome(job), job.reason)

    async def _finish(self, slot: Slot, job: JobRecord, outcome: Outcome, reason: str | None) -> None:
        slot.committing = True
        self._means.schedule.passed_over.pop(job.id, None)
        await self._queue.finish(job, outcome, reason=reason)

    def _give_back(self, slot: Slot) -> None:
        """Nobody works on it any more; if it is still taken, it is queued again."""
        job = self._held(slot)
        if job is not None and states.may(job, "release"):
            if slot.cancelled:
                self._queue.reserve(job)  # it waits for its end, and for nothing else
            self._move(slot, states.release(job, reason=slot.given_up or "the daemon stopped"))

    # -- inside -------------------------------------------------------------------------------------------------

    def _held(self, slot: Slot) -> JobRecord | None:
        """The job as it is, if it is still this worker's."""
        job = self._queue.find(slot.job)
        return job if job is not None and job.lease == slot.lease else None

    def _profile(self, slot: Slot) -> JobProfile:
        job = self._queue.find(slot.job)
        return self._means.profiles[job.profile if job is not None else ""]

    def _charge(self, slot: Slot) -> JobRecord:
        """The job with what was used since the last time; the day's sum follows with its next move."""
        job = self._queue.find(slot.job)
        if job is None:
            raise RuntimeError(slot.job)
        charged, spending = self._means.ledger.charge(job, slot.found.used, slot.charged)
        if spending is not None:
            self._queue.move(charged, work=WorkPart(spending=[spending]))
        return charged

    def _move(self, slot: Slot, job: JobRecord) -> None:
        """A move, with what was used meanwhile."""
        charged, spending = self._means.ledger.charge(job, slot.found.used, slot.charged)
        self._queue.move(charged, work=WorkPart(spending=[spending]) if spending is not None else None)

    def _tokens_left(self, job: JobRecord, profile: JobProfile) -> int:
        review = profile.settings.review
        today = review.tokens_per_day - self._means.ledger.spent(job.profile, self._clock() // DAY_US)
        return max(0, min(review.tokens_per_job - job.input - job.output, today))

    def _failures_left(self, job: JobRecord, profile: JobProfile) -> int:
        return max(1, profile.settings.turn.failure_budget - self._queue.failures(job))


def _is_tight(profile: JobProfile) -> bool:
    """True if a store is nearly full: a review then makes room, too."""
    return any(profile.state(target).usage.near_limit for target in TARGETS)


def _outcome(job: JobRecord) -> Outcome:
    """What a job that was committed has come to."""
    if job.ended == "partial":
        return "partial" if job.committed or job.staged else "failed"
    return "ok" if job.committed or job.staged else "nothing"
