"""The journal: one SQLite database, one connection, one thread; the write-ahead log of all profiles.

What comes in: the parts of a group commit. What goes out: durability, or the knowledge of what became durable.
What must not be here: queries for people (``queries.py``), pruning (``retention.py``), the memory files.

Every transaction counts up ``meta.group``. After a COMMIT that failed, nothing is known: an fsync error is not a
rollback. The journal is then closed and reopened, and the counter it has says whether the group is in it.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec

from memd.errors import IoFailure, NoSpace, StoreError, from_oserror
from memd.store import schema
from memd.store.clock import read_boot_id
from memd.store.place import fsync_directory
from memd.store.records import Part, RenderingRecord, RequestRecord, SessionRecord, SnapshotRecord, StoreRow, TurnRecord
from memd.store.rows import rendering_from, write_part

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

WAL_BYTES = 16 * 1024 * 1024
"""Written since the last WAL checkpoint, estimated, at which the next is due; more makes recovery long."""
RUNS_KEPT = 1000
"""Starts that are remembered: as many as anybody's ``since_seq`` may go back to without an event in between."""
_FULL = "SQLITE_FULL"
_STORE = ("id", "directory", "name", "device", "inode", "checkpoint")
_GROUP_BYTES = 40_960
"""What a group writes beside its contents: the pages of about ten B-trees."""


class JournalStatistics(msgspec.Struct, frozen=True):
    """Counters since start. ``fsyncs`` counts those SQLite issues for commits (1 each) and WAL checkpoints (2 each)."""

    groups: int
    fsyncs: int
    reopened: int


class Opened(msgspec.Struct, frozen=True):
    """What was found on opening.

    ``fresh``: there was no journal. ``damaged``: where the damaged one was set aside, or None. ``clean``: the last
    daemon stopped in order. ``same_boot``: the machine has not been restarted since.
    """

    fresh: bool
    damaged: str | None
    clean: bool
    same_boot: bool


