"""Work: what can be asked of a profile's writer, each as a plan on drafts.

What comes in: mutations and who asks. What goes out: results, or the typed refusal after which the drafts are unchanged.
What must not be here: I/O, tasks. ``plan`` may be called more than once for the same work, when a group is planned anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from memd.deferred import Ticket
from memd.errors import Conflict, InvalidParams, WireError
from memd.profile.edits import apply_batch, apply_operation, check_limits
from memd.profile.entries import Document
from memd.profile.inverse import exactly, invert, replace_all
from memd.profile.values import Caller, Committed, Mutation, Notice, Stamp, TargetChange, Undone

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memd.profile.draft import Draft
    from memd.profile.entries import Entry
    from memd.profile.inverse import Taken
    from memd.profile.memory_store import MemoryStore
    from memd.profile.requests import Result

    Drafts = Mapping[MemoryStore, Draft]


class Plan(Protocol):
    """One kind of work. ``operations`` is its weight in a group's bound."""

    @property
    def stores(self) -> tuple[MemoryStore, ...]:
        """The stores it needs, all of them ready before it is planned."""
        ...

    @property
    def operations(self) -> int:
        """How many operations it counts as."""
        ...

    def plan(self, drafts: Drafts) -> Result:
        """Apply it to the drafts; raises ``WireError`` and leaves them alone if it cannot be done."""
        ...


@dataclass(eq=False)
class Work:
    """A plan in a writer's queue, with everything about its answer."""

    plan: Plan
    profile: str
    caller: Caller
    request_id: str | None = None
    fingerprint: bytes = b""
    ticket: Ticket = field(default_factory=Ticket)


@dataclass(slots=True, eq=False)
class Edit:
    """add, replace, edit, remove and apply on one store."""

    store: MemoryStore
    mutation: Mutation

    @property
    def stores(self) -> tuple[MemoryStore, ...]:
        """The one store."""
        return (self.store,)

    @property
    def operations(self) -> int:
        """As many as the batch has."""
        return len(self.mutation.operations)

    def plan(self, drafts: Drafts) -> Committed:
        """Apply the operations on top of what is already planned."""
        draft = drafts[self.store]
        mutation = self.mutation
        require_revision(draft, mutation.if_revision)
        common = {
            "limits": self.store.limits,
            "stamp": draft.stamp(mutation.caller.origin),
            "new_id": draft.new_id,
        }
        if mutation.batch:
            applied = apply_batch(draft.document, mutation.operations, **common)  # type: ignore[arg-type]  # one dict, three types
        else:
            applied = apply_operation(draft.document, mutation.operations[0], **common)  # type: ignore[arg-type]  # as above
        changes = applied.changes
        revision = draft.revision
        if changes:
            revision = draft.record("change", applied.document, changes, mutation.caller)
        entry = None
        if not mutation.batch and applied.steps[0].id is not None:
            entry = entry_by_id(draft.document, applied.steps[0].id)
        return Committed(
            changed=bool(changes),
            target=mutation.target,
            revision=revision,
            entry=entry,
            changes=changes,
            usage=draft.usage,
            message=applied.message,
            notices=(*draft.notices, *applied.notices),
            steps=applied.steps,
        )


@dataclass(frozen=True, eq=False)
class SetEntries:
    """Set one store to given entries, ids kept: restore and wipe. ``kind`` names it in the history."""

    store: MemoryStore
    kind: str
    entries: tuple[Entry, ...]
    caller: Caller
    if_revision: int | None = None

    @property
    def stores(self) -> tuple[MemoryStore, ...]:
        """The one store."""
        return (self.store,)

    @property
    def operations(self) -> int:
        """As many as there are entries to set."""
        return max(1, len(self.entries))

    def plan(self, drafts: Drafts) -> Committed:
        """Replace the entries; a store that would grow over its limit refuses."""
        draft = drafts[self.store]
        require_revision(draft, self.if_revision)
        document, changes = replace_all(draft.document, self.entries)
        check_limits(draft.document, document, self.store.limits)
        revision = draft.record(self.kind, document, changes, self.caller) if changes else draft.revision
        verb = {"wipe": "Wiped", "restore": "Restored"}.get(self.kind, "Set")
        count = len(document.entries)
        return Committed(
            changed=bool(changes),
            target=draft.target,
            revision=revision,
            entry=None,
            changes=changes,
            usage=draft.usage,
            message=f"{verb} {draft.target}: {count} {'entry' if count == 1 else 'entries'} now; undo brings it back."
            if changes
            else f"{draft.target} is already like that.",
            notices=tuple(draft.notices),
            steps=(),
        )


