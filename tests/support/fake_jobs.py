"""The journal of jobs in memory, for tests of dispatch.

What comes in: parts. What goes out: the records in them. What must not be here: SQL, groups, time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memd.errors import StoreError
    from memd.store.records import Part
    from memd.store.work import (
        CompactionRecord,
        JobRecord,
        MessageRecord,
        RangeRecord,
        SpendingRecord,
        TallyRecord,
        WorkPart,
    )


class MemoryJobJournal:
    """Keeps what parts bring at once; ``error`` refuses them."""

    def __init__(self) -> None:
        self.jobs: dict[str, JobRecord] = {}
        self.kept: dict[tuple[str, int], MessageRecord] = {}
        self.counts: dict[tuple[str, str], TallyRecord] = {}
        self.epochs: dict[tuple[str, str, str], CompactionRecord] = {}
        self.error: StoreError | None = None

    def take(self, work: WorkPart | None) -> None:
        """What a part brings."""
        if work is None:
            return
        self.jobs |= {job.id: replace(job) for job in work.jobs}
        self.kept |= {(one.owner, one.number): one for one in work.messages}
        self.counts |= {(one.profile, one.session): one for one in work.tallies}
        self.epochs |= {(one.profile, one.session, one.epoch): one for one in work.compactions}
        for key in work.over:
            self.counts.pop(key, None)
        for gone in work.gone:
            for number in range(gone.first, gone.last + 1):
                self.kept.pop((gone.owner, number), None)

    def put(self, part: Part, committed: Callable[[], None], failed: Callable[[StoreError], None]) -> None:
        if self.error is not None:
            failed(self.error)
            return
        self.take(part.work)
        committed()

    def add(self, part: Part, committed: Callable[[], None] | None = None) -> None:
        self.put(part, committed or (lambda: None), lambda _: None)

    async def live(self) -> list[JobRecord]:
        return [job for job in self.jobs.values() if job.done_us is None]

    async def job(self, profile: str, job: str) -> JobRecord | None:
        found = self.jobs.get(job)
        return found if found is not None and found.profile == profile else None

    async def by_key(self, profile: str, key: str) -> JobRecord | None:
        return next((job for job in self.jobs.values() if (job.profile, job.key) == (profile, key)), None)

    async def listed(self, profile: str, *, session: str | None = None, limit: int = 50) -> list[JobRecord]:
        found = [job for job in self.jobs.values() if job.profile == profile and session in (None, job.session)]
        return sorted(found, key=lambda job: (job.us, job.id), reverse=True)[:limit]

    async def messages(self, ranges: Sequence[RangeRecord]) -> list[MessageRecord]:
        return [
            one
            for wanted in ranges
            for (owner, number), one in sorted(self.kept.items())
            if owner == wanted.owner and wanted.first <= number <= wanted.last
        ]

    async def tallies(self) -> list[TallyRecord]:
        return list(self.counts.values())

    async def last_agent_writes(self) -> dict[str, int]:
        return {}

    async def compaction(self, profile: str, session: str, epoch: str) -> CompactionRecord | None:
        return self.epochs.get((profile, session, epoch))

    async def compactions(self, profile: str, *, state: str, since_us: int = 0) -> list[CompactionRecord]:
        found = [one for one in self.epochs.values() if (one.profile, one.state) == (profile, state)]
        return [one for one in found if one.us >= since_us]

    async def spent(self, day: int) -> list[SpendingRecord]:
        return []
