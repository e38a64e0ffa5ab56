"""Which entry a caller means: by id, by its text, by a part of it, or by nearly its text.

What comes in: a document and what the caller said. What goes out: a ``Match``, or an error that shows what there is.
What must not be here: changing anything.

The order is fixed: the exact whole entry; a substring; and for verbs that act on whole entries, if nothing matched, the
same two after folding (NFC, typographic quotes and dashes, runs of blanks). Among identical entries the first is meant;
several distinct ones are ambiguous.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rapidfuzz import fuzz, process

from memd.errors import AmbiguousMatch, NotFound
from memd.profile.content import display
from memd.profile.foreign import foreign_entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memd.profile.entries import Document, Entry

NEAREST = 3
PREVIEW = 240
"""Characters of a long entry that an error shows: enough to recognise it, and 40 of them still fit a prompt."""
COMPARED = 4_000
"""Characters of an entry that are compared when looking for the nearest, which bounds the time on the event loop."""

_REPLACEMENT = "\ufffd"
_TYPOGRAPHY = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u02bc\u2032\u2039\u203a", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    }
)


@dataclass(frozen=True, slots=True)
class Match:
    """The entry that was meant.

    ``indices`` are those of all entries identical to it, itself included. ``start`` and ``end`` delimit the matched
    part of its text; after folding, or by id alone, that is all of it.
    """

    index: int
    indices: tuple[int, ...]
    start: int
    end: int
    folded: bool = False


def find(
    document: Document,
    *,
    entry_id: str | None = None,
    old_text: str | None = None,
    whole: bool,
    wanted: str | None = None,
) -> Match:
    """Find the entry that is meant.

    Args:
        document: Where to look.
        entry_id: Its id, if the caller knows it. With ``old_text`` too, that text must occur in this entry.
        old_text: Its text or a part of it, with LF newlines.
        whole: True for replace and remove, which act on whole entries: folding is tried, and a small part of a foreign
            entry is not enough. False for edit, which acts on the one occurrence.
        wanted: The text that the caller wants there, for a hint if it is there already.

    Raises:
        NotFound: With the nearest entries.
        AmbiguousMatch: With all that match.
    """
    texts = _texts(document, old_text)
    if entry_id is not None:
        hits, folded = [_by_id(document, entry_id, old_text)], False
        if old_text is None:
            length = len(document.entries[hits[0]].text)
            return Match(hits[0], (hits[0],), 0, length)
        hits, folded = _by_text(texts, old_text, hits, whole=whole)
    else:
        old_text = old_text or ""
        hits, folded = _by_text(texts, old_text, range(len(texts)), whole=whole)
    if not hits:
        raise _not_found(document, old_text, entry_id)
    if len(hits) > 1 and len({texts[hit] for hit in hits}) > 1:
        raise _several(document, hits, wanted)
    index = hits[0]
    if whole:
        _guard_foreign(document.entries[index], old_text)
    start, end = (0, len(texts[index])) if folded else _occurrence(document, index, texts[index], old_text, whole=whole)
    same = (index,) if entry_id is not None else tuple(_identical(document, index))
    return Match(index, same, start, end, folded)


def describe(entry: Entry, around: int = 0) -> dict[str, Any]:
    """An entry as errors show it: id, size and text, long ones as the part near ``around``."""
    text = entry.shown
    if len(text) > PREVIEW:
        start = max(0, min(around - PREVIEW // 3, len(text) - PREVIEW))
        end = start + PREVIEW
        text = ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
    return {"id": entry.id, "chars": entry.chars, "text": text}


def fold_typography(text: str) -> str:
    """The text without differences that nobody types on purpose: composition, quotes, dashes, runs of blanks."""
    return " ".join(unicodedata.normalize("NFC", text).translate(_TYPOGRAPHY).split())


def nearest(document: Document, text: str) -> list[dict[str, Any]]:
    """The entries most like a text, the best first."""
    choices = [entry.text[:COMPARED] for entry in document.entries]
    return _ranked(document, text[:COMPARED], choices)


def _ranked(document: Document, query: str, choices: Sequence[str]) -> list[dict[str, Any]]:
    found = process.extract(query, choices, scorer=fuzz.WRatio, limit=NEAREST)
    return [describe(document.entries[index]) for _, _, index in found]


def _texts(document: Document, old_text: str | None) -> list[str]:
    """The entries' texts to look in. A caller who copied U+FFFD from a listing means the bytes behind it."""
    if old_text is not None and _REPLACEMENT in old_text:
        return [entry.shown for entry in document.entries]
    return [entry.text for entry in document.entries]


