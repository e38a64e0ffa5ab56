"""Markdown that was never a memory file."""

from __future__ import annotations

import pytest
from support.documents import store

from memd.profile.entries import parse
from memd.profile.foreign import conflict_markers, foreign_entry, is_foreign, split_foreign

HOUSE = "# House notes\n\n- boiler is in the cellar\n- bins go out Tuesday\n"


@pytest.mark.parametrize(
    "text",
    [HOUSE, "# One\ntext\n## Two\ntext", "1. first\n2. second", "* a\n* b", "\ufeff- a\r\n- b\r\n"],
)
def test_headings_or_items_without_a_border_are_foreign(text: str) -> None:
    """Written by hand, or by a program that knows nothing of entries."""
    assert is_foreign(parse(text.encode()))
    assert is_foreign(store(text, origin="outside"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a note",
        "- one item",
        "# one heading",
        HOUSE + "§\nmore",
        "```\n# a\n# b\n```",
        "a-b\n3.5 x\n#tag",
        "~~~\n- a\n- b",
    ],
)
def test_notes_are_not_foreign(text: str) -> None:
    """With a border, with one heading, or with what only looks like structure, in code or in prose."""
    assert not is_foreign(parse(text.encode()))


def test_a_list_that_a_client_stored_is_not_foreign() -> None:
    """It is one entry because somebody wanted it so."""
    document = store(HOUSE, origin="agent")
    assert not is_foreign(document)
    assert not foreign_entry(document.entries[0])


def test_a_foreign_entry_stays_one_when_others_come_beside_it() -> None:
    """The guard goes by the entry."""
    document = store(HOUSE, "a note", origin="outside")
    assert not is_foreign(document)
    assert [True, False] == [foreign_entry(entry) for entry in document.entries]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HOUSE, ["boiler is in the cellar", "bins go out Tuesday"]),
        ("# A\ntext a\n# B\ntext b", ["A\ntext a", "B\ntext b"]),
        (
            "# Home\n## Kitchen\n- kettle\n- oven\n## Bath\n- tap",
            ["Home", "Kitchen: kettle", "Kitchen: oven", "Bath: tap"],
        ),
        ("- a\n  - nested\n  more\n- b", ["a\n  - nested\n  more", "b"]),
        (
            "- run:\n```\n# not a heading\n- not an item\n```\n- b",
            ["run:\n```\n# not a heading\n- not an item\n```", "b"],
        ),
        ("intro\n\n1. a\n2) b\n\nafter", ["intro", "a", "b", "after"]),
        ("# Only a title", ["Only a title"]),
        ("## A\n## B ##", ["A", "B"]),
        ("plain\ntext\n\nmore", ["plain\ntext\n\nmore"]),
        ("", []),
    ],
)
def test_foreign_text_is_split_by_items_and_headings(text: str, expected: list[str]) -> None:
    """Nested items and code stay whole; a heading goes with its items; a title names the file."""
    assert expected == split_foreign(text)


def test_conflict_markers_are_recognised() -> None:
    """All three, in their order, at the beginning of lines."""
    assert conflict_markers("a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> other\n")
    assert not conflict_markers("a\n=======\nb")
    assert not conflict_markers("<<<<<<< HEAD\nb")
    assert not conflict_markers("text <<<<<<< x\n=======\n>>>>>>> y")