class Journal:
    """Call it from one thread only; it never starts one."""

    def __init__(
        self, path: Path, *, connect: Callable[[Path], sqlite3.Connection] = schema.connect, boot_id: str | None = None
    ) -> None:
        self.path = path
        self._connect = connect
        self._boot_id = read_boot_id() if boot_id is None else boot_id
        self._connection: sqlite3.Connection | None = None
        self._inode = (0, 0)
        self._group = 0
        self._groups = 0
        self._fsyncs = 0
        self._reopened = 0
        self._wal_bytes = 0
        self.first_seq = 0

    def __repr__(self) -> str:
        return f"<Journal {self.path} group {self._group}{'' if self._connection else ' closed'}>"

    @property
    def is_open(self) -> bool:
        """False after a failure, until ``reopen`` works."""
        return self._connection is not None

    @property
    def connection(self) -> sqlite3.Connection:
        """The open connection, for the queries beside this class.

        Raises:
            IoFailure: The journal is closed after a failure and could not be reopened yet.
        """
        if self._connection is None:
            msg = f"the journal {self.path} is not open after a failure; memd tries again each second"
            raise IoFailure(msg, path=str(self.path))
        return self._connection

    def statistics(self) -> JournalStatistics:
        """Counters since start."""
        return JournalStatistics(self._groups, self._fsyncs, self._reopened)

    # -- life ---------------------------------------------------------------------------------------------------

    def open(self) -> Opened:
        """Open or create the journal and mark it as in use.

        A damaged one is set aside beside itself and a new one begun.

        Raises:
            JournalTooNew: Untouched.
            StoreError: Locked by another process, or the disk refused.
        """
        damaged = None
        try:
            fresh = not self.path.exists() or self.path.stat().st_size == 0
            if not self._is_whole() and not self._is_whole():  # a read that failed once is told in the words of damage
                damaged = self._set_aside()
                fresh = True
                self._open_checked()
            meta = dict(self.connection.execute("SELECT key, value FROM meta").fetchall())
        except OSError as error:
            raise from_oserror(error, self.path, step="open the journal") from error
        except sqlite3.Error as error:
            raise self.failure(error, step="open") from error
        self._group = int(meta.get("group", 0))
        self._write_meta({"clean": 0, "boot": self._boot_id, "group": self._group})
        return Opened(
            fresh=fresh,
            damaged=damaged,
            clean=bool(meta.get("clean")),
            same_boot=meta.get("boot") == self._boot_id != "",
        )

    def begin_numbers(self, next_seq: int) -> None:
        """Remember where event numbers begin in this run: between the last run's and these none was given out. Durable."""
        self.first_seq = next_seq
        self._write_meta({f"run:{next_seq - 1}": next_seq})
        kept = "SELECT key FROM meta WHERE key LIKE 'run:%' ORDER BY value DESC LIMIT ?"
        sql = f"DELETE FROM meta WHERE key LIKE 'run:%' AND key NOT IN ({kept})"  # noqa: S608 - ours
        with contextlib.suppress(sqlite3.Error):  # then the next start forgets them
            self.connection.execute(sql, (RUNS_KEPT,))

    def close(self, *, clean: bool) -> None:
        """Write the clean-stop mark if the stop was one, copy the WAL back and close."""
        if self._connection is None:
            return
        with contextlib.suppress(sqlite3.Error, StoreError):  # the mark only saves the next start some work
            if clean:
                self._write_meta({"clean": 1})
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()
        self._connection = None

    def is_ours(self) -> bool:
        """True while the path still leads to the file that is open."""
        try:
            status = self.path.stat()
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._inode

    # -- commit -------------------------------------------------------------------------------------------------

    def commit(self, parts: Sequence[Part]) -> None:
        """Make all parts durable in one transaction with one fsync.

        Raises:
            NoSpace, IoFailure: With ``outcome`` ``"none"`` (nothing of the group is in the journal, and that is
                durable) or ``"unknown"`` (the journal could not be read again; it is closed).
        """
        connection = self.connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            for part in parts:
                write_part(connection, part)
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('group', ?)", (self._group + 1,))
        except sqlite3.Error as error:
            self._roll_back(error)
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if not self._committed_after_all(error):
                raise self.failure(error, step="commit to", outcome="none") from error
        else:
            self._group += 1
        self._groups += 1
        self._fsyncs += 1
        self._wal_bytes += _GROUP_BYTES + 2 * sum(part.weight for part in parts)

    @property
    def wal_due(self) -> bool:
        """True once the WAL is long enough to be copied back."""
        return self._wal_bytes > WAL_BYTES

    def checkpoint_wal(self, *, force: bool = False) -> None:
        """Copy the WAL back into the database once it is long, or now with ``force``. Never inside a group.

        ``RESTART``, not ``TRUNCATE``: a log that keeps its length needs no metadata in the next commits' fsync.
        """
        if self._connection is None or not (self.wal_due or (force and self._wal_bytes)):
            return
        with contextlib.suppress(sqlite3.Error):  # a full disk: the WAL goes on growing, the next try may work
            self._connection.execute("PRAGMA wal_checkpoint(RESTART)")
            self._wal_bytes = 0
            self._fsyncs += 2

    def reopen(self, *, full: bool = False) -> bool:
        """Open again after a failure. True if it worked; the journal then has a durable barrier behind the last group.

        On a ``full`` disk there is no room for a barrier, and no need of one unless the failed group turns out to be there.
        """
        if not self.is_ours():
            return False  # opening would make a new one
        try:
            self._open_checked()
            group = self._stored_group()
            if not full or group != self._group:
                self._write_meta({"barrier": group})
        except (sqlite3.Error, OSError, StoreError):
            self._drop_connection()
            return False
        self._group = group
        self._reopened += 1
        return True

    def start_over(self) -> bool:
        """Close and open again after a failure outside of a group, when what SQLite holds is not to be trusted."""
        self._drop_connection()
        return self.reopen()

    def failure(self, error: sqlite3.Error, *, step: str, outcome: str | None = None) -> NoSpace | IoFailure:
        """The typed error for what SQLite said at a step."""
        name = getattr(error, "sqlite_errorname", "")
        kind = NoSpace if name == _FULL else IoFailure
        message = f"{step} the journal {self.path}: {error} ({name or 'SQLite'})"
        return kind(message, path=str(self.path), outcome=outcome)

    # -- what the start needs -----------------------------------------------------------------------------------

    def stores(self) -> list[StoreRow]:
        """Every store ever seen."""
        rows = self.connection.execute(f"SELECT {', '.join(_STORE)} FROM store")  # noqa: S608 - names are ours
        return [StoreRow(**dict(zip(_STORE, row, strict=True))) for row in rows]

    def store(self, directory: str, name: str) -> StoreRow | None:
        """The store at a place, or None."""
        sql = f"SELECT {', '.join(_STORE)} FROM store WHERE directory=? AND name=?"  # noqa: S608 - names are ours
        row = self.connection.execute(sql, (directory, name)).fetchone()
        return StoreRow(**dict(zip(_STORE, row, strict=True))) if row else None

    def put_store(self, row: StoreRow) -> int:
        """Record a store (new if its id is 0) and return its id. Durable on return."""
        values = [row.directory, row.name, row.device, row.inode, row.checkpoint]
        sql = "INSERT INTO store(directory, name, device, inode, checkpoint) VALUES (?,?,?,?,?)"
        if row.id:
            sql = "UPDATE store SET directory=?, name=?, device=?, inode=?, checkpoint=? WHERE id=?"
            values.append(row.id)
        cursor = self.connection.execute(sql, values)
        self._fsyncs += 1
        return row.id or int(cursor.lastrowid or 0)

    def head(self, store: int) -> RenderingRecord | None:
        """The newest rendering of a store whose hash verifies; None if it has none."""
        rows = self.connection.execute(
            "SELECT store, revision, us, hash, data, entries FROM rendering WHERE store=? ORDER BY revision DESC",
            (store,),
        )
        return next((found for row in rows if (found := rendering_from(row)) is not None), None)

    def newest(self) -> tuple[int, int, int]:
        """(revision, event seq, microseconds) of the newest things stored; 0 where there is nothing. ``StoreError``."""
        try:
            row = self.connection.execute(
                "SELECT (SELECT max(revision) FROM revision), (SELECT max(seq) FROM event),"
                " max(coalesce((SELECT us FROM revision ORDER BY revision DESC LIMIT 1), 0),"
                "     coalesce((SELECT us FROM event ORDER BY seq DESC LIMIT 1), 0))"
            ).fetchone()
        except sqlite3.Error as error:
            raise self.failure(error, step="read") from error
        return (row[0] or 0, row[1] or 0, row[2] or 0)

    def entry_ids(self, store: int) -> set[str]:
        """Every entry id a store has ever given out."""
        return {row[0] for row in self.connection.execute("SELECT id FROM entry_id WHERE store=?", (store,))}

    def requests(self, since_us: int) -> list[RequestRecord]:
        """The remembered answers since a time, oldest first."""
        rows = self.connection.execute(
            "SELECT profile, request_id, fingerprint, us, answer FROM request WHERE us>=? ORDER BY us", (since_us,)
        )
        names = ("profile", "request_id", "fingerprint", "us", "answer")
        return [RequestRecord(**dict(zip(names, row, strict=True))) for row in rows]

    def sessions(self) -> tuple[list[SessionRecord], dict[str, SnapshotRecord], list[TurnRecord]]:
        """Every session that is not closed, the snapshots they have, and their open turns."""
        rows = self.connection.execute("SELECT id, profile, key, snapshot, seen_us, body FROM session WHERE closed=0")
        names = ("id", "profile", "key", "snapshot", "seen_us", "body")
        found = [SessionRecord(**dict(zip(names, row, strict=True))) for row in rows]
        snapshots = {
            row[0]: SnapshotRecord(id=row[0], body=row[1])
            for row in self.connection.execute("SELECT id, body FROM snapshot")
        }
        turns = self.connection.execute("SELECT session, turn, user, us FROM turn WHERE status='open'")
        opened = [TurnRecord(session=s, turn=t, user=bool(u), status="open", us=us) for s, t, u, us in turns]
        return found, snapshots, opened

    def created_profiles(self) -> dict[str, str]:
        """Name and directory of the profiles made at run time."""
        rows = self.connection.execute("SELECT key, value FROM meta WHERE key LIKE 'profile:%' ORDER BY key")
        return {key.removeprefix("profile:"): value for key, value in rows}

    def remember_profile(self, name: str, directory: str) -> None:
        """Keep a profile made at run time. Durable on return."""
        self._write_meta({f"profile:{name}": directory})

    # -- inside -------------------------------------------------------------------------------------------------

    def _is_whole(self) -> bool:
        """Open it; False if it is damaged."""
        try:
            self._open_checked()
        except sqlite3.OperationalError:
            raise
        except (sqlite3.DatabaseError, UnicodeDecodeError):  # the latter: SQLite's message quotes what is damaged
            self._drop_connection()
            return False
        return True

    def _open_checked(self) -> None:
        self._connection = self._connect(self.path)
        status = self.path.stat()
        self._inode = (status.st_dev, status.st_ino)
        result = self._connection.execute("PRAGMA quick_check(1)").fetchone()
        found = {row[0] for row in self._connection.execute("SELECT name FROM sqlite_master WHERE type='table'")}
        if result[0] != "ok" or not found >= schema.TABLES:
            self._drop_connection()
            msg = f"quick_check: {result[0]}, tables missing: {sorted(schema.TABLES - found)}"
            raise sqlite3.DatabaseError(msg)

    def _stored_group(self) -> int:
        row = self.connection.execute("SELECT value FROM meta WHERE key='group'").fetchone()
        return int(row[0]) if row else 0

    def _drop_connection(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _write_meta(self, values: dict[str, int | str]) -> None:
        """Durable on return; ``StoreError`` and nothing written otherwise."""
        connection = self.connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            for key, value in values.items():
                connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):  # SQLite may have rolled back by itself
                connection.execute("ROLLBACK")
            raise self.failure(error, step="write to") from error
        self._fsyncs += 1

    def _roll_back(self, error: sqlite3.Error) -> NoReturn:
        """Before COMMIT an error is definite: roll back, or drop the connection, which does the same."""
        try:
            self.connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._drop_connection()
            self.reopen()
        raise self.failure(error, step="write to", outcome="none") from error

    def _committed_after_all(self, error: sqlite3.Error) -> bool:
        """Reopen and look whether the group is in. Raises with outcome "unknown" if that cannot be told."""
        wanted = self._group + 1
        self._drop_connection()
        if not self.reopen(full=getattr(error, "sqlite_errorname", "") == _FULL):
            raise self.failure(error, step="reopen", outcome="unknown") from error
        return self._group == wanted

    def _set_aside(self) -> str:
        """Move a damaged journal and its WAL out of the way; nothing of it is deleted.

        The journal goes last, so that the next start goes on with it should this end half-way; SQLite would delete a lone WAL.
        """
        self._drop_connection()
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self.path.stat().st_mtime))
        found = [suffix for suffix in ("-wal", "-shm", "") if Path(f"{self.path}{suffix}").exists()]
        aside = f"{self.path}.damaged-{stamp}"
        number = 0
        while any(Path(f"{aside}{suffix}").exists() for suffix in found):
            number += 1
            aside = f"{self.path}.damaged-{stamp}-{number}"
        for suffix in found:
            Path(f"{self.path}{suffix}").rename(f"{aside}{suffix}")
        fsync_directory(self.path.parent)
        return aside
