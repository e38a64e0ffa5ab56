"""What holds after any edits of any file."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.documents import LIMITS, STAMP, do_all, entry_of, files, ids, named, new_ids, store, stored_texts, texts

from memd.errors import CurationError, InvalidParams, WireError
from memd.profile.edits import apply_operation
from memd.profile.entries import parse, render
from memd.profile.inverse import rewind
from memd.profile.values import Operation


def operations() -> st.SearchStrategy[Operation]:
    """Operations that often fit a store of ``stored_texts``."""
    entry_ids = st.sampled_from(["e0", "e1", "e2", "n0", "n1", None])
    return st.one_of(
        st.builds(Operation, st.just("add"), content=stored_texts()),
        st.builds(Operation, st.just("replace"), content=stored_texts(), old_text=stored_texts(), id=entry_ids),
        st.builds(
            Operation, st.just("edit"), old_text=stored_texts(), new_text=stored_texts() | st.just(""), id=entry_ids
        ),
        st.builds(Operation, st.just("remove"), old_text=stored_texts() | st.none(), id=entry_ids),
    )


@given(files(), st.lists(operations(), max_size=6))
def test_after_any_edits_of_any_file_the_file_says_what_the_document_says(data: bytes, wanted: list[Operation]) -> None:
    """Texts and order read back; untouched entries keep their bytes; the changes lead back to where it began."""
    document, made = named(parse(data)), new_ids()
    for operation in wanted:
        before = document
        try:
            applied = apply_operation(before, operation, limits=LIMITS, stamp=STAMP, new_id=made)
        except (CurationError, InvalidParams):
            continue
        document = applied.document
        assert texts(document) == texts(parse(render(document)))
        touched = {change.id for change in applied.changes}
        assert all(entry_of(before, entry.id) == entry for entry in document.entries if entry.id not in touched)
        assert len(ids(document)) == len(set(ids(document)))
        back = rewind(document.entries, reversed(applied.changes))
        assert [(one.id, one.text, one.created_us, one.origin) for one in before.entries] == [
            (one.id, one.text, one.created_us, one.origin) for one in back
        ]
        assert (document is before) == (not applied.changes)


@given(st.lists(stored_texts(), max_size=4, unique=True), st.lists(operations(), min_size=1, max_size=5))
def test_a_batch_is_its_operations_one_after_another_or_nothing(start: list[str], wanted: list[Operation]) -> None:
    """With room enough, both ways end in the same texts or in the same error."""
    document = store(*start)
    expected: Any = document
    made = new_ids()
    try:
        for operation in wanted:
            expected = apply_operation(expected, operation, limits=LIMITS, stamp=STAMP, new_id=made).document
    except WireError as error:
        with pytest.raises(type(error)):
            do_all(document, *wanted)
    else:
        applied = do_all(document, *wanted)
        assert expected == applied.document
        assert texts(document) == [one.text for one in rewind(applied.document.entries, reversed(applied.changes))]
