"""The desk: where a reviewer's operations are tried, on a copy of the stores, before anything is committed.

What comes in: what a model sent, unchecked. What goes out: answers as the memory tool gives them, and the operations that were accepted,
each pinned to the entry that it means. What must not be here: the stores themselves, endpoints, prompts.

An operation on an entry that was there names it by its id and the text it had, so that the commit can tell whether it still is what the
reviewer saw. One on an entry that the job itself made names it by its text: it gets its id only at the commit.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from memd.errors import CurationError, InvalidParams, StoreDisabled, WireError
from memd.profile.aliases import tool_operations
from memd.profile.edits import apply_batch, usage_line
from memd.profile.snapshot import withheld_marker
from memd.profile.stored import DeskRecord, RefusedRecord
from memd.profile.values import TARGETS, Limits, Stamp, usage_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memd.jobs.ports import Attempt, Found, JobProfile
    from memd.profile.entries import Document, Entry
    from memd.profile.values import Operation, Step, Target

MOST_OPERATIONS = 20
"""Of one job: more is no review but a rewriting of the store."""
_NEW = "new-"


class Desk:
    """One attempt's copy of the stores. What is accepted, refused and counted goes into ``found`` at once."""

    def __init__(self, profile: JobProfile, attempt: Attempt, found: Found) -> None:
        self._profile = profile
        self._attempt = attempt
        self._found = found
        self._documents: dict[Target, Document] = {
            target: profile.state(target).document for target in TARGETS if getattr(profile.settings.stores, target)
        }
        self._touched: set[str] = set()
        self._made = 0

    def __repr__(self) -> str:
        return f"<Desk with {len(self._found.operations)} operations>"

    @property
    def exhausted(self) -> bool:
        """True if the turn has no failures left: the reviewer has to stop."""
        return self._found.failures >= self._attempt.failures_left

    def call(self, arguments: object) -> dict[str, Any]:
        """Try what a model asks for. The answer is a plain map to hand back to it; nothing is ever raised for what it sent."""
        try:
            target, operations, _ = tool_operations(_unwrapped(arguments))
            document = self._document(target)
            if not operations:
                return self._told(target, "These are the entries.")
            if len(self._found.operations) + len(operations) > MOST_OPERATIONS:
                msg = f"a review may change at most {MOST_OPERATIONS} things; leave the least important out"
                raise InvalidParams(msg, field="operations")
        except WireError as error:
            return self.failed(error.message, error.wire_name)
        return self._try(target, document, operations)

    def failed(self, message: str, name: str = "invalid_params") -> dict[str, Any]:
        """Count something that cannot be made sense of; the answer for the model."""
        self._found.failures += 1
        return {"success": False, "done": self.exhausted, "error": name, "message": message}

    def _try(self, target: Target, document: Document, operations: Sequence[Operation]) -> dict[str, Any]:
        stamp = Stamp(self._attempt.job.us, self._attempt.job.kind)
        try:
            applied = apply_batch(document, operations, limits=self._limits(target), stamp=stamp, new_id=self._new_id)
        except WireError as error:
            at = error.extra.get("index")
            operation = operations[at if isinstance(at, int) and 0 <= at < len(operations) else -1]
            self._found.refused.append(RefusedRecord(_record(target, operation), error.wire_name))
            answer = self.failed(error.message, error.wire_name)
            return answer | (self._entries(target) if isinstance(error, CurationError) else {})
        for operation, step in zip(operations, applied.steps, strict=True):
            if step.changes:
                self._found.operations.append(self._pinned(target, document, operation, step))
        self._documents[target] = applied.document
        return self._told(target, applied.message)

    def _pinned(self, target: Target, document: Document, operation: Operation, step: Step) -> DeskRecord:
        record = _record(target, operation)
        if operation.action == "add" or step.id is None:
            return record
        entry = next((one for one in document.entries if one.id == step.id), None)
        if entry is None or step.id.startswith(_NEW):
            before = next((change.before for change in step.changes if change.before is not None), None)
            record.id = record.if_hash = None
            record.old_text = operation.old_text if operation.action == "edit" else before
        else:
            record.id = step.id
            record.if_hash = entry.hash if step.id not in self._touched else None
            record.old_text = operation.old_text if operation.action == "edit" else None
            self._touched.add(step.id)
        return record

    def _document(self, target: Target) -> Document:
        if target not in self._documents:
            msg = f"the store {target!r} is switched off; nothing can be kept there"
            raise StoreDisabled(msg)
        return self._documents[target]

    def _limits(self, target: Target) -> Limits:
        limits = self._profile.settings.limits
        return Limits(getattr(limits, target), limits.near_percent)

    def _told(self, target: Target, message: str) -> dict[str, Any]:
        usage = usage_of(self._documents[target].chars, self._limits(target))
        return {"success": True, "done": False, "message": message, "usage": usage_line(usage), **self._entries(target)}

    def _entries(self, target: Target) -> dict[str, Any]:
        withheld = self._profile.state(target).withheld
        entries = self._documents[target].entries
        return {"current_entries": [{"id": one.id, "text": shown_entry(one, withheld)} for one in entries]}

    def _new_id(self, _text: str) -> str:
        self._made += 1
        return f"{_NEW}{self._made}"


def shown_entry(entry: Entry, withheld: Mapping[str, str]) -> str:
    """An entry's text, or the marker in place of one that is kept out of prompts."""
    rule = withheld.get(entry.id)
    return entry.shown if rule is None else withheld_marker(entry.id, rule)


def _unwrapped(arguments: object) -> object:
    """What was encoded once too often, or not at all."""
    for _ in range(2):
        if not isinstance(arguments, str):
            break
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            break
    return arguments


def _record(target: Target, operation: Operation) -> DeskRecord:
    return DeskRecord(
        target,
        operation.action,
        operation.content,
        operation.old_text,
        operation.new_text,
        operation.id,
        operation.if_hash,
    )
