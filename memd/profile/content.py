"""What may become an entry: the one check that every new text passes.

What comes in: text as a client sent it, or an entry after an edit. What goes out: the text as it will be stored,
without outer blanks and with LF newlines, or ``InvalidContent``. What must not be here: limits, duplicates, scanning.

The rule behind it: whatever is accepted reads back as the same single entry, in a file of any newline style, with a
byte-order mark or without, at any place among other entries, and in programs that split lines as ``str.splitlines``.
"""

from __future__ import annotations

import hashlib
import re

from memd.errors import InvalidContent
from memd.profile.entries import BORDER, as_text, is_border, strip_outer

_SURROGATE = re.compile("[\ud800-\udfff]")


def accept(content: str) -> str:
    """The text to store for what a caller sent.

    Raises:
        InvalidContent: Empty or blank, a NUL, a lone surrogate, or a line that reads back as a border.
    """
    text = strip_outer(as_text(content))
    if has_surrogates(text):
        msg = "content holds a lone surrogate, which is no character; send valid Unicode text"
        raise InvalidContent(msg)
    _check(text)
    return text


def accept_edited(text: str) -> str:
    """The text to store for an entry of which a part was changed; ``""`` if nothing is left of it.

    Bytes that are not UTF-8 (carried as U+DC80–U+DCFF) may be there: they were before. Where the edit brought such
    bytes together they can form a character, so the text is read again as the file will be.

    Raises:
        InvalidContent: As ``accept``, but for the emptiness and those bytes.
    """
    text = as_text(text)
    if has_surrogates(text):
        try:
            text = as_text(text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape"))
        except UnicodeEncodeError:
            msg = "new_text holds a lone surrogate, which is no character; send valid Unicode text"
            raise InvalidContent(msg) from None
    text = strip_outer(text)
    if text:
        _check(text)
    return text


def has_surrogates(text: str) -> bool:
    """True if the text holds a code point that no UTF-8 can carry."""
    return not text.isascii() and _SURROGATE.search(text) is not None


def display(text: str) -> str:
    """The text as it may be put on the wire: bytes that are not UTF-8 as U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def text_hash(text: str) -> bytes:
    """SHA-256 of a text without outer blanks: what is kept of a refused text, and by which an approved one is known."""
    return hashlib.sha256(text.strip().encode("utf-8", "surrogateescape")).digest()


def _check(text: str) -> None:
    """Refuse what cannot be an entry.

    Raises:
        InvalidContent: With what to do about it.
    """
    if not text:
        msg = "content is empty; send the text to remember, or use remove to take an entry out"
        raise InvalidContent(msg)
    if "\0" in text:
        msg = "content holds a NUL character; leave it out"
        raise InvalidContent(msg)
    if BORDER in text and any(is_border(line) for line in text.splitlines()):
        msg = f"content has a line that is {BORDER} alone, which separates entries; store the parts as entries of their own"
        raise InvalidContent(msg)
