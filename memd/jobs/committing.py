"""The commit of a job: what its reviewer wants, on top of what there is by now, through the profile's own writer.

What comes in: a job that is decided, its profile. What goes out: revisions, proposals, and what was not done and why. What must not be
here: reviewing, when a job runs, any other way to a store.

Operations on entries that have changed since the reviewer saw them are conflicts and left out; so is whatever the store refuses, one
operation at a time, until the rest is a batch that goes through as a whole. Each batch has a request id of the job's, so that a job
that is run again after a crash finds the answer it had.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from memd.errors import StoreError, WireError
from memd.jobs.echoes import echoed
from memd.jobs.ports import JobCommit
from memd.profile.near import near_duplicate
from memd.profile.stored import RefusedRecord
from memd.profile.values import TARGETS, Caller, Committed, Mutation, Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from memd.jobs.ports import JobProfile, Runner
    from memd.profile.stored import DeskRecord, JobRecord, MessageRecord, RangeRecord
    from memd.profile.values import Action, Target

CLIENT = "memd"
"""Who a job's revisions are by."""
CHANGED_MEANWHILE = frozenset({"conflict", "not_found", "ambiguous_match"})
"""Refusals of a change to an entry that say no more than that it is not what the reviewer saw."""
DUPLICATE = "near_duplicate"
"""Why an add is left out whose text is there in other letters; the name of the notice that a client would get."""


@dataclass(slots=True)
class _Batch:
    """Operations on one store under one origin, and what has become of those that are not among them any more."""

    target: Target
    origin: str
    operations: list[DeskRecord]
    refused: list[RefusedRecord] = field(default_factory=list)
    conflicts: list[RefusedRecord] = field(default_factory=list)

    def drop(self, at: int, name: str) -> None:
        """Leave one out."""
        operation = self.operations.pop(at)
        meanwhile = operation.action != "add" and name in CHANGED_MEANWHILE
        (self.conflicts if meanwhile else self.refused).append(RefusedRecord(operation, name))


class Committing:
    """Brings jobs in, each at most once however often it is called for it.

    Args:
        messages: The copies of messages in some ranges, as ``Journal.messages`` gives them.
        runner: Where what takes long runs.
    """

    def __init__(
        self, messages: Callable[[Sequence[RangeRecord]], Awaitable[list[MessageRecord]]], runner: Runner
    ) -> None:
        self._messages = messages
        self._runner = runner

    def __repr__(self) -> str:
        return "<Committing>"

    async def commit(self, profile: JobProfile, job: JobRecord) -> JobCommit:
        """Bring in what a decided job wants: one revision a store and origin at most, all of which ``undo job`` takes back.

        Raises:
            StoreError: A store or the journal cannot be used now. What was brought in before stays, and is found again.
        """
        batches = [batch for target in TARGETS for batch in await self._batches(profile, job, target)]
        done = [await _bring_in(profile, job, batch) for batch in batches]
        return JobCommit(
            committed=[one.revision for one in done if one is not None and one.changed],
            staged=[one.staged for one in done if one is not None and one.staged is not None],
            refused=[refused for batch in batches for refused in batch.refused],
            conflicts=[refused for batch in batches for refused in batch.conflicts],
        )

    async def _batches(self, profile: JobProfile, job: JobRecord, target: Target) -> list[_Batch]:
        """What concerns one store, apart what repeats a tool's or a document's words: that is theirs, whoever says it again."""
        wanted = [one for one in job.operations if one.target == target]
        if not wanted:
            return []
        messages = await self._messages(job.ranges)
        texts = [one.content or one.new_text or "" for one in wanted]
        bodies = [one.withheld for one in messages if one.withheld]
        told = await self._runner.run(echoed, texts, bodies) if bodies else [False] * len(wanted)
        own = [one for one, theirs in zip(wanted, told, strict=True) if not theirs]
        others = [one for one, theirs in zip(wanted, told, strict=True) if theirs]
        return [_Batch(target, origin, some) for origin, some in ((job.kind, own), ("tool", others)) if some]


async def _bring_in(profile: JobProfile, job: JobRecord, batch: _Batch) -> Committed | None:
    """Commit what can be; None if nothing is left."""
    request_id = f"job:{job.id}:{batch.target}:{batch.origin}"
    earlier = profile.answered(request_id, request_id.encode())
    if earlier is not None:
        return cast("Committed", await earlier.wait())
    _leave_out_duplicates(profile, batch)
    while batch.operations:
        try:
            return cast("Committed", await profile.submit(_mutation(job, batch, request_id)).wait())
        except StoreError:
            raise
        except WireError as error:
            batch.drop(_culprit(error, batch.operations), error.wire_name)
    return None


def _leave_out_duplicates(profile: JobProfile, batch: _Batch) -> None:
    entries = profile.state(batch.target).document.entries
    for at in reversed(range(len(batch.operations))):
        operation = batch.operations[at]
        if operation.action == "add" and near_duplicate(operation.content or "", entries) is not None:
            batch.drop(at, DUPLICATE)


def _culprit(error: WireError, operations: Sequence[DeskRecord]) -> int:
    """Which operation a refused batch failed at; the last one, if the error is about the batch as a whole."""
    at = error.extra.get("index")
    known = isinstance(at, int) and 0 <= at < len(operations)
    return cast("int", at) if known else len(operations) - 1


def _mutation(job: JobRecord, batch: _Batch, request_id: str) -> Mutation:
    operations = tuple(
        Operation(
            cast("Action", one.action),
            content=one.content,
            old_text=one.old_text,
            new_text=one.new_text,
            id=one.id,
            if_hash=one.if_hash,
        )
        for one in batch.operations
    )
    caller = Caller(
        client=CLIENT, origin=batch.origin, session=job.session, turn=None, job=job.id, reason=job.summary or None
    )
    return Mutation(
        batch.target, operations, caller, batch=True, request_id=request_id, fingerprint=request_id.encode()
    )
