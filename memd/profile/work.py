"""Work: what can be asked of a profile's writer, each as a plan on drafts.

What comes in: mutations and who asks. What goes out: results, or the typed refusal after which the drafts are unchanged.
What must not be here: I/O, tasks. ``plan`` may be called more than once for the same work, when a group is planned anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from memd.deferred import Ticket
from memd.errors import Conflict, InvalidParams, WireError
from memd.profile.edits import check_limits
from memd.profile.entries import Document
from memd.profile.inverse import exactly, invert, replace_all
from memd.profile.policy import Ruling, rule_changes
from memd.profile.values import Caller, Committed, Notice, Stamp, TargetChange, Undone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from memd.profile.draft import Draft
    from memd.profile.entries import Entry
    from memd.profile.inverse import Inverse, Taken
    from memd.profile.memory_store import MemoryStore
    from memd.profile.policy import Guard
    from memd.profile.requests import Result
    from memd.profile.scans import Scans
    from memd.profile.values import Change
    from memd.store.records import Part

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

    def texts(self) -> tuple[Scans, Iterable[str]] | None:
        """The texts that it will probably put in, to be scanned before it is planned; None if it puts in none."""
        ...

    def refused(self, error: WireError, now_us: int) -> Refused | None:
        """What is to be kept of its refusal."""
        ...


@dataclass(frozen=True, slots=True)
class Refused:
    """What a refusal leaves behind: a part for the journal, and what to do once the refusal is answered."""

    part: Part
    then: Callable[[], None] | None = None


class Quiet:
    """A plan that puts no new text in and leaves nothing behind when it is refused."""

    def texts(self) -> tuple[Scans, Iterable[str]] | None:
        """None."""
        return None

    def refused(self, _error: WireError, _now_us: int) -> Refused | None:
        """Nothing."""
        return None


@dataclass(eq=False)
class Work:
    """A plan in a writer's queue, with everything about its answer."""

    plan: Plan
    profile: str
    caller: Caller
    request_id: str | None = None
    fingerprint: bytes = b""
    ticket: Ticket = field(default_factory=Ticket)


@dataclass(frozen=True, eq=False)
class SetEntries(Quiet):
    """Set one store to given entries, ids kept: restore and wipe. ``kind`` names it in the history."""

    store: MemoryStore
    kind: str
    entries: tuple[Entry, ...]
    caller: Caller
    if_revision: int | None = None
    guard: Guard | None = None

    @property
    def stores(self) -> tuple[MemoryStore, ...]:
        """The one store."""
        return (self.store,)

    @property
    def operations(self) -> int:
        """As many as there are entries to set."""
        return max(1, len(self.entries))

    def texts(self) -> tuple[Scans, Iterable[str]] | None:
        """Those of the entries."""
        return (self.guard.scans, [entry.text for entry in self.entries]) if self.guard else None

    def plan(self, drafts: Drafts) -> Committed:
        """Replace the entries.

        Raises:
            OverLimit: The store would grow over its limit.
            BlockedContent, PermissionDenied: The scan or the settings are against it.
        """
        draft = drafts[self.store]
        require_revision(draft, self.if_revision)
        document, changes = replace_all(draft.document, self.entries)
        check_limits(draft.document, document, self.store.limits)
        ruling = ruled(self.guard, draft, changes, self.caller)
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
            notices=(*draft.notices, *ruling.notices),
            steps=(),
        )


@dataclass(frozen=True, eq=False)
class Invert(Quiet):
    """Undo or redo revisions, one new revision per store, all or nothing.

    ``undone``: the revisions to invert per store. ``originals``: for a redo, the revisions that the inverted
    undos had undone; their marks are taken away again. ``before``: the stores as they were before all of it, to the byte,
    where that is known. ``marks``: which undo each of the revisions that get another mark had before, for a group that is taken
    back.
    """

    kind: str
    caller: Caller
    undone: Mapping[MemoryStore, Sequence[Taken]]
    originals: Mapping[int, int | None] = field(default_factory=dict)
    if_revision: int | None = None
    before: Mapping[MemoryStore, Document] = field(default_factory=dict)
    guard: Guard | None = None
    marks: Mapping[int, int | None] = field(default_factory=dict)

    @property
    def stores(self) -> tuple[MemoryStore, ...]:
        """Every store that has something to invert."""
        return tuple(self.undone)

    @property
    def operations(self) -> int:
        """As many as there are changes to take back."""
        return sum(len(taken.changes) for revisions in self.undone.values() for taken in revisions)

    def texts(self) -> tuple[Scans, Iterable[str]] | None:
        """What stood there before."""
        changes = [change for revisions in self.undone.values() for taken in revisions for change in taken.changes]
        return (self.guard.scans, [change.before for change in changes if change.before]) if self.guard else None

    def plan(self, drafts: Drafts) -> Undone:
        """Compute every store's inverse first; record only if none conflicts.

        Raises:
            OverLimit: A store would grow over its limit.
            BlockedContent, PermissionDenied: The scan or the settings are against what would come back.
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
        rulings = [ruled(self.guard, drafts[store], one.changes, self.caller) for store, one in inverses.items()]
        notices = tuple(told for ruling in rulings for told in ruling.notices)
        numbers, changes = self._record(drafts, inverses)
        usage = {store.target: drafts[store].usage for store in self.undone}
        return Undone(numbers, changes, (), usage, notices=notices)

    def _record(
        self, drafts: Drafts, inverses: Mapping[MemoryStore, Inverse]
    ) -> tuple[tuple[int, ...], tuple[TargetChange, ...]]:
        numbers: list[int] = []
        changes: list[TargetChange] = []
        for store, inverse in inverses.items():
            draft = drafts[store]
            undoes = [taken.number for taken in self.undone[store]]
            number = draft.record(self.kind, inverse.document, inverse.changes, self.caller, undoes=undoes)
            draft.mark(((revision, number) for revision in undoes), self.marks)
            draft.mark((one for one in self.originals.items() if self.marks.get(one[0]) in undoes), self.marks)
            numbers.append(number)
            changes.extend(TargetChange(store.target, change) for change in inverse.changes)
        return tuple(numbers), tuple(changes)

    def _require_revision(self, drafts: Drafts) -> None:
        if self.if_revision is None:
            return
        if len(self.undone) > 1:
            msg = "if_revision: these changes concern both stores; undo them by revision, one store at a time"
            raise InvalidParams(msg, field="if_revision")
        for store in self.undone:
            require_revision(drafts[store], self.if_revision)


def ruled(guard: Guard | None, draft: Draft, changes: Sequence[Change], caller: Caller) -> Ruling:
    """What the profile's rules say of changes that are applied or refused; texts that a person lets pass are noted.

    Raises:
        BlockedContent, PermissionDenied: They are refused.
    """
    if guard is None:
        return Ruling(staged=False)
    ruling = rule_changes(guard, changes, caller, draft.approved)
    draft.approve(ruling.approved)
    return ruling


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
