"""Near duplicates."""

from __future__ import annotations

import pytest
from support.documents import store

from memd.profile.near import LONGEST, near_duplicate

NEAR = [
    ("Timezone is UTC", "timezone is utc"),
    ("User prefers Python 3.12", "user prefers python3.12!"),
    ("Prefers tea.", "prefers  tea"),
    ("Likes: tea, coffee", "likes tea; coffee"),
    ("The user is called Ann", "the user is called “Ann”"),
    ("git-lfs is in use", "git lfs is in use"),
]
FAR = [
    ("Prefers Python 3.12", "Prefers Python 3.13"),
    ("Version 3.12", "Version 31.2"),
    ("Rooms 1 2", "Rooms 12"),
    ("The table is no table", "The table is notable"),
    ("It can't be moved", "It cant be moved"),
    ("Offset is -5", "Offset is 5"),
    ("Use a != b", "Use a = b"),
    ("Writes C", "Writes C#"),
    ("Writes C", "Writes C++"),
    ("Use -v", "Use v"),
    ("Status 👍", "Status 👎"),
    ("The file is /etc/Hosts", "The file is /etc/hosts"),
    ("See README.md", "See readme.md"),
    ("Call getUser", "Call getuser"),
    ("Set MAX_SIZE", "Set max_size"),
    ("Uses `Flag`", "Uses `flag`"),
    ("Reads $HOME", "Reads $home"),
    ("Use os.Path here", "Use os.path here"),
    ("使用制表符", "不使用制表符"),
    ("Budget is 5%", "Budget is 5"),
]


@pytest.mark.parametrize(("one", "two"), NEAR)
def test_case_blanks_and_punctuation_make_no_new_fact(one: str, two: str) -> None:
    """In either direction."""
    assert [one, two] == [
        found.text for text, other in ((two, one), (one, two)) if (found := near_duplicate(text, store(other).entries))
    ]


@pytest.mark.parametrize(("one", "two"), FAR)
def test_what_can_change_the_meaning_is_not_near(one: str, two: str) -> None:
    """A digit, a negation, a sign or operator, a case-sensitive name."""
    assert near_duplicate(one, store(two).entries) is None
    assert near_duplicate(two, store(one).entries) is None


def test_equal_texts_are_not_near_but_equal() -> None:
    """They are another rule's business."""
    assert near_duplicate("same", store("same").entries) is None


def test_the_first_near_entry_is_found() -> None:
    """In file order."""
    found = near_duplicate("TEA", store("coffee", "tea", "Tea").entries)
    assert found is not None
    assert "e1" == found.id


def test_very_long_texts_are_not_compared() -> None:
    """On either side."""
    long = "word " * LONGEST
    assert near_duplicate(long.upper(), store(long).entries) is None
    assert near_duplicate("WORD", store(long).entries) is None
