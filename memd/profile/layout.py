"""Documents with an entry put in, exchanged or taken out; everything else stays byte for byte.

What comes in: a document and the entries it should have. What goes out: a document whose rendering parses to exactly
those entries. What must not be here: limits, matching, meaning.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memd.profile.entries import BOM, BORDER, Document, Entry, is_border, strip_outer

if TYPE_CHECKING:
    from collections.abc import Sequence

_NEWLINE = re.compile(r"\r\n|\r|\n")


def in_style(text: str, newline: str) -> str:
    """A logical text as raw text with the file's newlines."""
    return text if newline == "\n" else text.replace("\n", newline)


def border_gap(newline: str) -> str:
    """What stands between two entries that memd put beside each other."""
    return f"{newline}{BORDER}{newline}"


def insert(document: Document, index: int, entry: Entry) -> Document:
    """Put an entry in before the one at ``index``; at the end it goes before the tail."""
    entries, gaps = document.entries, document.gaps
    if not entries:
        return replace(document, head=_opened(document), entries=(entry,), tail=document.newline)
    gap = border_gap(document.newline)
    where = min(index, len(gaps))
    return replace(
        document,
        entries=(*entries[:index], entry, *entries[index:]),
        gaps=(*gaps[:where], gap, *gaps[where:]),
    )


def exchange(document: Document, index: int, entry: Entry) -> Document:
    """Put an entry in the place of another."""
    entries = document.entries
    return replace(document, entries=(*entries[:index], entry, *entries[index + 1 :]))


def delete(document: Document, index: int) -> Document:
    """Take an entry out together with the gap behind it (before it, for the last one)."""
    entries, gaps = document.entries, document.gaps
    if len(entries) == 1:
        return _emptied(document)
    where = min(index, len(gaps) - 1)
    return replace(
        document,
        entries=(*entries[:index], *entries[index + 1 :]),
        gaps=(*gaps[:where], *gaps[where + 1 :]),
    )


def arrange(layout: Document, entries: Sequence[Entry], also: Document | None = None) -> Document:
    """A document of these entries in the layout of another: its head, its tail and the gaps it has between the same two.

    Entries are recognised by id. Gaps that ``layout`` does not have come from ``also``, or are new. A gap of ``layout``
    without a border (see ``merge.split_appended``) is not taken.
    """
    if not entries:
        return _emptied(layout)
    if not layout.entries:
        head, tail = _opened(layout), layout.newline
    else:
        head, tail = layout.head, layout.tail
    known = {**(_gaps_by_neighbours(also) if also else {}), **_gaps_by_neighbours(layout)}
    fresh = border_gap(layout.newline)
    gaps = tuple(known.get((one.id, two.id), fresh) for one, two in pairwise(entries))
    return replace(layout, head=head, entries=tuple(entries), gaps=gaps, tail=tail)


def _gaps_by_neighbours(document: Document) -> dict[tuple[str, str], str]:
    entries = document.entries
    return {
        (entries[index].id, entries[index + 1].id): gap
        for index, gap in enumerate(document.gaps)
        if entries[index].id and _separates(gap)
    }


def _separates(gap: str) -> bool:
    """True if a border stands on a line of its own in the gap, and nothing would join the entries on either side."""
    first, *lines = _NEWLINE.split(gap)
    return any(map(is_border, lines[:-1])) and not strip_outer(first + lines[-1])


def _opened(document: Document) -> str:
    """The head of a document without entries, such that an entry can follow: a border has to end its line."""
    head = document.head
    last_line = head[max(head.rfind("\n"), head.rfind("\r")) + 1 :]
    return head + document.newline if strip_outer(last_line) else head


def _emptied(document: Document) -> Document:
    """Nothing but the byte-order mark, if there was one."""
    return Document(head=BOM if document.head.startswith(BOM) else "", newline=document.newline)
