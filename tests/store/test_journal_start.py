"""The journal: what the next start reads of it."""

from __future__ import annotations

from memd.store.journal import RUNS_KEPT, Journal
from memd.store.records import (
    EventRecord,
    Part,
    RenderingRecord,
    RequestRecord,
    RevisionRecord,
    SessionRecord,
    SnapshotRecord,
    StoreRow,
    TurnRecord,
)


def _part(number: int) -> Part:
    return Part(
        revisions=[RevisionRecord(revision=number, store=1, us=number * 10, origin="agent")],
        events=[EventRecord(seq=number, us=number * 10, topic="t", profile="p")],
        entry_ids=[(1, f"e{number}")],
    )


class TestWhatTheStartNeeds:
    def test_stores(self, journal: Journal) -> None:
        """A place keeps its number; what is known of it can change."""
        row = StoreRow(id=0, directory="/d", name="MEMORY.md", device=1, inode=2, checkpoint=0)
        number = journal.put_store(row)
        assert journal.store("/d", "USER.md") is None
        row.id, row.inode = number, 3
        assert number == journal.put_store(row)
        assert row == journal.store("/d", "MEMORY.md")
        assert [row] == journal.stores()

    def test_the_head_is_the_newest_rendering_that_verifies(self, journal: Journal) -> None:
        """A torn one is as if it were not there."""
        renderings = [
            RenderingRecord(store=1, revision=number, us=1, data=b"%d" % number, entries=[]) for number in (1, 2)
        ]
        journal.commit([Part(renderings=renderings)])
        assert renderings[1] == journal.head(1)
        journal.connection.execute("UPDATE rendering SET data=x'00' WHERE revision=2")
        assert renderings[0] == journal.head(1)
        assert journal.head(2) is None

    def test_requests(self, journal: Journal) -> None:
        """Those of the last day, oldest first."""
        records = [
            RequestRecord(profile="p", request_id=f"r{us}", fingerprint=b"f", us=us, answer=b"a") for us in (3, 1, 2)
        ]
        journal.commit([Part(requests=records)])
        assert ["r2", "r3"] == [record.request_id for record in journal.requests(2)]

    def test_sessions(self, journal: Journal) -> None:
        """Open ones with their snapshots and open turns; the newest record of each counts."""
        session = SessionRecord(id="s", profile="p", key="k", snapshot="h", seen_us=1, body=b"b")
        closed = SessionRecord(id="c", profile="p", key=None, snapshot="h", seen_us=1, closed=True)
        turn = TurnRecord(session="s", turn="t", user=True, status="open", us=1)
        ended = TurnRecord(session="s", turn="u", user=True, status="completed", us=1)
        snapshot = SnapshotRecord(id="h", body=b"snapshot")
        journal.commit([Part(sessions=[session, closed], snapshots=[snapshot], turns=[turn, ended])])
        later = SessionRecord(id="s", profile="p", key="k", snapshot="h", seen_us=5, body=b"b")
        journal.commit([Part(sessions=[later])])
        assert ([later], {"h": snapshot}, [turn]) == journal.sessions()

    def test_profiles_made_at_run_time(self, journal: Journal) -> None:
        """By name."""
        journal.remember_profile("b", "/b")
        journal.remember_profile("a", "/a")
        assert {"a": "/a", "b": "/b"} == journal.created_profiles()

    def test_where_event_numbers_begin(self, journal: Journal) -> None:
        """In each run; the newest thousand are remembered."""
        for number in range(RUNS_KEPT + 5):
            journal.begin_numbers(17 + number)
        assert 17 + RUNS_KEPT + 4 == journal.first_seq
        kept = journal.connection.execute("SELECT value FROM meta WHERE key LIKE 'run:%' ORDER BY value").fetchall()
        assert [(number,) for number in range(22, 22 + RUNS_KEPT)] == kept
