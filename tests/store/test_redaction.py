"""memd.store.redaction: every table without the text, or an error that says what is so."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec.structs import replace
from support.faults import FailingJournal

from memd.errors import Busy, IoFailure, NoSpace
from memd.store import queries, redaction
from memd.store.journal import Journal
from memd.store.masking import Mask
from memd.store.proposals import approved_of, proposals_of
from memd.store.records import (
    ChangeRecord,
    EntryRecord,
    EventRecord,
    OperationRecord,
    Part,
    PreimageRecord,
    ProposalRecord,
    RefusalRecord,
    RenderingRecord,
    RequestRecord,
    RevisionRecord,
    SessionRecord,
    SnapshotRecord,
    TurnRecord,
)
from memd.store.work import CompactionRecord, DeskRecord, JobRecord, MessageRecord, TallyRecord, WorkPart

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "hunter2"
MASK = Mask([TEXT])
LIVE = hashlib.sha256(b"a text that is in a store").digest()


@pytest.fixture
def journal(journal: Journal) -> Journal:
    """An open journal that holds the text in every table."""
    journal.commit([everything()])
    return journal


def packed(**fields: Any) -> bytes:
    return msgspec.msgpack.encode(fields)


def proposal(proposal_id: str, text: str) -> ProposalRecord:
    return ProposalRecord(
        id=proposal_id,
        profile="p",
        store=1,
        target="memory",
        us=1,
        base=0,
        operations=[OperationRecord("add", text)],
        findings=[],
        origin="tool",
    )


def everything() -> Part:
    """One row with the text in each table, and one without it."""
    data = b"pin hunter2\n\xc2\xa7\nother\n"
    entries = [EntryRecord("e1", 1, 1, "user"), EntryRecord("e2", 1, 1, "user")]
    changes = [ChangeRecord("replace", "e1", b"pin hunter2", b"pin", 0, 1, "user")]
    digest = hashlib.sha256(TEXT.encode()).digest()
    return Part(
        revisions=[
            RevisionRecord(revision=1, store=1, us=1, origin="user", changes=changes),
            RevisionRecord(revision=2, store=1, us=2, origin="user", reason="said hunter2", client="c"),
            RevisionRecord(revision=3, store=1, us=3, origin="user", reason="clean", client="hunter2"),
            RevisionRecord(revision=4, store=1, us=4, origin="user", reason="clean"),
        ],
        renderings=[
            RenderingRecord(store=1, revision=1, us=1, data=data, entries=entries),
            RenderingRecord(store=1, revision=4, us=4, data=b"other\n", entries=entries[1:]),
        ],
        preimages=[PreimageRecord(store=1, revision=1, us=1, hash=hashlib.sha256(data).digest(), data=data)],
        events=[
            EventRecord(seq=1, us=1, topic="x", profile="p", data={"a": ["hunter2"]}),
            EventRecord(seq=2, us=2, topic="x", profile="p"),
        ],
        requests=[
            RequestRecord(profile="p", request_id="r1", fingerprint=b"f1", us=1, answer=b"C" + packed(entry=TEXT)),
            RequestRecord(
                profile="p",
                request_id="r2",
                fingerprint=b"f2",
                us=1,
                answer=b"C" + packed(revision=2, changes=[{"id": "e1"}]),
            ),
            RequestRecord(
                profile="p",
                request_id="r3",
                fingerprint=b"f3",
                us=1,
                answer=b"U" + packed(revisions=[4], changes=[{"id": "e1"}]),
            ),
            RequestRecord(profile="p", request_id="id hunter2", fingerprint=b"f4", us=1, answer=b"C" + packed(n=1)),
        ],
        refusals=[
            RefusalRecord(us=1, profile="p", target="user", name="n", text_hash=digest, reason="n"),
            RefusalRecord(us=1, profile="p", target="user", name="n", text_hash=b"other", reason="n"),
        ],
        sessions=[
            SessionRecord(id="s1", profile="p", key="k hunter2", snapshot="n1", seen_us=1, body=packed(url=TEXT)),
            SessionRecord(id="s2", profile="p", key=None, snapshot="n2", seen_us=1, closed=True),
            SessionRecord(id="s3", profile="p", key=None, snapshot="n3", seen_us=1, body=packed(url="x")),
        ],
        snapshots=[
            SnapshotRecord(id="n1", body=packed(text="with hunter2")),
            SnapshotRecord(id="n2", body=packed(text="of a closed session: hunter2")),
            SnapshotRecord(id="n3", body=packed(text="clean")),
        ],
        proposals=[proposal("q1", TEXT), proposal("q2", "clean")],
        approved=[(1, digest, 1), (1, LIVE, 1)],
        turns=[
            TurnRecord(session="s1", turn="t hunter2", user=True, status="open", us=1),
            TurnRecord(session="s3", turn="t", user=True, status="open", us=1),
        ],
        work=everything_of_jobs(),
    )


def everything_of_jobs() -> WorkPart:
    """The same for what reviews and flushes keep."""
    message = MessageRecord(owner="s1", number=1, profile="p", us=1, role="user", text="my pin is hunter2")
    job = JobRecord(id="j1", profile="p", kind="flush", session="s1", key="flush:s1:hunter2", us=1)
    tally = TallyRecord(profile="p", session="s1", us=1, turn="t hunter2")
    epoch = CompactionRecord(profile="p", session="s1", epoch="e hunter2", us=1, state="flushed", job="j1")
    return WorkPart(
        messages=[
            message,
            replace(message, number=2, role="tool", text="", withheld=TEXT),
            replace(message, number=3, text="x"),
        ],
        jobs=[
            replace(job, operations=[DeskRecord("memory", "add", TEXT)], reason="said hunter2", summary=TEXT),
            replace(job, id="j2", key="k"),
        ],
        tallies=[tally, replace(tally, session="s3", turn="t")],
        compactions=[epoch, replace(epoch, epoch="e")],
    )


def rows(journal: Journal, sql: str) -> list[tuple[Any, ...]]:
    return journal.connection.execute(sql).fetchall()


def test_each_table_is_counted_and_clean(journal: Journal) -> None:
    """Counts are of rows that had to change or go; the file and its log hold nothing any more."""
    done = redaction.redact(journal, MASK, live=frozenset({LIVE}))
    assert {
        "revision": 3, "rendering": 1, "preimage": 1, "event": 1, "request": 3, "refusal": 1, "session": 2,
        "snapshot": 2, "turn": 1, "proposal": 1, "approved": 1, "message": 2, "job": 1, "tally": 1, "compaction": 1,
        "set_aside": 0,
    } == done.tables  # fmt: skip
    assert frozenset({1, 2, 3}) == done.revisions
    journal.close(clean=True)
    assert TEXT.encode() not in journal.path.read_bytes()


def test_a_proposal_stays_without_the_text_and_an_approval_goes_with_it(journal: Journal) -> None:
    """A person still sees that something was proposed; by a hash the text could be guessed."""
    redaction.redact(journal, MASK, live=frozenset({LIVE}))
    texts = {one.id: one.operations[0].content for one in proposals_of(journal, "p")}
    assert {"q1": "[redacted]", "q2": "clean"} == texts
    assert {"q1": True, "q2": False} == {one.id: one.redacted for one in proposals_of(journal, "p")}
    redaction.redact(journal, MASK, live=frozenset({LIVE}))
    assert {"q1": True, "q2": False} == {one.id: one.redacted for one in proposals_of(journal, "p")}
    assert {LIVE} == approved_of(journal, 1)


def test_the_log_is_emptied_while_the_journal_is_open(journal: Journal, tmp_path: Path) -> None:
    """Nobody has to stop the daemon for it."""
    redaction.redact(journal, MASK)
    assert TEXT.encode() not in (tmp_path / "journal.db-wal").read_bytes()


def test_what_is_left_still_fits_together(journal: Journal) -> None:
    """Hashes verify, revisions are stubs that say so, a snapshot has the hash of what it is now."""
    redaction.redact(journal, MASK)
    record = queries.revision(journal, 1)
    assert record is not None
    (change,) = record.changes
    assert (b"pin [redacted]", b"pin", True) == (change.before, change.after, change.redacted)
    assert ["said [redacted]", "clean", "clean"] == [
        row[0] for row in rows(journal, "SELECT reason FROM revision WHERE revision>1 ORDER BY revision")
    ]
    rendering = queries.rendering_at(journal, 1, 1)
    assert rendering is not None
    assert b"pin [redacted]\n\xc2\xa7\nother\n" == rendering.data
    assert queries.has_rendering(journal, 1, hashlib.sha256(rendering.data).digest())
    ((snapshot, body),) = rows(journal, "SELECT id, body FROM snapshot WHERE id<>'n3'")
    assert hashlib.sha256(body).hexdigest() == snapshot
    assert [("s1", snapshot), ("s3", "n3")] == rows(journal, "SELECT id, snapshot FROM session ORDER BY id")
    assert ["[redacted]"] == msgspec.msgpack.decode(rows(journal, "SELECT body FROM event")[0][0])["data"]["a"]


def test_no_hash_is_left_by_which_the_text_could_be_guessed(journal: Journal) -> None:
    """Fingerprints of the calls that held it, and the hash of its refusal; others stay."""
    redaction.redact(journal, MASK)
    found = dict(rows(journal, "SELECT request_id, fingerprint FROM request"))
    assert {"r1": b"", "r2": b"", "r3": b"f3", "id [redacted]": b""} == found
    assert [(b"",), (b"other",)] == rows(journal, "SELECT text_hash FROM refusal ORDER BY id")


def test_a_revision_by_number_becomes_a_stub_whole(journal: Journal) -> None:
    """Also what none of the texts is in."""
    redaction.redact(journal, Mask(()), stubs=frozenset({1, 4}))
    record, other = queries.revision(journal, 1), queries.revision(journal, 4)
    assert record is not None
    assert other is not None
    assert [(b"[redacted]", b"[redacted]")] == [(change.before, change.after) for change in record.changes]
    assert ("[redacted]", None) == (other.reason, record.reason)


def test_it_can_be_run_again(journal: Journal) -> None:
    """There is nothing left to change."""
    redaction.redact(journal, MASK)
    assert {0} == set(redaction.redact(journal, MASK).tables.values())


@pytest.mark.parametrize(
    "statement", ["BEGIN", "SELECT id, body", "DELETE FROM snapshot", "INSERT OR REPLACE INTO meta"]
)
def test_a_failure_before_the_commit_changes_nothing(journal: Journal, plan: FailingJournal, statement: str) -> None:
    """And says so."""
    before = rows(journal, "SELECT changes FROM revision")
    plan.fail(statement, name="SQLITE_FULL")
    with pytest.raises(NoSpace) as caught:
        redaction.redact(journal, MASK)
    assert "none" == caught.value.outcome
    assert before == rows(journal, "SELECT changes FROM revision")
    assert not redaction.complete(journal)
    assert 3 == redaction.redact(journal, MASK).tables["revision"]


@pytest.mark.parametrize("statement", ["COMMIT", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"])
def test_a_failure_from_the_commit_on_is_told_as_unknown(
    journal: Journal, plan: FailingJournal, statement: str
) -> None:
    """The journal can be used again at once, and the same call sees it through."""
    plan.fail(statement)
    with pytest.raises(IoFailure) as caught:
        redaction.redact(journal, MASK)
    assert "unknown" == caught.value.outcome
    assert journal.is_open
    redaction.redact(journal, MASK)
    assert not redaction.complete(journal)
    journal.close(clean=True)
    assert TEXT.encode() not in journal.path.read_bytes()


def test_what_a_crash_left_undone_is_finished_at_the_next_start(journal: Journal, plan: FailingJournal) -> None:
    """The rows are masked; the file still had the text in its freed pages."""
    plan.fail("VACUUM")
    with pytest.raises(IoFailure):
        redaction.redact(journal, MASK)
    journal.close(clean=False)
    again = Journal(journal.path, connect=plan.connect, boot_id="boot")
    again.open()
    assert redaction.complete(again)
    assert not redaction.complete(again)
    again.close(clean=True)
    assert TEXT.encode() not in journal.path.read_bytes()


class BusyLog:
    """A connection whose log somebody else reads, so that it cannot be emptied."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def execute(self, sql: str, values: Any = ()) -> Any:
        if "wal_checkpoint(TRUNCATE)" in sql:
            return self._real.execute("SELECT 1, 5, 3")
        return self._real.execute(sql, values)

    def executemany(self, sql: str, values: Any) -> Any:
        return self._real.executemany(sql, values)

    def close(self) -> None:
        self._real.close()


