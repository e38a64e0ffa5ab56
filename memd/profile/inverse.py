"""Undo as values: changes turned round, older states rebuilt, states compared.

What comes in: documents and recorded changes. What goes out: documents, changes, conflicts. What must not be here:
where changes are recorded, limits, policy.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memd.profile import layout
from memd.profile.content import display
from memd.profile.entries import Document, Entry
from memd.profile.values import Change

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memd.profile.values import Stamp


@dataclass(frozen=True, slots=True)
class Inverse:
    """What taking revisions back does. With ``conflicts``, (entry id, reason) pairs, nothing is done at all."""

    document: Document
    changes: tuple[Change, ...]
    conflicts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Taken:
    """A revision to take back. ``order``: the ids of the entries before it, where that is known and of use."""

    number: int
    changes: tuple[Change, ...]
    order: tuple[str, ...] = ()


@dataclass(slots=True)
class _Chain:
    """Changes of one entry of which each begins where the one before it ended: the net change.

    ``order`` is the one before the last change. ``redacted``: ``before`` is no longer what it was.
    """

    first: Change
    before: str | None
    after: str | None
    place: int
    position: int
    order: tuple[str, ...]
    redacted: bool


def invert(revisions: Sequence[Taken], head: Document, *, stamp: Stamp) -> Inverse:
    """Take back what revisions of one store did, entry by entry.

    For each entry it is a three-way merge: base is what the revisions left, theirs is what they found, ours is the
    head. An entry that others changed since is a conflict; one that already is as wanted is none. A removed entry comes
    back behind the nearest of the entries it stood behind that is still there.

    Args:
        revisions: In any order.
        head: The store as it is.
        stamp: Time of the undo. Restored texts get back the origin they had.
    """
    document = head
    conflicts: list[tuple[str, str]] = []
    for chain in reversed(_chains(revisions)):
        if chain.before == chain.after:
            continue
        entry_id = chain.first.id
        index = _index_of(document, entry_id)
        now = document.entries[index].text if index is not None else None
        if now == chain.before:
            continue
        if chain.redacted:
            conflicts.append((entry_id, "what it said before was redacted and cannot be put back"))
        elif now != chain.after:
            conflicts.append((entry_id, _reason(now, chain.after)))
        else:
            document = _restored(document, index, chain, stamp)
    if conflicts:
        return Inverse(head, (), tuple(conflicts))
    return Inverse(document, difference(head, document))


def exactly(inverse: Inverse, before: Document) -> Inverse:
    """The same with the very bytes of ``before``, borders and blanks too, if that is the document it leads back to."""
    found = inverse.document.entries
    if [(one.id, one.text) for one in found] != [(one.id, one.text) for one in before.entries]:
        return inverse
    entries = tuple(replace(one, raw=old.raw) for one, old in zip(found, before.entries, strict=True))
    return Inverse(replace(before, entries=entries), inverse.changes, inverse.conflicts)


def rewind(entries: Sequence[Entry], changes: Iterable[Change]) -> tuple[Entry, ...]:
    """The entries as they were before these changes, which come newest first.

    Times of last change are not part of a change; an entry that is put back gets its creation time for it.
    """
    found = list(entries)
    for change in changes:
        index = next((at for at, entry in enumerate(found) if entry.id == change.id), None)
        if change.before is None:
            if index is not None:
                del found[index]
            continue
        entry = Entry(change.before, change.before, change.id, change.created_us, change.created_us, change.origin)
        if index is not None:
            found[index] = entry
        else:
            found.insert(change.place, entry)
    return tuple(found)


def difference(before: Document, after: Document) -> tuple[Change, ...]:
    """What has to happen to get from one document to the other, by id: removals, then replacements, then additions.

    Removals come from the last to the first and additions from the first to the last, so that ``rewind`` puts each
    entry back where it stood.
    """
    old = {entry.id: entry for entry in before.entries}
    new = {entry.id: (place, entry) for place, entry in enumerate(after.entries)}
    changes = [
        Change("remove", entry.id, entry.text, None, place, entry.created_us, entry.origin)
        for place, entry in reversed(list(enumerate(before.entries)))
        if entry.id not in new
    ]
    changes += [
        Change("replace", one.id, one.text, new[one.id][1].text, new[one.id][0], one.created_us, one.origin)
        for one in before.entries
        if one.id in new and new[one.id][1].text != one.text
    ]
    changes += [
        Change("add", entry.id, None, entry.text, place, entry.created_us, entry.origin)
        for place, entry in new.values()
        if entry.id not in old
    ]
    return tuple(changes)


def replace_all(document: Document, entries: Sequence[Entry]) -> tuple[Document, tuple[Change, ...]]:
    """Set the document to these entries, ids kept; those that it has already keep their bytes and their borders."""
    known = {entry.id: entry for entry in document.entries}
    settled = [
        known[entry.id]
        if entry.id in known and known[entry.id].text == entry.text
        else replace(entry, raw=layout.in_style(entry.text, document.newline))
        for entry in entries
    ]
    if tuple(settled) == document.entries:
        return document, ()
    after = layout.arrange(document, settled)
    return after, difference(document, after)


def text_diff(before: Document, after: Document) -> str:
    """The difference for people to read: the counted texts line by line, as in a patch; ``""`` if there is none."""
    old, new = (display(document.counted).split("\n") if document.entries else [] for document in (before, after))
    return "\n".join(difflib.unified_diff(old, new, "before", "after", lineterm=""))


def _chains(revisions: Sequence[Taken]) -> list[_Chain]:
    """The net changes, in the order of the last change of each."""
    chains: list[_Chain] = []
    open_ones: dict[str, _Chain] = {}
    ordered = sorted(revisions, key=lambda revision: revision.number)
    changes = [(change, revision.order) for revision in ordered for change in revision.changes]
    for position, (change, order) in enumerate(changes):
        chain = open_ones.get(change.id)
        if chain is None or chain.after != change.before:
            lost = change.redacted and change.before is not None
            chain = _Chain(change, change.before, change.after, change.place, position, order, lost)
            open_ones[change.id] = chain
            chains.append(chain)
        chain.after, chain.place, chain.position, chain.order = change.after, change.place, position, order
    return sorted(chains, key=lambda chain: chain.position)


def _restored(document: Document, index: int | None, chain: _Chain, stamp: Stamp) -> Document:
    """The document with one entry as it was before the chain."""
    if chain.before is None:
        return document if index is None else layout.delete(document, index)
    raw = layout.in_style(chain.before, document.newline)
    first = chain.first
    entry = Entry(raw, chain.before, first.id, first.created_us, stamp.us, first.origin)
    if index is not None:
        return layout.exchange(document, index, entry)
    return layout.insert(document, _place(document, chain), entry)


def _place(document: Document, chain: _Chain) -> int:
    """Where an entry that was taken out belongs now: its old place, seen from the neighbours that are still there."""
    if chain.first.id not in chain.order:
        return min(chain.place, len(document.entries))
    places = {entry.id: place for place, entry in enumerate(document.entries)}
    at = chain.order.index(chain.first.id)
    for neighbour in reversed(chain.order[:at]):
        if neighbour in places:
            return places[neighbour] + 1
    for neighbour in chain.order[at + 1 :]:
        if neighbour in places:
            return places[neighbour]
    return min(chain.place, len(document.entries))


def _index_of(document: Document, entry_id: str) -> int | None:
    return next((at for at, entry in enumerate(document.entries) if entry.id == entry_id), None)


def _reason(now: str | None, left: str | None) -> str:
    """Why an entry cannot be taken back."""
    if now is None:
        return "the entry was removed since"
    if left is None:
        return f"the entry is there again and says: {_short(now)}"
    return f"the entry was changed since and says: {_short(now)}"


def _short(text: str) -> str:
    text = display(text)
    return text if len(text) <= 120 else text[:119] + "…"
