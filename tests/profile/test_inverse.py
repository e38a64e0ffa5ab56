"""Undo, rewind, restore and differences."""

from __future__ import annotations

from hypothesis import given, strategies as st
from msgspec.structs import replace
from support.documents import do, entry_of, files, ids, named, store, stored_texts, texts

from memd.profile.entries import Document, Entry, parse, render
from memd.profile.inverse import Taken, difference, exactly, invert, replace_all, rewind, text_diff
from memd.profile.layout import insert
from memd.profile.values import Applied, Change, Stamp

UNDO = Stamp(9_000_000, "user")
Revisions = list[Taken]


def steps(document: Document, *actions: tuple[str, dict[str, str]]) -> tuple[Document, Revisions]:
    """Do one thing after another; each is a revision, numbered from 1."""
    revisions: Revisions = []
    for number, (action, fields) in enumerate(actions, 1):
        applied: Applied = do(document, action, **fields)
        order = tuple(ids(document))
        # Ids of added entries begin anew with each call; here they must not be given out twice.
        document = applied.document
        revisions.append(Taken(number, applied.changes, order))
    return document, revisions


def test_an_undone_add_is_gone_and_the_rest_stays() -> None:
    """Selective: what came later is not touched."""
    head, revisions = steps(
        store("one"), ("add", {"content": "two"}), ("edit", {"id": "e0", "old_text": "one", "new_text": "1"})
    )
    found = invert(revisions[:1], head, stamp=UNDO)
    assert (["1"], ()) == (texts(found.document), found.conflicts)
    assert (Change("remove", "n0", "two", None, 1, 2_000_000, "agent"),) == found.changes


def test_an_undone_removal_brings_back_id_place_time_and_origin() -> None:
    """The times of the entry are its own; only its change is new."""
    start = store("a", "b", "c", origin="outside")
    head, revisions = steps(start, ("remove", {"id": "e1"}))
    found = invert(revisions, head, stamp=UNDO)
    assert (["a", "b", "c"], ids(start)) == (texts(found.document), ids(found.document))
    assert replace(start.entries[1], updated_us=9_000_000) == found.document.entries[1]
    assert ["add"] == [change.action for change in found.changes]


def test_an_undone_replace_brings_back_the_text() -> None:
    """In the newline style of the file."""
    head, revisions = steps(store("a\nb", newline="\r\n"), ("replace", {"id": "e0", "content": "c"}))
    found = invert(revisions, head, stamp=UNDO)
    assert b"a\r\nb\n" == render(found.document)


def test_several_identical_entries_come_back_where_they_were() -> None:
    """A removal of all of them is one revision."""
    start = store("x", "y", "x", "z", "x")
    head, revisions = steps(start, ("remove", {"old_text": "x"}))
    assert start.counted == invert(revisions, head, stamp=UNDO).document.counted


def test_a_merge_of_two_is_taken_apart_again() -> None:
    """Both texts and both ids."""
    start = store("tea", "coffee")
    head, revisions = steps(start, ("replace", {"id": "e1", "content": "tea"}))
    found = invert(revisions, head, stamp=UNDO).document
    assert (texts(start), ids(start)) == (texts(found), ids(found))


def test_what_others_changed_since_is_a_conflict_and_nothing_is_done() -> None:
    """Not even the part that could be undone."""
    head, revisions = steps(
        store("a", "b"),
        ("replace", {"id": "e0", "content": "A"}),
        ("replace", {"id": "e1", "content": "B"}),
        ("replace", {"id": "e1", "content": "BB"}),
    )
    found = invert(revisions[:2], head, stamp=UNDO)
    assert (head, ()) == (found.document, found.changes)
    assert (("e1", "the entry was changed since and says: BB"),) == found.conflicts


def test_conflicts_say_why() -> None:
    """Removed since, or there again; long texts are cut."""
    head, revisions = steps(store("a", "b"), ("replace", {"id": "e0", "content": "A"}), ("remove", {"id": "e0"}))
    assert (("e0", "the entry was removed since"),) == invert(revisions[:1], head, stamp=UNDO).conflicts
    removed = Taken(1, (Change("remove", "e1", "x", None, 0),))
    ((_, reason),) = invert([removed], store("a", "b" * 200), stamp=UNDO).conflicts
    assert reason.startswith("the entry is there again and says: bbb")
    assert reason.endswith("b…")


def test_what_is_already_as_wanted_is_no_conflict() -> None:
    """Somebody took it back by hand."""
    head, revisions = steps(
        store("a"), ("replace", {"id": "e0", "content": "A"}), ("replace", {"id": "e0", "content": "a"})
    )
    found = invert(revisions[:1], head, stamp=UNDO)
    assert (head, (), ()) == (found.document, found.changes, found.conflicts)


