"""Questions to the journal: history, events, renderings. Runs in the journal's thread, between groups.

What comes in: the journal and filters. What goes out: records, paged. What must not be here: writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from memd.store.records import RefusalRecord
from memd.store.rows import REVISION_COLUMNS, event_from, rendering_from, revision_from

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memd.store.journal import Journal
    from memd.store.records import EventRecord, RenderingRecord, RevisionRecord

_COLUMNS = ", ".join(REVISION_COLUMNS)
_RENDERING = "SELECT store, revision, us, hash, data, entries FROM rendering"


class RevisionFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which revisions: of these stores, below ``before``, at or above ``after``, by session, job, origin or kind."""

    stores: tuple[int, ...]
    before: int | None = None
    after: int | None = None
    session: str | None = None
    job: str | None = None
    origin: str | None = None
    kind: str | None = None
    undone: bool | None = None


def revisions(journal: Journal, wanted: RevisionFilter, limit: int) -> list[RevisionRecord]:
    """Revisions that fit the filter, newest first, at most ``limit``."""
    where, values = _where(wanted)
    sql = f"SELECT {_COLUMNS} FROM revision WHERE {where} ORDER BY revision DESC LIMIT ?"  # noqa: S608 - names are ours
    return [revision_from(row) for row in journal.connection.execute(sql, (*values, limit))]


def revision(journal: Journal, number: int) -> RevisionRecord | None:
    """One revision, or None."""
    sql = f"SELECT {_COLUMNS} FROM revision WHERE revision=?"  # noqa: S608 - names are ours
    row = journal.connection.execute(sql, (number,)).fetchone()
    return revision_from(row) if row else None


def rendering_at(journal: Journal, store: int, number: int) -> RenderingRecord | None:
    """The first rendering of a store at or after a revision whose hash verifies."""
    rows = journal.connection.execute(f"{_RENDERING} WHERE store=? AND revision>=? ORDER BY revision", (store, number))
    for row in rows:
        found = rendering_from(row)
        if found is not None:
            return found
    return None


def recent_renderings(
    journal: Journal, store: int, *, since_us: int, checkpoint: int, limit: int
) -> list[RenderingRecord]:
    """The renderings an outside writer may have started from, newest first.

    The last ``limit`` of those since a time, and always all since the file checkpoint.
    """
    rows = journal.connection.execute(
        f"{_RENDERING} WHERE store=? AND (revision>=? OR us>=?) ORDER BY revision DESC", (store, checkpoint, since_us)
    )
    found: list[RenderingRecord] = []
    for row in rows:
        if len(found) >= limit and row[1] < checkpoint:
            break
        record = rendering_from(row)
        if record is not None:
            found.append(record)
    return found


def taken_back(journal: Journal, store: int) -> set[int]:
    """The revisions of groups whose file could not be swapped in: nobody ever saw what they made of it."""
    sql = (
        "SELECT revision FROM revision WHERE store=? AND undone_by IN "
        "(SELECT revision FROM revision WHERE store=? AND kind='compensate')"
    )
    return {row[0] for row in journal.connection.execute(sql, (store, store))}


def rendering_then(journal: Journal, store: int, us: int) -> RenderingRecord | None:
    """The newest rendering made until a moment whose hash verifies."""
    rows = journal.connection.execute(f"{_RENDERING} WHERE store=? AND us<=? ORDER BY revision DESC", (store, us))
    for row in rows:
        found = rendering_from(row)
        if found is not None:
            return found
    return None


def has_rendering(journal: Journal, store: int, digest: bytes) -> bool:
    """True if bytes with this SHA-256 are a rendering or a pre-image of the store."""
    sql = "SELECT 1 FROM {} WHERE store=? AND hash=?"
    return any(
        journal.connection.execute(sql.format(table), (store, digest)).fetchone() is not None
        for table in ("rendering", "preimage")
    )


def newest_of(journal: Journal, store: int, number: int) -> int:
    """The newest revision of a store at or before a number; 0 if there is none."""
    row = journal.connection.execute(
        "SELECT max(revision) FROM revision WHERE store=? AND revision<=?", (store, number)
    ).fetchone()
    return row[0] or 0


def events_since(
    journal: Journal, profile: str, after: int, upto: int, *, topics: Sequence[str] = (), limit: int
) -> tuple[list[EventRecord], bool]:
    """Events of a profile in ``(after, upto]``, oldest first, and whether some that should be there are not.

    ``topics``: which of them; none means all.
    """
    run = journal.connection.execute
    wanted = f" AND topic IN ({','.join('?' * len(topics))})" if topics else ""
    rows = run(
        f"SELECT body FROM event WHERE profile=? AND seq>? AND seq<=?{wanted} ORDER BY seq LIMIT ?",  # noqa: S608 - marks only
        (profile, after, upto, *topics, limit + 1),
    ).fetchall()
    pruned = run("SELECT value FROM meta WHERE key='pruned_seq'").fetchone()
    lost = len(rows) > limit or after > upto or after < int(pruned[0] if pruned else 0) or _unknown(journal, after)
    found = [event_from(body) for (body,) in rows[:limit]]
    return [event for event in found if event is not None], lost or None in found


def _unknown(journal: Journal, seq: int) -> bool:
    """True for an event's number that this journal never gave out: it is of another one, lost or newer than a backup.

    Known are 0, which asks for everything there is, those of events, where each run began, and this run's.
    """
    if seq == 0 or seq >= journal.first_seq - 1:
        return False
    run = journal.connection.execute
    return not (
        run("SELECT 1 FROM event WHERE seq=?", (seq,)).fetchone()
        or run("SELECT 1 FROM meta WHERE key=?", (f"run:{seq}",)).fetchone()
    )


def refusals_of(journal: Journal, profile: str, digest: bytes, limit: int) -> list[RefusalRecord]:
    """Refused writes of exactly this text (by SHA-256), newest first."""
    names = ("us", "profile", "target", "name", "text_hash", "reason", "session", "turn")
    rows = journal.connection.execute(
        f"SELECT {', '.join(names)} FROM refusal WHERE profile=? AND text_hash=? ORDER BY id DESC LIMIT ?",  # noqa: S608 - names are ours
        (profile, digest, limit),
    )
    return [RefusalRecord(**dict(zip(names, row, strict=True))) for row in rows]


def preimages(journal: Journal, store: int) -> Sequence[tuple[int, int, bytes]]:
    """(revision, microseconds, bytes) of a store's pre-images, newest first."""
    return journal.connection.execute(
        "SELECT revision, us, data FROM preimage WHERE store=? ORDER BY us DESC", (store,)
    ).fetchall()


def _where(wanted: RevisionFilter) -> tuple[str, tuple[Any, ...]]:
    parts = [f"store IN ({','.join('?' * len(wanted.stores))})"]
    values: list[Any] = list(wanted.stores)
    if wanted.undone is not None:
        parts.append("undone_by IS NOT NULL" if wanted.undone else "undone_by IS NULL")
    for clause, value in (
        ("revision<?", wanted.before),
        ("revision>=?", wanted.after),
        ("session=?", wanted.session),
        ("job=?", wanted.job),
        ("origin=?", wanted.origin),
        ("kind=?", wanted.kind),
    ):
        if value is not None:
            parts.append(clause)
            values.append(value)
    return " AND ".join(parts), tuple(values)
