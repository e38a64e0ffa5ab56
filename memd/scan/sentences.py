"""Where a sentence ends: the reach of most rules.

What comes in: a folded text. What goes out: spans that cover it. What must not be here: rules.

A line break alone ends no sentence, since lines are wrapped, unless the line is a whole of its own: it ends in a stop, an empty line
or a list mark follows. Of lines with a word or two each, not even an empty one counts.
"""

from __future__ import annotations

import re

END = re.compile(
    r"[.!?。！？][\"')\]»”」]*(?=\s|$|<)"  # a stop, with what closes after it
    r"|[。！？]|\n(?=[ \t]*(?:[-*+•#>|§]|\d{1,3}[.)])[ \t])|\n[ \t\r]*\n"
)


def sentences(text: str) -> list[tuple[int, int]]:
    """Spans of the sentences, in order; together they are the whole text."""
    spans, start = [], 0
    for found in END.finditer(text):
        end = found.end()
        if found[0][0] == "\n" and _among_short_lines(text, found):
            continue
        if end > start:
            spans.append((start, end))
            start = end
    if start < len(text) or not spans:
        spans.append((start, len(text)))
    return spans


def _among_short_lines(text: str, found: re.Match[str]) -> bool:
    """Whether the lines on both sides have two words at most, as when somebody breaks the line after each word."""
    before = text[max(0, found.start() - 40) : found.start()].rsplit("\n", 1)[-1]
    after = text[found.end() : found.end() + 40].lstrip("\n").split("\n", 1)[0]
    return len(before.split()) <= 2 and len(after.split()) <= 2 and len(before) < 40 and len(after) < 40
