"""The journal: what is durable when, what a failure leaves, and what the next start finds."""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING

import pytest
from support.faults import FSYNC, FULL, FailingJournal
from support.hosts import relaxed

from memd.errors import IoFailure, JournalTooNew, NoSpace, StoreError
from memd.store import schema
from memd.store.clock import read_boot_id
from memd.store.journal import Journal
from memd.store.records import (
    EventRecord,
    Part,
    RenderingRecord,
    RevisionRecord,
)

if TYPE_CHECKING:
    from pathlib import Path


def _part(number: int) -> Part:
    return Part(
        revisions=[RevisionRecord(revision=number, store=1, us=number * 10, origin="agent")],
        events=[EventRecord(seq=number, us=number * 10, topic="t", profile="p")],
        entry_ids=[(1, f"e{number}")],
    )


def _revisions(path: Path) -> list[int]:
    """What is in the journal for whoever opens it next."""
    connection = relaxed(path)
    found = [row[0] for row in connection.execute("SELECT revision FROM revision ORDER BY revision")]
    connection.close()
    return found


class TestLife:
    def test_the_first_start_finds_nothing(self, tmp_path: Path) -> None:
        """And marks the journal as in use."""
        journal = Journal(tmp_path / "journal.db", connect=relaxed, boot_id="boot")
        opened = journal.open()
        assert (True, None, False, False) == (opened.fresh, opened.damaged, opened.clean, opened.same_boot)
        assert (0, 0, 0) == journal.newest()
        assert [] == journal.stores()
        assert journal.head(1) is None
        journal.close(clean=True)
        assert "closed" in repr(journal)
        journal.close(clean=True)

    @pytest.mark.parametrize("clean", [True, False])
    @pytest.mark.parametrize("boot", ["boot", "next boot", ""])
    def test_the_next_start_knows_how_the_last_ended(self, journal: Journal, clean: bool, boot: str) -> None:
        """In order or not; on this boot or another. Without a boot id it is never the same."""
        journal.close(clean=clean)
        after = Journal(journal.path, connect=relaxed, boot_id=boot)
        opened = after.open()
        assert (False, clean, boot == "boot") == (opened.fresh, opened.clean, opened.same_boot)
        after.close(clean=False)

    def test_the_mark_is_taken_away_while_it_runs(self, journal: Journal) -> None:
        """A crash leaves none."""
        journal.close(clean=True)
        second = Journal(journal.path, connect=relaxed, boot_id="boot")
        second.open()
        assert second._connection is not None
        second._connection.close()
        third = Journal(journal.path, connect=relaxed, boot_id="boot")
        assert not third.open().clean
        third.close(clean=False)

    def test_two_daemons_cannot_share_it(self, journal: Journal) -> None:
        """SQLite's lock backs ours up."""
        with pytest.raises(IoFailure, match="locked"):
            Journal(journal.path, connect=_impatient, boot_id="boot").open()

    def test_a_journal_that_cannot_be_opened_is_a_typed_error(self, tmp_path: Path) -> None:
        """A directory in its place, or no directory to be in."""
        (tmp_path / "journal.db").mkdir()
        for path in (tmp_path / "journal.db", tmp_path / "gone" / "journal.db"):
            with pytest.raises(StoreError, match="open the journal"):
                Journal(path, connect=relaxed).open()

    def test_a_full_disk_at_the_start_is_a_typed_error(self, journal: Journal, plan: FailingJournal) -> None:
        """Nothing is lost by it."""
        journal.close(clean=True)
        plan.fail("COMMIT", name=FULL)
        with pytest.raises(NoSpace):
            journal.open()
        journal.close(clean=False)

    def test_whether_the_path_is_still_ours(self, journal: Journal) -> None:
        """A journal that is deleted or replaced under us is not written any more."""
        assert journal.is_ours()
        os.rename(journal.path, f"{journal.path}.gone")
        assert not journal.is_ours()
        journal.path.write_bytes(b"")
        assert not journal.is_ours()

    def test_the_boot_id_is_the_machines(self) -> None:
        """Empty where there is none, never different within a boot."""
        assert read_boot_id() == read_boot_id()


def _impatient(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, timeout=0)
    try:
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


