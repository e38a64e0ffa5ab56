"""The queue: every job that has not ended, where it is, and its way into the journal.

What comes in: jobs, their moves. What goes out: jobs in the order in which they should run, records that are durable, events. What must
not be here: reviewers, when a job may run (``schedule``), tasks.

The queue holds at once what a move makes of a job, and the journal follows: lazily where nobody waits, since a start sorts out whatever
a crash left behind. Three things are waited for: that a job is accepted, that it is decided, and its end, which is tried again until
it is durable.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec
import trio
from msgspec.structs import replace

from memd.errors import Conflict, NoSuchJob, StoreError
from memd.jobs import states
from memd.jobs.counting import is_of_rest
from memd.profile.stored import EventRecord, JobRecord, Part, WorkPart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from memd.jobs.ports import JobProfile, Journal, Masking
    from memd.jobs.states import Outcome

_encode = msgspec.msgpack.encode
_decoder = msgspec.msgpack.Decoder(JobRecord)

AGAIN_S = 1.0
"""Between attempts to make a job's end durable while the journal refuses."""


class JobQueue:
    """All jobs that live. ``changed`` is called whenever something may have become possible, ``on_ended`` with each job that has ended.

    Args:
        journal: Where they are kept.
        profiles: Those that are served, by name; may change under us.
        clock: Microseconds since the epoch.
    """

    def __init__(self, journal: Journal, profiles: Mapping[str, JobProfile], *, clock: Callable[[], int]) -> None:
        self.changed: Callable[[], None] = _nobody
        self.on_ended: Callable[[JobRecord], None] = _unheard
        self._journal = journal
        self._profiles = profiles
        self._clock = clock
        self._jobs: dict[str, JobRecord] = {}
        self._reserved: set[str] = set()
        self._ended: dict[str, trio.Event] = {}
        self._failures: dict[tuple[str, str, str], int] = {}
        self.outcomes: Counter[str] = Counter()

    def __repr__(self) -> str:
        return f"<JobQueue {len(self._jobs)} jobs>"

    def __len__(self) -> int:
        return len(self._jobs)

    def load(self, jobs: Iterable[JobRecord]) -> None:
        """Take over what the journal kept: what the daemon itself had taken is given back, what a client has goes on."""
        for job in jobs:
            self._jobs[job.id] = job
            self._note_failures(job, job.failures)
            if job.holder == "daemon" and states.may(job, "expire"):
                self.move(states.expire(job))

    # -- questions ----------------------------------------------------------------------------------------------

    def find(self, job: str) -> JobRecord | None:
        """A job that has not ended."""
        return self._jobs.get(job)

    def live(self, profile: str | None = None) -> list[JobRecord]:
        """Those that have not ended, in the order in which they should run: flushes first, then the oldest."""
        found = [job for job in self._jobs.values() if profile is None or job.profile == profile]
        return sorted(found, key=lambda job: (job.kind != "flush", job.us, job.id))

    def queued(self) -> list[JobRecord]:
        """Those that may be taken."""
        return [job for job in self.live() if job.state == "queued" and job.id not in self._reserved]

    def free(self, job: JobRecord) -> bool:
        """True unless the job is being accepted, extended or cancelled at this moment."""
        return job.id not in self._reserved

    def extendable(self, profile: str, session: str) -> JobRecord | None:
        """The review of a session (``""``: of those that have ended) that has not begun, and so can take in more turns."""
        for job in self.live(profile):
            mine = is_of_rest(job) if not session else job.session == session and not is_of_rest(job)
            if job.kind == "review" and mine and job.state in ("queued", "waiting") and not job.decided:
                return job if job.id not in self._reserved else None
        return None

    def failures(self, job: JobRecord) -> int:
        """Failures in a job's turn, by every job of that turn."""
        return self._failures.get(_turn_of(job), 0)

    async def get(self, profile: str, job: str) -> JobRecord:
        """A job, ended or not.

        Raises:
            NoSuchJob: There is none of this id in the profile.
            StoreError: The journal cannot be read.
        """
        found = self._jobs.get(job)
        if found is not None and found.profile == profile:
            return found
        kept = await self._journal.job(profile, job)
        if kept is None:
            raise NoSuchJob(job)
        return kept

    async def listed(self, profile: str, *, session: str | None = None, limit: int = 50) -> list[JobRecord]:
        """The newest jobs of a profile, newest first, each as it is now."""
        kept = await self._journal.listed(profile, session=session, limit=limit)
        return [self._jobs.get(job.id, job) for job in kept]

    async def wait_ended(self, job: str) -> None:
        """Until a job has ended, and that is durable; at once if it is not among the living."""
        event = self._ended.get(job)
        if event is None and job in self._jobs:
            event = self._ended[job] = trio.Event()
        if event is not None:
            await event.wait()

    # -- coming in ----------------------------------------------------------------------------------------------

    def reserve(self, job: JobRecord) -> None:
        """A job is about to be accepted or extended: nobody takes it until ``accept`` or ``withdraw``."""
        self._reserved.add(job.id)

    def accept(self, job: JobRecord) -> None:
        """It is durable now."""
        self._reserved.discard(job.id)
        self._jobs[job.id] = job
        self.changed()

    def withdraw(self, job: JobRecord) -> None:
        """It could not be made durable: it was never there, or is what it was before."""
        self._reserved.discard(job.id)
        self.changed()

    # -- moves --------------------------------------------------------------------------------------------------

    def move(self, job: JobRecord, *, event: EventRecord | None = None, work: WorkPart | None = None) -> JobRecord:
        """A job is this now; the journal follows within a second."""
        self._jobs[job.id] = job
        part = self._part(job, event, work)
        self._journal.add(part, lambda: self._publish(part))
        self.changed()
        return job

    def hurry(self, job: JobRecord) -> JobRecord:
        """A job that waits is queued now, and no client is waited for.

        Raises:
            Conflict: It is at work, or has ended.
        """
        if job.state not in ("queued", "waiting"):
            msg = f"{job.id} is {job.state}: only a job that waits can be run now"
            raise Conflict(msg, reason="not_waiting", current=job.state)
        job = replace(job, offered_us=0)
        return self.move(states.wake(job) if states.may(job, "wake") else job)

    async def keep(self, job: JobRecord) -> None:
        """A job is this now; durable on return.

        Raises:
            StoreError: It could not be made durable.
        """
        self._jobs[job.id] = job
        part = self._part(job, None, None)
        done = trio.Event()
        failed: list[StoreError] = []

        def fail(error: StoreError) -> None:
            failed.append(error)
            done.set()

        self._journal.put(part, done.set, fail)
        await done.wait()
        if failed:
            raise failed[0]

    def begin(self, job: JobRecord) -> JobRecord:
        """Its reviewer begins: said to whoever listens."""
        data = {"kind": job.kind, "reviewer": job.reviewer, "attempt": job.attempts}
        return self.move(states.begin(job, now_us=self._clock()), event=self._event("job.started", job, data))

    def count_failures(self, job: JobRecord, count: int) -> JobRecord:
        """So many more failures in the job's turn; make the job durable by its next move."""
        self._note_failures(job, count)
        return replace(job, failures=job.failures + count)

    async def finish(self, job: JobRecord, outcome: Outcome, *, reason: str | None) -> JobRecord:
        """A job's end: with it go the copies it had. Durable and told on return, however often that has to be tried."""
        ended = states.finish(job, outcome, now_us=self._clock(), reason=reason)
        await self._end(ended)
        return ended

    async def cancel(self, job: JobRecord, *, reason: str) -> JobRecord:
        """A person wants it no more. Durable and told on return."""
        ended = states.cancel(job, now_us=self._clock(), reason=reason)
        await self._end(ended)
        return ended

    def redact(self, mask: Masking) -> None:
        """Mask texts in the jobs that live, wherever in them they are."""
        for job in list(self._jobs.values()):
            masked = _decoder.decode(mask.packed(_encode(job)))
            self._jobs[job.id] = replace(masked, id=job.id, key=mask.text(job.key))
        self._failures = {(p, s, mask.text(turn)): count for (p, s, turn), count in self._failures.items()}

    # -- inside -------------------------------------------------------------------------------------------------

    async def _end(self, ended: JobRecord) -> None:
        """Out of the living at once, since it must not be taken again; into the journal as soon as that takes it."""
        self._jobs[ended.id] = ended
        event = self._event("job.finished", ended, finished_data(ended))
        part = self._part(ended, event, WorkPart(gone=list(ended.ranges)))
        while not await self._try(part):  # noqa: ASYNC110 - what is waited for is a disk
            await trio.sleep(AGAIN_S)
        self._jobs.pop(ended.id, None)
        self.outcomes[ended.outcome or ""] += 1
        self.on_ended(ended)
        self._ended.pop(ended.id, trio.Event()).set()
        self.changed()

    async def _try(self, part: Part) -> bool:
        done = trio.Event()
        worked: list[bool] = []

        def settle(*, ok: bool) -> None:
            worked.append(ok)
            done.set()

        def committed() -> None:
            self._publish(part)
            settle(ok=True)

        self._journal.put(part, committed, lambda _: settle(ok=False))
        await done.wait()
        return worked[0]

    def _part(self, job: JobRecord, event: EventRecord | None, work: WorkPart | None) -> Part:
        return Part(
            work=replace(work or WorkPart(), jobs=[replace(job)]),
            events=[event] if event is not None else [],
        )

    def _publish(self, part: Part) -> None:
        for event in part.events:
            profile = self._profiles.get(event.profile)
            if profile is not None:
                profile.events.expect([event])
                profile.events.release([event])

    def _event(self, topic: str, job: JobRecord, data: dict[str, object]) -> EventRecord:
        return EventRecord(
            us=self._clock(), topic=topic, profile=job.profile, session=job.session, job=job.id, id=job.id, data=data
        )

    def _note_failures(self, job: JobRecord, count: int) -> None:
        if count:
            key = _turn_of(job)
            self._failures[key] = self._failures.pop(key, 0) + count
            while len(self._failures) > 10_000:
                del self._failures[next(iter(self._failures))]


def finished_data(job: JobRecord) -> dict[str, object]:
    """What ``job.finished`` tells: figures and names, no text of a conversation or of memory."""
    return {
        "kind": job.kind,
        "outcome": job.outcome,
        "reason": job.reason,
        "reviewer": job.reviewer,
        "model": job.model,
        "attempts": job.attempts,
        "steps": job.steps,
        "failures": job.failures,
        "tokens": {"input": job.input, "cached": job.cached, "output": job.output},
        "committed": list(job.committed),
        "staged": list(job.staged),
        "refused": len(job.refused),
        "conflicts": len(job.conflicts),
        "took_ms": max(0, (job.done_us or 0) - (job.started_us or job.done_us or 0)) // 1000,
    }


def _turn_of(job: JobRecord) -> tuple[str, str, str]:
    """What the second failure counter is of: a turn, or a job that has none."""
    return (job.profile, job.session, job.turn if job.turn is not None else f"job {job.id}")


def _unheard(_: JobRecord) -> None:
    """Nobody wants to hear of an end."""


def _nobody() -> None:
    """Nobody waits for a change yet."""
