"""Regular expressions in linear time: the part of google-re2 that the scan uses, with types.

What comes in: patterns, texts without lone surrogates. What goes out: which patterns occur, and spans. What must not be here:
rules, folding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import re2

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MEMORY = 64 << 20  # RE2 falls back to a slower machine when its automaton outgrows this; ours takes a few MiB


def _options() -> Any:
    options = re2.Options()
    options.max_mem = MEMORY
    options.log_errors = False  # an error is raised, and needs no line on stderr
    return options


class Pattern:
    """One compiled pattern."""

    __slots__ = ("_compiled", "_grouped", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        self._compiled = re2.compile(source, _options())
        self._grouped = self._compiled.groups > 0

    def __repr__(self) -> str:
        return f"<Pattern {self.source[:40]!r}>"

    def first(self, text: str, at: int = 0) -> tuple[int, int] | None:
        """Start and end of the first match that starts at this place or behind it."""
        found = self._compiled.search(text, at)
        return found.span() if found else None

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Start and end of each match, from left to right, never overlapping."""
        for found in self._compiled.finditer(text):
            yield found.span()

    def groups(self, text: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """For each match its span and the span of its first group, (-1, -1) if that took no part."""
        for found in self._compiled.finditer(text):
            yield found.span(), found.span(1) if self._grouped else (-1, -1)

    def all_groups(self, text: str) -> Iterator[list[tuple[int, int]]]:
        """For each match its span, and those of all its groups; (-1, -1) for one that took no part."""
        for found in self._compiled.finditer(text):
            yield [found.span(at) for at in range(self._compiled.groups + 1)]


class PatternSet:
    """Many patterns at once: one pass over the text tells which of them occur anywhere in it."""

    __slots__ = ("_set", "_sources")

    def __init__(self, sources: Sequence[str]) -> None:
        self._sources = list(sources)
        self._set = re2.Set.SearchSet(_options())
        for it in sources:
            self._set.Add(it)
        self._set.Add("")  # matches whatever the text: a pass that says nothing has run out of memory
        self._set.Compile()

    def __repr__(self) -> str:
        return f"<PatternSet of {len(self._sources)}>"

    def match(self, text: str) -> list[int]:
        """The positions of the patterns that occur, in order."""
        found: list[int] | None = self._set.Match(text)
        if found is None:  # slower, still linear: each pattern alone
            return [n for n, it in enumerate(self._sources) if Pattern(it).first(text) is not None]
        return sorted(it for it in found if it < len(self._sources))
