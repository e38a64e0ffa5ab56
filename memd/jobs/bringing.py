"""Bringing in what a job wants: through the profile's writer, like any client.

What comes in: a job that is decided. What goes out: revisions, proposals, what was refused. What must not be here: rules about content or
origin (``profile``), which job it is.

Each store's operations are one batch, whose request id says which job it is: the same batch again is answered as it was. An operation
that cannot be done is taken out, and the others are tried without it.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from memd.errors import Conflict, CurationError, PermissionDenied
from memd.jobs.ports import JobCommit
from memd.profile.stored import RefusedRecord
from memd.profile.values import TARGETS, Caller, Mutation, Operation

if TYPE_CHECKING:
    from memd.errors import WireError
    from memd.jobs.ports import JobProfile
    from memd.profile.stored import DeskRecord, JobRecord
    from memd.profile.values import Committed, Target


async def bring_in(profile: JobProfile, job: JobRecord) -> JobCommit:
    """Commit a job's operations.

    Raises:
        StoreError: A store cannot be written now; call it again.
        WireError: Nothing can be committed.
    """
    committed: list[int] = []
    staged: list[str] = []
    refused: list[RefusedRecord] = []
    conflicts: list[RefusedRecord] = []
    for target in TARGETS:
        wanted = [one for one in job.operations if one.target == target]
        dropped = 0
        while wanted:
            try:
                done: Committed = await profile.submit(_mutation(job, target, wanted, dropped)).wait()
            except (CurationError, Conflict, PermissionDenied) as error:
                at = _index(error, len(wanted))
                where = conflicts if isinstance(error, Conflict) else refused
                where.append(RefusedRecord(wanted.pop(at), error.wire_name))
                dropped += 1
                continue
            if done.changed:
                committed.append(done.revision)
            if done.staged is not None:
                staged.append(done.staged)
            break
    return JobCommit(committed, staged, refused, conflicts)


def _mutation(job: JobRecord, target: Target, wanted: list[DeskRecord], dropped: int) -> Mutation:
    request_id = f"job:{job.id}:{target}:{dropped}"
    return Mutation(
        target=target,
        operations=tuple(_operation(one) for one in wanted),
        caller=Caller(client="memd", origin=job.kind, session=job.session, turn=job.turn, job=job.id),
        batch=True,
        request_id=request_id,
        fingerprint=hashlib.sha256(request_id.encode()).digest(),
    )


def _operation(one: DeskRecord) -> Operation:
    return Operation(one.action, one.content, one.old_text, one.new_text, one.id, one.if_hash)  # type: ignore[arg-type]  # an action


def _index(error: WireError, count: int) -> int:
    """Which of the operations it was; the last, where the error does not say."""
    index = error.extra.get("index")
    return index if isinstance(index, int) and 0 <= index < count else count - 1
