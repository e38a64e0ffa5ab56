"""The journal's schema and the opening of its file.

What comes in: a path. What goes out: an open SQLite connection on a journal of our schema version, or the finding that
the file is damaged or too new. What must not be here: queries, groups, meaning.
"""

from __future__ import annotations

import os
import re
import sqlite3
import sys
from typing import TYPE_CHECKING

from memd.errors import JournalTooNew
from memd.store.place import let_go

if TYPE_CHECKING:
    from pathlib import Path

VERSION = 3

SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE store(id INTEGER PRIMARY KEY, directory TEXT NOT NULL, name TEXT NOT NULL, device INTEGER NOT NULL,
  inode INTEGER NOT NULL, checkpoint INTEGER NOT NULL DEFAULT 0, UNIQUE(directory, name));
CREATE TABLE revision(revision INTEGER PRIMARY KEY, store INTEGER NOT NULL, us INTEGER NOT NULL, kind TEXT NOT NULL,
  origin TEXT NOT NULL, client TEXT NOT NULL, uid INTEGER NOT NULL, pid INTEGER NOT NULL, session TEXT, turn TEXT,
  job TEXT, reason TEXT, changes BLOB NOT NULL, undoes BLOB NOT NULL, undone_by INTEGER);
CREATE INDEX revision_store ON revision(store, revision);
CREATE INDEX revision_session ON revision(session) WHERE session IS NOT NULL;
CREATE INDEX revision_job ON revision(job) WHERE job IS NOT NULL;
CREATE TABLE rendering(store INTEGER NOT NULL, revision INTEGER NOT NULL, us INTEGER NOT NULL, hash BLOB NOT NULL,
  data BLOB NOT NULL, entries BLOB NOT NULL, PRIMARY KEY(store, revision));
CREATE TABLE entry_id(store INTEGER NOT NULL, id TEXT NOT NULL, PRIMARY KEY(store, id)) WITHOUT ROWID;
CREATE TABLE preimage(store INTEGER NOT NULL, hash BLOB NOT NULL, us INTEGER NOT NULL, revision INTEGER NOT NULL,
  data BLOB NOT NULL, PRIMARY KEY(store, hash));
CREATE TABLE event(seq INTEGER PRIMARY KEY, us INTEGER NOT NULL, profile TEXT NOT NULL, topic TEXT NOT NULL,
  body BLOB NOT NULL);
CREATE INDEX event_profile ON event(profile, seq);
CREATE TABLE request(profile TEXT NOT NULL, request_id TEXT NOT NULL, fingerprint BLOB NOT NULL, us INTEGER NOT NULL,
  answer BLOB NOT NULL, PRIMARY KEY(profile, request_id)) WITHOUT ROWID;
CREATE INDEX request_us ON request(us);
CREATE TABLE refusal(id INTEGER PRIMARY KEY, us INTEGER NOT NULL, profile TEXT NOT NULL, target TEXT NOT NULL,
  name TEXT NOT NULL, text_hash BLOB NOT NULL, reason TEXT NOT NULL, session TEXT, turn TEXT);
