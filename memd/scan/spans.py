"""A text that was made from another one, and where each stretch of it came from.

What comes in: a text and the edits that change it. What goes out: the changed text and the way back to the code points of the
first. What must not be here: what the edits are for.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Edit(NamedTuple):
    """Replace ``start`` to ``end`` by ``text``; edits of one text are sorted and do not overlap."""

    start: int
    end: int
    text: str


class View:
    """One reading of a text. ``locate`` leads from a span of ``text`` to a span of the original."""

    __slots__ = ("_back", "_base", "low", "text")

    def __init__(
        self, text: str, base: View | None = None, back: Callable[[int, int], tuple[int, int]] | None = None
    ) -> None:
        self.text = text
        low = text if text.islower() else text.lower()
        self.low = low if len(low) == len(text) else "".join(it.lower() if len(it.lower()) == 1 else it for it in text)
        self._base = base
        self._back = back

    def __repr__(self) -> str:
        return f"<View of {len(self.text)} characters, {'derived' if self._base else 'first'}>"

    def locate(self, start: int, end: int) -> tuple[int, int]:
        """The span of the original text from which this span was made; never empty if the original is not."""
        if self._back is not None:
            start, end = self._back(start, end)
        return self._base.locate(start, end) if self._base else (start, end)

    def edited(self, edits: Iterable[Edit]) -> View:
        """The view after the edits, or itself if there is none."""
        table = _Breaks(self.text, list(edits))
        return View(table.text, self, table.back) if table.changed else self

    def over(self, outer: View) -> View:
        """This view as one of a text that came whole from a place in another: its spans are all of that place."""
        return View(self.text, outer, lambda _start, _end: (0, len(outer.text)))

    def excerpt(self, text: str, start: int, end: int) -> View:
        """A text that was decoded from the span; all of it leads back to the whole span."""
        return View(text, self, lambda _start, _end: (start, end))


class _Breaks:
    """The text after the edits, with the places where its offset against the text before changes."""

    def __init__(self, before: str, edits: list[Edit]) -> None:
        self.changed = bool(edits)
        pieces: list[str] = []
        self._after, self._before, self._copied = [0], [0], [True]
        at = done = 0
        for start, end, text in edits:
            pieces += [before[done:start], text]
            at += start - done
            self._mark(at, start, copied=False)
            at += len(text)
            self._mark(at, end, copied=True)
            done = end
        self._length, self._end = at + len(before) - done, len(before)
        self.text = "".join([*pieces, before[done:]])

    def _mark(self, after: int, before: int, *, copied: bool) -> None:
        self._after.append(after)
        self._before.append(before)
        self._copied.append(copied)

    def back(self, start: int, end: int) -> tuple[int, int]:
        first = bisect_right(self._after, start) - 1
        last = bisect_right(self._after, max(end - 1, start)) - 1
        begin = self._before[first] + (start - self._after[first] if self._copied[first] else 0)
        if self._copied[last]:
            return begin, max(begin, self._before[last] + end - self._after[last])
        after = self._before[last + 1] if last + 1 < len(self._before) else self._end
        return begin, max(begin, after)
