"""``approval.*``: what waits for a person, and what the person decides.

What comes in: ids. What goes out: proposals, what an approval did. What must not be here: how a proposal is tried out or applied.

Only the operator socket decides, and not for a process that an agent has started: its own agent's connection is among those of its
ancestors. That is best effort. Who can start a process outside of that tree can decide; README says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memd.dispatch import translate
from memd.dispatch.call import Pending
from memd.dispatch.table import Method
from memd.dispatch.writes import fingerprint
from memd.errors import InvalidParams, PermissionDenied
from memd.profile.approving import Decider
from memd.protocol import approval as p, types

if TYPE_CHECKING:
    from memd.deferred import Ticket
    from memd.dispatch.context import Context, Writing


async def list_proposals(context: Context, _params: p.ApprovalList) -> p.ProposalList:
    """What waits."""
    profile = context.profile
    listed = await profile.approvals.listed()
    count, oldest_s = profile.approvals.pending()
    mask = translate.as_it_is if context.role == "operator" else profile.mask
    now_us = context.services.clock()
    return p.ProposalList(
        proposals=[translate.proposal(item, now_us, mask) for item in listed], count=count, oldest_s=oldest_s
    )


def approve(context: Context, params: p.ApprovalApprove) -> Pending:
    """Apply a proposal, or let an entry into prompts."""
    if params.if_revision is not None:
        msg = "if_revision: a proposal is tried out on the store as it is; leave it out"
        raise InvalidParams(msg, field="if_revision")
    writing = context.writing(params)
    profile = context.profile
    ticket = profile.approvals.approve(
        params.id,
        _decider(context, writing),
        content=params.content,
        request_id=params.request_id,
        fingerprint=fingerprint("approval.approve", params),
    )

    def settle(done: Ticket) -> types.Mutation:
        if done.error is not None:
            raise done.error
        findings = profile.state(done.result.target).findings
        return translate.mutation(done.result, profile.mask, writing.notices, findings)

    return Pending(ticket, settle)


async def reject(context: Context, params: p.ApprovalReject) -> p.Proposal:
    """Settle a proposal without applying it."""
    writing = context.writing(params)
    approvals = context.profile.approvals
    settled = await approvals.reject(params.id, _decider(context, writing), request_id=params.request_id)
    return translate.proposal(approvals.describe(settled), context.services.clock(), translate.as_it_is)


def _decider(context: Context, writing: Writing) -> Decider:
    """Who decides.

    Raises:
        PermissionDenied: An agent does, as far as can be seen.
    """
    pid, agent = context.peer.pid, context.agent_above()
    if agent is not None:
        msg = (
            f"process {pid} was started by process {agent}, which is connected as an agent: what waits for a person is "
            "decided by the user, in a terminal of their own"
        )
        raise PermissionDenied(msg, agent=agent)
    return Decider(writing.caller, context.peer.command, context.services.lineage(pid).terminal)


METHODS = (
    Method("approval.list", p.ApprovalList, p.ProposalList, "read", list_proposals, "task"),
    Method("approval.approve", p.ApprovalApprove, types.Mutation, "operator", approve, "deferred", mutation=True),
    Method("approval.reject", p.ApprovalReject, p.Proposal, "operator", reject, "task", mutation=True),
)
