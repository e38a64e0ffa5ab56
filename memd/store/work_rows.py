"""Rows of reviews and flushes: how a part's ``WorkPart`` becomes rows, and what it deletes.

What comes in: an open transaction and a work part. What goes out: statements. What must not be here: queries
(``jobs.py``), what a job is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    from memd.store.work import WorkPart

    Insert = Callable[[sqlite3.Connection, str, Sequence[str], Sequence[tuple[Any, ...]]], None]

_encode = msgspec.msgpack.encode


def write_work(connection: sqlite3.Connection, work: WorkPart, insert: Insert) -> None:
    """Put everything a work part holds into the open transaction. What it deletes goes last."""
    insert(
        connection,
        "message",
        ("owner", "number", "profile", "us", "body"),
        [(m.owner, m.number, m.profile, m.us, _encode(m)) for m in work.messages],
    )
    insert(
        connection,
        "job",
        ("id", "profile", "session", "key", "state", "us", "done_us", "body"),
        [(j.id, j.profile, j.session, j.key, j.state, j.us, j.done_us, _encode(j)) for j in work.jobs],
    )
    insert(
        connection,
        "tally",
        ("profile", "session", "us", "body"),
        [(t.profile, t.session, t.us, _encode(t)) for t in work.tallies],
    )
    insert(
        connection,
        "compaction",
        ("profile", "session", "epoch", "us", "state", "job", "reason"),
        [(c.profile, c.session, c.epoch, c.us, c.state, c.job, c.reason) for c in work.compactions],
    )
    _add_spending(connection, work)
    _delete(connection, work)


def _add_spending(connection: sqlite3.Connection, work: WorkPart) -> None:
    sql = (
        "INSERT INTO spending VALUES (?,?,?,?,?) ON CONFLICT(profile, day) DO UPDATE SET "
        "input=input+excluded.input, cached=cached+excluded.cached, output=output+excluded.output"
    )
    for one in work.spending:
        connection.execute(sql, (one.profile, one.day, one.input, one.cached, one.output))


def _delete(connection: sqlite3.Connection, work: WorkPart) -> None:
    for profile, session in work.over:
        connection.execute("DELETE FROM tally WHERE profile=? AND session=?", (profile, session))
    for gone in work.gone:
        connection.execute(
            "DELETE FROM message WHERE owner=? AND number BETWEEN ? AND ?", (gone.owner, gone.first, gone.last)
        )
    for profile, before_us in work.expired:
        connection.execute("DELETE FROM message WHERE profile=? AND us<?", (profile, before_us))
