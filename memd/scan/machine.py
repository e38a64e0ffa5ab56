"""The rules compiled: one automaton that knows every concept, every sign of a disguise and every hint of a secret.

What comes in: a rule book, texts in lower case. What goes out: what of all that occurs in them. What must not be here: findings.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from memd.scan import automaton

if TYPE_CHECKING:
    from memd.scan.rules import Pattern, Rule, RuleBook, Shape

# Signs of a disguise; each leads to the reading that undoes it.
TRIGGERS = {
    "control": r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]",
    # Two words near each other in which signs and digits stand among letters.
    "leet": r"\b[4@31!05$7]?[a-z]+[4@31!05$7]+[a-z]+[a-z4@31!05$7]*\s+[^\s]*[4@310$7!5]",
    "wrapped": r"[*`~]|%[0-9a-f]{2}|&#?\w+;|</?[a-z][^<>]*>|<!--|(?:^|[^a-z0-9])_|_(?:$|[^a-z0-9])",
    "joined": r"(?:^|\s)\S[ \t]\S[ \t]\S(?:\s|$)"
    r"|(?:^|[^\pL\pN])\pL[-._·•*|/~+]\pL(?:[-._·•*|/~+]\pL)*(?:$|[^\pL\pN])"
    r"|[\p{Han}\p{Hiragana}\p{Katakana}][ \t][\p{Han}\p{Hiragana}\p{Katakana}]",
    "encoded": r"[a-z0-9+/_-]{16}|(?:[0-9a-f]{2}[ :]){11}|(?:\\x[0-9a-f]{2}){4}",
}


class Hits(NamedTuple):
    """What occurs in a text."""

    concepts: frozenset[str]
    triggers: frozenset[str]
    shapes: tuple[tuple[Rule, Shape], ...]


class Machine:
    """A rule book, compiled; it keeps nothing of the texts, so that threads can share it."""

    def __init__(self, book: RuleBook) -> None:
        self.book = book
        self._names = list(book.concepts)
        self._triggers = list(TRIGGERS)
        self._shapes = [(rule, it) for rule in book.rules.values() for it in rule.shapes]
        hints = (it.hint for _, it in self._shapes)
        self._set = automaton.PatternSet([*book.concepts.values(), *TRIGGERS.values(), *hints])

    def __repr__(self) -> str:
        return f"<Machine {self.book.version}>"

    def hits(self, low: str) -> Hits:
        """Everything that occurs in the text; one pass."""
        found = self._set.match(low)
        first, after = len(self._names), len(self._names) + len(self._triggers)
        return Hits(
            frozenset([self._names[it] for it in found if it < first]),
            frozenset([self._triggers[it - first] for it in found if first <= it < after]),
            tuple([self._shapes[it - after] for it in found if it >= after]),
        )

    def patterns(self, concepts: frozenset[str]) -> list[tuple[Rule, Pattern]]:
        """The patterns whose concepts are all among these; whether one is absent that must be is not looked at."""
        by_key = self.book.by_key
        return [
            pair
            for name in concepts
            if name in by_key
            for pair in by_key[name]
            if concepts.issuperset(pair[1].concepts)
        ]

    def place(self, concept: str, low: str, at: int) -> tuple[int, int] | None:
        """Where the concept stands, at or behind this place."""
        return compiled(self.book.concepts[concept]).first(low, at)


@cache
def machine(book: RuleBook) -> Machine:
    """The compiled book; made once."""
    return Machine(book)


@cache
def compiled(source: str) -> automaton.Pattern:
    """Compiled at its first use, and kept: there are as many as the rules have."""
    return automaton.Pattern(source)
