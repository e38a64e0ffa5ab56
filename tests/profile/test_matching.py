"""Which entry is meant."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from support.documents import store

from memd.errors import AmbiguousMatch, NotFound
from memd.profile.entries import Document, parse
from memd.profile.matching import Match, describe, find, fold_typography, nearest

FOREIGN = "# House notes\n\n- boiler is in the cellar\n- bins go out Tuesday"


def listed(error: NotFound | AmbiguousMatch, key: str) -> list[str]:
    found: list[dict[str, Any]] = error.extra[key]
    return [item["id"] for item in found]


def test_an_exact_whole_entry_comes_before_a_substring() -> None:
    """`tea` means the entry `tea` although `green tea` contains it."""
    assert Match(1, (1,), 0, 3) == find(store("green tea", "tea"), old_text="tea", whole=True)


def test_a_substring_of_one_entry_is_enough() -> None:
    """Its place in the text is given."""
    assert Match(1, (1,), 10, 12) == find(store("nginx", "Server is Debian 12"[:10] + "12"), old_text="12", whole=False)


def test_of_identical_entries_the_first_is_meant_and_all_are_named() -> None:
    """Whoever removes takes all, whoever replaces takes the first."""
    assert Match(0, (0, 2), 0, 1) == find(store("x", "y", "x"), old_text="x", whole=True)


def test_an_id_means_that_entry_alone() -> None:
    """Even if another says the same."""
    assert Match(2, (2,), 0, 1) == find(store("x", "y", "x"), entry_id="e2", whole=True)


def test_id_and_text_together_must_fit() -> None:
    """The text has to occur in that entry; if not, the entry is shown first."""
    document = store("Port is 8080", "Port is 9090")
    assert Match(1, (1,), 0, 4) == find(document, entry_id="e1", old_text="Port", whole=True)
    with pytest.raises(NotFound, match="does not occur in the entry e1") as caught:
        find(document, entry_id="e1", old_text="8080", whole=True)
    assert ["e1", "e0"] == listed(caught.value, "nearest")


def test_an_unknown_id_lists_entries() -> None:
    """By the text, if there is one, else by the ids."""
    document = store("apples", "pears", "plums", "cherries")
    with pytest.raises(NotFound, match="no entry has the id 'zz'") as caught:
        find(document, entry_id="zz", old_text="cherry", whole=True)
    assert "e3" == listed(caught.value, "nearest")[0]
    with pytest.raises(NotFound) as caught:
        find(document, entry_id="e9", whole=True)
    assert 3 == len(listed(caught.value, "nearest"))


def test_several_distinct_entries_are_ambiguous() -> None:
    """All of them are listed with ids and sizes."""
    with pytest.raises(AmbiguousMatch, match="2 entries contain old_text") as caught:
        find(store("server A runs nginx", "server B runs nginx"), old_text="nginx", whole=True)
    assert [
        {"id": "e0", "chars": 19, "text": "server A runs nginx"},
        {"id": "e1", "chars": 19, "text": "server B runs nginx"},
    ] == caught.value.extra["matches"]
    assert "hint" not in caught.value.data()


def test_an_ambiguous_replace_says_which_entry_already_has_the_wanted_text() -> None:
    """So that a model does not add it once more."""
    document = store("likes dark mode in the editor", "likes dark mode on the phone", "likes dark mode everywhere")
    with pytest.raises(AmbiguousMatch, match="the entry e2 already says") as caught:
        find(document, old_text="likes dark mode", whole=True, wanted="likes dark mode everywhere")
    assert {"id": "e2"} == caught.value.data()["hint"]


@pytest.mark.parametrize(
    ("stored", "sent"),
    [
        ("uses  two   blanks", "uses two blanks"),
        ("uses two blanks", "two  blanks"),
        ("it\u2019s \u201cquoted\u201d", 'it\'s "quoted"'),
        ("2014\u20132016", "2014-2016"),
        ("caf\u00e9", "cafe\u0301"),
        ("one\ntwo", "one two"),
        ("no\u00a0break", "no break"),
    ],
)
def test_verbs_on_whole_entries_forgive_typography(stored: str, sent: str) -> None:
    """Composition, quotes, dashes and runs of blanks; an edit does not, for it has to know the exact part."""
    document = store("another", stored)
    assert Match(1, (1,), 0, len(stored), folded=True) == find(document, old_text=sent, whole=True)
    with pytest.raises(NotFound):
        find(document, old_text=sent, whole=False)


def test_folding_does_not_make_case_equal_and_can_be_ambiguous() -> None:
    """`Tea` is not `tea`; and two entries that differ in blanks alone are two."""
    with pytest.raises(NotFound):
        find(store("tea at four"), old_text="Tea  at four", whole=True)
    with pytest.raises(AmbiguousMatch):
        find(store("a  b x", "a   b y"), old_text="a b", whole=True)


def test_a_folded_whole_entry_comes_before_a_folded_part() -> None:
    """The same order as without folding."""
    assert 1 == find(store("a  b and more", "a  b"), old_text="a b", whole=True).index


def test_two_places_in_one_entry_are_ambiguous_for_an_edit_only() -> None:
    """Overlapping ones count; replace means the entry, wherever the text stands in it."""
    document = store("tick tock tick")
    with pytest.raises(AmbiguousMatch, match="occurs more than once"):
        find(document, old_text="tick", whole=False)
    with pytest.raises(AmbiguousMatch):
        find(store("aaa"), old_text="aa", whole=False)
    assert 0 == find(document, old_text="tick", whole=True).index


def test_a_small_part_of_a_foreign_file_does_not_stand_for_all_of_it() -> None:
    """Replace and remove are refused unless the id alone says that all of it is meant; edit works."""
    document = store(FOREIGN, origin="outside")
    for entry_id in (None, "e0"):
        with pytest.raises(AmbiguousMatch, match="use edit"):
            find(document, entry_id=entry_id, old_text="bins go out Tuesday", whole=True)
    assert 0 == find(document, entry_id="e0", whole=True).index
    assert 0 == find(document, old_text="bins go out Tuesday", whole=False).index
    assert 0 == find(document, old_text=FOREIGN[:-5], whole=True).index
    assert 0 == find(store(FOREIGN, origin="agent"), old_text="bins", whole=True).index


def test_text_is_matched_with_lf_in_a_crlf_file() -> None:
    """Callers see logical text."""
    assert 1 == find(store("x", "one\ntwo", newline="\r\n"), old_text="one\ntwo", whole=True).index


def test_an_undecodable_entry_is_found_by_its_decodable_text_and_as_shown() -> None:
    """A caller can only copy U+FFFD."""
    document = parse(b"caf\xe9 is open\n\xc2\xa7\nother")
    assert 0 == find(document, old_text="is open", whole=True).index
    assert Match(0, (0,), 0, 12) == find(document, old_text="caf\ufffd is open", whole=True)


def test_a_miss_shows_the_three_nearest() -> None:
    """The best first; in a store of two, both."""
    document = store("uses pytest", "server is Debian", "prefers tea", "deploys with ansible")
    with pytest.raises(NotFound) as caught:
        find(document, old_text="servers run Debian 13", whole=True)
    assert "e1" == listed(caught.value, "nearest")[0]
    assert 3 == len(listed(caught.value, "nearest"))
    assert 2 == len(nearest(store("server A runs nginx", "server B runs nginx"), "apache"))


def test_a_miss_in_an_empty_store_says_so() -> None:
    """There is nothing to list."""
    with pytest.raises(NotFound, match="the store is empty") as caught:
        find(Document(), old_text="x", whole=True)
    assert [] == caught.value.extra["nearest"]


def test_long_entries_are_shown_around_the_place() -> None:
    """With their full size, and a sign where text was cut."""
    entry = replace(store("a" * 500 + "needle" + "b" * 500).entries[0])
    shown = describe(entry, around=500)
    assert (1006, True) == (shown["chars"], "needle" in shown["text"])
    assert "…" == shown["text"][0] == shown["text"][-1]
    assert not describe(entry)["text"].startswith("…")


def test_folding_typography_is_idempotent() -> None:
    """Folding what was folded changes nothing."""
    once = fold_typography("a \u201cb\u201d \u2013 c\u00a0d")
    assert 'a "b" - c d' == once == fold_typography(once)
