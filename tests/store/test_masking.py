"""memd.store.masking: a text hidden wherever it is written."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from memd.store.masking import MARK, Mask

SECRET = 'pass "wörd"\nline two'


@pytest.mark.parametrize(
    "written",
    [
        SECRET,
        SECRET.replace("\n", "\r\n"),
        SECRET.replace("\n", "\r"),
        unicodedata.normalize("NFD", SECRET),
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        json.dumps(SECRET.replace("\n", "\r\n"))[1:-1],
    ],
)
def test_a_text_is_found_however_it_is_written(written: str) -> None:
    """Newlines, Unicode forms, JSON escapes; what stands around it stays."""
    mask = Mask([SECRET])
    assert f"<{MARK}>" == mask.text(f"<{written}>")
    assert mask.found(written.encode())


def test_other_texts_are_left_alone() -> None:
    """The very object, where nothing is hidden."""
    text = "pass wörd"
    assert text is Mask([SECRET]).text(text)
    assert b"anything" == Mask([]).data(b"anything")


def test_every_text_of_a_value_is_masked() -> None:
    """Nested, in bytes, as a key; bytes that are not UTF-8 stay."""
    value = {"a": ["secret!", {"secret!": b"\xff secret!"}], "n": 1, "none": None, "t": True, "f": 1.5}
    masked = {"a": [MARK, {MARK: b"\xff " + MARK.encode()}], "n": 1, "none": None, "t": True, "f": 1.5}
    mask = Mask(["secret!"])
    assert masked == mask.value(value)
    assert masked == msgspec.msgpack.decode(mask.packed(msgspec.msgpack.encode(value)))


def test_a_longer_text_goes_before_the_one_inside_it() -> None:
    """Else a part of it would be left."""
    assert f"{MARK} {MARK}" == Mask(["secret", "secret and more"]).text("secret and more secret")


def test_undecodable_text_keeps_its_bytes() -> None:
    """Carried as surrogates."""
    assert f"caf\udce9 {MARK}" == Mask(["secret"]).text("caf\udce9 secret")


def test_blotting_keeps_every_length() -> None:
    """Halves that the end of a page may have cut off are blotted, too."""
    data = b"0 hidden-words 1 hidden- 2 n-words 3 hid 4"
    blotted = Mask(["hidden-words"]).blot(data)
    assert b"0 ************ 1 ******- 2 n****** 3 hid 4" == blotted
    assert len(data) == len(blotted)


def test_a_mask_never_shows_what_it_hides() -> None:
    """A log may show it."""
    assert "<Mask of 1 texts>" == repr(Mask(["secret", "secret"]))


texts = st.text(min_size=4, max_size=12).filter(lambda text: text not in MARK and "[" not in text and "]" not in text)
values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.text(max_size=20), st.binary(max_size=20), st.integers(-9, 9), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=8,
)


@given(texts, values)
def test_nothing_is_left_and_masking_again_changes_nothing(text: str, value: Any) -> None:
    """For every text and every value around it."""
    mask = Mask([text])
    holding = msgspec.msgpack.encode([value, f"before {text} after", {text: text.encode()}])
    masked = mask.packed(holding)
    assert text.encode() not in masked.replace(MARK.encode(), b"\x00")
    assert masked == mask.packed(masked)


def test_damaged_messagepack_is_masked_as_bytes() -> None:
    """It cannot be read any more; the text goes all the same."""
    assert b"\x93[redacted]" == Mask(["secret text"]).packed(b"\x93secret text")
