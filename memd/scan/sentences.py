"""Where a sentence ends: the reach of most rules.

What comes in: a folded text. What goes out: spans that cover it. What must not be here: rules.

Lines are wrapped, so a line break ends no sentence if a small letter follows; of lines with a few words each, not even an empty
line does.
"""

from __future__ import annotations

import re

END = re.compile(
    r"[.!?。！？][\"')\]»”」]*(?=\s|$|<)"  # a stop, with what closes after it
    r"|[。！？]|\n[ \t\r]*\n|\n"
)
LIST_MARK = re.compile(r"[ \t]*(?:[-*+•#>|§]|\d{1,3}[.)])[ \t]")
FEW_WORDS, FEW_CHARS = 4, 40
WRAPPED = 50  # characters of a line from which on it may have been wrapped


def sentences(text: str) -> list[tuple[int, int]]:
    """Spans of the sentences, in order; together they are the whole text. Upper and lower case are told apart."""
    spans, start = [], 0
    for found in END.finditer(text):
        end = found.end()
        if found[0][0] == "\n" and _goes_on(text, found):
            continue
        if end > start:
            spans.append((start, end))
            start = end
    if start < len(text) or not spans:
        spans.append((start, len(text)))
    return spans


def _goes_on(text: str, found: re.Match[str]) -> bool:
    """Whether the line break is amid a sentence: a long line goes on in small letters, or both lines have few words."""
    before = text[max(0, found.start() - WRAPPED) : found.start()].rsplit("\n", 1)[-1]
    ahead = text[found.end() : found.end() + WRAPPED].lstrip()
    if found[0] == "\n" and len(before) == WRAPPED and ahead[:1].islower():
        return True
    if LIST_MARK.match(text, found.end()):
        return False
    after = ahead.split("\n", 1)[0]
    return all(len(it.split()) <= FEW_WORDS and len(it) < FEW_CHARS for it in (before, after))


def belong_together(text: str, first: tuple[int, int]) -> bool:
    """Whether the sentence and the next one are of one thought: on one line, or below a heading."""
    start, end = first
    return text[end - 1 : end] != "\n" or end - start < FEW_CHARS
