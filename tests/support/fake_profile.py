"""A profile in memory for tests of sessions and dispatch: the real edits on documents, no files, no tasks.

What it is: ``MemoryProfile``. What comes in: what handlers ask of a profile. What goes out: what a profile answers. With
``hold`` on, changes wait until ``commit``, which publishes, then hands out events, then answers: the order that is hardest
on whoever promises a reply before the event of its own change. What must not be here: rules of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from support.fake_approvals import FakeApprovals
from support.fake_masks import Masks

from memd.config import ProfileSettings
from memd.deferred import Ticket
from memd.errors import Conflict, NoSuchRevision, WireError
from memd.profile.draft import change_record
from memd.profile.edits import apply_batch, apply_operation
from memd.profile.entries import Document
from memd.profile.history import ANY, RevisionRow
from memd.profile.inverse import difference, replace_all, text_diff
from memd.profile.scans import Scans
from memd.profile.values import (
    TARGETS,
    Applied,
    Caller,
    Change,
    Committed,
    Limits,
    Mutation,
    Notice,
    Operation,
    Stamp,
    Step,
    StoreState,
    Target,
    TargetChange,
    Undone,
    usage_of,
)
from memd.scan import Scanner, verdict
from memd.store.records import EventRecord, RevisionRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from memd.profile.history import Chosen, Explanation, Selector
    from memd.scan import Finding, Verdict

START_US = 1_700_000_000_000_000
SCANS = Scans(Scanner())


class MemoryEvents:
    """The events of one profile, all of them kept. ``lost_before``: what is older is gone."""

    def __init__(self) -> None:
        self.seq = 0
        self.records: list[EventRecord] = []
        self.lost_before = 0
        self.error: WireError | None = None
        self._callbacks: list[Callable[[EventRecord], None]] = []

    def publish(self, record: EventRecord) -> None:
        self.seq += 1
        record.seq = self.seq
        self.records.append(record)
        for callback in tuple(self._callbacks):
            callback(record)

    def subscribe(self, callback: Callable[[EventRecord], None]) -> Callable[[], None]:
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    async def since(self, seq: int, topics: Sequence[str] = (), *, limit: int) -> tuple[list[EventRecord], bool]:
        if self.error is not None:
            raise self.error
        found = [record for record in self.records if record.seq > seq and record.seq >= self.lost_before]
        fitting = [record for record in found[:limit] if not topics or record.topic in topics]
        return fitting, len(found) > limit or seq + 1 < self.lost_before


class MemoryProfile(Masks):
    """A profile without files. ``outside`` is what ``look`` will find."""

    def __init__(self, name: str = "default", *, settings: ProfileSettings | None = None) -> None:
        self.name = name
        self.dir = f"/memory/{name}"
        self.settings = settings or ProfileSettings(name=name, dir=self.dir)
        self.events = MemoryEvents()
        self.hold = False
        self.attached = 0
        self.looks = 0
        self.due = False
        self.outside: dict[Target, Document] = {}
        self.states: dict[Target, StoreState] = {target: self._state(target, Document(), 0) for target in TARGETS}
        self.rows: list[RevisionRow] = []
        self.explanations: list[Explanation] = []
        self.documents: dict[int, dict[Target, Document]] = {}
        self.queue: list[tuple[Ticket, Callable[[], Committed]]] = []
        self.conflicts: tuple[tuple[str, str], ...] = ()
        self.entered: list[str] = []
        self.refuses: WireError | None = None
        self.approvals = FakeApprovals(self)
        self._revision = 0
        self._made = 0

    # -- reads

    def state(self, target: Target) -> StoreState:
        return self.states[target]

    def head(self) -> tuple[int, int]:
        return (self.states["memory"].revision, self.states["user"].revision)

    def kept_out(self, _target: Target, text: str) -> str | None:
        return next((one.rule for one in SCANS.findings(text) if one.severity == "refuse"), None)

    def mask(self, text: str) -> str:
        return SCANS.masked(text)

    async def check(self, text: str) -> tuple[tuple[Finding, ...], Verdict]:
        return (found := SCANS.findings(text)), verdict(found)

    def look_due(self) -> bool:
        return self.due

    async def look(self) -> None:
        self.looks += 1
        for target, document in self.outside.items():
            self._commit(target, document, (), Caller(origin="outside"))
        self.outside = {}

    def attach(self) -> None:
        self.attached += 1

    def detach(self) -> None:
        self.attached -= 1

    # -- changes

    def submit(self, mutation: Mutation) -> Ticket:
        return self._queue(lambda: self._apply(mutation))

    def wipe(
        self,
        target: Target,
        caller: Caller,
        *,
        request_id: str | None = None,
        fingerprint: bytes = b"",
        if_revision: int | None = None,
    ) -> Ticket:
        return self._queue(lambda: self._set(target, Document(), caller))

    def commit(self) -> None:
        """Do everything that waits."""
        waiting, self.queue = self.queue, []
        answers: list[tuple[Ticket, Committed | WireError]] = []
        for ticket, work in waiting:
            if ticket.withdrawn:
                continue
            try:
                answers.append((ticket, work()))
            except WireError as error:
                answers.append((ticket, error))
        for ticket, answer in answers:
            if isinstance(answer, WireError):
                ticket.fail(answer)
            else:
                ticket.finish(answer)

    def drain(self) -> None:
        """Take what waits into a group that is not done yet."""
        for ticket, _ in self.queue:
            ticket.drained = True

    async def undo(
        self,
        selector: Selector,
        caller: Caller,
        *,
        redo: bool = False,
        request_id: str | None = None,
        fingerprint: bytes = b"",
        if_revision: int | None = None,
    ) -> Undone:
        self.entered.append("redo" if redo else "undo")
        if self.refuses is not None:
            raise self.refuses
        if self.conflicts:
            return Undone((), (), self.conflicts, {})
        row = next((row for row in reversed(self.rows) if selector.revision in {None, row.record.revision}), None)
        if row is None:
            raise NoSuchRevision(selector.revision or 0)
        done = self._set(row.target, self.documents[row.record.revision - 1][row.target], caller)
        return _undone(done)

    async def preview_undo(
        self, selector: Selector, caller: Caller, *, redo: bool = False, if_revision: int | None = None
    ) -> Undone:
        self.entered.append("preview redo" if redo else "preview undo")
        return Undone((), (), self.conflicts, {})

    async def preview_restore(
        self, target: Target, revision: int, caller: Caller, *, if_revision: int | None = None
    ) -> Undone:
        self.entered.append(f"preview restore {target} {revision}")
        return Undone((), (), (), {})

    async def restore(
        self,
        target: Target,
        revision: int,
        caller: Caller,
        *,
        request_id: str | None = None,
        fingerprint: bytes = b"",
        if_revision: int | None = None,
    ) -> Undone:
        if self.refuses is not None:
            raise self.refuses
        if revision not in self.documents:
            raise NoSuchRevision(revision)
        return _undone(self._set(target, self.documents[revision][target], caller))

    async def import_entries(
        self,
        data: Mapping[str, Any],
        caller: Caller,
        *,
        request_id: str | None = None,
        fingerprint: bytes = b"",
        if_revisions: Mapping[Target, int],
    ) -> Undone:
        self.entered.append(" ".join([caller.origin, *(f"{key}={number}" for key, number in if_revisions.items())]))
        return Undone((), (), (), {"memory": self.states["memory"].usage})

    def preview_import(self, data: Mapping[str, Any], caller: Caller, *, if_revisions: Mapping[Target, int]) -> Undone:
        self.entered.append(f"preview {caller.origin}")
        return Undone((), (), (), {"memory": self.states["memory"].usage}, notices=(Notice("over_limit", "too much"),))

    # -- history

    async def list_revisions(
        self,
        chosen: Chosen = ANY,
        *,
        target: Target | None = None,
        limit: int = 50,
        before: int | None = None,
    ) -> tuple[list[RevisionRow], int | None]:
        found = [
            row
            for row in reversed(self.rows)
            if target in {None, row.target}
            and chosen.origin in {None, row.record.origin}
            and (before is None or row.record.revision < before)
        ]
        return found[:limit], found[limit - 1].record.revision if len(found) > limit else None

    async def show_revision(self, revision: int) -> tuple[RevisionRow, Mapping[Target, tuple[Any, ...]]]:
        row = next((row for row in self.rows if row.record.revision == revision), None)
        if row is None:
            raise NoSuchRevision(revision)
        return row, {target: self.documents[revision][target].entries for target in TARGETS}

    async def diff(self, target: Target, from_: int, to: int | None = None) -> tuple[str, tuple[TargetChange, ...]]:
        before = self.documents[from_][target]
        after = self.states[target].document if to is None else self.documents[to][target]
        changes = tuple(TargetChange(target, change) for change in difference(before, after))
        return text_diff(before, after), changes

    async def explain(self, text: str) -> list[Explanation]:
        return self.explanations

    def emit(
        self,
        topic: str,
        *,
        target: Target | None = None,
        session: str | None = None,
        id: str | None = None,  # noqa: A002 - the event's own field name
        data: Mapping[str, Any] | None = None,
    ) -> None:
        self.events.publish(
            EventRecord(
                us=START_US,
                topic=topic,
                profile=self.name,
                target=target,
                session=session,
                id=id,
                data=dict(data or {}),
            )
        )

    # -- inside

    def put(self, target: Target, **fields: Any) -> None:
        """Publish a state with other fields, for example another condition."""
        self.states[target] = replace(self.states[target], **fields)

    def _queue(self, work: Callable[[], Committed]) -> Ticket:
        if self.refuses is not None:
            raise self.refuses
        ticket = Ticket()
        self.queue.append((ticket, work))
        if not self.hold:
            self.commit()
        return ticket

    def _limits(self, target: Target) -> Limits:
        limits = self.settings.limits
        return Limits(limits.memory if target == "memory" else limits.user, limits.near_percent)

    def _state(self, target: Target, document: Document, revision: int) -> StoreState:
        path = f"{self.dir}/{target}.md"
        return StoreState(target, path, document, revision, usage_of(document.chars, self._limits(target)))

    def _new_id(self, _text: str) -> str:
        self._made += 1
        return f"e{self._made}"

    def _apply(self, mutation: Mutation) -> Committed:
        target = mutation.target
        state = self.states[target]
        if mutation.if_revision not in {None, state.revision}:
            msg = "the store has changed"
            raise Conflict(msg, reason="if_revision", current=state.document.counted)
        stamp = Stamp(START_US, mutation.caller.origin)
        common: Any = {"limits": self._limits(target), "stamp": stamp, "new_id": self._new_id}
        applied: Applied
        if mutation.batch:
            applied = apply_batch(state.document, mutation.operations, **common)
        else:
            applied = apply_operation(state.document, mutation.operations[0], **common)
        if applied.changes:
            self._commit(target, applied.document, applied.changes, mutation.caller)
        return self._committed(target, applied)

    def _set(self, target: Target, document: Document, caller: Caller) -> Committed:
        after, changes = replace_all(self.states[target].document, document.entries)
        self._commit(target, after, tuple(changes), caller)
        step = Step("applied", None, tuple(changes), "Done.")
        return self._committed(target, Applied(after, (step,), "Done."))

    def _committed(self, target: Target, applied: Applied) -> Committed:
        state = self.states[target]
        step_id = applied.steps[0].id if len(applied.steps) == 1 else None
        return Committed(
            changed=bool(applied.changes),
            target=target,
            revision=state.revision,
            entry=next((entry for entry in state.document.entries if entry.id == step_id), None),
            changes=applied.changes,
            usage=state.usage,
            message=applied.message,
            notices=applied.notices,
            steps=applied.steps,
        )

    def _commit(self, target: Target, document: Document, changes: tuple[Change, ...], caller: Caller) -> None:
        if not self.documents:
            self.documents[0] = {other: self.states[other].document for other in TARGETS}
        self._revision += 1
        self.states[target] = self._state(target, document, self._revision)
        self.documents[self._revision] = {other: self.states[other].document for other in TARGETS}
        record = RevisionRecord(
            revision=self._revision,
            store=TARGETS.index(target),
            us=START_US,
            origin=caller.origin,
            client=caller.client,
            uid=caller.uid,
            pid=caller.pid,
            session=caller.session,
            turn=caller.turn,
            reason=caller.reason,
            changes=[change_record(change) for change in changes],
        )
        self.rows.append(RevisionRow(record, target))
        event = EventRecord(us=START_US, topic="memory.changed", profile=self.name, target=target)
        event.revision = self._revision
        self.events.publish(event)


def mutation(*operations: Operation, target: Target = "memory", batch: bool = False) -> Mutation:
    """A change as an agent without a session makes it."""
    return Mutation(target, operations, Caller(), batch=batch)


def _undone(done: Committed) -> Undone:
    changes = tuple(TargetChange(done.target, change) for change in done.changes)
    return Undone((done.revision,), changes, (), {done.target: done.usage})
