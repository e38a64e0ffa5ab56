"""Characters that nobody sees, judged by where they stand.

What comes in: the text as it was given. What goes out: spans with the id of the rule that they break. What must not be here: the
words of a text, severities.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from memd.scan.joiners import PICTOGRAPHS, allowed_joiner, is_pictograph

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

Span = tuple[str, int, int]
MOST = 32  # of each rule's findings: the text is refused or staged by then, and a person has seen enough
JUDGED = 16  # characters of one run that are looked at: a longer run has broken a rule by then


class Run(NamedTuple):
    """A stretch of invisible characters and what surrounds it."""

    text: str
    start: int
    end: int
    right_to_left: bool

    @property
    def length(self) -> int:
        """How many characters it has."""
        return self.end - self.start


EMOJI = f"{PICTOGRAPHS.pattern}[\U0001f3fb-\U0001f3ff]?+\ufe0f?+"
# A whole emoji sequence is passed over in one step; whatever is not of its form is judged mark by mark.
MARKS = re.compile(
    rf"({EMOJI}(?:\u200d{EMOJI})++)|"
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ufe00-\ufe0f"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
RIGHT_TO_LEFT = re.compile(
    "[\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
FLAG = re.compile("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{2,8}\U000e007f")
# Scripts that are written without blanks, where U+200B marks where a line may break.
UNSPACED = re.compile("[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
SELECTED = re.compile("[\u0023\u002a\u0030-\u0039\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff]")
IDEOGRAPHS = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U000323af\u1000-\u109f\ua840-\ua87f\u1820-\u18aa]")


def invisible(text: str) -> Iterator[Span]:
    """Each run of invisible characters that has no business where it stands, the first ``MOST`` of each rule."""
    right_to_left = RIGHT_TO_LEFT.search(text) is not None
    flags = {it.start() + 1: it.end() for it in FLAG.finditer(text)}
    counts: Counter[str] = Counter()
    for found in MARKS.finditer(text):
        start, end = found.span()
        if found[1] or flags.get(start, 0) >= end:
            continue
        run = Run(text, start, end, right_to_left)
        for rule in _broken(run):
            counts[rule] += 1
            if counts[rule] <= MOST:
                yield rule, start, end


def _broken(run: Run) -> Collection[str]:
    """The rules that the run breaks, in order."""
    if run.end - run.start == 1:
        rule = _judge(run, run.start)
        return (rule,) if rule else ()
    return sorted({rule for at in range(run.start, min(run.end, run.start + JUDGED)) if (rule := _judge(run, at))})


def _judge(run: Run, at: int) -> str | None:
    """The rule that the character at this place breaks, within its run."""
    judge = _kind(run.text[at])
    return judge(run, at) if judge else "invisible.zero-width"


@cache
def _kind(char: str) -> Callable[[Run, int], str | None] | None:
    """Who judges this character; there are some hundreds of them."""
    return next((judge for pattern, judge in KINDS if pattern.match(char)), None)


def _control(_run: Run, _at: int) -> str | None:
    return "invisible.control"


def _separator(_run: Run, _at: int) -> str | None:
    return "invisible.separator"


def _override(_run: Run, _at: int) -> str | None:
    return "invisible.bidi-override"


def _isolate(run: Run, _at: int) -> str | None:
    """Isolates set a name of one direction into text of the other; in text of one direction they reorder what is read."""
    return None if run.right_to_left else "invisible.bidi-override"


def _mark(run: Run, _at: int) -> str | None:
    return None if run.right_to_left and run.length <= 2 else "invisible.bidi-mark"


def _joiner(run: Run, at: int) -> str | None:
    return None if allowed_joiner(run.text, at) else "invisible.joiner"


def _selector(run: Run, at: int) -> str | None:
    if run.length > 1 and sum(map(is_selector, run.text[run.start : min(run.end, run.start + JUDGED)])) > 1:
        return "invisible.variation-selectors"
    text, before = run.text, run.text[at - 1 : at]
    if IDEOGRAPHS.match(before) or (text[at] <= "\ufe0f" and (SELECTED.match(before) or is_pictograph(before))):
        return None
    standard = text[at] <= "\ufe02" and before and unicodedata.category(before)[0] == "S"
    return None if standard else "invisible.zero-width"


def _tag(_run: Run, _at: int) -> str | None:
    return "invisible.tags"


def _soft_hyphen(run: Run, _at: int) -> str | None:
    return None if run.length == 1 else "invisible.zero-width"


def _line_break_chance(run: Run, at: int) -> str | None:
    beside = run.text[max(at - 1, 0) : at] + run.text[at + 1 : at + 2]
    return None if run.length == 1 and UNSPACED.search(beside) else "invisible.zero-width"


def _byte_order_mark(run: Run, at: int) -> str | None:
    return None if at == 0 and run.length == 1 else "invisible.zero-width"


def _grapheme_joiner(run: Run, at: int) -> str | None:
    """It orders Hebrew points; between Latin letters it hides them from a search."""
    return None if run.right_to_left and run.length == 1 and at else "invisible.zero-width"


def is_selector(char: str) -> bool:
    """Whether it is one of the 256 variation selectors."""
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


KINDS: tuple[tuple[re.Pattern[str], Callable[[Run, int], str | None]], ...] = (
    (re.compile("[\u200c\u200d]"), _joiner),
    (re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]"), _selector),
    (re.compile("[\u200e\u200f\u061c\u202a\u202b\u202c]"), _mark),
    (re.compile("[\u202d\u202e]"), _override),
    (re.compile("[\u2066-\u2069]"), _isolate),
    (re.compile("[\U000e0000-\U000e007f]"), _tag),
    (re.compile("[\x00-\x1f\x7f-\x9f]"), _control),
    (re.compile("[\u2028\u2029]"), _separator),
    (re.compile("\u00ad"), _soft_hyphen),
    (re.compile("\u200b"), _line_break_chance),
    (re.compile("\ufeff"), _byte_order_mark),
    (re.compile("\u034f"), _grapheme_joiner),
)
