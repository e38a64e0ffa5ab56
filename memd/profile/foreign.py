"""Markdown that was never a memory file: recognised, guarded, and split for import.

What comes in: documents, entries, text. What goes out: yes or no, or the pieces. What must not be here: file access,
the decision to import.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from memd.profile.entries import has_border

if TYPE_CHECKING:
    from memd.profile.entries import Document, Entry

SEVERAL = 2
"""From this many headings and list items on, a text without borders is a document rather than a note."""

_HEADING = re.compile(r"\s{0,3}(#{1,6})\s+(.*?)(?:\s+#+)?\s*\Z")
_ITEM = re.compile(r"(\s*)(?:[-*+]|\d{1,9}[.)])\s+(\S.*)\Z", re.DOTALL)
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")


def is_foreign(document: Document) -> bool:
    """True for a Markdown file that others wrote: no border at all, several headings or list items."""
    if len(document.entries) != 1 or has_border(document):
        return False
    entry = document.entries[0]
    return entry.origin in {"", "outside"} and _structured(entry.text)


def foreign_entry(entry: Entry) -> bool:
    """True for an entry that is such a file taken in whole."""
    return entry.origin == "outside" and _structured(entry.text)


def conflict_markers(text: str) -> bool:
    """True if the text holds an unresolved conflict as Git leaves it in a file."""
    if "<<<<<<<" not in text:
        return False
    waiting = ["<<<<<<<", "=======", ">>>>>>>"]
    for line in text.splitlines():
        if waiting and line.startswith(waiting[0]):
            waiting.pop(0)
    return not waiting


def split_foreign(text: str) -> list[str]:
    """The entries for a foreign text: one for each list item, and one for each heading's or paragraph's own text.

    Nested items stay with their item, fenced code with what it follows. A heading that has no text of its own goes
    before each of its items (``Heading: item``), except a title, the first and only heading of the file, which names
    the file and not the facts.
    """
    blocks = _blocks(text)
    headings = sum(1 for kind, _ in blocks if kind == "heading")
    pieces: list[str] = []
    context = ""
    for index, (kind, content) in enumerate(blocks):
        if kind != "heading":
            joiner = ": " if kind == "item" else "\n"
            pieces.append(f"{context}{joiner}{content}" if context else content)
            context = context if kind == "item" else ""
            continue
        context = "" if headings == 1 and index == 0 and len(blocks) > 1 else content
        alone = index + 1 == len(blocks) or blocks[index + 1][0] == "heading"
        if alone:
            pieces.append(content)
    return pieces


def _structured(text: str) -> bool:
    """True if the text has several headings or list items outside of fenced code."""
    found = 0
    fence = ""
    for line in text.split("\n"):
        fence, inside = _fenced(line, fence)
        if not inside and (_HEADING.match(line) or _ITEM.match(line)):
            found += 1
            if found >= SEVERAL:
                return True
    return False


def _fenced(line: str, fence: str) -> tuple[str, bool]:
    """The fence that is open after the line (``""``: none), and whether the line is code or a fence itself."""
    match = _FENCE.match(line)
    if fence:
        closed = match is not None and match.group(1).startswith(fence)
        return ("" if closed else fence), True
    return (match.group(1), True) if match else ("", False)


def _blocks(text: str) -> list[tuple[str, str]]:
    """The text as (kind, content) pairs; kind is heading, item or text."""
    found: list[tuple[str, list[str]]] = []
    fence = ""
    for line in text.split("\n"):
        fence, inside = _fenced(line, fence)
        heading = None if inside else _HEADING.match(line)
        item = None if inside else _ITEM.match(line)
        if heading:
            found.append(("heading", [heading.group(2)]))
        elif item and not (item.group(1) and found and found[-1][0] == "item"):
            found.append(("item", [item.group(2)]))
        elif not found or _starts_text(found[-1], line, inside=inside):
            found.append(("text", [line]))
        else:
            found[-1][1].append(line)
    stripped = [(kind, "\n".join(lines).strip()) for kind, lines in found]
    return [(kind, content) for kind, content in stripped if content]


def _starts_text(block: tuple[str, list[str]], line: str, *, inside: bool) -> bool:
    """True if the line begins a paragraph of its own rather than going on with the block."""
    kind, lines = block
    if kind == "heading":
        return True
    after_blank = not lines[-1].strip() and bool(line.strip())
    return kind == "item" and after_blank and not inside and not line[:1].isspace()
