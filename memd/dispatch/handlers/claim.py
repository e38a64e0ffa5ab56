"""``jobs.claim``, ``jobs.renew``, ``jobs.submit``: a client whose own model reviews.

What comes in: claims, and what the model wants. What goes out: leases with prompts, jobs. What must not be here: leases themselves, trying
operations (``memd/jobs``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from memd.dispatch.handlers.job import told
from memd.dispatch.table import Method
from memd.dispatch.tool_schema import tool_schema
from memd.errors import InvalidParams, ReviewFailed
from memd.jobs import Used, offer, tried
from memd.protocol import jobs as p
from memd.protocol.types import Message

if TYPE_CHECKING:
    from memd.dispatch.context import Context


async def claim(context: Context, params: p.JobsClaim) -> p.Claimed:
    """Take a job of one's own session, and get what its model needs."""
    session = context.session(params.session)
    jobs, profile = context.services.jobs, context.profile
    lease_s = profile.settings.review.lease_s
    job = await jobs.clients.claim(profile.name, params.job, session.id, lease_s=lease_s)
    try:
        offered = offer(jobs.profile(profile.name), job, await jobs.journal.messages(job.ranges))
    except ReviewFailed as error:
        await jobs.clients.fail(profile.name, job.id, job.lease, error.message)
        raise InvalidParams(error.message, field="job") from error
    return p.Claimed(
        lease=job.lease,
        lease_s=lease_s,
        system=offered.system,
        messages=[Message(role="user", content=offered.memory), Message(role="user", content=offered.conversation)],
        tool=tool_schema(params.style),
    )


async def renew(context: Context, params: p.JobsRenew) -> p.Renewed:
    """Hold it longer."""
    lease_s = context.profile.settings.review.lease_s
    await context.services.jobs.clients.renew(context.profile.name, params.job, params.lease, lease_s=lease_s)
    return p.Renewed(lease_s=lease_s)


async def submit(context: Context, params: p.JobsSubmit) -> p.Job:
    """Hand over what the model wants, or that it led nowhere; the job once it has ended, or is queued again."""
    jobs, name = context.services.jobs, context.profile.name
    if params.error is not None:
        return told(
            context, await jobs.clients.fail(name, params.job, params.lease, context.profile.mask(params.error))
        )
    held = await jobs.clients.held(name, params.job, params.lease)
    tokens = params.tokens or p.Tokens(input=0, cached=0, output=0)
    used = Used(tokens.input, tokens.cached, tokens.output, steps=1, model=params.model)
    operations: list[dict[str, Any]] = [msgspec.to_builtins(operation) for operation in params.operations]
    left = context.profile.settings.turn.failure_budget - jobs.queue.failures(held)
    found = tried(jobs.profile(name), held, operations, used, left)
    summary = context.profile.mask(params.summary or "")
    return told(context, await jobs.clients.submit(name, params.job, params.lease, found, summary=summary))


METHODS = (
    Method("jobs.claim", p.JobsClaim, p.Claimed, "add", claim, "task", once=True),
    Method("jobs.renew", p.JobsRenew, p.Renewed, "add", renew, "task"),
    Method("jobs.submit", p.JobsSubmit, p.Job, "add", submit, "task", once=True),
)
