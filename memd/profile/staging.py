"""Staging: which part of a change is applied and which part waits for a person.

What comes in: a draft, operations that are valid, the ruling for each. What goes out: the answer, and on the draft a revision, a
proposal, or both. What must not be here: the rulings themselves (``policy``), I/O.

Of a batch, adds that fit without the operations that have to wait are applied as one revision. Everything else is one atomic
proposal: what waits, what frees the room, and adds that need either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memd.errors import PermissionDenied, WireError
from memd.profile.edits import apply_batch, apply_operation, usage_line
from memd.profile.proposals import MOST_PENDING, attempt, staged
from memd.profile.values import Change, Committed, Notice, Stamp, Step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memd.profile.draft import Draft
    from memd.profile.entries import Document
    from memd.profile.policy import Guard, Ruling
    from memd.profile.proposals import Proposal
    from memd.profile.values import Applied, Limits, Mutation, Operation


@dataclass(frozen=True, slots=True)
class _Split:
    """A batch in two: the places of the adds that are applied now, and of what waits, with its operations."""

    now: tuple[int, ...]
    later: tuple[int, ...]
    operations: tuple[Operation, ...]


def stage(draft: Draft, guard: Guard, mutation: Mutation, applied: Applied, rulings: Sequence[Ruling]) -> Committed:
    """Apply what may be applied, and have the rest wait.

    Args:
        draft: The store, as it is before the change.
        guard: The profile's.
        mutation: What was asked for.
        applied: What it would do as a whole.
        rulings: One for each operation; at least one has to wait.

    Raises:
        PermissionDenied: Too many proposals wait already. The draft is as it was.
    """
    draft.give_back(change.id for change in applied.changes if change.action == "add")
    split = _split(draft, mutation.operations, applied.steps, rulings)
    operations = split.operations
    known = guard.proposals.same(mutation.target, operations) or _staged_just_now(draft, guard, operations)
    if known is None and len(guard.proposals.waiting()) + len(draft.staged) >= MOST_PENDING:
        msg = (
            f"this change needs a person's approval, and {MOST_PENDING} others wait for one already: ask the user to look at "
            "them (memd pending)"
        )
        raise PermissionDenied(msg, pending=MOST_PENDING, limit=MOST_PENDING)
    steps, changes = _apply_now(draft, mutation, split)
    if known is None:
        proposal = staged(
            guard.proposals.new_id(f"{draft.now_us}\0{draft.revision}\0{operations!r}\0{len(draft.part.proposals)}"),
            store=draft.store.id,
            profile=guard.profile,
            caller=mutation.caller,
            target=mutation.target,
            us=draft.now_us,
            base=draft.revision,
            operations=operations,
            findings=tuple(one for at in split.later for one in rulings[at].findings),
        )
        draft.stage(proposal, guard.proposals)
    else:
        proposal = known
    why = next((rulings[at].why for at in split.later if rulings[at].why), "")
    notices = [notice for at in split.now for notice in (*applied.steps[at].notices, *rulings[at].notices)]
    return Committed(
        changed=bool(changes),
        target=mutation.target,
        revision=draft.revision,
        entry=None,
        changes=changes,
        usage=draft.usage,
        message=_message(proposal.id, why, len(split.now), repeated=known is not None, usage=usage_line(draft.usage)),
        notices=(*draft.notices, *notices, _notice(proposal.id, why)),
        steps=tuple(steps[at] if at in steps else _waiting(applied.steps[at]) for at in range(len(rulings))),
        staged=proposal.id,
    )


def _staged_just_now(draft: Draft, guard: Guard, operations: tuple[Operation, ...]) -> Proposal | None:
    """One that would do the very same and is in this group."""
    return next((one for one in draft.staged if one.profile == guard.profile and one.operations == operations), None)


def _split(draft: Draft, operations: Sequence[Operation], steps: Sequence[Step], rulings: Sequence[Ruling]) -> _Split:
    limits, stamp = draft.store.limits, Stamp(draft.now_us, "")
    document, now, later = draft.document, [], []
    for at, (operation, step, ruling) in enumerate(zip(operations, steps, rulings, strict=True)):
        alone = None
        if operation.action == "add" and not ruling.staged:
            alone = _alone(document, operation, limits, stamp)
        if alone is None or alone.steps[0].status != step.status:
            later.append(at)
        else:
            document = alone.document
            now.append(at)
    rest = _pinned(document, [(operations[at], steps[at]) for at in later])
    if not now or _fits(document, rest, limits, stamp):
        return _Split(tuple(now), tuple(later), rest)
    whole = _pinned(draft.document, list(zip(operations, steps, strict=True)))
    return _Split((), tuple(range(len(operations))), whole)


def _alone(document: Document, operation: Operation, limits: Limits, stamp: Stamp) -> Applied | None:
    """An add by itself; None if there is no room for it yet."""
    try:
        return apply_operation(document, operation, limits=limits, stamp=stamp, new_id=_no_id)
    except WireError:
        return None


def _fits(document: Document, operations: Sequence[Operation], limits: Limits, stamp: Stamp) -> bool:
    try:
        attempt(document, operations, limits=limits, stamp=stamp, new_id=_no_id)
    except WireError:
        return False
    return True


def _no_id(_text: str) -> str:
    """The id of an entry that is only tried out; no operation can name it."""
    return ""


def _pinned(document: Document, wanted: Sequence[tuple[Operation, Step]]) -> tuple[Operation, ...]:
    """The operations with the entries they mean by id: what the store becomes meanwhile must not lead them elsewhere.

    A replacement or a removal was decided about a text, so that it holds for that text only; an edit holds as long as its part
    is there.
    """
    entries = {entry.id: entry for entry in document.entries}
    touched: set[str] = set()
    pinned = []
    for operation, step in wanted:
        entry = entries.get(step.id) if step.id and operation.action != "add" else None
        removed = [change for change in step.changes if change.action == "remove"]
        if operation.content is not None:  # as it will be stored, so that the same text is the same proposal
            stored = next((change.after for change in step.changes if change.after is not None), operation.content)
            operation = replace(operation, content=stored)  # noqa: PLW2901 - the same operation, said exactly
        if entry is not None and entry.id not in touched:
            if operation.action == "edit":
                operation = replace(operation, id=entry.id)  # noqa: PLW2901 - as above
            elif (
                operation.action == "remove" and len(removed) > 1
            ):  # by the text that they all have: an id would mean one of them
                operation = replace(operation, id=None, old_text=entry.text, if_hash=entry.hash)  # noqa: PLW2901 - as above
            else:
                operation = replace(operation, id=entry.id, old_text=None, if_hash=entry.hash)  # noqa: PLW2901 - as above
        touched.update(change.id for change in step.changes)
        pinned.append(operation)
    return tuple(pinned)


def _apply_now(draft: Draft, mutation: Mutation, split: _Split) -> tuple[dict[int, Step], tuple[Change, ...]]:
    """Apply the adds that need nothing else; their steps by place."""
    if not split.now:
        return {}, ()
    operations = [mutation.operations[at] for at in split.now]
    applied = apply_batch(
        draft.document,
        operations,
        limits=draft.store.limits,
        stamp=draft.stamp(mutation.caller.origin),
        new_id=draft.new_id,
    )
    if applied.changes:
        draft.record("change", applied.document, applied.changes, mutation.caller)
    return dict(zip(split.now, applied.steps, strict=True)), applied.changes


def _waiting(step: Step) -> Step:
    """What the answer says of an operation that waits. An entry that is not there yet has no id."""
    added = any(change.action == "add" for change in step.changes)
    return Step("staged", None if added else step.id, (), "Waits for a person.", step.notices)


def _message(proposal: str, why: str, applied: int, *, repeated: bool, usage: str) -> str:
    first = f"{applied} applied, the rest is not: it waits" if applied else "Not applied: it waits"
    again = ", as it did already," if repeated else ""
    reason = f" because {why}" if why else ""
    return f"{first}{again} for the user's approval as {proposal}{reason}. Nothing more is to be done here. {usage}"


def _notice(proposal: str, why: str) -> Notice:
    return Notice(
        "staged",
        f"waits for approval: `memd pending` shows it, `memd approve {proposal}` applies it",
        {"id": proposal, "reason": why},
    )
