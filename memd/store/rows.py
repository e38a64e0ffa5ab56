"""Rows: how the records of a part become SQLite rows, many to a statement.

What comes in: records. What goes out: ``(table, columns, rows)`` and the statements for them. What must not be here:
transactions, threads.

A group of 32 writes would be a hundred single-row statements, and every one of them gives up and takes back the
interpreter's lock; a multi-row ``INSERT`` does so once.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from memd.store.records import ChangeRecord, EntryRecord, EventRecord, RenderingRecord, RevisionRecord
from memd.store.work_rows import write_work

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from memd.store.records import Part

_encode = msgspec.msgpack.encode
_changes = msgspec.msgpack.Decoder(list[ChangeRecord])
_entries = msgspec.msgpack.Decoder(list[EntryRecord])
_numbers = msgspec.msgpack.Decoder(list[int])
_event = msgspec.msgpack.Decoder(EventRecord)

REVISION_COLUMNS = (
    "revision", "store", "us", "kind", "origin", "client", "uid", "pid", "session", "turn", "job", "reason", "changes",
    "undoes", "undone_by",
)  # fmt: skip
DAMAGED = "what was changed cannot be read any more: the journal is damaged here"
"""The reason of a revision whose changes are lost."""
_CHUNK = 64
"""Rows in the largest statement: 64 rows of 15 columns stay well under SQLite's 32,766 variables."""


def insert(connection: sqlite3.Connection, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert or replace ``rows`` in as few statements as their number allows."""
    start = 0
    while start < len(rows):
        count = _CHUNK
        while count > len(rows) - start:
            count //= 2  # powers of two only, so that the statement cache stays small
        chunk = rows[start : start + count]
        connection.execute(_statement(table, tuple(columns), count), [value for row in chunk for value in row])
        start += count


def write_part(connection: sqlite3.Connection, part: Part) -> None:
    """Put everything a part holds into the open transaction."""
    _write_revisions(connection, part)
    if part.events:
        insert(
            connection,
            "event",
            ("seq", "us", "profile", "topic", "body"),
            [(e.seq, e.us, e.profile, e.topic, _encode(e)) for e in part.events],
        )
    if part.requests:
        insert(
            connection,
            "request",
            ("profile", "request_id", "fingerprint", "us", "answer"),
            [(r.profile, r.request_id, r.fingerprint, r.us, r.answer) for r in part.requests],
        )
    if part.sessions or part.snapshots or part.turns:
        _write_sessions(connection, part)
    _write_rare(connection, part)
    if part.work is not None:
        write_work(connection, part.work, insert)


def revision_from(row: tuple[Any, ...]) -> RevisionRecord:
    """A record from a row in the order of ``REVISION_COLUMNS``; without its changes if those are damaged."""
    fields = dict(zip(REVISION_COLUMNS, row, strict=True))
    try:
        fields["changes"] = _changes.decode(fields["changes"])
        fields["undoes"] = _numbers.decode(fields["undoes"])
    except msgspec.DecodeError:
        fields |= {"changes": [], "undoes": [], "reason": DAMAGED}
    return RevisionRecord(**fields)


def rendering_from(row: tuple[Any, ...]) -> RenderingRecord | None:
    """A record from (store, revision, us, hash, data, entries); None if it is damaged: its hash does not verify."""
    store, revision, us, digest, data, entries = row
    if hashlib.sha256(data).digest() != digest:
        return None
    try:
        return RenderingRecord(store=store, revision=revision, us=us, data=data, entries=_entries.decode(entries))
    except msgspec.DecodeError:
        return None


def event_from(body: bytes) -> EventRecord | None:
    """An event from its stored body; None if that is damaged."""
    try:
        return _event.decode(body)
    except msgspec.DecodeError:
        return None


@lru_cache(maxsize=256)
def _statement(table: str, columns: tuple[str, ...], count: int) -> str:
    values = ",".join(["(" + ",".join("?" * len(columns)) + ")"] * count)
    return f"INSERT OR REPLACE INTO {table}({','.join(columns)}) VALUES {values}"  # noqa: S608 - names are ours


def _write_revisions(connection: sqlite3.Connection, part: Part) -> None:
    if part.revisions:
        insert(
            connection,
            "revision",
            REVISION_COLUMNS,
            [
                (
                    r.revision, r.store, r.us, r.kind, r.origin, r.client, r.uid, r.pid, r.session, r.turn, r.job,
                    r.reason, _encode(r.changes), _encode(r.undoes), r.undone_by,
                )
                for r in part.revisions
            ],
        )  # fmt: skip
    if part.renderings:
        insert(
            connection,
            "rendering",
            ("store", "revision", "us", "hash", "data", "entries"),
            [
                (r.store, r.revision, r.us, hashlib.sha256(r.data).digest(), r.data, _encode(r.entries))
                for r in part.renderings
            ],
        )
    if part.entry_ids:
        insert(connection, "entry_id", ("store", "id"), part.entry_ids)


def _write_sessions(connection: sqlite3.Connection, part: Part) -> None:
    insert(connection, "snapshot", ("id", "body"), [(s.id, s.body) for s in part.snapshots])
    insert(
        connection,
        "session",
        ("id", "profile", "key", "snapshot", "seen_us", "closed", "body"),
        [(s.id, s.profile, s.key, s.snapshot, s.seen_us, int(s.closed), s.body) for s in part.sessions],
    )
    insert(
        connection,
        "turn",
        ("session", "turn", "user", "status", "us"),
        [(t.session, t.turn, int(t.user), t.status, t.us) for t in part.turns],
    )


def _write_rare(connection: sqlite3.Connection, part: Part) -> None:
    insert(
        connection,
        "preimage",
        ("store", "hash", "us", "revision", "data"),
        [(p.store, p.hash, p.us, p.revision, p.data) for p in part.preimages],
    )
    insert(
        connection,
        "refusal",
        ("us", "profile", "target", "name", "text_hash", "reason", "session", "turn"),
        [(r.us, r.profile, r.target, r.name, r.text_hash, r.reason, r.session, r.turn) for r in part.refusals],
    )
    for revision, undone_by in part.undone:
        connection.execute("UPDATE revision SET undone_by=? WHERE revision=?", (undone_by, revision))
    for store, revision in part.checkpoints:
        connection.execute("UPDATE store SET checkpoint=max(checkpoint, ?) WHERE id=?", (revision, store))
    insert(
        connection,
        "proposal",
        ("profile", "id", "us", "settled_us", "body"),
        [(p.profile, p.id, p.us, p.settled_us, _encode(p)) for p in part.proposals],
    )
    insert(connection, "approved", ("store", "text_hash", "us"), part.approved)
    for profile, request_id in part.forget:
        connection.execute("DELETE FROM request WHERE profile=? AND request_id=?", (profile, request_id))
