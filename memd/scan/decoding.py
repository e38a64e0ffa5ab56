"""What is hidden in encodings, read once: base64, hexadecimal, percent signs, tag characters, variation selectors.

What comes in: a view of the text. What goes out: views of what was decoded, each leading back to the run that held it. What must
not be here: rules; a second level of decoding.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from memd.scan.spans import Edit, View

if TYPE_CHECKING:
    from collections.abc import Iterator

# Twelve bytes are the shortest text that says something. Whatever is longer is cut into pieces by nobody: a run is decoded once.
BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}+={0,2}")
HEX = re.compile(r"(?<![0-9A-Za-z])(?:0x)?((?:[0-9A-Fa-f]{2}){12,}+)(?![0-9A-Za-z])")
SPACED_HEX = re.compile(r"(?<![0-9A-Za-z])[0-9A-Fa-f]{2}(?:[ :][0-9A-Fa-f]{2}){11,}+(?![0-9A-Za-z])")
ESCAPES = re.compile(r"(?:\\x[0-9A-Fa-f]{2}){4,}+")
PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2})++")
TAGS = re.compile("[\U000e0020-\U000e007e]{3,}+")
SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{3,}+")
MOST_UNREADABLE = 0.1


def decoded(view: View) -> Iterator[View]:
    """A view for each run of base64 or hexadecimal digits that holds text."""
    for found in HEX.finditer(view.text):
        yield from _excerpt(view, found, bytes.fromhex(found[1]))
    for found in SPACED_HEX.finditer(view.text):
        yield from _excerpt(view, found, bytes.fromhex(found[0].replace(":", " ")))
    for found in ESCAPES.finditer(view.text):
        yield from _excerpt(view, found, bytes.fromhex(found[0].replace("\\x", "")))
    for found in BASE64.finditer(view.text):
        yield from _excerpt(view, found, _base64(found[0]))


def carried(original: View) -> Iterator[View]:
    """A view for each run of tag characters or of variation selectors, which the folded text has no longer."""
    if original.text.isascii():
        return
    for found in TAGS.finditer(original.text):
        yield original.excerpt("".join(chr(ord(it) - 0xE0000) for it in found[0]), *found.span())
    for found in SELECTORS.finditer(original.text):
        yield from _excerpt(original, found, bytes(_selector(it) for it in found[0]))


def without_percent(view: View) -> View:
    """The view with percent-encoded UTF-8 decoded in place."""
    return view.edited(
        Edit(it.start(), it.end(), unquote(it[0], errors="replace")) for it in PERCENT.finditer(view.text)
    )


def _selector(char: str) -> int:
    code = ord(char)
    return code - 0xFE00 if code < 0xE0100 else code - 0xE0100 + 16


def _base64(run: str) -> bytes:
    digits = run.rstrip("=").replace("-", "+").replace("_", "/")
    digits = digits[: len(digits) - (len(digits) % 4 == 1)]
    try:
        return base64.b64decode(digits + "=" * (-len(digits) % 4))
    except binascii.Error:  # cannot be with these digits; a text is never an error
        return b""


def _excerpt(view: View, found: re.Match[str], data: bytes) -> Iterator[View]:
    """The run as text, if most of it is readable: binary data is no text to scan."""
    text = data.decode("utf-8", errors="replace")
    bad = sum((not it.isprintable() and it not in "\n\r\t") or it == "\ufffd" for it in text)
    if text and bad <= len(text) * MOST_UNREADABLE:
        yield view.excerpt(text, *found.span())