def test_revisions_count_by_their_net_effect() -> None:
    """There and back again is nothing to undo, whatever others did afterwards."""
    head, revisions = steps(
        store("a"),
        ("replace", {"id": "e0", "content": "A"}),
        ("replace", {"id": "e0", "content": "a"}),
        ("replace", {"id": "e0", "content": "other"}),
    )
    assert () == invert(revisions[:2], head, stamp=UNDO).conflicts
    assert ["a"] == texts(invert(list(reversed(revisions)), head, stamp=UNDO).document)


def test_a_chain_that_others_broke_is_a_conflict() -> None:
    """The first and the third change of an entry cannot be undone without the second."""
    head, revisions = steps(store("1"), *[("replace", {"id": "e0", "content": content}) for content in ("2", "3", "4")])
    assert 1 == len(invert([revisions[0], revisions[2]], head, stamp=UNDO).conflicts)


def test_redo_undoes_an_undo() -> None:
    """The changes of an undo are changes like others."""
    head, revisions = steps(store("a", "b"), ("remove", {"id": "e0"}))
    undone = invert(revisions, head, stamp=UNDO)
    redone = invert([Taken(2, undone.changes)], undone.document, stamp=UNDO)
    assert texts(head) == texts(redone.document)


@given(
    files(),
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["add", "replace", "remove"]), stored_texts()), max_size=5),
)
def test_undoing_everything_leads_back(data: bytes, wanted: list[tuple[int, str, str]]) -> None:
    """Texts, ids and order; and the file says the same."""
    start = named(parse(data))
    document, revisions, order = start, list[Taken](), tuple(ids(start))
    for number, (at, action, text) in enumerate(wanted, 1):
        if action != "add" and at >= len(document.entries):
            continue
        fields = {"content": f"{text} {number}"} if action != "remove" else {}
        order = tuple(ids(document))
        if action != "add":
            fields["id"] = document.entries[at].id
        applied = do(document, action, **fields)
        renamed = {"n0": f"n{number}"}
        entries = tuple(replace(one, id=renamed.get(one.id, one.id)) for one in applied.document.entries)
        document = replace(applied.document, entries=entries)
        changes = tuple(replace(change, id=renamed.get(change.id, change.id)) for change in applied.changes)
        revisions.append(Taken(number, changes, order))
    found = invert(revisions, document, stamp=UNDO)
    assert () == found.conflicts
    assert (texts(start), ids(start)) == (texts(found.document), ids(found.document))
    assert texts(start) == texts(parse(render(found.document)))
    back = rewind(found.document.entries, reversed(found.changes))
    assert ids(document) == [one.id for one in back]
    last = invert(revisions[-1:], document, stamp=UNDO).document
    assert list(order) == ids(last)
    taken = Taken(len(wanted) + 1, found.changes, tuple(ids(document)))
    redone = invert([taken], found.document, stamp=UNDO).document
    assert (texts(document), ids(document)) == (texts(redone), ids(redone))


@given(st.integers(1, 7), st.data())
def test_a_removed_entry_comes_back_between_its_neighbours(count: int, choice: st.DataObject) -> None:
    """Whoever removed or added others before it since: those that are left stand in the order they always had."""
    start = store(*(f"text {number}" for number in range(count)))
    gone = choice.draw(st.sampled_from(ids(start)))
    document, revisions = steps(start, ("remove", {"id": gone}))
    for number in range(choice.draw(st.integers(0, 4))):
        left = ids(document)
        other = choice.draw(st.sampled_from([*left, ""]))
        if other:
            document = do(document, "remove", id=other).document
        else:
            at = choice.draw(st.integers(0, len(left)))
            document = insert(document, at, Entry("new", "new", f"new{number}", 1, 1, "user"))
    order = ids(invert(revisions, document, stamp=UNDO).document)
    assert [one for one in ids(start) if one in order] == [one for one in order if one in ids(start)]
    at = order.index(gone)
    assert ids(document) == order[:at] + order[at + 1 :]


