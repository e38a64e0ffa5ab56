"""``compaction.*``: what a session is about to lose is handed over before it goes.

What comes in: the messages, an epoch. What goes out: receipts, at once or after a wait that the client chose; a fresh snapshot at the
end. What must not be here: whether a flush is worth its while, what it does (``memd/jobs``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memd.dispatch import translate
from memd.dispatch.copies import said
from memd.dispatch.table import Method
from memd.errors import InvalidParams
from memd.jobs import Compacting, Source, inline, receipt, records_of, texts_of
from memd.protocol import jobs as p, types
from memd.sessions import EMPTY_SNAPSHOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memd.dispatch.context import Context
    from memd.jobs import Receipt
    from memd.profile.stored import MessageRecord
    from memd.sessions import Session

LONGEST_EPOCH = 200
"""Bytes of an epoch: a number, or a host's own id."""
SUMMARY_CHARS = 4000
"""The most characters of ``summary_text``, its fence included: a compressor wants the gist."""


async def begin(context: Context, params: p.CompactionBegin) -> p.CompactionReceipt:
    """Hand over what is about to go."""
    session = context.session(params.session)
    compacting = _compacting(session, params.epoch)
    flushing = context.services.flushing
    if params.mode == "inline":
        return await _inline(context, compacting)
    found = await flushing.known(context.profile, compacting)
    if found is None:
        owner = flushing.new_owner()
        found = await flushing.begin(context.profile, compacting, owner, await _copies(context, params.messages, owner))
    if found.job is not None and found.state != "done" and params.wait_ms:
        jobs = context.services.jobs
        found = receipt(await jobs.wait(context.profile.name, found.job.id, params.wait_ms / 1000))
    return await _told(context, session, found)


async def end(context: Context, params: p.CompactionEnd) -> p.CompactionEnded:
    """A boundary of the conversation: what is in memory now is the new snapshot, if the compaction came about."""
    session = context.session(params.session)
    missed = await context.services.flushing.end(context.profile, _compacting(session, params.epoch))
    if params.status == "completed":
        await context.profile.look()
        await context.services.sessions.refresh(session, context.profile).wait()
    return p.CompactionEnded(snapshot=translate.snapshot(session.frozen or EMPTY_SNAPSHOT), missed=missed)


async def flush_at_reset(context: Context, session: Session, messages: Sequence[types.Message]) -> str | None:
    """The flush of a session that is thrown away; the id of its job, None if none is worth its while."""
    flushing = context.services.flushing
    compacting, owner = _compacting(session, "reset"), flushing.new_owner()
    found = await flushing.known(context.profile, compacting)
    if found is None:
        found = await flushing.begin(context.profile, compacting, owner, await _copies(context, messages, owner))
    return found.job.id if found.job is not None else None


async def _inline(context: Context, compacting: Compacting) -> p.CompactionReceipt:
    """The agent flushes by itself. The same call again gets another message for the same epoch."""
    await context.services.flushing.inline(context.profile, compacting)
    mark = context.services.jobs.new_lease()
    message = types.Message(role="user", content=inline.text(mark), synthetic=True)
    return p.CompactionReceipt(
        state="skipped",
        reason="inline: the agent flushes in its own conversation",
        summary_text="",
        inline=p.Inline(message=message, marker=inline.marker(mark)),
    )


async def _copies(context: Context, messages: Sequence[types.Message], owner: str) -> list[MessageRecord]:
    """Copies of the messages, their secrets masked. The caller may give up meanwhile: nothing has happened yet."""
    kept = said(messages)
    texts = texts_of(kept)
    profile = context.profile
    masked = await profile.masked(texts) if profile.masking_is_slow(texts) else profile.mask_all(texts)
    return records_of(kept, masked, Source(profile.name, owner, 1, context.services.clock()))


async def _told(context: Context, session: Session, found: Receipt) -> p.CompactionReceipt:
    return p.CompactionReceipt(
        job=found.job.id if found.job is not None else None,
        state=found.state,
        reason=found.reason,
        summary_text=await _summary(context, session, found.job.summary if found.job is not None else ""),
    )


async def _summary(context: Context, session: Session, summary: str) -> str:
    """What the job found, line by line without those that the scan objects to, inside the session's fence."""
    fence, lines = session.fence, []
    room = SUMMARY_CHARS - len(fence.open) - len(fence.close) - 2
    for raw in summary.splitlines():
        line = raw.replace(fence.open, "").replace(fence.close, "").strip()
        if not line or len(line) + 1 > room:
            continue
        _, verdict = await context.profile.check(line)
        if verdict in ("ok", "warn"):
            lines.append(line)
            room -= len(line) + 1
    return "\n".join([fence.open, *lines, fence.close]) if lines else ""


def _compacting(session: Session, epoch: str | int) -> Compacting:
    name = str(epoch)
    if not 1 <= len(name.encode()) <= LONGEST_EPOCH:
        msg = f"epoch: a number, or a text of 1 to {LONGEST_EPOCH} bytes expected"
        raise InvalidParams(msg, field="epoch")
    turn = session.turn.id if session.turn is not None else None
    return Compacting(session.id, name, session.completed, session.endpoint, turn)


METHODS = (
    Method("compaction.begin", p.CompactionBegin, p.CompactionReceipt, "add", begin, "task", waits=True),
    Method("compaction.end", p.CompactionEnd, p.CompactionEnded, "add", end, "task"),
)
