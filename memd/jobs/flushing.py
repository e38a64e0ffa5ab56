"""Flushing: exactly one flush for each compaction of a session, from the messages that are about to go.

What comes in: compactions that begin or end, with masked copies of what they take away. What goes out: receipts, and jobs that are
durable before their receipt is given. What must not be here: wire types, reviewing, waiting for a job.

A compaction is known by its session and its epoch, so that a call that comes again gets the answer it had. Whether a flush is worth its
while is decided by the settings: enough turns in the session, enough of them since the last review or flush, and none just before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from memd.errors import StoreError
from memd.profile.stored import CompactionRecord, JobRecord, RangeRecord, WorkPart

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memd.config import ProfileSettings
    from memd.jobs.ports import Journal, Named
    from memd.jobs.service import Jobs
    from memd.profile.stored import MessageRecord

State = Literal["queued", "running", "done", "skipped"]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a compaction's beginning. ``reason`` says why there is no job, or no result yet."""

    job: JobRecord | None
    state: State
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Compacting:
    """A session that is about to be compacted. ``turns``: the user's turns that it has completed."""

    session: str
    epoch: str
    turns: int
    endpoint: str | None = None
    turn: str | None = None


class Flushing:
    """Flushes of all profiles.

    Args:
        jobs: Where they are accepted.
        clock: Microseconds since the epoch.
    """

    def __init__(self, jobs: Jobs, *, clock: Callable[[], int]) -> None:
        self._jobs = jobs
        self._clock = clock
        self._last: dict[tuple[str, str], int] = {}

    def __repr__(self) -> str:
        return f"<Flushing in {self._jobs!r}>"

    @property
    def _journal(self) -> Journal:
        return self._jobs.journal

    def new_owner(self) -> str:
        """The id of a flush that may come to be: its messages are kept under it."""
        return self._jobs.new_id()

    async def known(self, profile: Named, compacting: Compacting) -> Receipt | None:
        """The receipt of a compaction that began before; None if this is the first one hears of it.

        Raises:
            StoreError: The journal cannot be read.
        """
        found = await self._journal.compaction(profile.name, compacting.session, compacting.epoch)
        if found is None or found.state == "missed":
            return None
        if found.job is None:
            return Receipt(None, "done" if found.state == "flushed" else "skipped", found.reason)
        return receipt(await self._jobs.queue.get(profile.name, found.job))

    async def begin(
        self, profile: Named, compacting: Compacting, owner: str, messages: Sequence[MessageRecord]
    ) -> Receipt:
        """A compaction begins: the flush of these messages is accepted, durably, or skipped for a reason.

        Raises:
            StoreError: It could not be made durable; the compaction is as unknown as before.
        """
        reason = self._reason(profile, compacting, messages)
        record = self._record(profile, compacting, "skipped" if reason else "flushed")
        record.reason = reason
        if reason:
            await self._jobs.keep(WorkPart(compactions=[record]))
            return Receipt(None, "skipped", reason)
        job = JobRecord(
            id=owner,
            profile=profile.name,
            kind="flush",
            session=compacting.session,
            key=f"flush {compacting.session} {compacting.epoch}",
            us=self._clock(),
            ranges=[RangeRecord(owner, messages[0].number, messages[-1].number)],
            turns=compacting.turns,
            turn=compacting.turn,
            epoch=compacting.epoch,
            endpoint=compacting.endpoint,
        )
        record.job = job.id
        counting = self._jobs.counting
        fresh = counting.fresh(profile.name, compacting.session)
        tally = counting.flushed(profile.name, compacting.session)
        try:
            await self._jobs.put(job, WorkPart(messages=list(messages), compactions=[record], tallies=[tally]))
        except StoreError:
            counting.flush_failed(profile.name, compacting.session, fresh)
            raise
        self._last[profile.name, compacting.session] = self._clock()
        return receipt(job)

    async def inline(self, profile: Named, compacting: Compacting) -> None:
        """The agent flushes in its own conversation; that is written down, and nothing more is to be done.

        Raises:
            StoreError: It could not be made durable.
        """
        record = self._record(profile, compacting, "flushed")
        record.reason = "inline"
        tally = self._jobs.counting.flushed(profile.name, compacting.session)
        await self._jobs.keep(WorkPart(compactions=[record], tallies=[tally]))

    async def end(self, profile: Named, compacting: Compacting) -> bool:
        """A compaction has ended. True if nobody had said that it begins: then its flush was missed, which is written down.

        Raises:
            StoreError: The journal cannot be read or written.
        """
        found = await self._journal.compaction(profile.name, compacting.session, compacting.epoch)
        if found is None:
            await self._jobs.keep(WorkPart(compactions=[self._record(profile, compacting, "missed")]))
        return found is None or found.state == "missed"

    def _reason(self, profile: Named, compacting: Compacting, messages: Sequence[MessageRecord]) -> str | None:
        """Why no flush is worth its while; None if one is."""
        settings: ProfileSettings = profile.settings
        flush, fresh = settings.flush, self._jobs.counting.fresh(profile.name, compacting.session)
        since_us = self._clock() - self._last.get((profile.name, compacting.session), -(10**18))
        if settings.review.reviewer == "off":
            return "reviews are off ([review] reviewer)"
        if not messages:
            return "no messages were handed over"
        if compacting.turns < flush.min_turns:
            return (
                f"the session has {compacting.turns} user turns of the {flush.min_turns} it needs ([flush] min_turns)"
            )
        if fresh < flush.min_new_turns:
            return (
                f"{fresh} user turns since the last review or flush, of the {flush.min_new_turns} it needs "
                "([flush] min_new_turns)"
            )
        if since_us < flush.cooldown_s * 1_000_000:
            return f"the last flush of this session was less than {flush.cooldown_s} s ago ([flush] cooldown_s)"
        return None

    def _record(self, profile: Named, compacting: Compacting, state: str) -> CompactionRecord:
        return CompactionRecord(
            profile=profile.name, session=compacting.session, epoch=compacting.epoch, us=self._clock(), state=state
        )


def receipt(job: JobRecord) -> Receipt:
    """What a flush has come to so far."""
    if job.state == "done":
        return Receipt(job, "done", job.reason)
    return Receipt(job, "running" if job.state in ("leased", "running") else "queued", job.reason)