@dataclass(frozen=True, eq=False)
class Invert:
    """Undo or redo revisions, one new revision per store, all or nothing.

    ``undone``: the revisions to invert per store. ``originals``: for a redo, the revisions that the inverted
    undos had undone; their marks are taken away again. ``before``: the stores as they were before all of it, to the byte,
    where that is known.
    """

    kind: str
    caller: Caller
    undone: Mapping[MemoryStore, Sequence[Taken]]
    originals: Mapping[int, int | None] = field(default_factory=dict)
    if_revision: int | None = None
    before: Mapping[MemoryStore, Document] = field(default_factory=dict)

    @property
    def stores(self) -> tuple[MemoryStore, ...]:
        """Every store that has something to invert."""
        return tuple(self.undone)

    @property
    def operations(self) -> int:
        """As many as there are changes to take back."""
        return sum(len(taken.changes) for revisions in self.undone.values() for taken in revisions)

    def plan(self, drafts: Drafts) -> Undone:
        """Compute every store's inverse first; record only if none conflicts.

        Raises:
            OverLimit: A store would grow over its limit.
        """
        self._require_revision(drafts)
        inverses = {}
        conflicts: list[tuple[str, str]] = []
        for store, revisions in self.undone.items():
            draft = drafts[store]
            inverse = invert(revisions, draft.document, stamp=Stamp(draft.now_us, self.caller.origin))
            if store in self.before and draft.revision == max(taken.number for taken in revisions):
                inverse = exactly(inverse, self.before[store])  # nothing came since: also the borders are ours
            conflicts.extend(inverse.conflicts)
            if not inverse.conflicts:
                check_limits(draft.document, inverse.document, store.limits)
            inverses[store] = inverse
        usage = {store.target: drafts[store].usage for store in self.undone}
        if conflicts:
            return Undone((), (), tuple(conflicts), usage)
        numbers: list[int] = []
        changes: list[TargetChange] = []
        for store, inverse in inverses.items():
            draft = drafts[store]
            undoes = [taken.number for taken in self.undone[store]]
            number = draft.record(self.kind, inverse.document, inverse.changes, self.caller, undoes=undoes)
            draft.part.undone.extend((revision, number) for revision in undoes)
            numbers.append(number)
            changes.extend(TargetChange(store.target, change) for change in inverse.changes)
        if numbers:
            drafts[next(iter(inverses))].part.undone.extend(self.originals.items())
        usage = {store.target: drafts[store].usage for store in self.undone}
        return Undone(tuple(numbers), tuple(changes), (), usage)

    def _require_revision(self, drafts: Drafts) -> None:
        if self.if_revision is None:
            return
        if len(self.undone) > 1:
            msg = "if_revision: these changes concern both stores; undo them by revision, one store at a time"
            raise InvalidParams(msg, field="if_revision")
        for store in self.undone:
            require_revision(drafts[store], self.if_revision)


def require_revision(draft: Draft, if_revision: int | None) -> None:
    """Refuse a change that was made for another state of the store.

    Raises:
        Conflict: With the store's counted text as ``current``.
    """
    if if_revision is not None and if_revision != draft.revision:
        msg = f"the {draft.target} store is at revision {draft.revision}, not {if_revision}: read it and decide again"
        raise Conflict(
            msg,
            reason="if_revision",
            current=shown(draft.document),
        )


def shown(document: Document) -> str:
    """The counted text as clients see it."""
    return Document(entries=document.entries).counted.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def entry_by_id(document: Document, entry_id: str) -> Entry | None:
    """The entry with this id, or None."""
    for entry in document.entries:
        if entry.id == entry_id:
            return entry
    return None


def fail_all(works: Sequence[Work], error: WireError) -> None:
    """Settle all of them with one error."""
    for work in works:
        work.ticket.fail(error)


def notice(name: str, message: str, **data: object) -> Notice:
    """A notice with its data as keywords."""
    return Notice(name, message, data)
