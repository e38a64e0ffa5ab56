"""What of the journal goes, and what must not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from memd.store import queries, retention
from memd.store.clock import DAY_US
from memd.store.queries import RevisionFilter
from memd.store.records import (
    EventRecord,
    Part,
    PreimageRecord,
    RenderingRecord,
    RequestRecord,
    RevisionRecord,
    SessionRecord,
    SnapshotRecord,
    StoreRow,
    TurnRecord,
)
from memd.store.retention import KEEP_RENDERINGS, Policy, prune, size_mb

if TYPE_CHECKING:
    from support.faults import FailingJournal

    from memd.store.journal import Journal

NOW = 1000 * DAY_US
OLD = NOW - 400 * DAY_US
RECENT = NOW - 10 * DAY_US


def _store(journal: Journal, *, checkpoint: int) -> int:
    return journal.put_store(
        StoreRow(id=0, directory="/d", name="MEMORY.md", device=1, inode=1, checkpoint=checkpoint)
    )  # fmt: skip


def _fill(journal: Journal, store: int, count: int, *, us: int = OLD, origin: str = "agent", size: int = 8) -> None:
    part = Part()
    for number in range(1, count + 1):
        part.revisions.append(RevisionRecord(revision=number, store=store, us=us, origin=origin))
        part.renderings.append(
            RenderingRecord(store=store, revision=number, us=us, data=b"x" * size, entries=[])
        )  # fmt: skip
    journal.commit([part])


def _kept(journal: Journal, store: int) -> list[int]:
    found = queries.revisions(journal, RevisionFilter(stores=(store,)), 1_000_000)
    return [record.revision for record in reversed(found)]


def _prune_all(journal: Journal, policy: Policy) -> None:
    for _ in range(50):
        if not prune(journal, policy, NOW):
            return
    raise AssertionError


class TestRevisions:
    def test_what_is_old_goes_but_the_last_thousand_stay(self, journal: Journal) -> None:
        """With their renderings, which outside writers may start from."""
        store = _store(journal, checkpoint=1200)
        _fill(journal, store, 1200)
        _prune_all(journal, Policy(keep_days=365))
        assert list(range(201, 1201)) == _kept(journal, store)
        assert (KEEP_RENDERINGS,) == journal.connection.execute("SELECT count(*) FROM rendering").fetchone()

    def test_what_is_beyond_the_number_goes(self, journal: Journal) -> None:
        """However young."""
        store = _store(journal, checkpoint=1200)
        _fill(journal, store, 1200, us=NOW)
        _prune_all(journal, Policy(keep_revisions=1100))
        assert list(range(101, 1201)) == _kept(journal, store)

    def test_nothing_newer_than_the_file_checkpoint_goes(self, journal: Journal) -> None:
        """The file on disk may still be any of them."""
        store = _store(journal, checkpoint=50)
        _fill(journal, store, 1200)
        _prune_all(journal, Policy(keep_days=1, keep_revisions=1))
        assert list(range(50, 1201)) == _kept(journal, store)

    def test_without_a_checkpoint_nothing_goes(self, journal: Journal) -> None:
        """Nor with few renderings."""
        store = _store(journal, checkpoint=0)
        _fill(journal, store, 1200)
        assert 0 == prune(journal, Policy(keep_days=1, keep_revisions=1), NOW)

    @pytest.mark.parametrize("origin", ["user", "outside"])
    def test_what_people_did_stays_for_a_month(self, journal: Journal, origin: str) -> None:
        """Whatever the number of revisions; then it goes, too."""
        store = _store(journal, checkpoint=1200)
        _fill(journal, store, 1200, us=RECENT, origin=origin)
        policy = Policy(keep_revisions=1)
        assert 0 == prune(journal, policy, NOW)
        assert 200 == prune(journal, policy, NOW + 30 * DAY_US)

    def test_a_full_journal_keeps_less(self, journal: Journal) -> None:
        """Even what people did, but never the last thousand renderings."""
        store = _store(journal, checkpoint=1200)
        _fill(journal, store, 1200, us=RECENT, origin="user", size=4000)
        assert size_mb(journal) > 4
        _prune_all(journal, Policy(max_mb=1))
        assert list(range(201, 1201)) == _kept(journal, store)

    def test_it_goes_in_batches(self, journal: Journal) -> None:
        """So that commits come in between."""
        store = _store(journal, checkpoint=5000)
        _fill(journal, store, 5000)
        policy = Policy()
        assert [2000, 2000, 0] == [prune(journal, policy, NOW) for _ in range(3)]


class TestTheRest:
    def test_old_events_go_and_it_is_known_that_they_did(self, journal: Journal) -> None:
        """The newest stays, so that numbers go on from it."""
        events = [EventRecord(seq=seq, us=OLD, topic="t", profile="p") for seq in range(1, 11)]
        journal.commit([Part(events=events)])
        _prune_all(journal, Policy())
        assert [10] == [row[0] for row in journal.connection.execute("SELECT seq FROM event")]
        assert ([10], True) == self._since(journal, 3)
        assert ([10], False) == self._since(journal, 9)

    def _since(self, journal: Journal, seq: int) -> tuple[list[int], bool]:
        found, lost = queries.events_since(journal, "p", seq, 10, limit=100)
        return [event.seq for event in found], lost

    def test_requests_are_remembered_for_a_day(self, journal: Journal) -> None:
        """Then the same id is a new call."""
        records = [
            RequestRecord(profile="p", request_id=str(us), fingerprint=b"", us=us, answer=b"")
            for us in (NOW - DAY_US - 1, NOW - DAY_US)
        ]
        journal.commit([Part(requests=records)])
        assert 1 == prune(journal, Policy(), NOW)
        assert [str(NOW - DAY_US)] == [record.request_id for record in journal.requests(0)]

    def test_pre_images_are_bounded(self, journal: Journal) -> None:
        """By number and by bytes, the newest stay."""
        store = _store(journal, checkpoint=1)
        records = [
            PreimageRecord(store=store, revision=number, us=number, hash=b"%d" % number, data=b"x")
            for number in range(1, 111)
        ]
        journal.commit([Part(preimages=records)])
        assert 10 == prune(journal, Policy(), NOW)
        assert 11 == queries.preimages(journal, store)[-1][0]
        big = [
            PreimageRecord(store=store, revision=number, us=number, hash=b"%d" % number, data=b"x" * 5 * 1024 * 1024)
            for number in range(201, 205)
        ]
        journal.commit([Part(preimages=big)])
        _prune_all(journal, Policy())
        assert [204, 203, 202] == [revision for revision, _, _ in queries.preimages(journal, store)]

    def test_closed_sessions_take_what_is_theirs_along(self, journal: Journal) -> None:
        """A snapshot that another session has stays."""
        sessions = [
            SessionRecord(id="open", profile="p", key=None, snapshot="shared", seen_us=1),
            SessionRecord(id="closed", profile="p", key=None, snapshot="own", seen_us=1, closed=True),
            SessionRecord(id="gone", profile="p", key=None, snapshot="shared", seen_us=1, closed=True),
        ]
        snapshots = [SnapshotRecord(id=name, body=b"") for name in ("shared", "own")]
        turns = [TurnRecord(session=s.id, turn="t", user=True, status="open", us=1) for s in sessions]
        journal.commit([Part(sessions=sessions, snapshots=snapshots, turns=turns)])
        assert 2 == prune(journal, Policy(), NOW)
        found, known, opened = journal.sessions()
        assert (["open"], {"shared"}, ["open"]) == ([s.id for s in found], set(known), [t.session for t in opened])

    def test_a_failure_deletes_nothing(self, journal: Journal, plan: FailingJournal) -> None:
        """And the next group is not hurt by it."""
        store = _store(journal, checkpoint=1200)
        _fill(journal, store, 1200)
        plan.fail("COMMIT")
        with pytest.raises(Exception, match="disk I/O error"):
            prune(journal, Policy(), NOW)
        assert 1200 == len(_kept(journal, store))
        journal.commit([Part(events=[EventRecord(seq=1, us=NOW, topic="t", profile="p")])])

    def test_more_than_so_many_events_go(self, journal: Journal) -> None:
        """However young."""
        journal.connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<?)"
            " INSERT INTO event SELECT i, ?, 'p', 't', x'00' FROM n",
            (retention.EVENTS + 5, NOW),
        )
        _prune_all(journal, Policy())
        assert (retention.EVENTS, 6) == journal.connection.execute("SELECT count(*), min(seq) FROM event").fetchone()
