"""Records as rows and back."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st
from support.faults import FailingJournal
from support.hosts import relaxed

from memd.store.records import ChangeRecord, EntryRecord, EventRecord, Part, RenderingRecord, RevisionRecord
from memd.store.rows import DAMAGED, REVISION_COLUMNS, event_from, insert, rendering_from, revision_from, write_part

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """An empty journal."""
    found = relaxed(tmp_path / "journal.db")
    yield found
    found.close()


def test_a_revision_comes_back_as_it_was(connection: sqlite3.Connection) -> None:
    """With texts that are not UTF-8, and everything that may be absent."""
    record = RevisionRecord(
        revision=7,
        store=1,
        us=2,
        kind="undo",
        origin="user",
        client="c",
        uid=3,
        pid=4,
        session="s",
        turn="t",
        job="j",
        reason="because",
        changes=[ChangeRecord("replace", "e", b"caf\xe9", None, 5, 6, "agent")],
        undoes=[1, 2],
        undone_by=9,
    )
    bare = RevisionRecord(revision=8, store=1, us=2, origin="agent")
    write_part(connection, Part(revisions=[record, bare]))
    rows = connection.execute(f"SELECT {', '.join(REVISION_COLUMNS)} FROM revision ORDER BY revision").fetchall()
    assert [record, bare] == [revision_from(row) for row in rows]


def test_a_rendering_that_does_not_verify_is_none(connection: sqlite3.Connection) -> None:
    """Its bytes are never written anywhere."""
    record = RenderingRecord(store=1, revision=1, us=2, data=b"text", entries=[EntryRecord("e", 1, 2, "user")])
    write_part(connection, Part(renderings=[record]))
    sql = "SELECT store, revision, us, hash, data, entries FROM rendering"
    assert record == rendering_from(connection.execute(sql).fetchone())
    connection.execute("UPDATE rendering SET data=?", (b"tExt",))
    assert rendering_from(connection.execute(sql).fetchone()) is None


def test_an_event_comes_back_as_it_was(connection: sqlite3.Connection) -> None:
    """Under the number that the committer gave it."""
    event = EventRecord(seq=4, us=1, topic="memory.changed", profile="p", target="user", data={"a": [1, "ü"]})
    write_part(connection, Part(events=[event]))
    seq, body = connection.execute("SELECT seq, body FROM event").fetchone()
    assert (4, event) == (seq, event_from(body))


def test_marks_of_a_part(connection: sqlite3.Connection) -> None:
    """Undone and not undone any more; a file checkpoint never goes back; a forgotten request is gone."""
    connection.execute("INSERT INTO store VALUES (1, 'd', 'n', 0, 0, 5)")
    connection.execute("INSERT INTO request VALUES ('p', 'r', x'00', 1, x'00')")
    revisions = [RevisionRecord(revision=number, store=1, us=1, origin="user", undone_by=3) for number in (1, 2)]
    write_part(connection, Part(revisions=revisions))
    write_part(
        connection, Part(undone=[(1, None), (2, 4)], checkpoints=[(1, 4)], forget=[("p", "r"), ("p", "unknown")])
    )
    assert [(1, None), (2, 4)] == connection.execute("SELECT revision, undone_by FROM revision").fetchall()
    assert [(5,)] == connection.execute("SELECT checkpoint FROM store").fetchall()
    assert [(0,)] == connection.execute("SELECT count(*) FROM request").fetchall()


@given(count=st.integers(0, 200))
def test_any_number_of_rows_is_written_in_few_statements(count: int) -> None:
    """Powers of two up to 64, so that few statements have to be prepared."""
    statements: list[tuple[str, list[int]]] = []

    class Counting:
        def execute(self, sql: str, values: list[int]) -> None:
            statements.append((sql, values))

    insert(Counting(), "t", ("a", "b"), [(number, -number) for number in range(count)])  # type: ignore[arg-type]  # a fake
    assert [value for number in range(count) for value in (number, -number)] == [v for _, vs in statements for v in vs]
    assert {sql.count("(?,?)") for sql, _ in statements} <= {1, 2, 4, 8, 16, 32, 64}
    assert len(statements) <= count // 64 + 6


def test_the_plan_of_a_failing_journal_is_followed(tmp_path: Path) -> None:
    """The fake used elsewhere raises what SQLite raises, and otherwise is the real thing."""
    plan = FailingJournal()
    connection = plan.connect(tmp_path / "journal.db")
    plan.fail("BEGIN")
    with pytest.raises(Exception, match="disk I/O error") as caught:
        connection.execute("BEGIN")
    assert "SQLITE_IOERR_FSYNC" == caught.value.sqlite_errorname  # type: ignore[attr-defined]  # sqlite3.Error has it
    assert (1,) == connection.execute("SELECT 1").fetchone()
    connection.close()


@pytest.mark.parametrize("column", ["changes", "undoes"])
@pytest.mark.parametrize("bytes_", [b"", b"\xc1", b"\x93\x01", b"\x91\xa3abc"])
def test_of_a_damaged_revision_the_rest_is_shown(column: str, bytes_: bytes) -> None:
    """With a reason that says so: a history must not end at one bad page."""
    row = dict.fromkeys(REVISION_COLUMNS, 1) | {
        "kind": "change",
        "changes": b"\x90",
        "undoes": b"\x90",
        column: bytes_,
    }
    record = revision_from(tuple(row.values()))
    assert (1, [], [], DAMAGED) == (record.revision, record.changes, record.undoes, record.reason)


def test_damaged_renderings_and_events_are_none() -> None:
    """They are passed over, never half believed."""
    digest = hashlib.sha256(b"text").digest()
    assert rendering_from((1, 2, 3, digest, b"text", b"\x90")) is not None
    assert rendering_from((1, 2, 3, digest, b"text", b"\x93")) is None
    assert rendering_from((1, 2, 3, digest, b"test", b"\x90")) is None
    assert event_from(b"\x81") is None
