"""memd.cli.text: safe, measured, wrapped."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from memd.cli.text import age, as_json, bar, cells, cut, one_line, plural, safe, wrap


def test_what_would_act_on_a_terminal_is_made_visible() -> None:
    """An entry cannot recolour the screen, move the cursor or turn the direction of reading."""
    assert "a\\x1b[31mb\\x07\tc\nd" == safe("a\x1b[31mb\x07\tc\nd")
    assert "\\u202eevil\\x9b" == safe("\u202eevil\x9b")


def test_what_shows_nothing_is_made_visible() -> None:
    """It could carry what nobody reads. Joiners and the selectors of emoji stay."""
    assert "a\\u034f\\u115f\\u3164\\ufff9\\U000e0101\\U000e0041\\U0001d173\\u2028b" == safe(
        "a\u034f\u115f\u3164\ufff9\U000e0101\U000e0041\U0001d173\u2028b"
    )
    assert "❤️ 👩‍💻" == safe("❤️ 👩‍💻")


@given(st.text() | st.sampled_from(["\x9b31m\x7f\u202e\u2028\U000e0041", "é 中 👩‍💻"]))
def test_json_is_the_same_to_programs_and_harmless_to_a_terminal(text: str) -> None:
    """Letters of all languages stay readable."""
    shown = as_json({"text": [text]}, 2)
    assert {"text": [text]} == json.loads(shown)
    assert shown == safe(shown)
    assert "é 中 👩‍💻" in as_json("é 中 👩‍💻")


def test_one_line_is_one_line() -> None:
    """Whatever ends lines somewhere."""
    assert "a b\\x85c\\u2028d \\x1b[2K" == one_line(" a\r\nb\x85c\u2028d\t\x1b[2K\n").replace("\\x0d ", " ")


@given(st.text())
def test_nothing_dangerous_survives(text: str) -> None:
    assert not any((ord(c) < 0x20 and c not in "\t\n") or 0x7F <= ord(c) < 0xA0 for c in safe(text))


@pytest.mark.parametrize(("text", "expected"), [("abc", 3), ("", 0), ("中文", 4), ("é", 1), ("e\u0301", 1)])
def test_cells_are_terminal_columns(text: str, expected: int) -> None:
    assert expected == cells(text)


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("short", 10, "short"),
        ("two\nlines", 20, "two lines"),
        ("a longer text", 8, "a longe…"),
        ("a longer text", 3, "a…"),
        ("中文中文", 5, "中文…"),
        ("", 5, ""),
    ],
)
def test_cut_fits_one_line(text: str, width: int, expected: str) -> None:
    assert expected == cut(text, width)


@given(st.text(), st.integers(1, 60))
def test_cut_never_exceeds_its_width(text: str, width: int) -> None:
    assert cells(cut(text, width)) <= width


def test_wrap_breaks_at_blanks_and_keeps_newlines() -> None:
    assert ["one two", "three", "", "four"] == wrap("one two three\n\nfour", 8)


def test_wrap_breaks_a_word_that_is_too_wide() -> None:
    assert ["12345678", "90"] == wrap("1234567890", 8)
    assert ["中中中中", "中"] == wrap("中中中中中", 8)
    assert ["ab", "12345678", "90"] == wrap("ab 1234567890", 8)


@given(st.text(alphabet="ab 中\n", max_size=80), st.integers(8, 30))
def test_wrapping_loses_nothing_but_blanks(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert all(cells(line) <= width for line in lines)
    assert text.replace(" ", "").replace("\n", "") == "".join(lines).replace(" ", "")


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(-5, "now"), (0, "now"), (59, "now"), (60, "1m"), (3599, "59m"), (3600, "1h"), (86400, "1d"), (400 * 86400, "1y")],
)
def test_age_is_one_number(seconds: int, expected: str) -> None:
    assert expected == age(0, seconds * 1_000_000)


@pytest.mark.parametrize(
    ("percent", "expected"),
    [(0, "----------"), (1, "#---------"), (99, "#########-"), (100, "#" * 10), (250, "#" * 10)],
)
def test_a_bar_is_empty_only_at_0_and_full_only_from_100(percent: int, expected: str) -> None:
    assert expected == bar(percent, marks="#-")


def test_plural() -> None:
    assert ["1 entry", "2 entries", "1 change", "1,200 changes", "0 entries"] == [
        plural(1, "entry"),
        plural(2, "entry"),
        plural(1, "change"),
        plural(1200, "change"),
        plural(0, "entry"),
    ]
