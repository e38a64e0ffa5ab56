"""Entries put in, exchanged and taken out; the rest byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace
from support.documents import files, named, store, stored_texts, texts

from memd.profile import layout
from memd.profile.entries import Document, Entry, parse, render


def entry(text: str, entry_id: str = "new") -> Entry:
    return Entry(text, text, entry_id)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("", "new\n"),
        ("\ufeff", "\ufeffnew\n"),
        ("\n", "\nnew\n"),
        ("§", "§\nnew\n"),
        ("§\r\n", "§\r\nnew\r\n"),
        ("a", "a\n§\nnew"),
        ("a\n", "a\n§\nnew\n"),
        ("a\n§\n", "a\n§\nnew\n§\n"),
        ("a\r\n§\r\nb\r\n", "a\r\n§\r\nb\r\n§\r\nnew\r\n"),
        ("a\r§\rb", "a\r§\rb\r§\rnew"),
        ("a\n\n§\n\nb  ", "a\n\n§\n\nb\n§\nnew  "),
    ],
)
def test_an_entry_is_added_in_the_files_own_style(data: str, expected: str) -> None:
    """A file that memd begins ends with one newline; a file without final newline is kept without one."""
    document = parse(data.encode())
    assert expected == render(layout.insert(document, len(document.entries), entry("new"))).decode()


@pytest.mark.parametrize(
    ("index", "expected"), [(0, "\ufeffb\n\n§\nc\n§"), (1, "\ufeffa\n§ \nc\n§"), (2, "\ufeffa\n§ \nb\n§")]
)
def test_an_entry_goes_with_one_border(index: int, expected: str) -> None:
    """The others keep their bytes, and so do the borders that are still needed."""
    document = parse("\ufeffa\n§ \nb\n\n§\nc\n§".encode())
    assert expected == render(layout.delete(document, index)).decode()


@pytest.mark.parametrize(("data", "expected"), [("a", ""), ("§\n a \n§\n", ""), ("\ufeff\na\r\n", "\ufeff")])
def test_the_last_entry_leaves_an_empty_file(data: str, expected: str) -> None:
    """Nothing but a byte-order mark stays."""
    assert expected == render(layout.delete(parse(data.encode()), 0)).decode()


@given(files(), st.integers(0, 9), st.sampled_from(["insert", "exchange", "delete"]), stored_texts())
def test_every_change_of_any_file_reads_back(data: bytes, at: int, change: str, text: str) -> None:
    """The new rendering parses to the texts that the document says it has."""
    document = parse(data)
    count = len(document.entries)
    new = replace(entry(text), raw=layout.in_style(text, document.newline))
    if change == "insert":
        document = layout.insert(document, at % (count + 1), new)
    elif count and change == "exchange":
        document = layout.exchange(document, at % count, new)
    elif count:
        document = layout.delete(document, at % count)
    assert texts(document) == texts(parse(render(document)))


@given(files(), st.data())
def test_any_arrangement_of_any_file_reads_back(data: bytes, choice: st.DataObject) -> None:
    """Entries in any order, with others between them."""
    document = named(parse(data))
    entries = choice.draw(st.permutations([*document.entries, entry("new")]))
    entries = entries[: choice.draw(st.integers(0, len(entries)))]
    arranged = layout.arrange(document, entries)
    assert [one.text for one in entries] == texts(arranged) == texts(parse(render(arranged)))


@given(files())
def test_arranging_what_is_there_changes_nothing(data: bytes) -> None:
    """All gaps are recognised."""
    document = named(parse(data))
    if document.entries:
        assert document == layout.arrange(document, document.entries)


def test_gaps_come_from_the_second_document_where_the_first_has_none() -> None:
    """Neighbours of ours keep their border beside each other in a file that has neither."""
    ours = named(parse("a\n\n§\n\nb".encode()))
    assert "a\n\n§\n\nb\n" == render(layout.arrange(Document(), ours.entries, ours)).decode()


def test_a_gap_without_border_is_not_taken() -> None:
    """What a shell appended gets its border when the file is written."""
    document = replace(store("a", "b"), gaps=("\n§",))
    assert "a\n§\nb\n" == render(layout.arrange(document, document.entries)).decode()
