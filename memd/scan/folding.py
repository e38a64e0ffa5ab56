"""Characters as rules read them: compatibility forms resolved, accents and invisible marks gone, case kept.

What comes in: a text. What goes out: its folded view, and the same folding for the words of rules. What must not be here:
which invisible marks are allowed (``invisible.py``), look-alikes (``confusables.py``).
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from itertools import accumulate

from memd.scan.spans import View

# What is drawn as nothing and has no word in it: default ignorable code points outside of the format category.
BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
STAND_IN = "\ufffd"
LONGEST = 4  # of what one character becomes; a few Arabic ligatures are whole sentences, and would make a text long


class _Fold(dict[int, str]):
    """Code point to its folded form, worked out once for each that occurs."""

    def __missing__(self, code: int) -> str:
        folded = self[code] = _fold(chr(code))
        return folded


def _fold(char: str) -> str:
    if "\ud800" <= char <= "\udfff":
        return STAND_IN
    if is_invisible(char):
        return ""
    if char in "\u2028\u2029\u0085":
        return "\n"
    whole = unicodedata.normalize("NFKD", char)
    bare = "".join(it for it in whole if unicodedata.category(it) != "Mn")
    if len(bare.lower()) != len(bare) or len(bare.casefold()) != len(bare):
        bare = bare.casefold()
    bare = bare[:LONGEST]
    return OTHER_STROKES.get(bare, bare)


# Letters with a stroke have no decomposition, and are typed without it: Vietnamese, Polish, the Nordic languages.
OTHER_STROKES = {"đ": "d", "Đ": "D", "ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "ı": "i"}


def is_invisible(char: str) -> bool:
    """Whether the character is one that nothing draws: format characters, fillers, variation selectors, tags."""
    return (
        char in BLANKS
        or unicodedata.category(char) == "Cf"
        or "\ufe00" <= char <= "\ufe0f"
        or "\U000e0000" <= char <= "\U000e0fff"
    )


FOLD = _Fold()


def folded(text: str) -> str:
    """The text folded; ASCII comes back as it is."""
    return text if text.isascii() else text.translate(FOLD)


def without_surrogates(text: str) -> str:
    """The text with each lone surrogate replaced, since no automaton takes one; places stay as they are."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join(STAND_IN if "\ud800" <= it <= "\udfff" else it for it in text)
    return text


def fold(text: str) -> View:
    """The folded view of a text, with the way back."""
    if text.isascii():
        return View(text)
    result = text.translate(FOLD)
    return View(result, View(text), _Widths(text).back)


class _Widths:
    """The way back through a folding; what each character became is added up only if somebody asks."""

    def __init__(self, before: str) -> None:
        self._before = before
        self._ends: list[int] | None = None

    def back(self, start: int, end: int) -> tuple[int, int]:
        if self._ends is None:
            self._ends = list(accumulate(len(FOLD[ord(it)]) for it in self._before))
        first = bisect_right(self._ends, start)
        last = bisect_right(self._ends, max(end - 1, start))
        return min(first, len(self._before)), min(last + 1, len(self._before))
