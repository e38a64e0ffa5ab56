"""Reviews and flushes in the journal: jobs, copies of messages, counts, compactions, tokens spent.

What comes in: the journal. What goes out: records; fewer rows where they are past keeping. What must not be here: what a state
means, when a job runs. Runs in the journal's thread, between groups; writing is ``work_rows.py``, inside a group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from memd.store.work import CompactionRecord, JobRecord, MessageRecord, SpendingRecord, TallyRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memd.store.journal import Journal
    from memd.store.work import RangeRecord

R = TypeVar("R")

DONE = 1000
"""Jobs that have ended and that a profile keeps: a year of three a day."""
COMPACTIONS = 1000
"""Compactions that a profile remembers; an epoch that comes again so late is taken for a new one."""

_job = msgspec.msgpack.Decoder(JobRecord)
_message = msgspec.msgpack.Decoder(MessageRecord)
_tally = msgspec.msgpack.Decoder(TallyRecord)
_COMPACTION = ("profile", "session", "epoch", "us", "state", "job", "reason")


def live_jobs(journal: Journal) -> list[JobRecord]:
    """Every job that has not ended, of all profiles, oldest first. What is damaged is left out."""
    return _decoded(_job, journal.connection.execute("SELECT body FROM job WHERE done_us IS NULL ORDER BY us, id"))


def job_of(journal: Journal, profile: str, job: str) -> JobRecord | None:
    """One job of a profile, ended or not; None if there is none of this id."""
    rows = journal.connection.execute("SELECT body FROM job WHERE id=? AND profile=?", (job, profile))
    return next(iter(_decoded(_job, rows)), None)


def job_by_key(journal: Journal, profile: str, key: str) -> JobRecord | None:
    """The job that did this already, or is to do it."""
    rows = journal.connection.execute("SELECT body FROM job WHERE profile=? AND key=?", (profile, key))
    return next(iter(_decoded(_job, rows)), None)


def jobs_of(journal: Journal, profile: str, *, session: str | None = None, limit: int = 50) -> list[JobRecord]:
    """The newest jobs of a profile, newest first, at most ``limit``; of one session only, if one is named."""
    rows = journal.connection.execute(
        "SELECT body FROM job WHERE profile=? AND (?2 IS NULL OR session=?2) ORDER BY us DESC, id DESC LIMIT ?3",
        (profile, session, limit),
    )
    return _decoded(_job, rows)


def messages_of(journal: Journal, ranges: Sequence[RangeRecord]) -> list[MessageRecord]:
    """The copies in these ranges, in their order. Those past keeping are simply not there."""
    sql = "SELECT body FROM message WHERE owner=? AND number BETWEEN ? AND ? ORDER BY number"
    found: list[MessageRecord] = []
    for one in ranges:
        found += _decoded(_message, journal.connection.execute(sql, (one.owner, one.first, one.last)))
    return found


def tallies(journal: Journal) -> list[TallyRecord]:
    """Every count there is."""
    return _decoded(_tally, journal.connection.execute("SELECT body FROM tally ORDER BY us"))


def last_agent_writes(journal: Journal) -> dict[str, int]:
    """When an agent last changed a store, by session, in microseconds."""
    rows = journal.connection.execute(
        "SELECT session, max(us) FROM revision WHERE session IS NOT NULL AND origin='agent' AND job IS NULL GROUP BY session"
    )
    return dict(rows.fetchall())


def compaction_of(journal: Journal, profile: str, session: str, epoch: str) -> CompactionRecord | None:
    """What became of one compaction, or None."""
    rows = journal.connection.execute(
        f"SELECT {', '.join(_COMPACTION)} FROM compaction WHERE profile=? AND session=? AND epoch=?",  # noqa: S608 - ours
        (profile, session, epoch),
    )
    return next((CompactionRecord(**dict(zip(_COMPACTION, row, strict=True))) for row in rows), None)


def compactions_of(journal: Journal, profile: str, *, state: str, since_us: int = 0) -> list[CompactionRecord]:
    """The compactions of a profile in one state since a time, newest first."""
    rows = journal.connection.execute(
        f"SELECT {', '.join(_COMPACTION)} FROM compaction WHERE profile=? AND state=? AND us>=? ORDER BY us DESC",  # noqa: S608 - ours
        (profile, state, since_us),
    )
    return [CompactionRecord(**dict(zip(_COMPACTION, row, strict=True))) for row in rows]


def spent(journal: Journal, day: int) -> list[SpendingRecord]:
    """What each profile spent on a day."""
    names = ("profile", "day", "input", "cached", "output")
    rows = journal.connection.execute("SELECT profile, day, input, cached, output FROM spending WHERE day=?", (day,))
    return [SpendingRecord(**dict(zip(names, row, strict=True))) for row in rows]


def prune_jobs(journal: Journal, old_us: int) -> int:
    """Delete what ended before ``old_us`` or is too much; inside the caller's transaction."""
    run = journal.connection.execute
    deleted = run("DELETE FROM job WHERE done_us IS NOT NULL AND done_us<?", (old_us,)).rowcount
    deleted += run("DELETE FROM compaction WHERE us<?", (old_us,)).rowcount
    deleted += run("DELETE FROM spending WHERE day<?", (old_us // 86_400_000_000,)).rowcount
    for (profile,) in run("SELECT DISTINCT profile FROM job").fetchall():
        extra = "SELECT id FROM job WHERE profile=? AND done_us IS NOT NULL ORDER BY done_us DESC LIMIT -1 OFFSET ?"
        deleted += run(f"DELETE FROM job WHERE id IN ({extra})", (profile, DONE)).rowcount  # noqa: S608 - constant
    for (profile,) in run("SELECT DISTINCT profile FROM compaction").fetchall():
        bound = run(
            "SELECT us FROM compaction WHERE profile=? ORDER BY us DESC LIMIT 1 OFFSET ?", (profile, COMPACTIONS)
        ).fetchone()
        if bound is not None:
            deleted += run("DELETE FROM compaction WHERE profile=? AND us<=?", (profile, bound[0])).rowcount
    return deleted


def _decoded(decoder: msgspec.msgpack.Decoder[R], rows: Iterable[tuple[bytes]]) -> list[R]:
    found = []
    for (body,) in rows:
        try:
            found.append(decoder.decode(body))
        except msgspec.DecodeError:
            continue
    return found
