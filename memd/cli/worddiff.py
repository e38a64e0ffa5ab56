"""The difference of two texts, word by word.

What comes in: two texts. What goes out: runs of words that stay, go or come. What must not be here: colour, entries.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

# Words with the blanks after them; a run of Chinese or Japanese is one character a word, as it has no blanks.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|\w+\s*|[^\w\s]\s*|\s+")

MOST = 9_000_000
"""Words of the one times words of the other: comparing more takes seconds, as it grows with the square."""

Kind = Literal["same", "old", "new"]


class Run(NamedTuple):
    """Words that stay, go or come."""

    kind: Kind
    text: str


def word_diff(before: str, after: str) -> Iterator[Run]:
    """The runs that lead from ``before`` to ``after``; without the new ones they are ``before``, and conversely."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    if len(old) * len(new) > MOST:
        yield from _ends(old, new)
        return
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            yield Run("same", "".join(old[i1:i2]))
            continue
        if i1 < i2:
            yield Run("old", "".join(old[i1:i2]))
        if j1 < j2:
            yield Run("new", "".join(new[j1:j2]))


def _ends(old: list[str], new: list[str]) -> Iterator[Run]:
    """A coarse difference: what is common at both ends stays, all between goes and comes."""
    most = min(len(old), len(new))
    head = next((at for at in range(most) if old[at] != new[at]), most)
    tail = next((at for at in range(most - head) if old[-1 - at] != new[-1 - at]), most - head)
    yield from (
        run
        for run in (
            Run("same", "".join(old[:head])),
            Run("old", "".join(old[head : len(old) - tail])),
            Run("new", "".join(new[head : len(new) - tail])),
            Run("same", "".join(old[len(old) - tail :])),
        )
        if run.text
    )
