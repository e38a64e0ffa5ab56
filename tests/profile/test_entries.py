"""Entries and documents: bytes in, the same bytes out."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace
from support.documents import files, texts

from memd.errors import InvalidContent
from memd.profile.content import accept
from memd.profile.entries import Document, has_border, parse, render
from memd.profile.layout import in_style, insert

NEWLINES = ["\n", "\r\n", "\r"]


@given(files())
def test_any_bytes_render_back_to_themselves(data: bytes) -> None:
    """Rendering what was parsed gives the same bytes, whatever they were."""
    assert data == render(parse(data))


@given(files())
def test_entries_are_never_blank_and_never_hold_a_border(data: bytes) -> None:
    """An entry has a text without outer blanks, and no line of it is a border."""
    for entry in parse(data).entries:
        assert entry.text == entry.text.strip() != ""
        assert "§" not in entry.text.split("\n")


@given(st.text(), st.sampled_from(NEWLINES), st.booleans(), st.integers(0, 2), st.sampled_from(["", "\n", " \r\n\r\n"]))
def test_every_accepted_text_reads_back_as_one_entry(
    content: str, newline: str, bom: bool, place: int, end: str
) -> None:
    """In any newline style, with a BOM or without, first, between others or last, what was accepted comes back."""
    try:
        text = accept(content)
    except InvalidContent:
        return
    around = ["first", "second"]
    expected = [*around[:place], text, *around[place:]]
    border = f"{newline}§{newline}"
    data = ("\ufeff" if bom else "") + border.join(in_style(one, newline) for one in expected) + end
    assert expected == texts(parse(data.encode()))


@given(st.text(alphabet="a§ \t\r\n\u2028\u2029\x85\x0b\x0c\x1c\ufeff", max_size=12))
def test_texts_made_of_blanks_and_borders_are_refused_or_read_back(content: str) -> None:
    """There is no blank around a border by which a text gets in as one entry and out as two."""
    try:
        text = accept(content)
    except InvalidContent:
        return
    document = insert(parse("before\n§\nafter".encode()), 1, replace(parse(b"x").entries[0], raw=text, text=text))
    assert ["before", text, "after"] == texts(parse(render(document)))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"\n \n", []),
        ("§\n".encode(), []),
        ("§\nalpha\n§\nbeta".encode(), ["alpha", "beta"]),
        ("alpha one\r\n§\r\nbeta two\r\n§\r\ngamma three".encode(), ["alpha one", "beta two", "gamma three"]),
        ("alpha\r§\rbeta".encode(), ["alpha", "beta"]),
        ("alpha\r\n§\nbeta\r§\r\ngamma".encode(), ["alpha", "beta", "gamma"]),
        ("\ufeffalpha\n§\nbeta\n".encode(), ["alpha", "beta"]),
        ("alpha\n\n§\n\nbeta\n".encode(), ["alpha", "beta"]),
        ("alpha\n§\n\n§\nbeta".encode(), ["alpha", "beta"]),
        ("alpha\n§".encode(), ["alpha"]),
        ("Cite statutes as § 12 and §§ 14–16".encode(), ["Cite statutes as § 12 and §§ 14–16"]),
    ],
)
def test_the_format_is_generous(data: bytes, expected: list[str]) -> None:
    """Every newline style, blank lines around borders, borders at the ends, a BOM, a § inside a sentence."""
    assert expected == texts(parse(data))


def test_one_byte_outside_utf8_spoils_only_its_own_entry() -> None:
    """The other entries are served; the bad one is kept, marked, and shown with U+FFFD."""
    bad, good = parse(b"caf\xe9 is open\n\xc2\xa7\nother").entries
    assert (True, "caf\ufffd is open") == (bad.undecodable, bad.shown)
    assert (False, "other") == (good.undecodable, good.text)


@pytest.mark.parametrize(("text", "expected"), [("你好世界", 4), ("\U0001f600", 1), ("👨‍👩‍👧", 5), ("é", 1)])
def test_characters_are_code_points(text: str, expected: int) -> None:
    """Not bytes, not UTF-16 units, not graphemes."""
    assert expected == parse(text.encode()).chars


def test_the_counted_text_joins_entries_with_lf_whatever_the_file_uses() -> None:
    """A CRLF file costs no more than an LF file."""
    document = parse("one\r\ntwo\r\n\r\n§\r\nthree\r\n".encode())
    assert "one\ntwo\n§\nthree" == document.counted
    assert len(document.counted) == document.chars


def test_the_hash_is_of_the_shown_text() -> None:
    """SHA-256 in hex, equal for the same text in another newline style."""
    one, two = parse(b"a\r\nb").entries[0], parse(b"a\nb").entries[0]
    assert one.hash == two.hash
    assert 64 == len(one.hash)


def test_an_empty_document_counts_nothing_and_has_no_border() -> None:
    """An empty file is an empty store."""
    assert 0 == Document().chars
    assert not has_border(Document())
