"""memd.profile.redacting: which texts are looked for, and what becomes of the entries that hold them."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from support.documents import ids, named, store, stored_texts, texts

from memd.errors import Conflict, InvalidParams
from memd.profile.entries import Document, parse, render
from memd.profile.redacting import mask_of_revision, mask_of_text, redact_document, without_stubs
from memd.profile.values import Change, StoreState, Usage
from memd.store.masking import Mask
from memd.store.records import ChangeRecord, RevisionRecord

MASK = Mask(["hunter2"])


@pytest.mark.parametrize("text", ["", "abc", " a b c ", "\n§\n", "[redacted]", "redacted", "long enough\n§\nabc"])
def test_too_little_or_the_mark_itself_is_refused(text: str) -> None:
    """It would stand nearly everywhere, or never be gone."""
    with pytest.raises(InvalidParams) as caught:
        mask_of_text(text)
    assert "text" == caught.value.extra["field"]


def test_a_text_over_several_entries_is_looked_for_in_each() -> None:
    """As a person copies it from the file."""
    assert ("first part", "second\npart") == mask_of_text("first part\r\n§\r\nsecond\r\npart\n").texts


def test_what_an_entry_holds_beside_it_stays() -> None:
    """With its id, its bytes and its place; the change never says what was hidden."""
    start = named(parse(b"pin hunter2\r\nx\r\n\xc2\xa7\r\nother\r\n"))
    document, changes = redact_document(start, MASK, us=9)
    assert b"pin [redacted]\r\nx\r\n\xc2\xa7\r\nother\r\n" == render(document)
    masked = "pin [redacted]\nx"
    assert (Change("replace", "e0", masked, masked, 0, 1, start.entries[0].origin, redacted=True),) == tuple(
        change
        if change.created_us == 1
        else Change("replace", "e0", masked, masked, 0, 1, change.origin, redacted=True)
        for change in changes
    )
    assert (9, ids(start)) == (document.entries[0].updated_us, ids(document))


@pytest.mark.parametrize("text", ["hunter2", "- hunter2.", "hunter2 hunter2"])
def test_an_entry_of_which_nothing_is_left_is_removed(text: str) -> None:
    """A mark alone says nothing to anybody."""
    document, changes = redact_document(store("a", text), MASK, us=9)
    assert ["a"] == texts(document)
    assert [("remove", None, True)] == [(change.action, change.after, change.redacted) for change in changes]
    assert all("hunter2" not in (change.before or "") for change in changes)


def test_nothing_to_hide_changes_nothing() -> None:
    """The very document."""
    start = store("a", "b")
    assert (start, ()) == redact_document(start, MASK, us=9)


@given(st.lists(stored_texts(), max_size=5), st.sampled_from(["\n", "\r\n"]), st.text("ab\n§ ", min_size=4, max_size=8))
def test_the_file_reads_back_as_the_entries_and_holds_nothing(said: list[str], newline: str, hidden: str) -> None:
    """For any entries and any text that may be redacted."""
    try:
        mask = mask_of_text(hidden)
    except InvalidParams:
        return
    start = store(*dict.fromkeys([*said, f"x{mask.texts[0]}y", mask.texts[0]]), newline=newline)
    document, _ = redact_document(start, mask, us=9)
    assert texts(document) == texts(parse(render(document)))
    assert not any(mask.found(entry.text.encode("utf-8", "surrogateescape")) for entry in document.entries)


def state(*said: str) -> StoreState:
    return StoreState("memory", "/m", store(*said), 1, Usage(0, 1, 1, 0, near_limit=False))


def record(before: bytes | None, after: bytes | None) -> RevisionRecord:
    changes = [ChangeRecord("replace", "e1", before, after, 0, 1, "user")]
    return RevisionRecord(revision=7, store=1, us=1, origin="user", changes=changes)


def test_a_revision_means_its_texts_that_are_no_longer_live() -> None:
    """What it put in may be what memory says now."""
    assert ("old text",) == mask_of_revision(record(b"old text", b"new text"), [state("new text")]).texts
    assert ("new text", "old text") == mask_of_revision(record(b"old text", b"new text"), [state()]).texts
    assert () == mask_of_revision(record(b"abc", None), [state()]).texts


def test_a_revision_that_is_wholly_live_is_a_conflict() -> None:
    """It says what to do instead."""
    with pytest.raises(Conflict, match="redact it by its text") as caught:
        mask_of_revision(record(None, b"new text"), [state("a new text here")])
    assert "a new text here" == caught.value.extra["current"]


def test_stubs_are_not_restored() -> None:
    """Entries that say more are."""
    older = store("[redacted]", "pin [redacted]", "a")
    assert ["pin [redacted]", "a"] == texts(without_stubs(older))
    assert Document() == without_stubs(store("[redacted]"))
