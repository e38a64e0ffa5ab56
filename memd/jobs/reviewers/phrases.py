"""The phrases as data: what people say when something is worth keeping, compiled.

What comes in: ``phrases.toml``. What goes out: for a sentence what it asks to keep, and in which store. What must not be here: messages,
entries, operations. Everything is matched in linear time (google-re2): a conversation is somebody else's text.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from memd.scan.automaton import Pattern

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memd.profile.values import Target

CASELESS = "(?i)"


@dataclass(frozen=True, slots=True)
class Kept:
    """A fact that a sentence says is to be kept. ``wrong``: what it says it replaces, ``""`` if nothing."""

    target: Target
    text: str
    wrong: str = ""


class Phrases:
    """Those of one language."""

    def __init__(self, raw: Mapping[str, list[str]]) -> None:
        compiled = {name: [Pattern(CASELESS + source) for source in sources] for name, sources in raw.items()}
        self._asked = compiled["asked"]
        self._told = compiled["told"]
        self._user = compiled["user"]
        self._memory = compiled["memory"]
        self._corrects = compiled["corrects"]
        self._about_user = compiled["about_user"]
        self._spoils = compiled["spoils"]
        self._spoils_all = compiled["spoils_all"]

    def spoiled(self, message: str) -> bool:
        """Whether nothing of the message is meant."""
        return _fits(self._spoils_all, message)

    def kept(self, sentence: str) -> Kept | None:
        """What the sentence says is to be kept; None if it says no such thing, or if that is doubtful."""
        if _fits(self._spoils, sentence):
            return None
        for pattern in self._corrects:
            for _, *groups in pattern.all_groups(sentence):
                fact, *wrong = [sentence[start:end] for start, end in groups if start >= 0]
                return Kept("memory", fact, wrong[0] if wrong else "")
        asked = _first_group(self._asked, sentence)
        fact = asked or _first_group(self._told, sentence)
        if fact:
            return self._pointed_out(fact, asked=bool(asked))
        if _fits(self._user, sentence):
            return Kept("user", sentence)
        return Kept("memory", sentence) if _fits(self._memory, sentence) else None

    def _pointed_out(self, fact: str, *, asked: bool) -> Kept | None:
        """Of themselves people tell what they did as well as who they are: of the former only what they ask for is kept."""
        if _fits(self._user, fact):
            return Kept("user", fact)
        if _fits(self._about_user, fact):
            return Kept("user", fact) if asked else None
        return Kept("memory", fact)


@cache
def languages() -> tuple[Phrases, ...]:
    """Those of every language; compiled at the first use."""
    raw = tomllib.loads(resources.files("memd.jobs.reviewers").joinpath("phrases.toml").read_text(encoding="utf-8"))
    return tuple(Phrases(one) for one in raw.values())


def _first_group(patterns: list[Pattern], text: str) -> str:
    """What the first pattern that fits says is meant, ``""`` if none does."""
    spans = (group for pattern in patterns for _, group in pattern.groups(text))
    start, end = next(spans, (0, 0))
    return text[start:end]


def _fits(patterns: list[Pattern], text: str) -> bool:
    return any(pattern.first(text) is not None for pattern in patterns)
