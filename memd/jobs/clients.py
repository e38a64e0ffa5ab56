"""Clients that review by themselves: the session that is warm claims its job, runs its own model, submits what that wants.

What comes in: claims, renewals, submissions. What goes out: leases, jobs that are decided. What must not be here: who may claim
(dispatch), the prompt, how operations are tried (``reviewers``), the commit: a submitted job is committed as any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from memd.errors import Conflict
from memd.jobs import states

if TYPE_CHECKING:
    from collections.abc import Callable

    from memd.jobs.ports import Found
    from memd.jobs.queue import JobQueue
    from memd.profile.stored import JobRecord


class Clients:
    """Claims on jobs. Each method raises ``NoSuchJob`` for an unknown job, and ``Conflict`` for one that is another's."""

    def __init__(self, queue: JobQueue, *, clock: Callable[[], int], token: Callable[[], str]) -> None:
        self._queue = queue
        self._clock = clock
        self._token = token

    def __repr__(self) -> str:
        return f"<Clients of {self._queue!r}>"

    async def claim(self, profile: str, job: str, session: str, *, lease_s: int) -> JobRecord:
        """Take a job that is queued; ``lease`` of what is returned is the proof of it."""
        found = await self._queue.get(profile, job)
        if found.session != session:
            msg = f"{job} is about session {found.session}; only the session that it is about can claim it"
            raise Conflict(msg, reason="other_session", current=found.state)
        if not states.may(found, "lease") or not self._queue.free(found):
            msg = f"{job} is {found.state} and cannot be claimed; it ends without you"
            raise Conflict(msg, reason="not_queued", current=found.state)
        until_us = self._clock() + lease_s * 1_000_000
        taken = states.lease(replace(found, reviewer="client"), token=self._token(), holder="client", until_us=until_us)
        return self._queue.begin(taken)

    async def renew(self, profile: str, job: str, lease: str, *, lease_s: int) -> JobRecord:
        """Hold it longer."""
        found = await self._held(profile, job, lease)
        return self._queue.move(states.renew(found, until_us=self._clock() + lease_s * 1_000_000))

    async def held(self, profile: str, job: str, lease: str) -> JobRecord:
        """The job that this lease is of."""
        return await self._held(profile, job, lease)

    async def submit(self, profile: str, job: str, lease: str, found: Found, *, summary: str = "") -> JobRecord:
        """What the client's model wants, tried already. It is written down, and committed by the daemon; the job once it has ended.

        Raises:
            StoreError: It could not be written down; the lease holds on.
        """
        held = await self._held(profile, job, lease)
        held = self._queue.count_failures(held, found.failures)
        held = replace(
            held,
            refused=[*held.refused, *found.refused],
            input=held.input + found.used.input,
            cached=held.cached + found.used.cached,
            output=held.output + found.used.output,
            steps=held.steps + found.used.steps,
            model=found.used.model or held.model,
        )
        decided = states.decide(held, found.operations, ended="ok", summary=summary, reason=None)
        await self._queue.keep(states.release(decided, reason=None))
        self._queue.changed()
        await self._queue.wait_ended(job)
        return await self._queue.get(profile, job)

    async def fail(self, profile: str, job: str, lease: str, reason: str) -> JobRecord:
        """The client's model led nowhere: the daemon's reviewer takes the job."""
        held = await self._held(profile, job, lease)
        held = self._queue.count_failures(replace(held, offered_us=0), 1)
        return self._queue.move(states.release(held, reason=f"its client gave it back: {reason}"))

    async def _held(self, profile: str, job: str, lease: str) -> JobRecord:
        found = await self._queue.get(profile, job)
        if found.holder != "client" or not lease or found.lease != lease:
            msg = f"the lease of {job} has ended: another has the job now, or it is {found.state}"
            raise Conflict(msg, reason="lease_ended", current=found.state)
        return found
