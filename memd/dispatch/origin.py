"""The origin of a write: what a caller may claim, as one function over a small table.

What comes in: the claim and the facts that bound it. What goes out: the origin to record, and whether a claim was
lowered. What must not be here: what an origin means for approval, connections, wire types.

An origin says how much a text is to be trusted: ``user`` (a person said it) over ``agent`` (a model concluded it) over
``tool`` (a document or a tool's output held it). A claim never raises. The origins of jobs, imports and outside edits
are never claimed: they follow from how the write came in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from memd.errors import InvalidParams

if TYPE_CHECKING:
    from memd.dispatch.access import Role

Claim = Literal["user", "agent", "tool"]

TRUST: dict[str, int] = {"tool": 0, "agent": 1, "user": 2}


def settle_origin(claim: str | None, *, role: Role, user_turn: bool, through_tool: bool = False) -> tuple[str, bool]:
    """The origin of a write and whether the claim had to be lowered.

    Args:
        claim: What the caller says, or None.
        role: The operator socket is where people write.
        user_turn: The write belongs to an open turn that a user's message began.
        through_tool: The arguments are a model's (``memory.tool``), whoever passes them on.

    Raises:
        InvalidParams: An origin that cannot be claimed.
    """
    if claim is not None and claim not in TRUST:
        msg = f'origin: expected "user", "agent" or "tool", got "{claim}"; the others follow from how a write comes in'
        raise InvalidParams(msg, field="origin")
    highest = "user" if not through_tool and (role == "operator" or user_turn) else "agent"
    if claim is None:
        return ("user" if role == "operator" and not through_tool else "agent"), False
    if TRUST[claim] > TRUST[highest]:
        return highest, True
    return claim, False