def test_a_log_in_use_is_not_called_done(tmp_path: Path) -> None:
    """It is busy, to be tried again, and still asked for."""
    journal = Journal(tmp_path / "j.db", connect=lambda path: BusyLog(FailingJournal().connect(path)), boot_id="b")  # type: ignore[arg-type,return-value]  # a fake
    journal.open()
    with pytest.raises(Busy) as caught:
        redaction.redact(journal, MASK)
    assert ("unknown", True) == (caught.value.outcome, caught.value.retryable)
    with pytest.raises(Busy):
        redaction.complete(journal)
    journal.close(clean=False)


def test_set_aside_copies_keep_their_length(journal: Journal, tmp_path: Path) -> None:
    """The journal's own files and links are left to SQLite and to those who made them."""
    copy, other = tmp_path / "journal.db.damaged-1", tmp_path / "else"
    copy.write_bytes(b"\x00junk hunter2 junk")
    other.write_bytes(b"hunter2")
    (tmp_path / "journal.db.link").symlink_to(other)
    assert 1 == redaction.redact(journal, MASK).tables["set_aside"]
    assert b"\x00junk ******* junk" == copy.read_bytes()
    assert b"hunter2" == other.read_bytes()


def test_a_copy_that_cannot_be_written_is_an_error(journal: Journal, tmp_path: Path) -> None:
    """Loudly: the text is still there."""
    (tmp_path / "journal.db.damaged-1").write_bytes(b"hunter2")
    (tmp_path / "journal.db.damaged-1").chmod(0o000)
    try:
        (tmp_path / "journal.db.damaged-1").read_bytes()
    except PermissionError:
        with pytest.raises(Exception, match="redact") as caught:
            redaction.redact(journal, MASK)
        assert "unknown" == getattr(caught.value, "outcome", None)
    else:
        pytest.skip("root reads everything")


def test_a_directory_that_cannot_be_listed_is_an_error(journal: Journal, tmp_path: Path) -> None:
    """A damaged journal in it would keep the text."""
    away = tmp_path.with_name("away")
    tmp_path.rename(away)
    try:
        with pytest.raises(IoFailure, match="redact") as caught:
            redaction.redact(journal, MASK)
    finally:
        away.rename(tmp_path)
    assert "unknown" == caught.value.outcome
