"""The labelled dialogues, and how well a reviewer does on them.

What comes in: ``tests/data/dialogues``, a function from a person's turn to what is kept of it. What goes out: counts by language. What
must not be here: phrases, thresholds.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

DIALOGUES = Path(__file__).resolve().parents[1] / "data" / "dialogues"
Half = Literal["rules", "report"]
Kept = tuple[str, str]
"""A store and a text."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn. ``target`` is ``-`` where nothing is to be kept."""

    lang: str
    dialogue: str
    role: str
    target: str
    words: tuple[str, ...]
    text: str


@dataclass(slots=True)
class Score:
    """``hits`` of ``wanted`` were found; ``wrong`` is what was kept beside."""

    wanted: int = 0
    hits: int = 0
    wrong: int = 0

    @property
    def precision(self) -> float:
        """Of what was kept, the share that is right."""
        return self.hits / (self.hits + self.wrong) if self.hits + self.wrong else 1.0

    @property
    def recall(self) -> float:
        """Of what was to be kept, the share that is."""
        return self.hits / self.wanted if self.wanted else 1.0


def turns(half: Half) -> Iterator[Turn]:
    """All turns of one half, language by language."""
    for path in sorted((DIALOGUES / half).glob("*.tsv")):
        for line in path.read_text(encoding="utf-8").splitlines():
            dialogue, role, target, words, text = line.split("\t")
            yield Turn(path.stem, dialogue, role, target, tuple(filter(None, words.split(";"))), text)


def scores(every: Iterable[Turn], keep: Callable[[Turn], list[Kept]]) -> dict[str, Score]:
    """By language, and ``all``."""
    found: dict[str, Score] = defaultdict(Score)
    for turn in every:
        kept = keep(turn)
        hit = any(fits(turn, one) for one in kept)
        for name in (turn.lang, "all"):
            found[name].wanted += turn.target != "-"
            found[name].hits += hit
            found[name].wrong += len(kept) - hit
    return dict(found)


def fits(turn: Turn, kept: Kept) -> bool:
    """Whether this is what is to be kept of the turn."""
    target, text = kept
    return turn.target == target and all(word.casefold() in text.casefold() for word in turn.words)
