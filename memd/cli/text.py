"""Text for a terminal: safe, measured, wrapped, and small pictures of numbers.

What comes in: strings and numbers. What goes out: strings. What must not be here: colour, streams, the wire.
"""

from __future__ import annotations

import unicodedata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


# An entry may hold anything: shown raw, it could move the cursor, recolour the screen, swap what is read, or hide some of it.
# Controls but for tab and newline, marks of direction, separators of lines, and what is Default_Ignorable_Code_Point in Unicode's
# DerivedCoreProperties.txt; joiners and the first selectors stay: emoji and scripts need them.
_HIDDEN = (
    (0x00, 0x08), (0x0B, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5),
    (0x180B, 0x180F), (0x200B, 0x200B), (0x200E, 0x200F), (0x2028, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip


class _Visible(dict[int, "int | str"]):
    """A table for ``str.translate``, which fills itself with the characters that it is asked for."""

    def __missing__(self, code: int) -> int | str:
        found = self[code] = self.escape(code) if any(first <= code <= last for first, last in _HIDDEN) else code
        return found

    def escape(self, code: int) -> str:
        """As Python writes it."""
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class _InJson(_Visible):
    """The same for a text that is JSON: its newlines are between values, and all below U+0020 is escaped already."""

    def escape(self, code: int) -> str:
        """As JSON writes it in ASCII: beyond the first plane as two surrogates."""
        units = chr(code).encode("utf-16-be")
        return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))


_VISIBLE, _IN_JSON = _Visible(), _InJson()

_AGES = ((365 * 86400, "y"), (86400, "d"), (3600, "h"), (60, "m"))


def safe(text: str) -> str:
    """The text with everything that would act on a terminal made visible; newlines and tabs stay."""
    return text.translate(_VISIBLE)


def as_json(value: Any, indent: int | None = None) -> str:
    """A value as JSON that may be shown on a terminal: the same to whoever parses it."""
    import json  # noqa: PLC0415 - only where it was asked for

    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return text.translate(_IN_JSON)


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
