"""Redacting live entries: the half of a redaction that the memory files see.

What comes in: a store's draft and a mask. What goes out: a revision in which the texts no longer stand. What must not be
here: the journal's older rows (``memd/store/redaction.py``), I/O.

The revision itself never holds what it hides: before and after are both the masked text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memd.errors import Conflict, InvalidParams
from memd.profile import layout
from memd.profile.entries import Document, as_text, parse
from memd.profile.values import Change, Committed
from memd.profile.work import Quiet
from memd.store.masking import MARK, SHORTEST, Mask

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from memd.profile.draft import Draft
    from memd.profile.memory_store import MemoryStore
    from memd.profile.values import Action, Caller, StoreState
    from memd.store.records import RevisionRecord

KIND = "redact"


@dataclass(frozen=True, eq=False)
class Redact(Quiet):
    """Mask the entries of one store. Limits do not hold here: the mark may be longer than what it hides."""

    store: MemoryStore
    mask: Mask
    caller: Caller

    @property
    def stores(self) -> tuple[MemoryStore, ...]:
        """The one store."""
        return (self.store,)

    @property
    def operations(self) -> int:
        """One pass over the store."""
        return 1

    def plan(self, drafts: Mapping[MemoryStore, Draft]) -> Committed:
        """Record a revision if anything has to go."""
        draft = drafts[self.store]
        document, changes = redact_document(draft.document, self.mask, us=draft.now_us)
        if changes:
            draft.record(KIND, document, changes, self.caller)
        return Committed(
            changed=bool(changes),
            target=draft.target,
            revision=draft.revision,
            entry=None,
            changes=changes,
            usage=draft.usage,
            message="",
            notices=(),
            steps=(),
        )


def redact_document(document: Document, mask: Mask, *, us: int) -> tuple[Document, tuple[Change, ...]]:
    """The document without the mask's texts: entries that held more keep the rest, those that did not are removed."""
    changes: list[Change] = []
    for place, entry in reversed(list(enumerate(document.entries))):
        raw = mask.text(entry.raw)
        if raw == entry.raw:
            continue
        text = as_text(raw)
        if _says_something(text):
            document = layout.exchange(document, place, replace(entry, raw=raw, text=text, updated_us=us))
            after: str | None = text
        else:
            document = layout.delete(document, place)
            after = None
        action: Action = "replace" if after is not None else "remove"
        changes.append(Change(action, entry.id, text, after, place, entry.created_us, entry.origin, redacted=True))
    return document, tuple(changes)


def mask_of_text(text: str) -> Mask:
    """The mask for a text; one that spans several entries is looked for entry by entry.

    Raises:
        InvalidParams: Too short, or a part of the mark itself.
    """
    parts = [entry.text for entry in parse(text.encode("utf-8", "surrogateescape")).entries]
    for part in parts or [""]:
        problem = _problem(part)
        if problem:
            msg = f"text: {problem}"
            raise InvalidParams(msg, field="text")
    return Mask(parts)


def mask_of_revision(record: RevisionRecord, states: Iterable[StoreState]) -> Mask:
    """The mask for the texts a revision put in or took out, but for those that a live entry still has.

    Raises:
        Conflict: All of them are live; nothing of the past alone could be hidden.
    """
    found = {text.decode("utf-8", "surrogateescape") for c in record.changes for text in (c.before, c.after) if text}
    found = {text for text in found if _problem(text) is None}
    live = [entry for state in states for entry in state.document.entries]
    gone = sorted(text for text in found if not any(text in entry.text for entry in live))
    if found and not gone:
        entry = next(entry for entry in live if any(text in entry.text for text in found))
        msg = (
            f"what revision {record.revision} holds is in memory now (entry {entry.id}): redact it by its text, or remove "
            "or replace the entry first"
        )
        raise Conflict(msg, reason="live", current=entry.shown, id=entry.id)
    return Mask(gone)


def without_stubs(document: Document) -> Document:
    """A document of the past as it may be restored: entries of which nothing is left are not brought back."""
    return Document(entries=tuple(entry for entry in document.entries if _says_something(entry.text)))


def _problem(text: str) -> str | None:
    """Why a text cannot be redacted, or None."""
    if len("".join(text.split())) < SHORTEST:
        return f"at least {SHORTEST} characters that are no blanks; less stands in half of all texts"
    if text in MARK:
        return f"{text!r} is part of the mark {MARK} that stands for what was redacted"
    return None


def _says_something(text: str) -> bool:
    """False if nothing but the mark, blanks and punctuation is left."""
    return MARK not in text or any(char.isalnum() for char in text.replace(MARK, ""))
