"""What may become an entry."""

from __future__ import annotations

import pytest

from memd.errors import InvalidContent
from memd.profile.content import accept, accept_edited, display, has_surrogates

BORDERS = [
    "§", "a\n§\nb", "tail\n§", "§\nhead", "a\r§\rb", "a\r\n§\r\nb", "a\n § \nb", "a\n\t§\nb", "a\n\ufeff§\nb",
    "a\u2028§\u2028b", "a\u2029§\u2029b", "a\x85§\x85b", "a\x0b§\x0bb", "a\x0c§\x0cb", "a\x1c§\x1cb", "§\u2028b",
]  # fmt: skip


@pytest.mark.parametrize("content", BORDERS)
def test_a_text_that_would_read_back_as_several_entries_is_refused(content: str) -> None:
    """Whatever separates the lines and whatever blanks stand around the §; the message says what to do."""
    with pytest.raises(InvalidContent, match="store the parts as entries of their own"):
        accept(content)
    with pytest.raises(InvalidContent):
        accept_edited(content)


@pytest.mark.parametrize("content", ["", " \n ", "\ufeff", "\u3000\u2028", "\r\n"])
def test_nothing_is_refused_as_empty(content: str) -> None:
    """Blanks of all kinds are nothing."""
    with pytest.raises(InvalidContent, match="content is empty"):
        accept(content)


@pytest.mark.parametrize(
    ("content", "match"), [("a\0b", "NUL"), (f"a{chr(0xD800)}b", "surrogate"), (f"a{chr(0xDCE9)}b", "surrogate")]
)
def test_what_is_no_text_is_refused(content: str, match: str) -> None:
    """A NUL, and code points that no UTF-8 can carry."""
    with pytest.raises(InvalidContent, match=match):
        accept(content)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("  Project uses pytest -x \n", "Project uses pytest -x"),
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("statutes § 12 and §§ 14–16", "statutes § 12 and §§ 14–16"),
        ("a\n§ 12\nb", "a\n§ 12\nb"),
        ("\ufeffwith a mark", "with a mark"),
        ("Photo album tag 👨‍👩‍👧", "Photo album tag 👨‍👩‍👧"),
    ],
)
def test_text_is_stored_without_outer_blanks_and_with_lf(content: str, expected: str) -> None:
    """Inside, everything stays as it is, a § in a line of text included."""
    assert expected == accept(content)


def test_an_edit_may_leave_nothing() -> None:
    """That is no error here: the verb removes the entry."""
    assert "" == accept_edited(" \n")


def test_an_edit_keeps_bytes_that_are_not_utf8() -> None:
    """They were there before."""
    assert "caf\udce9 is shut" == accept_edited("caf\udce9 is shut")


def test_bytes_that_an_edit_brings_together_become_the_character_that_the_file_will_have() -> None:
    """0xC3 and 0xA9 apart are two bad bytes, side by side an é; 0xC2 and 0xA7 make a border."""
    assert "é" == accept_edited("\udcc3\udca9")
    with pytest.raises(InvalidContent, match="§ alone"):
        accept_edited("a\n\udcc2\udca7\nb")


def test_an_edit_that_brings_in_a_lone_surrogate_is_refused() -> None:
    """It cannot be written to a file."""
    with pytest.raises(InvalidContent, match="surrogate"):
        accept_edited("a\ud800")


def test_surrogates_are_found_and_shown_as_replacement_characters() -> None:
    """What goes on the wire is valid Unicode."""
    assert has_surrogates("a\udce9")
    assert not has_surrogates("aé")
    assert "a\ufffdé" == display("a\udce9é")
    assert "plain" == display("plain")
