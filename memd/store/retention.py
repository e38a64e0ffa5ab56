"""Retention: what of the journal goes, and when it must not.

What comes in: the policy and the time. What goes out: fewer rows. What must not be here: the newest rendering of any
store, its last thousand, what is newer than its file checkpoint, and what people or outside programs changed in the last
30 days: those stay, up to the size bound.
"""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING

import msgspec

from memd.store.clock import DAY_US
from memd.store.jobs import prune_jobs
from memd.store.proposals import prune_proposals

if TYPE_CHECKING:
    from memd.store.journal import Journal

KEEP_RENDERINGS = 1000
PROTECTED_DAYS = 30
EVENTS = 100_000
REQUESTS = 100_000
PREIMAGES = 100
PREIMAGE_BYTES = 16 * 1024 * 1024
BATCH = 2000
"""Rows deleted in one transaction, so that a long overdue pruning does not hold up commits."""


class Policy(msgspec.Struct, frozen=True):
    """The ``[history]`` settings."""

    keep_days: int = 365
    keep_revisions: int = 10_000
    max_mb: int = 256


def prune(journal: Journal, policy: Policy, now_us: int) -> int:
    """Delete a batch of what is past keeping. Returns the number of rows deleted; 0 when there is nothing left to do.

    Durable on return. Pruned event numbers are remembered, so that a replay from before them says it lost some.
    """
    connection = journal.connection
    connection.execute("BEGIN IMMEDIATE")
    try:
        deleted = _prune_events(journal, now_us, policy)
        deleted += _prune_requests(journal, now_us)
        for row in journal.stores():
            deleted += _prune_revisions(journal, row.id, row.checkpoint, policy, now_us)
            deleted += _prune_preimages(journal, row.id)
        deleted += _prune_sessions(journal)
        deleted += prune_proposals(journal, now_us - policy.keep_days * DAY_US)
        deleted += prune_jobs(journal, now_us - policy.keep_days * DAY_US)
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):  # SQLite may have rolled back by itself
            connection.execute("ROLLBACK")
        raise
    return deleted


def size_mb(journal: Journal) -> float:
    """The part of the database that holds data, in MiB."""
    run = journal.connection.execute
    pages = run("PRAGMA page_count").fetchone()[0] - run("PRAGMA freelist_count").fetchone()[0]
    return float(pages * run("PRAGMA page_size").fetchone()[0] / 1_048_576)


def _prune_events(journal: Journal, now_us: int, policy: Policy) -> int:
    run = journal.connection.execute
    newest = run("SELECT max(seq) FROM event").fetchone()[0]
    if newest is None:
        return 0
    count = run("SELECT count(*) FROM event").fetchone()[0]
    upto = 0
    if count > EVENTS:
        upto = run("SELECT seq FROM event ORDER BY seq DESC LIMIT 1 OFFSET ?", (EVENTS,)).fetchone()[0]
    old = run("SELECT max(seq) FROM event WHERE us<?", (now_us - policy.keep_days * DAY_US,)).fetchone()[0] or 0
    upto = min(max(upto, old), newest - 1)
    if upto <= 0:
        return 0
    gone = run(
        "SELECT max(seq) FROM (SELECT seq FROM event WHERE seq<=? ORDER BY seq LIMIT ?)", (upto, BATCH)
    ).fetchone()[0]
    if gone is None:
        return 0
    run("INSERT OR REPLACE INTO meta VALUES ('pruned_seq', ?)", (gone,))
    return run("DELETE FROM event WHERE seq<=?", (gone,)).rowcount


def _prune_requests(journal: Journal, now_us: int) -> int:
    run = journal.connection.execute
    deleted = run("DELETE FROM request WHERE us<?", (now_us - DAY_US,)).rowcount
    extra = run("SELECT count(*) FROM request").fetchone()[0] - REQUESTS
    if extra > 0:
        sql = "DELETE FROM request WHERE (profile, request_id) IN (SELECT profile, request_id FROM request ORDER BY us LIMIT ?)"
        deleted += run(sql, (min(extra, BATCH),)).rowcount
    return deleted


def _prune_revisions(journal: Journal, store: int, checkpoint: int, policy: Policy, now_us: int) -> int:
    """Oldest first, never past the first revision that has to stay."""
    run = journal.connection.execute
    kept = run(
        "SELECT revision FROM rendering WHERE store=? ORDER BY revision DESC LIMIT 1 OFFSET ?",
        (store, KEEP_RENDERINGS - 1),
    ).fetchone()
    if kept is None or not checkpoint:
        return 0  # fewer than the renderings that always stay, or nothing of the file is known to be on disk
    bound = min(kept[0], checkpoint)
    limit = run(
        "SELECT revision FROM revision WHERE store=? ORDER BY revision DESC LIMIT 1 OFFSET ?",
        (store, policy.keep_revisions - 1),
    ).fetchone()
    too_many = limit[0] if limit else 0
    old_us = now_us - policy.keep_days * DAY_US
    crowded = size_mb(journal) > policy.max_mb
    recent_us = now_us if crowded else now_us - PROTECTED_DAYS * DAY_US
    rows = run(
        "SELECT revision FROM revision WHERE store=? AND revision<? AND (revision<? OR us<? OR ?)"
        " AND NOT (us>=? AND origin IN ('user', 'outside')) ORDER BY revision LIMIT ?",
        (store, bound, too_many, old_us, crowded, recent_us, BATCH),
    ).fetchall()
    if rows:
        journal.connection.executemany("DELETE FROM revision WHERE revision=?", rows)
        journal.connection.executemany(
            "DELETE FROM rendering WHERE store=? AND revision=?", [(store, row[0]) for row in rows]
        )
    return len(rows)


def _prune_preimages(journal: Journal, store: int) -> int:
    run = journal.connection.execute
    total = 0
    gone: list[tuple[int, bytes]] = []
    rows = run("SELECT hash, length(data) FROM preimage WHERE store=? ORDER BY us DESC", (store,)).fetchall()
    for position, (digest, size) in enumerate(rows):
        total += size
        if position >= PREIMAGES or total > PREIMAGE_BYTES:
            gone.append((store, digest))
    if gone:
        journal.connection.executemany("DELETE FROM preimage WHERE store=? AND hash=?", gone)
    return len(gone)


def _prune_sessions(journal: Journal) -> int:
    """Sessions that were closed or expired, their turns, and snapshots that no session has."""
    run = journal.connection.execute
    deleted = run("DELETE FROM session WHERE closed=1").rowcount
    if deleted:
        run("DELETE FROM turn WHERE session NOT IN (SELECT id FROM session)")
        run("DELETE FROM snapshot WHERE id NOT IN (SELECT snapshot FROM session)")
    return deleted
