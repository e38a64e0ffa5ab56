"""Text for a terminal: safe, measured, wrapped, and small pictures of numbers.

What comes in: strings and numbers. What goes out: strings. What must not be here: colour, streams, the wire.
"""

from __future__ import annotations

import unicodedata

_CONTROLS = [*(c for c in range(0x20) if c not in (0x09, 0x0A)), *range(0x7F, 0xA0)]
_DIRECTIONS = [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x2070)]
_LINES = [0x2028, 0x2029]
# Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties.txt; joiners and the first selectors stay: emoji and scripts need them.
_UNSEEN = [
    0xAD,
    0x034F,
    0x115F,
    0x1160,
    0x17B4,
    0x17B5,
    *range(0x180B, 0x1810),
    0x200B,
    *range(0x2060, 0x2066),
    0x3164,
    0xFEFF,
    0xFFA0,
]
_UNSEEN += [*range(0xFFF0, 0xFFFC), *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B), *range(0xE0000, 0xE1000)]
# An entry may hold anything: shown raw, it could move the cursor, recolour the screen, swap what is read, or hide some of it.
_VISIBLE = {
    **{c: f"\\x{c:02x}" for c in _CONTROLS},
    **{c: f"\\u{c:04x}" if c < 0x10000 else f"\\U{c:08x}" for c in (*_DIRECTIONS, *_LINES, *_UNSEEN)},
}

_AGES = ((365 * 86400, "y"), (86400, "d"), (3600, "h"), (60, "m"))


def safe(text: str) -> str:
    """The text with everything that would act on a terminal made visible; newlines and tabs stay."""
    return text.translate(_VISIBLE)


def one_line(text: str) -> str:
    """The text, safe, on one line: what others wrote cannot pass for a line of ours."""
    return " ".join(safe(text).split())


def cells(text: str) -> int:
    """How many columns a terminal needs for a text of one line."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)


def cut(text: str, width: int) -> str:
    """The text on one line of at most ``width`` columns, with an ellipsis if something is left out."""
    line = one_line(text)
    if cells(line) <= width:
        return line
    while line and cells(line) > width - 1:
        line = line[: min(len(line) - 1, width - 1)]
    return line.rstrip() + "…"


def wrap(text: str, width: int) -> list[str]:
    """The text in lines of at most ``width`` columns, broken at blanks where there are any. Newlines stay."""
    return [line for paragraph in safe(text).split("\n") for line in _wrapped(paragraph, max(width, 8))]


def _wrapped(paragraph: str, width: int) -> list[str]:
    lines, line = [], ""
    for word in paragraph.split(" "):
        rest = word
        while rest:
            joined = f"{line} {rest}" if line else rest
            if cells(joined) <= width:
                line, rest = joined, ""
            elif line:
                lines.append(line)
                line = ""
            else:
                fits = prefix(rest, width)
                lines.append(rest[:fits])
                rest = rest[fits:]
    return [*lines, line] if line or not lines else lines


def prefix(word: str, width: int) -> int:
    """How many characters of a word that is too wide fit into ``width`` columns; at least one."""
    count = used = 0
    for char in word:
        used += cells(char)
        if used > width:
            break
        count += 1
    return max(count, 1)


def age(us: int, now_us: int) -> str:
    """How long ago, in one number: ``now``, ``5m``, ``3h``, ``12d``, ``2y``."""
    seconds = max(0, now_us - us) // 1_000_000
    for length, unit in _AGES:
        if seconds >= length:
            return f"{seconds // length}{unit}"
    return "now"


def bar(percent: int, width: int = 10, *, marks: str = "█░") -> str:
    """A usage bar. A store that holds anything shows at least one mark, and only a full one shows all of them."""
    filled = min(percent, 100) * width // 100
    filled = max(filled, 1 if percent > 0 else 0)
    return marks[0] * filled + marks[1] * (width - filled)


def quoted(text: str) -> str:
    """The text as one word of a shell's command line."""
    plain = text and all(char.isalnum() or char in "-_./:@" for char in text)
    return text if plain else "'" + safe(text).replace("'", "'\\''") + "'"


def plural(count: int, noun: str) -> str:
    """``1 entry``, ``2 entries``."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun[:-1]}ies" if noun.endswith("y") else f"{count:,} {noun}s"
