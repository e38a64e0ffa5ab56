r"""Masking: one text replaced by a fixed mark, wherever and however it is written.

What comes in: texts to hide, bytes and values that may hold them. What goes out: the same without them. What must not be
here: where anything is stored, I/O.

A text is looked for as it is and in its composed and decomposed Unicode forms, with any kind of newline, and as JSON
writes it with and without ``\u`` escapes. MessagePack has no escapes: a text in it stands as it is.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MARK = "[redacted]"
SHORTEST = 4
"""Characters that a text needs at least: a shorter one stands in half of all texts."""

_MARK = MARK.encode()
_NEWLINE = re.compile(r"\r\n|\r|\n")
_JSON_NEWLINE = rb"(?:\\r\\n|\\r|\\n)"


class Mask:
    """Hides some texts. What was masked once stays as it is when it is masked again."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = tuple(dict.fromkeys(texts))
        self._written = sorted({form for text in self.texts for form in _forms(text)}, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(self._written) or rb"(?!)")

    def __repr__(self) -> str:
        return f"<Mask of {len(self.texts)} texts>"  # never the texts: a log may show it

    def found(self, data: bytes) -> bool:
        """True if one of the texts is in these bytes."""
        return self._pattern.search(data) is not None

    def data(self, data: bytes) -> bytes:
        """Bytes in UTF-8 or something like it."""
        return self._pattern.sub(_MARK, data)

    def text(self, text: str) -> str:
        """A text; what is not UTF-8 is carried as surrogates."""
        data = text.encode("utf-8", "surrogateescape")
        return self.data(data).decode("utf-8", "surrogateescape") if self.found(data) else text

    def value(self, value: Any) -> Any:
        """A plain value with every text in it masked, keys too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bytes):
            return self.data(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {self.value(key): self.value(item) for key, item in value.items()}
        return value

    def packed(self, data: bytes) -> bytes:
        """A value in MessagePack."""
        if not self.found(data):
            return data
        try:
            return msgspec.msgpack.encode(self.value(msgspec.msgpack.decode(data)))
        except msgspec.DecodeError:  # damaged already: it only has to go
            return self.data(data)

    def blot(self, data: bytes) -> bytes:
        """Bytes of a format that must keep its lengths: texts, and halves of texts that a page's end may cut, blotted out."""
        for text in self.texts:
            written = text.encode()
            half = (len(written) + 1) // 2
            for part in (written, written[:half], written[-half:]) if half >= SHORTEST else (written,):
                data = data.replace(part, b"*" * len(part))
        return self._pattern.sub(lambda match: b"*" * len(match.group()), data)


def _forms(text: str) -> Iterator[bytes]:
    """Patterns for the ways in which a text may be written."""
    for form in dict.fromkeys((text, unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text))):
        lines = _NEWLINE.split(form)
        yield rb"(?:\r\n|\r|\n)".join(re.escape(line.encode("utf-8", "surrogateescape")) for line in lines)
        for plain in (True, False):
            written = [json.dumps(line, ensure_ascii=plain)[1:-1] for line in lines]
            yield _JSON_NEWLINE.join(re.escape(line.encode("utf-8", "surrogateescape")) for line in written)
