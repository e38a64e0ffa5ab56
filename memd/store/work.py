"""Stored records of reviews and flushes: jobs, copies of messages, counts, compactions, tokens spent.

What comes in: values from the layers above, flattened. What goes out: rows. What must not be here: what a job does, queries. They
evolve with the journal's schema version, as those of ``records.py`` do.
"""

from __future__ import annotations

import msgspec


class MessageRecord(msgspec.Struct, kw_only=True):
    """A copy of one message of a conversation, its secrets masked; kept until no job needs it any more.

    ``owner`` is a session, or the flush that was handed the message; ``number`` counts within it. ``withheld`` is what a reviewer
    is not shown: bodies of tools and documents.
    """

    owner: str
    number: int
    profile: str
    us: int
    role: str
    turn: str | None = None
    user_turn: bool = False
    synthetic: bool = False
    text: str = ""
    withheld: str = ""


class RangeRecord(msgspec.Struct, array_like=True):
    """Messages of one owner, the first and the last of them included."""

    owner: str
    first: int
    last: int


class DeskRecord(msgspec.Struct, array_like=True):
    """One operation of a job. ``evidence`` are the numbers of the messages that it rests on."""

    target: str
    action: str
    content: str | None = None
    old_text: str | None = None
    new_text: str | None = None
    id: str | None = None
    if_hash: str | None = None
    evidence: list[int] = []


class RefusedRecord(msgspec.Struct, array_like=True):
    """An operation that was not done, and the name of the error."""

    operation: DeskRecord
    name: str


class JobRecord(msgspec.Struct, kw_only=True):
    """A review or a flush: what it is about, where it is, what it cost and what came of it.

    ``key`` is what it is idempotent by, unique in its profile. ``state`` is of ``memd.jobs.states``; ``outcome`` is set with
    ``done``. ``turn`` is the turn whose second failure counter it shares. ``until_us``: while waiting, when it may go on; ``offered_us``:
    until then it is its client's. ``lease`` and ``lease_us``: the holder's token and when it ends. ``decided``: its reviewer has ended
    and what it wants is in ``operations``, so that nothing is left but the commit. ``attempts`` count leases, ``tries`` failures that
    brought it no further, in a row. ``summary`` is what it found, for people and for a compressor.
    """

    id: str
    profile: str
    kind: str
    session: str
    key: str
    us: int
    ranges: list[RangeRecord] = []
    turns: int = 0
    turn: str | None = None
    epoch: str | None = None
    endpoint: str | None = None
    consolidate: bool = False
    state: str = "queued"
    until_us: int = 0
    offered_us: int = 0
    lease: str = ""
    lease_us: int = 0
    holder: str = ""
    attempts: int = 0
    tries: int = 0
    started_us: int | None = None
    done_us: int | None = None
    outcome: str | None = None
    reason: str | None = None
    reviewer: str = ""
    model: str | None = None
    steps: int = 0
    failures: int = 0
    input: int = 0
    cached: int = 0
    output: int = 0
    decided: bool = False
    ended: str = ""
    operations: list[DeskRecord] = []
    summary: str = ""
    committed: list[int] = []
    staged: list[str] = []
    refused: list[RefusedRecord] = []
    conflicts: list[RefusedRecord] = []


class TallyRecord(msgspec.Struct, kw_only=True):
    """What no review has seen of one session, or (``session`` is ``""``) of those of a profile that have ended.

    ``unseen``: completed user turns since the last review; ``fresh``: since the last review or flush. ``first`` and ``last``: the
    messages that a review would get; of ended sessions ``ranges``. ``turn`` and ``job``: the last turn that ended, and the review that
    its end brought about, so that the same call has the same answer. ``us``: when it last changed.
    """

    profile: str
    session: str
    us: int
    unseen: int = 0
    fresh: int = 0
    first: int = 1
    last: int = 0
    turn: str | None = None
    job: str | None = None
    ranges: list[RangeRecord] = []


class CompactionRecord(msgspec.Struct, kw_only=True):
    """One compaction of a session: ``state`` is flushed (by ``job``), skipped (``reason``) or missed: nobody said that it began."""

    profile: str
    session: str
    epoch: str
    us: int
    state: str
    job: str | None = None
    reason: str | None = None


class SpendingRecord(msgspec.Struct, kw_only=True):
    """Tokens to add to what a profile spent on a day (days since the epoch, UTC)."""

    profile: str
    day: int
    input: int = 0
    cached: int = 0
    output: int = 0


class WorkPart(msgspec.Struct, kw_only=True):
    """What reviews and flushes add to a part.

    ``over``: tallies (profile, session) that end. ``gone``: copies that nobody needs any more. ``expired``: all copies of a profile from
    before a time (profile, microseconds).
    """

    messages: list[MessageRecord] = []
    jobs: list[JobRecord] = []
    tallies: list[TallyRecord] = []
    over: list[tuple[str, str]] = []
    compactions: list[CompactionRecord] = []
    spending: list[SpendingRecord] = []
    gone: list[RangeRecord] = []
    expired: list[tuple[str, int]] = []

    @property
    def weight(self) -> int:
        """Approximate size in bytes."""
        texts = sum(len(item.text) + len(item.withheld) for item in self.messages)
        wanted = sum(len(op.content or op.new_text or "") for job in self.jobs for op in job.operations)
        return texts + wanted + 300 * (len(self.messages) + len(self.jobs) + len(self.tallies))
