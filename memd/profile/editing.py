"""Editing: add, replace, edit, remove and batches as a plan for the writer.

What comes in: a mutation, the profile's guard. What goes out: the answer, with what was applied and what waits for a person; or the
typed refusal. What must not be here: I/O, tasks, what an operation means (``edits``), the rulings (``policy``).

The order is fixed: is it valid, does it fit, what does the scan say, what do the settings say about its origin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace as replaced

from memd.errors import BlockedContent, CurationError, PermissionDenied, WireError
from memd.profile.content import accept, text_hash
from memd.profile.edits import aborted, apply_batch, apply_operation
from memd.profile.policy import JOBS, Ruling, needs_person, rule
from memd.profile.snapshot import withheld_marker
from memd.profile.staging import stage
from memd.profile.values import Committed, Stamp
from memd.profile.work import Quiet, Refused, entry_by_id, require_revision
from memd.store.records import EventRecord, Part, RefusalRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memd.profile.draft import Draft
    from memd.profile.memory_store import MemoryStore
    from memd.profile.policy import Guard
    from memd.profile.scans import Scans
    from memd.profile.values import Applied, Mutation, Notice, Operation
    from memd.profile.work import Drafts

SMALL = 4000
"""Characters of a store that can be scanned in passing, so that it need not be found out beforehand what an edit makes."""

_NOBODY = Stamp(0, "")


@dataclass(slots=True, eq=False)
class Edit(Quiet):
    """add, replace, edit, remove and apply on one store."""

    store: MemoryStore
    mutation: Mutation
    guard: Guard | None = None

    @property
    def stores(self) -> tuple[MemoryStore, ...]:
        """The one store."""
        return (self.store,)

    @property
    def operations(self) -> int:
        """As many as the batch has."""
        return len(self.mutation.operations)

    def texts(self) -> tuple[Scans, Iterable[str]] | None:
        """The texts as they will be stored; of an edit, what the entry will say if nothing else changes before."""
        return None if self.guard is None else (self.guard.scans, _texts(self.store, self.mutation.operations))

    def plan(self, drafts: Drafts) -> Committed:
        """Apply the operations on top of what is already planned, or have a person decide about them.

        Raises:
            CurationError, Conflict, InvalidParams: As for the operations; BlockedContent if the scan refuses a text.
            PermissionDenied: The settings refuse writes of this origin, or too many wait already.
        """
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
        if self.guard is not None and applied.notices:
            applied = _without_withheld(self.guard, draft, applied)
        if self.guard is None or not applied.changes:
            return self._apply(draft, applied, ())
        rulings = self._rulings(self.guard, draft, applied)
        waiting = [index for index, ruling in enumerate(rulings) if ruling.staged]
        if not waiting:
            return self._apply(draft, applied, rulings)
        try:
            return stage(draft, self.guard, mutation, applied, rulings)
        except PermissionDenied as error:
            if not mutation.batch:
                raise
            raise aborted(error, waiting[0], len(rulings), draft.document) from None

    def refused(self, error: WireError, now_us: int) -> Refused | None:
        """That a write was refused, without its text. Whose it was is filled in by the group."""
        if not isinstance(error, CurationError):
            return None
        mutation, caller = self.mutation, self.mutation.caller
        index = error.extra.get("index", 0)
        texts = [op.content or op.new_text or "" for op in mutation.operations]
        text = texts[index] if isinstance(error, BlockedContent) else next(filter(None, texts), "")
        rules = sorted({one["rule"] for one in error.extra.get("findings", ())})
        refusal = RefusalRecord(
            us=now_us,
            profile="",
            target=mutation.target,
            name=error.wire_name,
            text_hash=text_hash(text),
            reason=", ".join(rules) or error.wire_name,
            session=caller.session,
            turn=caller.turn,
        )
        data = {"name": error.wire_name, "client": caller.client, "turn": caller.turn}
        event = EventRecord(
            us=now_us,
            topic="memory.refused",
            profile="",
            target=mutation.target,
            session=caller.session,
            data=data | ({"rules": rules} if rules else {}),
        )
        return Refused(Part(refusals=[refusal], events=[event]))

    def _rulings(self, guard: Guard, draft: Draft, applied: Applied) -> list[Ruling]:
        mutation, rulings = self.mutation, []
        for index, (operation, step) in enumerate(zip(mutation.operations, applied.steps, strict=True)):
            try:
                rulings.append(rule(guard, operation, step, mutation.caller, draft.approved))
            except (BlockedContent, PermissionDenied) as error:
                draft.give_back(change.id for change in applied.changes if change.action == "add")
                if not mutation.batch:
                    raise
                raise aborted(error, index, len(applied.steps), draft.document) from None
        by_job = mutation.caller.origin in JOBS and not mutation.caller.person
        if by_job and needs_person(draft.document, applied.document):
            why = "a job would take away more than a quarter of the store"
            for index, operation in enumerate(mutation.operations):
                if operation.action != "add" and not rulings[index].staged:
                    rulings[index] = Ruling(True, rulings[index].findings, why, rulings[index].notices)
        return rulings

    def _apply(self, draft: Draft, applied: Applied, rulings: Sequence[Ruling]) -> Committed:
        mutation = self.mutation
        changes = applied.changes
        revision = draft.revision
        if changes:
            revision = draft.record("change", applied.document, changes, mutation.caller)
        for ruling in rulings:
            draft.approve(ruling.approved)
        entry = None
        if not mutation.batch and applied.steps[0].id is not None:
            entry = entry_by_id(draft.document, applied.steps[0].id)
        told = [notice for ruling in rulings for notice in ruling.notices]
        return Committed(
            changed=bool(changes),
            target=mutation.target,
            revision=revision,
            entry=entry,
            changes=changes,
            usage=draft.usage,
            message=applied.message,
            notices=(*draft.notices, *applied.notices, *told),
            steps=applied.steps,
        )


def _without_withheld(guard: Guard, draft: Draft, applied: Applied) -> Applied:
    """The same, where notices do not show the text of an entry that no prompt gets: they are told to models too."""

    def shown(notice: Notice) -> Notice:
        entry = entry_by_id(draft.document, str(notice.data.get("id")))
        rule_id = None if entry is None else guard.withheld_by(entry.text, entry.origin, draft.approved)
        if entry is None or rule_id is None or notice.data.get("text") is None:
            return notice
        marker, said = withheld_marker(entry.id, rule_id), notice.data["text"]
        return replaced(notice, message=notice.message.replace(said, marker), data={**notice.data, "text": marker})

    steps = tuple(replaced(step, notices=tuple(map(shown, step.notices))) for step in applied.steps)
    return replaced(applied, steps=steps, notices=tuple(map(shown, applied.notices)))


def _texts(store: MemoryStore, operations: Sequence[Operation]) -> Iterable[str]:
    document, limits = store.document, store.limits
    for operation in operations:
        try:
            if operation.content is not None:
                yield accept(operation.content)
            elif operation.action == "edit" and document.chars > SMALL:
                alone = apply_operation(
                    document, replaced(operation, if_hash=None), limits=limits, stamp=_NOBODY, new_id=str
                )
                yield from (change.after for change in alone.changes if change.after)
        except WireError:  # it will be refused, or means what another operation makes
            continue
