"""Rewordings: which entries of a file say in other words what a version before it said in the same place.

What comes in: a file's texts and the versions it may come from. What goes out: a number for each version. What must not be
here: what the number is for, I/O.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rapidfuzz import fuzz
from rapidfuzz.distance import LCSseq

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

ALIKE = 75.0
"""Share of letters (0 to 100, rapidfuzz ratio) from which one text is a rewording of another: a changed number or name."""
CLEARLY = 10.0
"""By this much more than to anything else in its file, where similar texts are all that speaks for a rewording."""


class Rewordings:
    """The texts of a file, what each of them may reword, and which are ``new``: no version has them."""

    def __init__(self, texts: Sequence[str], new: Container[str]) -> None:
        self._texts = texts
        self._new = new
        self._likeness: dict[tuple[str, str], float] = {}
        self._elsewhere: dict[str, float] = {}

    def __repr__(self) -> str:
        return f"<Rewordings among {len(self._texts)} texts>"

    def count(self, old: Sequence[str], *, clearly: bool = False) -> int:
        """How many texts reword one of ``old`` that they stand in place of: between the same texts, in order.

        ``clearly``: only new ones, and none that resembles another in its own file about as much; it is of the same kind.
        """
        known = frozenset(old)
        other = {text for text in self._texts if text not in known and (not clearly or text in self._new)}
        if not other:
            return 0
        number: dict[str, int] = {}
        file = self._texts
        one, two = ([number.setdefault(text, len(number)) for text in side] for side in (old, file))
        same = [
            (part.src_start + at, part.dest_start + at)
            for part in LCSseq.opcodes(one, two)
            if part.tag == "equal"
            for at in range(part.src_end - part.src_start)
        ]
        borders = [(-1, -1), *same, (len(old), len(file))]
        return sum(
            self._most_pairs(old[left + 1 : right], [text for text in file[low + 1 : high] if text in other], clearly)
            for (left, low), (right, high) in pairwise(borders)
        )

    def _most_pairs(self, old: Sequence[str], new: Sequence[str], clearly: bool) -> int:
        """The most pairs of texts that are alike, in a common order."""
        row = [0] * (len(new) + 1)
        for mine in old if new else ():
            before = 0
            for at, other in enumerate(new):
                found = max(row[at + 1], row[at], before + 1 if self._rewords(other, mine, clearly) else 0)
                before, row[at + 1] = row[at + 1], found
        return row[-1]

    def _rewords(self, new: str, old: str, clearly: bool) -> bool:
        least = max(ALIKE, self._like_elsewhere(new) + CLEARLY) if clearly else ALIKE
        return self._like(new, old) >= least

    def _like_elsewhere(self, new: str) -> float:
        if new not in self._elsewhere:
            self._elsewhere[new] = max((self._like(new, text) for text in self._texts if text != new), default=0.0)
        return self._elsewhere[new]

    def _like(self, new: str, old: str) -> float:
        if (new, old) not in self._likeness:
            self._likeness[new, old] = fuzz.ratio(new.casefold(), old.casefold())
        return self._likeness[new, old]