class TestDamage:
    @pytest.mark.parametrize("content", [b"rubbish" * 1000, b"SQLite format 3\0" + b"\0" * 8000])
    def test_a_damaged_journal_is_set_aside(self, tmp_path: Path, content: bytes) -> None:
        """Byte for byte, under a name that says so; a new one begins."""
        path = tmp_path / "journal.db"
        path.write_bytes(content)
        journal = Journal(path, connect=relaxed)
        opened = journal.open()
        assert opened.fresh
        assert opened.damaged is not None
        assert content == (tmp_path / opened.damaged).read_bytes()
        assert "journal.db.damaged-" in opened.damaged
        journal.commit([_part(1)])
        journal.close(clean=True)

    def test_a_read_that_fails_once_is_no_damage(self, tmp_path: Path) -> None:
        """SQLite tells it in the same words; a journal that is well must not be set aside for it."""
        path = tmp_path / "journal.db"
        journal = Journal(path, connect=relaxed)
        journal.open()
        journal.commit([_part(1)])
        journal.close(clean=True)
        opened = []

        def once(path: Path) -> sqlite3.Connection:
            opened.append(path)
            if len(opened) == 1:
                raise sqlite3.DatabaseError("database disk image is malformed")  # noqa: EM101 - SQLite's own words
            return relaxed(path)

        journal = Journal(path, connect=once)
        assert (None, False) == (journal.open().damaged, journal.is_ours() is False)
        assert 1 == journal.newest()[0]
        journal.close(clean=True)

    def test_pages_that_are_torn_are_damage(self, tmp_path: Path) -> None:
        """Found by the check at the start, not by a query some day."""
        path = tmp_path / "journal.db"
        journal = Journal(path, connect=relaxed)
        journal.open()
        journal.commit([_part(number) for number in range(1, 200)])
        journal.close(clean=True)
        content = bytearray(path.read_bytes())
        for page in range(3, len(content) // 4096):
            content[page * 4096 : page * 4096 + 64] = b"\xa5" * 64
        path.write_bytes(content)
        opened = Journal(path, connect=relaxed).open()
        assert opened.damaged is not None
        assert bytes(content) == (tmp_path / opened.damaged).read_bytes()

    def test_a_database_of_somebody_else_is_damage(self, tmp_path: Path) -> None:
        """It has none of our tables; it is kept beside."""
        path = tmp_path / "journal.db"
        other = sqlite3.connect(path)
        other.execute("CREATE TABLE mine(x)")
        other.commit()
        other.close()
        journal = Journal(path, connect=relaxed)
        assert journal.open().damaged is not None
        journal.commit([_part(1)])
        journal.close(clean=True)

    def test_set_aside_copies_do_not_replace_each_other(self, tmp_path: Path) -> None:
        """Even in the same second."""
        path = tmp_path / "journal.db"
        found = []
        for content in (b"first " * 100, b"second " * 100):
            path.write_bytes(content)
            os.utime(path, (1_000_000, 1_000_000))
            journal = Journal(path, connect=relaxed)
            found.append(journal.open().damaged)
            journal.close(clean=True)
        assert 2 == len(set(found))
        assert [b"first " * 100, b"second " * 100] == [(tmp_path / str(name)).read_bytes() for name in found]

    def test_setting_aside_goes_on_where_it_ended(self, tmp_path: Path) -> None:
        """The log is under its new name already: it keeps it, and the journal gets the name that goes with it."""
        path = tmp_path / "journal.db"
        path.write_bytes(b"no database " * 100)
        os.utime(path, (1_000_000, 1_000_000))
        log = tmp_path / "journal.db.damaged-19700112T134640Z-wal"
        log.write_bytes(b"its log")
        journal = Journal(path, connect=relaxed)
        assert str(log) == f"{journal.open().damaged}-wal"
        journal.close(clean=True)
        assert b"its log" == log.read_bytes()

    @pytest.mark.parametrize("statement", ["SELECT key, value FROM meta", "SELECT (SELECT max(revision)"])
    def test_what_cannot_be_read_at_the_start_is_told(self, tmp_path: Path, statement: str) -> None:
        """In memd's words, with the path."""
        plan = FailingJournal()
        journal = Journal(tmp_path / "journal.db", connect=plan.connect)
        plan.fail(statement)

        def begin() -> None:
            journal.open()
            journal.newest()

        with pytest.raises(IoFailure, match="journal"):
            begin()

    def test_a_newer_journal_is_no_damage(self, journal: Journal) -> None:
        """It stays in its place."""
        journal.connection.execute(f"PRAGMA user_version={schema.VERSION + 1}")
        journal.close(clean=True)
        content = journal.path.read_bytes()
        with pytest.raises(JournalTooNew):
            Journal(journal.path, connect=relaxed).open()
        assert content == journal.path.read_bytes()


class TestCommit:
    def test_a_group_is_there_for_whoever_opens_it_next(self, journal: Journal) -> None:
        """All its parts, with one fsync."""
        before = journal.statistics().fsyncs
        journal.commit([_part(1), _part(2)])
        statistics = journal.statistics()
        assert (1, 1) == (statistics.groups, statistics.fsyncs - before)
        assert (2, 2, 20) == journal.newest()
        assert {"e1", "e2"} == journal.entry_ids(1)
        journal.close(clean=False)
        assert [1, 2] == _revisions(journal.path)

    @pytest.mark.parametrize("at", ["BEGIN", "INSERT OR REPLACE INTO revision", "INSERT OR REPLACE INTO meta"])
    @pytest.mark.parametrize("name", [FSYNC, FULL])
    def test_an_error_before_the_commit_is_definite(
        self, journal: Journal, plan: FailingJournal, at: str, name: str
    ) -> None:
        """Nothing of the group is there, now or after a restart, and the next group works."""
        plan.fail(at, name=name)
        with pytest.raises(NoSpace if name == FULL else IoFailure) as caught:
            journal.commit([_part(1)])
        assert "none" == caught.value.outcome
        journal.commit([_part(2)])
        journal.close(clean=False)
        assert [2] == _revisions(journal.path)

    def test_a_failing_rollback_is_definite_too(self, journal: Journal, plan: FailingJournal) -> None:
        """Dropping the connection does the same."""
        plan.fail("INSERT OR REPLACE INTO revision", "ROLLBACK")
        with pytest.raises(IoFailure) as caught:
            journal.commit([_part(1)])
        assert "none" == caught.value.outcome
        assert journal.is_open
        journal.commit([_part(2)])
        journal.close(clean=False)
        assert [2] == _revisions(journal.path)

    def test_a_commit_that_failed_and_is_not_there(self, journal: Journal, plan: FailingJournal) -> None:
        """The journal is opened anew, finds the group missing, and says so for certain."""
        opened = plan.opened
        plan.fail("COMMIT")
        with pytest.raises(IoFailure) as caught:
            journal.commit([_part(1)])
        assert ("none", opened + 1, 1) == (caught.value.outcome, plan.opened, journal.statistics().reopened)
        journal.commit([_part(2)])
        journal.close(clean=False)
        assert [2] == _revisions(journal.path)

    def test_a_commit_that_failed_and_is_there(self, journal: Journal, plan: FailingJournal) -> None:
        """An fsync that fails is no rollback: the group counts, once a barrier behind it is durable."""
        plan.fail("COMMIT", done=True)
        journal.commit([_part(1)])
        assert (1,) == journal.connection.execute("SELECT value FROM meta WHERE key='barrier'").fetchone()
        journal.commit([_part(2)])
        journal.close(clean=False)
        assert [1, 2] == _revisions(journal.path)

    @pytest.mark.parametrize("done", [True, False])
    def test_while_it_cannot_be_read_again_nothing_is_known(
        self, journal: Journal, plan: FailingJournal, done: bool
    ) -> None:
        """``unknown`` until it can be opened; then the counter is the journal's, not ours."""
        plan.fail("COMMIT", done=done, opening=2)
        with pytest.raises(IoFailure) as caught:
            journal.commit([_part(1)])
        assert ("unknown", False) == (caught.value.outcome, journal.is_open)
        with pytest.raises(IoFailure, match="is not open"):
            journal.commit([_part(2)])
        assert not journal.reopen()
        assert journal.reopen()
        assert ([1] if done else []) == [row[0] for row in journal.connection.execute("SELECT revision FROM revision")]
        plan.fail("COMMIT")
        with pytest.raises(IoFailure) as caught:
            journal.commit([_part(3)])
        assert "none" == caught.value.outcome
        journal.close(clean=False)
        assert ([1] if done else []) == _revisions(journal.path)

    def test_a_barrier_that_fails_leaves_it_unknown(self, journal: Journal, plan: FailingJournal) -> None:
        """What was read back is not durable yet."""
        plan.fail("COMMIT", "COMMIT", done=True)
        with pytest.raises(IoFailure) as caught:
            journal.commit([_part(1)])
        assert "unknown" == caught.value.outcome
        assert journal.reopen()

    def test_a_full_disk_is_definite_although_there_is_no_room_for_a_barrier(
        self, journal: Journal, plan: FailingJournal
    ) -> None:
        """The group is not there, so nothing has to be made durable; what removes may then use the reserve."""
        plan.fail("COMMIT", "COMMIT", "COMMIT", name=FULL)
        with pytest.raises(NoSpace) as caught:
            journal.commit([_part(1)])
        assert ("none", True) == (caught.value.outcome, journal.is_open)
        plan.heal()
        journal.commit([_part(2)])
        journal.close(clean=False)
        assert [2] == _revisions(journal.path)

    def test_a_journal_that_is_gone_is_not_made_anew(self, journal: Journal, plan: FailingJournal) -> None:
        """A failure must not be how an empty journal gets in the place of the real one."""
        os.rename(journal.path, f"{journal.path}.gone")
        plan.fail("COMMIT")
        with pytest.raises(IoFailure) as caught:
            journal.commit([_part(1)])
        assert "unknown" == caught.value.outcome
        assert not journal.reopen()
        assert not journal.path.exists()

    def test_a_failed_mark_leaves_no_transaction_open(self, journal: Journal, plan: FailingJournal) -> None:
        """The next group is not hurt by it."""
        plan.fail("COMMIT", name=FULL)
        with pytest.raises(NoSpace):
            journal.remember_profile("p", "/d")
        journal.commit([_part(1)])
        assert {} == journal.created_profiles()

    def test_a_long_log_is_copied_back_between_groups(self, journal: Journal) -> None:
        """When it is due or forced, never because of SQLite's own idea."""
        journal.checkpoint_wal()
        big = RenderingRecord(store=1, revision=1, us=1, data=b"x" * 9_000_000, entries=[])
        journal.commit([Part(renderings=[big])])
        assert journal.wal_due
        before = journal.statistics().fsyncs
        journal.checkpoint_wal()
        assert 2 == journal.statistics().fsyncs - before
        journal.commit([_part(1)])
        journal.checkpoint_wal(force=True)
        assert 5 == journal.statistics().fsyncs - before
