"""What a part weighs, and whether it only removes."""

from __future__ import annotations

from memd.store.records import ChangeRecord, EventRecord, Part, PreimageRecord, RenderingRecord, RevisionRecord


def _revision(*actions: str) -> RevisionRecord:
    changes = [ChangeRecord(action, "e1", b"a", None, 0, 0, "agent") for action in actions]
    return RevisionRecord(revision=1, store=1, us=1, origin="agent", changes=changes)


def test_the_weight_of_a_part_is_about_its_bytes() -> None:
    """It bounds a group, so that texts and pre-images count in full."""
    part = Part(
        revisions=[_revision("add")],
        renderings=[RenderingRecord(store=1, us=1, data=b"x" * 1000, entries=[])],
        preimages=[PreimageRecord(store=1, revision=1, us=1, hash=b"", data=b"y" * 500)],
        events=[EventRecord(us=1, topic="t", profile="p")],
    )
    assert 1500 + 2 * 300 == part.weight
    assert 0 == Part().weight


def test_only_removals_may_spend_the_reserve() -> None:
    """A part without changes needs no room that others gave up."""
    assert Part(revisions=[_revision("remove", "remove")]).only_removes
    assert not Part(revisions=[_revision("remove", "add")]).only_removes
    assert not Part(revisions=[_revision("replace")]).only_removes
    assert not Part().only_removes
