"""memd.store.proposals: what waits and what was approved, in and out of the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from memd.store import retention
from memd.store.journal import Journal
from memd.store.proposals import APPROVED, SETTLED, approved_of, proposals_of
from memd.store.records import FindingRecord, OperationRecord, Part, ProposalRecord

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAY_US = 86_400_000_000
POLICY = retention.Policy(keep_days=10)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    found = Journal(tmp_path / "journal.db", boot_id="boot")
    found.open()
    yield found
    found.close(clean=False)


def proposal(number: int, **fields: object) -> ProposalRecord:
    record = ProposalRecord(
        id=f"p-{number}",
        profile="p",
        store=1,
        target="memory",
        us=number,
        base=3,
        operations=[OperationRecord("replace", "new", id="e1", if_hash="h")],
        findings=[FindingRecord("r", "override", "stage", 1, 2, "why")],
        origin="tool",
    )
    return replace(record, **fields)


def test_they_come_back_as_they_were_oldest_first(journal: Journal) -> None:
    """Of one profile; the last state of each counts."""
    journal.commit([Part(proposals=[proposal(2), proposal(1), proposal(3, profile="q")])])
    journal.commit([Part(proposals=[proposal(2, state="rejected", settled_us=9, settled={"pid": 3})])])
    found = proposals_of(journal, "p")
    assert [proposal(1), proposal(2, state="rejected", settled_us=9, settled={"pid": 3})] == found
    assert [] == proposals_of(journal, "nobody")


def test_a_damaged_one_is_left_out(journal: Journal) -> None:
    """The others can still be settled."""
    journal.commit([Part(proposals=[proposal(1), proposal(2)])])
    journal.connection.execute("UPDATE proposal SET body=x'00ff' WHERE id='p-1'")
    assert ["p-2"] == [one.id for one in proposals_of(journal, "p")]


def test_approved_texts_are_known_by_store(journal: Journal) -> None:
    """Twice is once."""
    journal.commit([Part(approved=[(1, b"a", 1), (2, b"b", 1), (1, b"a", 2)])])
    assert [{b"a"}, {b"b"}, set()] == [approved_of(journal, store) for store in (1, 2, 3)]


def test_what_was_settled_long_ago_goes_and_what_waits_stays(journal: Journal) -> None:
    """However old."""
    waiting, old, fresh = proposal(1), proposal(2, settled_us=1), proposal(3, settled_us=10 * DAY_US)
    journal.commit([Part(proposals=[waiting, old, fresh])])
    assert 1 == retention.prune(journal, POLICY, 20 * DAY_US)
    assert ["p-1", "p-3"] == [one.id for one in proposals_of(journal, "p")]


def test_there_are_never_more_than_so_many(journal: Journal) -> None:
    """The newest stay."""
    now = 20 * DAY_US
    many = [proposal(number, settled_us=now + number) for number in range(SETTLED + 2)]
    journal.commit([Part(proposals=many, approved=[(1, str(n).encode(), n) for n in range(APPROVED + 3)])])
    assert 5 == retention.prune(journal, POLICY, now)
    assert "p-2" == proposals_of(journal, "p")[0].id
    assert b"2" not in approved_of(journal, 1)
    assert b"3" in approved_of(journal, 1)
    assert 0 == retention.prune(journal, POLICY, now)


def test_a_part_weighs_what_its_texts_weigh() -> None:
    """So that a group of large ones is bounded."""
    light, heavy = Part(proposals=[proposal(1)]), Part(proposals=[proposal(1)])
    heavy.proposals[0].operations[0].content = "x" * 5000
    assert heavy.weight - light.weight == 5000 - len("new")