def _by_id(document: Document, entry_id: str, old_text: str | None) -> int:
    for index, entry in enumerate(document.entries):
        if entry.id == entry_id:
            return index
    if old_text is not None:
        near = nearest(document, old_text)
    else:
        near = _ranked(document, entry_id, [entry.id for entry in document.entries])
    msg = f"no entry has the id {display(entry_id)[:80]!r}; the nearest ones are listed with their ids"
    raise NotFound(msg, nearest=near)


def _by_text(texts: list[str], text: str, among: Sequence[int], *, whole: bool) -> tuple[list[int], bool]:
    """Indices of all that match at the first step of the order at which anything does, and whether by folding."""
    hits = [index for index in among if texts[index] == text] or [index for index in among if text in texts[index]]
    if hits or not whole:
        return hits, False
    wanted = fold_typography(text)
    folded = {index: fold_typography(texts[index]) for index in among} if wanted else {}
    equal = [index for index, found in folded.items() if found == wanted]
    return equal or [index for index, found in folded.items() if wanted in found], True


def _identical(document: Document, index: int) -> list[int]:
    text = document.entries[index].text
    return [other for other, entry in enumerate(document.entries) if entry.text == text]


def _occurrence(document: Document, index: int, text: str, part: str, *, whole: bool) -> tuple[int, int]:
    """Where the part stands in the text; an edit must have only one choice."""
    start = text.find(part)
    if not whole and text.find(part, start + 1) >= 0:
        msg = "old_text occurs more than once in this entry; send a longer part that occurs once"
        raise AmbiguousMatch(msg, matches=[describe(document.entries[index], start)])
    return start, start + len(part)


def _guard_foreign(entry: Entry, part: str) -> None:
    """Refuse to act on a whole Markdown file because of a few words in it."""
    if 2 * len(part) >= len(entry.text) or not foreign_entry(entry):
        return
    msg = (
        "old_text is a small part of a whole Markdown text that was taken in as one entry; "
        "use edit to change this part, or the id alone to act on all of it"
    )
    raise AmbiguousMatch(msg, matches=[describe(entry, max(0, entry.text.find(part)))])


def _not_found(document: Document, text: str, entry_id: str | None) -> NotFound:
    if not document.entries:
        return NotFound("nothing matches: the store is empty", nearest=[])
    if entry_id is not None:
        entry = next(entry for entry in document.entries if entry.id == entry_id)
        msg = f"old_text does not occur in the entry {entry_id}; it is listed as it stands"
        others = [near for near in nearest(document, text) if near["id"] != entry_id]
        return NotFound(msg, nearest=[describe(entry), *others[: NEAREST - 1]])
    msg = "no entry contains old_text; the nearest ones are listed, send the id of the one you mean"
    return NotFound(msg, nearest=nearest(document, text))


def _several(document: Document, hits: list[int], wanted: str | None) -> AmbiguousMatch:
    entries = [document.entries[hit] for hit in hits]
    there = next((entry for entry in document.entries if wanted is not None and entry.text == wanted), None)
    msg = f"{len(entries)} entries contain old_text; send the id of the one you mean"
    if there is not None:
        msg = f"{msg}; the entry {there.id} already says what you want to write"
    hint = {"id": there.id} if there is not None else None
    return AmbiguousMatch(msg, matches=[describe(entry) for entry in entries], hint=hint)
