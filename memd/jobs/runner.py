"""The runner: takes jobs that can be done, and stops work on those that have to be given up.

What comes in: the queue, the schedule's decisions, turns that begin, a person's cancel. What goes out: tasks, one for each job that was
taken (``working``). What must not be here: what happens to a job that was taken, counting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from msgspec.structs import replace

from memd.jobs import states
from memd.jobs.schedule import End, Hold, Start
from memd.jobs.working import Slot, Working

if TYPE_CHECKING:
    from memd.jobs.schedule import Decision
    from memd.jobs.working import Means
    from memd.profile.stored import JobRecord

LONGEST_S = 60.0
"""The schedule is looked through at least this often, whatever the clock did; also the lease of a job of a profile that is gone."""
MANY = 50
BREATH_S = 0.02
"""With more jobs than this the schedule is looked through at most so often: a look costs some 10 microseconds a job."""


class Runner:
    """Run ``run`` in a nursery; everything else may be called from any task of the same loop."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._queue = means.queue
        self._working = Working(means)
        self._slots: dict[str, Slot] = {}
        self._wake = trio.Event()
        means.queue.changed = self.wake

    def __repr__(self) -> str:
        return f"<Runner {len(self._slots)} at work>"

    def wake(self) -> None:
        """Something may have become possible."""
        self._wake.set()

    async def run(self) -> None:
        """Work until cancelled; what is at work then is queued again."""
        async with trio.open_nursery() as nursery:
            while True:
                self._wake = trio.Event()
                delay_s = self._pass(nursery)
                with trio.move_on_after(delay_s):
                    await self._wake.wait()
                if len(self._queue) > MANY:
                    await trio.sleep(BREATH_S)

    # -- what others ask ----------------------------------------------------------------------------------------

    def give_up(self, session: str, endpoint: str | None) -> None:
        """A turn of a session begins on an endpoint: a review of that session on the same one is given up for it."""
        if endpoint is None:
            return
        for slot in self._slots.values():
            job = self._queue.find(slot.job)
            same = slot.worker is not None and _same(slot.worker.endpoint, endpoint)
            if job is not None and job.kind == "review" and job.session == session and same and not slot.committing:
                slot.given_up = "a turn of its session began on the same endpoint"
                slot.scope.cancel()

    async def cancel(self, job: JobRecord, *, reason: str) -> JobRecord:
        """A person wants a job no more; one that is being committed, or has ended, stays what it is. The job as it is then."""
        slot = self._slots.get(job.id)
        if slot is not None:
            if not slot.committing:
                slot.given_up, slot.cancelled = reason, True
                slot.scope.cancel()
            await slot.done.wait()
        known = self._queue.find(job.id)
        if known is None or not states.may(known, "cancel"):
            return known or await self._queue.get(job.profile, job.id)
        ended = await self._queue.cancel(known, reason=reason)
        self._means.schedule.passed_over.pop(job.id, None)
        self._queue.withdraw(ended)
        return ended

    # -- the schedule -------------------------------------------------------------------------------------------

    def _pass(self, nursery: trio.Nursery) -> float:
        """Start what can be started. Returns the seconds until there is something to look for."""
        now_us = self._means.clock()
        due = [now_us + int(LONGEST_S * 1_000_000)]
        for job in self._queue.live():
            due += self._timed(job, now_us)
        for job in self._queue.queued():
            decision = self._means.schedule.decide(job, self._means.profiles.get(job.profile), now_us)
            due += self._act(nursery, job, decision)
        return max(0.0, (min(due) - now_us) / 1_000_000)

    def _act(self, nursery: trio.Nursery, job: JobRecord, decision: Decision) -> list[int]:
        """Do what was decided; when to look at the job again."""
        if isinstance(decision, Start):
            self._start(nursery, job, decision)
        elif isinstance(decision, End):
            taken = self._take(job)
            nursery.start_soon(self._end, taken, decision)
        elif isinstance(decision, Hold):
            self._queue.move(states.hold(job, until_us=decision.until_us, reason=decision.reason))
        elif decision.until_us is not None:
            return [decision.until_us]
        return []

    def _timed(self, job: JobRecord, now_us: int) -> list[int]:
        """Do what time does to a job; when it will do something next."""
        if job.state == "waiting":
            if job.until_us > now_us:
                return [job.until_us]
            self._queue.move(states.wake(job))
        elif job.holder == "client" and states.may(job, "expire"):
            if job.lease_us > now_us:
                return [job.lease_us]
            # Its offer is over too: the daemon's own reviewer is next.
            self._queue.move(states.expire(replace(job, offered_us=0)))
        return []

    def _take(self, job: JobRecord) -> JobRecord:
        profile = self._means.profiles.get(job.profile)
        lease_s = profile.settings.review.lease_s if profile is not None else LONGEST_S
        until_us = self._means.clock() + int(lease_s * 1_000_000)
        return self._queue.move(states.lease(job, token=self._means.token(), holder="daemon", until_us=until_us))

    def _start(self, nursery: trio.Nursery, job: JobRecord, decision: Start) -> None:
        worker = decision.worker
        taken = self._take(replace(job, reviewer=worker.kind) if worker is not None else job)
        slot = Slot(taken.id, taken.lease, decision.lane, worker)
        self._slots[taken.id] = slot
        self._means.lanes.enter(slot.lane, slot.job)
        nursery.start_soon(self._work, slot)

    async def _work(self, slot: Slot) -> None:
        try:
            await self._working.work(slot)
        finally:
            self._slots.pop(slot.job, None)
            self.wake()

    async def _end(self, job: JobRecord, decision: End) -> None:
        self._means.schedule.passed_over.pop(job.id, None)
        await self._queue.finish(job, decision.outcome, reason=decision.reason)


def _same(one: str | None, other: str) -> bool:
    return one is not None and one.rstrip("/") == other.rstrip("/")
