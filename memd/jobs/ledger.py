"""The ledger: tokens, by profile and day (UTC), and by job.

What comes in: what an attempt has used so far, again and again. What goes out: the job with what it cost, and what to add to the day.
What must not be here: limits (``schedule``), the journal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from memd.jobs.schedule import DAY_US
from memd.profile.stored import SpendingRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from memd.jobs.ports import Used
    from memd.profile.stored import JobRecord


class Ledger:
    """What every profile has spent today. ``cached`` tokens are part of the input, and counted with it."""

    def __init__(self, *, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._spent: dict[tuple[str, int], SpendingRecord] = {}

    def __repr__(self) -> str:
        return f"<Ledger of {len(self._spent)} days>"

    def load(self, records: Iterable[SpendingRecord]) -> None:
        """Take over what the journal kept of today."""
        for record in records:
            self._spent[record.profile, record.day] = replace(record)

    @property
    def today(self) -> int:
        """Days since the epoch."""
        return self._clock() // DAY_US

    def spent(self, profile: str, day: int) -> int:
        """Tokens of a profile on a day, in and out."""
        found = self._spent.get((profile, day))
        return found.input + found.output if found else 0

    def of_today(self, profile: str) -> SpendingRecord:
        """What a profile has spent today."""
        return self._spent.get((profile, self.today)) or SpendingRecord(profile=profile, day=self.today)

    def charge(self, job: JobRecord, used: Used, charged: Used) -> tuple[JobRecord, SpendingRecord | None]:
        """What was used since the last time is charged; ``charged`` is brought up to ``used``. Make both durable in one."""
        more = SpendingRecord(
            profile=job.profile,
            day=self.today,
            input=used.input - charged.input,
            cached=used.cached - charged.cached,
            output=used.output - charged.output,
        )
        steps = used.steps - charged.steps
        charged.input, charged.cached, charged.output, charged.steps = used.input, used.cached, used.output, used.steps
        job = replace(
            job,
            input=job.input + more.input,
            cached=job.cached + more.cached,
            output=job.output + more.output,
            steps=job.steps + steps,
            model=used.model or job.model,
        )
        if not (more.input or more.cached or more.output):
            return job, None
        self._add(more)
        return job, more

    def _add(self, more: SpendingRecord) -> None:
        key = more.profile, more.day
        known = self._spent.setdefault(key, SpendingRecord(profile=more.profile, day=more.day))
        known.input += more.input
        known.cached += more.cached
        known.output += more.output
        for old in [one for one in self._spent if one[1] < more.day - 1]:
            del self._spent[old]
