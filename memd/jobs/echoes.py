"""Echoes: whether a text repeats what a tool or a document said.

What comes in: texts that a job would add, bodies that its reviewer was not shown. What goes out: which of the texts share a passage
with a body. What must not be here: what follows from that, the journal.

A passage is five words in a row, or ten characters of a script that puts no blanks between its words (``jobs.md``). Case, width and
punctuation do not count. A text is small and a body may have megabytes, so the passages of the texts are what is remembered.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

WORDS = 5
CHARACTERS = 10

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, kana, Han (https://www.unicode.org/Public/UNIDATA/Blocks.txt)."""
_TOKEN = re.compile(rf"(?P<one>[{_UNSPACED}])|[^\W{_UNSPACED}]+")


def echoed(texts: Sequence[str], bodies: Iterable[str]) -> list[bool]:
    """For each text whether it shares a passage with one of the bodies. The time is linear in all of them together."""
    found = [False] * len(texts)
    owners: dict[tuple[str, ...], set[int]] = {}
    for at, text in enumerate(texts):
        for passage in _passages(text):
            owners.setdefault(passage, set()).add(at)
    for body in bodies if owners else ():
        for passage in _passages(body):
            for at in owners.get(passage, ()):
                found[at] = True
    return found


def _passages(text: str) -> Iterator[tuple[str, ...]]:
    words: deque[str] = deque(maxlen=WORDS)
    characters: deque[str] = deque(maxlen=CHARACTERS)
    for token in _TOKEN.finditer(unicodedata.normalize("NFKC", text).casefold()):
        row, other = (characters, words) if token["one"] else (words, characters)
        other.clear()
        row.append(token[0])
        if len(row) == row.maxlen:
            yield tuple(row)
