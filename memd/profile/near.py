"""Near duplicates: texts that say the same but for case, blanks and punctuation.

What comes in: a text and the entries there are. What goes out: the entry that already says it, for a notice. What must
not be here: refusing or merging anything; nearness is advice.

Two texts are near only if nothing that can carry meaning differs: letters, digits and symbols are the same, numbers are
divided the same way, and the negations, operators and case-sensitive names in them are the same ones.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memd.profile.entries import Entry

LONGEST = 2_000
"""Longer texts are not compared: a note that long is no restated fact, and the cache stays small."""

_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_OTHER = re.compile(r"[\W_]+")
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
_OPERATOR = re.compile(r"[#@%&*\\/]|!(?=[\w=(])|(?<![\w)])-+(?=\w)")
_NAME = re.compile(
    r"\S*[\w~.][/\\]\S+|[/\\]\w\S*|\S*_\S*|\S*::\S*"  # paths, snake_case, scoped names
    r"|\S*[^\W\d_]\.[^\W\d_]\S*"  # files and attributes: notes.md, os.path
    r"|\w*[a-z][A-Z]\w*"  # camelCase
    r"|`[^`]+`|(?<!\w)[$.-]+[^\W\d]\S*"  # code, $NAME, .hidden, --flag
)
_NEGATIONS = frozenset(
    {"no", "not", "nor", "never", "none", "nothing", "neither", "nobody", "without", "cannot"}
    | {"nicht", "nie", "kein", "keine", "ohne", "non", "ne", "pas", "jamais", "sans", "sin", "nunca"}
    | {"не", "нет", "без", "không", "chưa"}
)


class _Key(NamedTuple):
    folded: str
    numbers: tuple[str, ...]
    negations: tuple[str, ...]
    operators: tuple[str, ...]
    names: tuple[str, ...]


def near_duplicate(text: str, entries: Iterable[Entry]) -> Entry | None:
    """The first entry that says nearly the same as the text without being equal to it."""
    if len(text) > LONGEST:
        return None
    letters = _letters(text)
    for entry in entries:
        other = entry.text
        # Cheap first: this runs for every add, and hardly ever are even the letters the same.
        if len(other) <= LONGEST and _letters(other) == letters and other != text and _key(other) == _key(text):
            return entry
    return None


@lru_cache(maxsize=2048)
def _letters(text: str) -> str:
    """Letters and digits alone. Remembered, because every add compares with all entries there are."""
    return _OTHER.sub("", text.casefold())


def _key(text: str) -> _Key:
    """What two near texts have in common."""
    words = [word.casefold().replace("\u2019", "'") for word in _WORD.findall(text)]
    return _Key(
        folded="".join([char for char in text.casefold() if _carries_meaning(char)]),
        numbers=tuple(_NUMBER.findall(text)),
        negations=tuple([word for word in words if word in _NEGATIONS or word.endswith("n't")]),
        operators=tuple(_OPERATOR.findall(text)),
        names=tuple([name.rstrip(".,;:!?)") for name in _NAME.findall(text)]),
    )


def _carries_meaning(char: str) -> bool:
    return char.isalnum() or not (char.isspace() or unicodedata.category(char).startswith("P"))
