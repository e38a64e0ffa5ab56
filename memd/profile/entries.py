"""Entries and documents: the bytes of a memory file as values, and back again without losing one.

What comes in: the bytes of ``MEMORY.md`` or ``USER.md``. What goes out: a ``Document`` of ``Entry`` values whose
rendering is those bytes, untouched entries and borders byte for byte. What must not be here: I/O, clocks, limits.

The format is generous: UTF-8 with or without BOM, LF, CRLF and CR mixed, blank lines around borders, borders at the
file's ends, a final newline or none. A border is a line that holds ``§`` alone. Everything that is not an entry's own
text (borders, blank lines, outer blanks, the BOM) lives in the gaps around it and is kept as it is.

Bytes that are not UTF-8 are carried as lone surrogates U+DC80–U+DCFF (PEP 383), so that a document is one ``str`` and
encoding it gives the same bytes back.
"""

from __future__ import annotations

import hashlib
import re

from msgspec import Struct

BOM = "\ufeff"
BORDER = "§"
COUNTED_BORDER = "\n§\n"
"""What joins entries in the counted text, whatever the file uses."""

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_NEWLINE = re.compile(r"\r\n|\r|\n")
_ESCAPED = re.compile("[\udc80-\udcff]")


class Entry(Struct, frozen=True):
    """One entry of a store.

    ``raw`` is its text as the file has it, without outer blanks; ``text`` is ``raw`` with every newline as LF.
    ``id`` is ``""`` while an entry has just been parsed and belongs to no store yet.
    Times are microseconds since the epoch.
    """

    raw: str
    text: str
    id: str = ""
    created_us: int = 0
    updated_us: int = 0
    origin: str = ""

    @property
    def undecodable(self) -> bool:
        """True if the entry holds bytes that are not UTF-8: shown, never injected."""
        return not self.raw.isascii() and _ESCAPED.search(self.raw) is not None

    @property
    def shown(self) -> str:
        """The text as people and clients see it: undecodable bytes as U+FFFD."""
        return self.text if self.text.isascii() else _ESCAPED.sub("\ufffd", self.text)

    @property
    def chars(self) -> int:
        """Length in Unicode code points."""
        return len(self.text)

    @property
    def hash(self) -> str:
        """SHA-256 of the shown text in UTF-8, as 64 hex digits."""
        return hashlib.sha256(self.shown.encode()).hexdigest()


class Document(Struct, frozen=True):
    """A store's file as a value: ``head entry gap entry gap … entry tail``.

    ``gaps`` has one item less than ``entries``. Without entries everything is in ``head``. ``newline`` is the style
    that new text follows.
    """

    head: str = ""
    entries: tuple[Entry, ...] = ()
    gaps: tuple[str, ...] = ()
    tail: str = ""
    newline: str = "\n"

    @property
    def counted(self) -> str:
        """The text that is measured against the limit: entries joined by LF, ``§``, LF, whatever the file uses."""
        return COUNTED_BORDER.join([entry.text for entry in self.entries])

    @property
    def chars(self) -> int:
        """Length of the counted text in code points."""
        entries = self.entries
        return sum([len(entry.text) for entry in entries]) + len(COUNTED_BORDER) * max(0, len(entries) - 1)


def strip_outer(text: str) -> str:
    """The text without outer whitespace and byte-order marks: what an entry is made of."""
    previous = None
    while previous != text:
        previous = text
        text = text.strip().strip(BOM)
    return text


def is_border(line: str) -> bool:
    """True for a line that holds ``§`` alone, blanks around it or not."""
    return BORDER in line and strip_outer(line) == BORDER


def as_text(raw: str) -> str:
    """A raw entry with every newline as LF."""
    return _NEWLINE.sub("\n", raw) if "\r" in raw else raw


def make_entry(raw: str) -> Entry:
    """An entry without id from its raw text."""
    return Entry(raw=raw, text=as_text(raw))


def parse(data: bytes) -> Document:
    """Read a memory file. Never fails; ``render(parse(data)) == data`` for every input."""
    content = data.decode("utf-8", "surrogateescape")
    head, pending = "", ""
    entries: list[Entry] = []
    gaps: list[str] = []
    for segment, border in _segments(content):
        core = strip_outer(segment)
        if not core:
            pending += segment + border
            continue
        start = segment.index(core)
        pending += segment[:start]
        if entries:
            gaps.append(pending)
        else:
            head = pending
        entries.append(make_entry(core))
        pending = segment[start + len(core) :] + border
    if not entries:
        head, pending = pending, ""
    return Document(head, tuple(entries), tuple(gaps), pending, newline_style(content))


def render(document: Document) -> bytes:
    """The exact bytes of the file for this document."""
    parts = [document.head]
    for index, entry in enumerate(document.entries):
        if index:
            parts.append(document.gaps[index - 1])
        parts.append(entry.raw)
    parts.append(document.tail)
    return "".join(parts).encode("utf-8", "surrogateescape")


def newline_style(content: str) -> str:
    """The newline that new text should follow: the first one found in the content, LF if there is none."""
    match = _NEWLINE.search(content)
    return match.group() if match else "\n"


def has_border(document: Document) -> bool:
    """True if a border stands anywhere in the document."""
    return BORDER in document.head or BORDER in document.tail or any(BORDER in gap for gap in document.gaps)


def _segments(content: str) -> list[tuple[str, str]]:
    """The content as (text up to a border, border line) pairs; the last border is ``""``."""
    if BORDER not in content:
        return [(content, "")]
    found: list[tuple[str, str]] = []
    start = low = 0
    at = content.find(BORDER)
    while at >= 0:  # from sign to sign: a file may have tens of thousands of lines without
        begin = max(content.rfind("\n", low, at), content.rfind("\r", low, at), low - 1) + 1
        match = _LINE.match(content, begin)
        low = match.end() if match else len(content)
        line = content[begin:low]
        if is_border(line):
            found.append((content[start:begin], line))
            start = low
        at = content.find(BORDER, low)
    found.append((content[start:], ""))
    return found
