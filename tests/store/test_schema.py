"""Opening the journal's file: created private, newer ones untouched, settings that durability needs."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from memd.errors import JournalTooNew
from memd.store.journal import Journal
from memd.store.schema import TABLES, UPGRADES, VERSION, connect, header_version

OLD_SCHEMA = Path(__file__).parents[1] / "data" / "journal-1.sql"


def _make_newer(path: Path) -> bytes:
    connection = connect(path)
    connection.execute(f"PRAGMA user_version={VERSION + 1}")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path.read_bytes()


def test_a_new_journal_is_private_whatever_the_umask(tmp_path: Path) -> None:
    """0600 from its first byte."""
    path = tmp_path / "journal.db"
    before = os.umask(0)
    try:
        connect(path).close()
    finally:
        os.umask(before)
    assert 0o600 == path.stat().st_mode & 0o777


def test_settings_that_durability_needs(tmp_path: Path) -> None:
    """Write-ahead log, an fsync for each commit, no checkpoint inside one, nobody else in the file."""
    path = tmp_path / "journal.db"
    connection = connect(path)
    found = {
        name: connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "wal_autocheckpoint", "locking_mode", "user_version")
    }
    assert {
        "journal_mode": "wal",
        "synchronous": 2,
        "wal_autocheckpoint": 0,
        "locking_mode": "exclusive",
        "user_version": VERSION,
    } == found
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")}
    assert tables == TABLES
    other = sqlite3.connect(path, timeout=0)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("SELECT * FROM meta")
    other.close()
    connection.close()


def test_the_version_is_in_the_header_at_once(tmp_path: Path) -> None:
    """So that an older memd can tell it without opening the database."""
    path = tmp_path / "journal.db"
    assert 0 == header_version(path)
    connection = connect(path)
    assert VERSION == header_version(path)
    connection.close()
    connect(path).close()
    (tmp_path / "text").write_text("no database, but long enough to look like one" * 5)
    (tmp_path / "short").write_bytes(b"SQLite format 3\0")
    assert [0, 0] == [header_version(tmp_path / name) for name in ("text", "short")]


def test_a_newer_journal_is_not_touched(tmp_path: Path) -> None:
    """Both versions are named; no byte changes and no file appears beside it."""
    path = tmp_path / "journal.db"
    content = _make_newer(path)
    stat = path.stat()
    with pytest.raises(JournalTooNew, match=f"version {VERSION + 1}.*up to {VERSION}"):
        connect(path)
    assert (content, stat.st_mtime_ns) == (path.read_bytes(), path.stat().st_mtime_ns)
    assert ["journal.db"] == os.listdir(tmp_path)


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    """A journal elsewhere is somebody else's."""
    (tmp_path / "journal.db").symlink_to("elsewhere.db")
    with pytest.raises(OSError, match="symbolic links"):
        connect(tmp_path / "journal.db")
    assert not (tmp_path / "elsewhere.db").exists()


def test_rubbish_is_told_and_the_file_let_go(tmp_path: Path) -> None:
    """Whoever asked may then set it aside."""
    path = tmp_path / "journal.db"
    path.write_bytes(b"rubbish" * 1000)
    with pytest.raises(sqlite3.DatabaseError, match="not a database"):
        connect(path)
    path.rename(tmp_path / "aside")
    connect(path).close()


def _make_old(path: Path) -> None:
    """A journal of version 1, with something in it."""
    connection = sqlite3.connect(path)
    connection.executescript(OLD_SCHEMA.read_text())
    connection.execute("INSERT INTO meta VALUES ('group', 7)")
    connection.execute("INSERT INTO refusal VALUES (1, 2, 'p', 'memory', 'n', x'00', 'why', NULL, NULL)")
    connection.commit()
    connection.close()


def _shape(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
    return [(name, " ".join(sql.split())) for name, sql in rows]


def test_an_older_journal_gets_what_it_lacks(tmp_path: Path) -> None:
    """It is then as a new one, with everything that was in it; the header says so at once, and a second start changes nothing."""
    path = tmp_path / "journal.db"
    _make_old(path)
    assert 1 == header_version(path)
    connection = connect(path)
    assert VERSION == header_version(path)
    new = connect(tmp_path / "new.db")
    assert _shape(connection) == _shape(new)
    new.close()
    assert [("group", 7)] == connection.execute("SELECT * FROM meta").fetchall()
    assert [("why",)] == connection.execute("SELECT reason FROM refusal").fetchall()
    connection.close()
    content = path.read_bytes()
    connect(path).close()
    assert content == path.read_bytes()


def test_a_journal_of_version_2_gets_only_what_it_lacks(tmp_path: Path) -> None:
    """What waited for a person in it still does."""
    path = tmp_path / "journal.db"
    _make_old(path)
    old = sqlite3.connect(path)
    old.executescript(UPGRADES[2])
    old.execute("INSERT INTO proposal VALUES ('p', 'p-1', 1, NULL, x'80')")
    old.execute("PRAGMA user_version=2")
    old.commit()
    old.close()
    connection = connect(path)
    new = connect(tmp_path / "new.db")
    assert _shape(connection) == _shape(new)
    new.close()
    assert [("p-1",)] == connection.execute("SELECT id FROM proposal").fetchall()
    connection.close()
    assert VERSION == header_version(path)


def test_an_upgrade_that_a_crash_interrupts_begins_again(tmp_path: Path) -> None:
    """It is one transaction: the journal is of one version or of the other."""
    path = tmp_path / "journal.db"
    _make_old(path)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    holder.execute(next(iter(UPGRADES[2].strip().split(";\n"))))
    holder.close()  # as a process that is killed: what it had begun is rolled back
    connection = connect(path)
    assert VERSION == connection.execute("PRAGMA user_version").fetchone()[0]
    assert {"proposal", "approved"} <= {name for name, _ in _shape(connection)}
    connection.close()


def test_a_journal_of_version_1_is_opened_whole(tmp_path: Path) -> None:
    """It is not taken for damaged."""
    _make_old(tmp_path / "journal.db")
    journal = Journal(tmp_path / "journal.db", boot_id="boot")
    opened = journal.open()
    assert (None, False) == (opened.damaged, opened.fresh)
    journal.close(clean=True)