@given(files(), st.integers(0, 5), st.sampled_from(["add", "replace", "remove"]), stored_texts())
def test_the_last_change_is_undone_to_the_byte(data: bytes, at: int, action: str, text: str) -> None:
    """Borders, blanks and newlines of the file as they were; and as they were after it by a redo."""
    start = named(parse(data))
    if action != "add" and at >= len(start.entries):
        return
    fields = {"content": text} if action != "remove" else {}
    if action != "add":
        fields["id"] = start.entries[at].id
    applied = do(start, action, **fields)
    if not applied.changes:
        return
    undone = invert([Taken(1, applied.changes, tuple(ids(start)))], applied.document, stamp=UNDO)
    undone = exactly(undone, start)
    assert data == render(undone.document)
    redone = invert([Taken(2, undone.changes, tuple(ids(applied.document)))], undone.document, stamp=UNDO)
    assert render(applied.document) == render(exactly(redone, applied.document).document)


def test_another_document_gives_no_bytes() -> None:
    """Only the one that the undo leads back to."""
    head, revisions = steps(store("a", "b"), ("remove", {"id": "e1"}))
    found = invert(revisions, head, stamp=UNDO)
    assert found is exactly(found, store("a"))
    assert found is exactly(found, store("a", "c"))


def test_without_its_order_a_removed_entry_comes_back_at_its_number() -> None:
    """As with revisions of which too little is left."""
    head, (taken,) = steps(store("a", "b", "c"), ("remove", {"id": "e1"}))
    assert ["a", "b", "c"] == texts(invert([Taken(1, taken.changes)], head, stamp=UNDO).document)
    assert ["b"] == texts(invert([Taken(1, taken.changes)], Document(), stamp=UNDO).document)


def test_what_was_redacted_is_not_put_back() -> None:
    """It is a conflict, and an addition that was redacted can still be taken out."""
    removed = Change("remove", "e0", "[redacted]", None, 0, redacted=True)
    found = invert([Taken(1, (removed,))], store("b"), stamp=UNDO)
    assert (("e0", "what it said before was redacted and cannot be put back"),) == found.conflicts
    added = Change("add", "e0", None, "pin [redacted]", 0, redacted=True)
    assert [] == texts(invert([Taken(1, (added,))], store("pin [redacted]"), stamp=UNDO).document)


@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), stored_texts()), max_size=8, unique_by=lambda pair: pair[0]),
    st.data(),
)
def test_the_difference_leads_from_one_to_the_other_and_back(
    pairs: list[tuple[str, str]], choice: st.DataObject
) -> None:
    """Where common entries kept their order, rewinding is exact."""
    after = tuple(Entry(text, text, entry_id, 1, 1, "agent") for entry_id, text in pairs)
    kept = [one for one in after if choice.draw(st.booleans())]
    kept = [replace(one, text="old", raw="old") if choice.draw(st.booleans()) else one for one in kept]
    for number in range(choice.draw(st.integers(0, 3))):
        at = choice.draw(st.integers(0, len(kept)))
        kept.insert(at, Entry("gone", "gone", f"gone{number}", 1, 1, "agent"))
    before = tuple(kept)
    changes = difference(Document(entries=before), Document(entries=after))
    assert before == rewind(after, reversed(changes))
    assert "edit" not in {change.action for change in changes}


def test_rewinding_ignores_what_it_does_not_know() -> None:
    """A change of an entry that is not there any more changes nothing."""
    assert () == rewind((), [Change("add", "gone", None, "x", 0)])


def test_restoring_keeps_ids_and_the_bytes_of_what_is_untouched() -> None:
    """Entries of the older state come back in their order."""
    start = named(parse("\ufeffa\r\n\r\n§\r\nb\r\n§\r\nc\r\n".encode()))
    older = (start.entries[0], replace(start.entries[1], text="B\nB", raw="B\nB"), Entry("d", "d", "old", 1, 1, "user"))
    document, changes = replace_all(start, older)
    assert "\ufeffa\r\n\r\n§\r\nB\r\nB\r\n§\r\nd\r\n".encode() == render(document)
    assert [("remove", "e2"), ("replace", "e1"), ("add", "old")] == [(change.action, change.id) for change in changes]
    assert "user" == entry_of(document, "old").origin


def test_a_wipe_is_a_restore_of_nothing() -> None:
    """And restoring what is there does nothing."""
    start = store("a", "b")
    document, changes = replace_all(start, ())
    assert (b"", 2) == (render(document), len(changes))
    assert (start, ()) == replace_all(start, start.entries)


def test_the_text_of_a_difference_is_a_patch() -> None:
    """Lines of the counted text, readable to people; nothing if nothing differs."""
    assert "--- before\n+++ after\n@@ -1,3 +1,5 @@\n one\n §\n-two\n+2\n+§\n+three" == text_diff(
        store("one", "two"), store("one", "2", "three")
    )
    assert "" == text_diff(store("a"), store("a"))
    assert "+a" in text_diff(Document(), store("a"))
    text_diff(Document(), parse(b"caf\xe9")).encode()
