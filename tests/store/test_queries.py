"""Questions to the journal."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest
from support.hosts import relaxed

from memd.store import queries
from memd.store.journal import Journal
from memd.store.queries import RevisionFilter
from memd.store.records import EventRecord, Part, PreimageRecord, RefusalRecord, RenderingRecord, RevisionRecord

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """An open journal."""
    found = Journal(tmp_path / "journal.db", connect=relaxed, boot_id="boot")
    found.open()
    yield found
    found.close(clean=False)


def _rendering(number: int, *, store: int = 1, us: int | None = None) -> RenderingRecord:
    return RenderingRecord(
        store=store, revision=number, us=number if us is None else us, data=b"%d" % number, entries=[]
    )


class TestRevisions:
    @pytest.fixture(autouse=True)
    def _history(self, journal: Journal) -> None:
        records = [
            RevisionRecord(revision=1, store=1, us=1, origin="user", session="s"),
            RevisionRecord(revision=2, store=2, us=2, origin="user", job="j"),
            RevisionRecord(revision=3, store=1, us=3, origin="user", kind="undo"),
            RevisionRecord(revision=4, store=1, us=4, origin="user", undone_by=5),
            RevisionRecord(revision=5, store=3, us=5, origin="user"),
        ]
        journal.commit([Part(revisions=records)])

    @pytest.mark.parametrize(
        ("wanted", "numbers"),
        [
            (RevisionFilter(stores=(1, 2)), [4, 3, 2, 1]),
            (RevisionFilter(stores=(1,)), [4, 3, 1]),
            (RevisionFilter(stores=(1, 2), before=3), [2, 1]),
            (RevisionFilter(stores=(1, 2), after=3), [4, 3]),
            (RevisionFilter(stores=(1, 2), session="s"), [1]),
            (RevisionFilter(stores=(1, 2), job="j"), [2]),
            (RevisionFilter(stores=(1, 2), kind="undo"), [3]),
            (RevisionFilter(stores=(1, 2), undone=True), [4]),
            (RevisionFilter(stores=(1, 2), undone=False), [3, 2, 1]),
            (RevisionFilter(stores=(9,)), []),
        ],
    )
    def test_filters(self, journal: Journal, wanted: RevisionFilter, numbers: list[int]) -> None:
        """Newest first."""
        assert numbers == [record.revision for record in queries.revisions(journal, wanted, 10)]

    def test_a_page_is_bounded(self, journal: Journal) -> None:
        """The rest is asked for with ``before``."""
        assert [4, 3] == [record.revision for record in queries.revisions(journal, RevisionFilter(stores=(1, 2)), 2)]

    def test_one_by_its_number(self, journal: Journal) -> None:
        """Of whatever store; None if there is none."""
        found = queries.revision(journal, 5)
        assert found is not None
        assert 3 == found.store
        assert queries.revision(journal, 6) is None

    def test_the_newest_of_a_store_at_a_number(self, journal: Journal) -> None:
        """The state another store's revision found it in."""
        assert [0, 1, 1, 3, 4, 4] == [queries.newest_of(journal, 1, number) for number in range(6)]