CREATE INDEX refusal_text ON refusal(profile, text_hash);
CREATE TABLE session(id TEXT PRIMARY KEY, profile TEXT NOT NULL, key TEXT, snapshot TEXT NOT NULL,
  seen_us INTEGER NOT NULL, closed INTEGER NOT NULL, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE snapshot(id TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE turn(session TEXT NOT NULL, turn TEXT NOT NULL, user INTEGER NOT NULL, status TEXT NOT NULL,
  us INTEGER NOT NULL, PRIMARY KEY(session, turn)) WITHOUT ROWID;
"""

UPGRADES = {
    2: """
CREATE TABLE proposal(profile TEXT NOT NULL, id TEXT NOT NULL, us INTEGER NOT NULL, settled_us INTEGER,
  body BLOB NOT NULL, PRIMARY KEY(profile, id)) WITHOUT ROWID;
CREATE INDEX proposal_settled ON proposal(settled_us) WHERE settled_us IS NOT NULL;
CREATE TABLE approved(store INTEGER NOT NULL, text_hash BLOB NOT NULL, us INTEGER NOT NULL,
  PRIMARY KEY(store, text_hash)) WITHOUT ROWID;
""",
    3: """
CREATE TABLE message(owner TEXT NOT NULL, number INTEGER NOT NULL, profile TEXT NOT NULL, us INTEGER NOT NULL,
  body BLOB NOT NULL, PRIMARY KEY(owner, number)) WITHOUT ROWID;
CREATE INDEX message_us ON message(profile, us);
CREATE TABLE job(id TEXT PRIMARY KEY, profile TEXT NOT NULL, session TEXT NOT NULL, key TEXT NOT NULL,
  state TEXT NOT NULL, us INTEGER NOT NULL, done_us INTEGER, body BLOB NOT NULL, UNIQUE(profile, key)) WITHOUT ROWID;
CREATE INDEX job_us ON job(profile, us);
CREATE INDEX job_live ON job(us) WHERE done_us IS NULL;
CREATE TABLE tally(profile TEXT NOT NULL, session TEXT NOT NULL, us INTEGER NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY(profile, session)) WITHOUT ROWID;
CREATE TABLE compaction(profile TEXT NOT NULL, session TEXT NOT NULL, epoch TEXT NOT NULL, us INTEGER NOT NULL,
  state TEXT NOT NULL, job TEXT, reason TEXT, PRIMARY KEY(profile, session, epoch)) WITHOUT ROWID;
CREATE TABLE spending(profile TEXT NOT NULL, day INTEGER NOT NULL, input INTEGER NOT NULL, cached INTEGER NOT NULL,
  output INTEGER NOT NULL, PRIMARY KEY(profile, day)) WITHOUT ROWID;
""",
}
"""What each version added to ``SCHEMA``, which is version 1. A new journal goes through all of them, an older one through
those that it lacks, so that both are the same."""

TABLES = frozenset(re.findall(r"CREATE TABLE (\w+)", SCHEMA + "".join(UPGRADES.values())))

_VERSION_OFFSET = 60
"""Where SQLite keeps ``user_version`` in the file header (https://www.sqlite.org/fileformat.html, 1.3)."""


def connect(path: Path) -> sqlite3.Connection:
    """Open the journal at ``path``, creating it if it is missing.

    Returns:
        The connection, in WAL mode with ``synchronous=FULL`` and an exclusive lock held for its whole life.

    Raises:
        JournalTooNew: Written by a newer schema. The file was only read.
        sqlite3.DatabaseError: Damaged, or locked by another process (``OperationalError``).
        OSError: The file cannot be created or opened.
    """
    _refuse_newer(path)
    _create_private(path)
    # A cache of 256 statements: multi-row inserts come in a dozen sizes for each table.
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, timeout=1.0, cached_statements=256
    )
    # A text that is damaged is shown as such; the default would refuse the whole row, and the start with it.
    connection.text_factory = _lenient
    try:
        _prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def header_version(path: Path) -> int:
    """The schema version in the file's header; 0 for a file that is missing, short or no SQLite database.

    SQLite is not involved, so that a journal of a newer memd is not touched by as much as a lock.
    """
    try:
        with path.open("rb") as file:
            header = file.read(_VERSION_OFFSET + 4)
    except FileNotFoundError:
        return 0
    if len(header) < _VERSION_OFFSET + 4 or not header.startswith(b"SQLite format 3\x00"):
        return 0
    return int.from_bytes(header[_VERSION_OFFSET:], "big")


def _refuse_newer(path: Path) -> None:
    found = header_version(path)
    if found > VERSION:
        msg = (
            f"the journal {path} has schema version {found}, this memd knows versions up to {VERSION}: "
            "start the newer memd that wrote it, or move the file away; nothing was touched"
        )
        raise JournalTooNew(msg)


def _create_private(path: Path) -> None:
    """Create the file 0600 before SQLite opens it, whatever the umask; never follow a link put in its place."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        let_go(descriptor)  # before SQLite opens it: closing another descriptor would drop SQLite's locks


def _lenient(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _prepare(connection: sqlite3.Connection) -> None:
    run = connection.execute
    run("PRAGMA locking_mode=EXCLUSIVE")
    run("PRAGMA journal_mode=WAL")
    run("PRAGMA synchronous=FULL")
    run("PRAGMA wal_autocheckpoint=0")  # we checkpoint between groups, never inside one
    run("PRAGMA temp_store=MEMORY")
    run("PRAGMA secure_delete=ON")  # a copy of a message that is deleted is gone, not merely unlisted
    if sys.platform == "darwin":
        run("PRAGMA fullfsync=1")
        run("PRAGMA checkpoint_fullfsync=1")
    run("BEGIN IMMEDIATE")  # takes the exclusive lock now, not at the first commit
    version = run("PRAGMA user_version").fetchone()[0]
    fresh = version == 0 and not run("SELECT 1 FROM sqlite_master").fetchone()
    if fresh:
        _create(connection, SCHEMA)
    missing = [number for number in sorted(UPGRADES) if fresh or 0 < version < number]
    for number in missing:
        _create(connection, UPGRADES[number])
    if missing:
        run(f"PRAGMA user_version={VERSION}")
    run("COMMIT")
    if missing:
        run("PRAGMA wal_checkpoint(TRUNCATE)")  # so that the header tells the version without SQLite


def _create(connection: sqlite3.Connection, statements: str) -> None:
    for statement in statements.split(";\n"):
        if statement.strip():
            connection.execute(statement)