class TestRenderings:
    def test_the_ones_an_outside_writer_may_have_started_from(self, journal: Journal) -> None:
        """So many of the last day, and all since the file checkpoint, newest first."""
        journal.commit([Part(renderings=[_rendering(number) for number in range(1, 21)])])

        def numbers(*, since_us: int, checkpoint: int, limit: int) -> list[int]:
            found = queries.recent_renderings(journal, 1, since_us=since_us, checkpoint=checkpoint, limit=limit)
            return [record.revision for record in found]

        assert [20, 19, 18] == numbers(since_us=0, checkpoint=20, limit=3)
        assert [20, 19, 18, 17, 16] == numbers(since_us=0, checkpoint=16, limit=3)
        assert [20, 19] == numbers(since_us=19, checkpoint=20, limit=100)
        assert [20, 19, 18, 17] == numbers(since_us=19, checkpoint=17, limit=100)

    def test_torn_ones_are_passed_over(self, journal: Journal) -> None:
        """They are never written and never a base."""
        journal.commit([Part(renderings=[_rendering(number) for number in (1, 2, 3)])])
        journal.connection.execute("UPDATE rendering SET data=x'00' WHERE revision=2")
        recent = queries.recent_renderings(journal, 1, since_us=0, checkpoint=0, limit=10)
        before, after = queries.rendering_then(journal, 1, 2), queries.rendering_at(journal, 1, 2)
        assert [3, 1] == [record.revision for record in recent]
        assert (1, 3) == (before and before.revision, after and after.revision)
        assert queries.rendering_then(journal, 1, 0) is None
        assert queries.rendering_at(journal, 1, 4) is None

    def test_bytes_are_known_by_their_hash(self, journal: Journal) -> None:
        """As a rendering or as a pre-image, of this store only."""
        digests = [hashlib.sha256(data).digest() for data in (b"1", b"pre", b"other")]
        preimage = PreimageRecord(store=1, revision=1, us=5, hash=digests[1], data=b"pre")
        journal.commit([Part(renderings=[_rendering(1)], preimages=[preimage])])
        assert [True, True, False] == [queries.has_rendering(journal, 1, digest) for digest in digests]
        assert not queries.has_rendering(journal, 2, digests[0])
        assert [(1, 5, b"pre")] == queries.preimages(journal, 1)


class TestEvents:
    @pytest.fixture(autouse=True)
    def _events(self, journal: Journal) -> None:
        events = [EventRecord(seq=seq, us=seq, topic="t", profile="p" if seq % 2 else "q") for seq in range(101, 111)]
        journal.commit([Part(events=events)])

    def _since(self, journal: Journal, seq: int, *, upto: int = 110, limit: int = 100) -> tuple[list[int], bool]:
        found, lost = queries.events_since(journal, "p", seq, upto, limit=limit)
        return [event.seq for event in found], lost

    def test_of_one_profile_in_order(self, journal: Journal) -> None:
        """After the number that the listener has, up to what is published."""
        assert ([103, 105, 107, 109], False) == self._since(journal, 101)
        assert ([103, 105], False) == self._since(journal, 101, upto=106)

    def test_what_does_not_fit_is_lost(self, journal: Journal) -> None:
        """The oldest come first."""
        assert ([101, 103], True) == self._since(journal, 100, limit=2)

    def test_other_topics_take_no_room(self, journal: Journal) -> None:
        """Whoever asks for one topic has lost nothing because of the others."""
        journal.commit([Part(events=[EventRecord(seq=111, us=1, topic="rare", profile="p")])])
        found, lost = queries.events_since(journal, "p", 0, 111, topics=["rare"], limit=1)
        assert ([111], False) == ([event.seq for event in found], lost)

    def test_numbers_of_another_journal_have_lost_everything(self, journal: Journal) -> None:
        """Before the first of this one, beyond its newest, or between two runs; 0 asks for all there is."""
        journal.begin_numbers(101)
        journal.begin_numbers(2001)
        assert ([], True) == self._since(journal, 5000)
        assert ([101, 103, 105, 107, 109], True) == self._since(journal, 50)
        assert ([101, 103, 105, 107, 109], False) == self._since(journal, 0)
        assert ([101, 103, 105, 107, 109], False) == self._since(journal, 100)
        assert ([105, 107, 109], False) == self._since(journal, 104)
        journal.commit([Part(events=[EventRecord(seq=2001, us=1, topic="memory.changed", profile="p")])])
        assert ([2001], True) == self._since(journal, 1500, upto=2001)  # newer than a backup that was put back
        assert ([2001], False) == self._since(journal, 2000, upto=2001)


def test_refusals_are_found_by_the_hash_of_their_text(journal: Journal) -> None:
    """Newest first, of one profile."""
    records = [
        RefusalRecord(us=us, profile=profile, target="memory", name="over_limit", text_hash=digest, reason="r")
        for us, profile, digest in ((1, "p", b"a"), (2, "p", b"a"), (3, "p", b"b"), (4, "q", b"a"))
    ]
    journal.commit([Part(refusals=records)])
    assert [2, 1] == [record.us for record in queries.refusals_of(journal, "p", b"a", 10)]
    assert [2] == [record.us for record in queries.refusals_of(journal, "p", b"a", 1)]
