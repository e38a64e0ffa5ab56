"""Writes: from what a handler was asked to what the profile's writer gets, and the failure budget on the way back.

What comes in: operations, the parameters every mutation has. What goes out: ``Pending`` answers. What must not be here:
matching, limits, any rule about a store's content.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from memd.dispatch.call import Pending
from memd.dispatch.withholding import hide
from memd.errors import CurationError, TurnBudgetExhausted, WireError
from memd.profile.edits import usage_map
from memd.profile.values import Mutation

if TYPE_CHECKING:
    from collections.abc import Callable

    from memd.deferred import Ticket
    from memd.dispatch.context import Context, Writing
    from memd.profile.values import Committed, Operation, Target
    from memd.protocol.params import Params

_encoder = msgspec.msgpack.Encoder(order="deterministic")
_NOT_COMPARED = ("deadline_ms", "request_id")
_OF_BATCH = ("applied", "index", "results")


def fingerprint(method: str, params: Params) -> bytes:
    """What a ``request_id`` stands for: the method and all its parameters but the deadline."""
    given: dict[str, Any] = msgspec.to_builtins(params)
    named = {key: value for key, value in given.items() if value is not None and key not in _NOT_COMPARED}
    return hashlib.sha256(_encoder.encode((method, named))).digest()


@dataclass(slots=True)
class Write:
    """A change to one store, and the method that asks for it. ``through_tool``: a model's arguments."""

    method: str
    target: Target
    operations: tuple[Operation, ...]
    batch: bool = False
    through_tool: bool = False


def submit(context: Context, write: Write, params: Any, answer: Callable[[Committed, Writing], Any]) -> Pending:
    """Queue a change and say how its answer is made.

    Raises:
        WireError: It cannot be queued; nothing was.
    """
    writing = context.writing(params, through_tool=write.through_tool)
    mutation = Mutation(
        target=write.target,
        operations=write.operations,
        caller=writing.caller,
        batch=write.batch,
        if_revision=getattr(params, "if_revision", None),
        request_id=params.request_id,
        fingerprint=fingerprint(write.method, params) if params.request_id is not None else b"",
    )
    ticket = context.profile.submit(mutation)

    def settle(done: Ticket) -> Any:
        if done.error is not None:
            raise refusal(context, writing, mutation, hide(context, done.error))
        if writing.budget is not None:
            writing.budget.reset()
        return answer(done.result, writing)

    return Pending(ticket, settle)


def refusal(context: Context, writing: Writing, mutation: Mutation, error: Exception) -> Exception:
    """The error as the caller gets it: a repairable one counted, and from the budget's end on a terminal one."""
    if not isinstance(error, CurationError):
        return error
    # Always the real usage: a model that merely believes that the store is full throws away what it should keep.
    usage = error.extra.get("usage") or usage_map(context.profile.state(mutation.target).usage)
    budget = writing.budget
    if budget is None:
        return _with(error, error.message, usage=usage)
    failure = budget.refuse(
        _call_mark(mutation),
        limit=context.profile.settings.turn.failure_budget,
        now_us=context.services.clock(),
    )
    failures = {"count": failure.count, "limit": failure.limit}
    if failure.exhausted:
        message = (
            f"refused {failure.count} times in a row, last because: {error.message}. Leave memory as it is now, "
            "go on and answer the user; what is worth keeping can be saved in a later turn"
        )
        batch = {key: error.extra[key] for key in _OF_BATCH if key in error.extra}
        return TurnBudgetExhausted(
            message, outcome=error.outcome, cause=error.wire_name, failures=failures, usage=usage, **batch
        )
    message = error.message
    if failure.repeated:
        message += "; this is the same call as before, and unchanged it will fail the same way again"
    if budget.idle_us is None:
        message += f" (refusal {failure.count} of {failure.limit} in this turn)"
    elif failure.count > 1:  # without turns a first refusal may well be the only one, as that of a command typed once
        message += f" (refusal {failure.count} of {failure.limit} in a row)"
    return _with(error, message, failures=failures, usage=usage)


def _with(error: WireError, message: str, **extra: Any) -> WireError:
    return type(error)(message, outcome=error.outcome, **{**error.extra, **extra})


def _call_mark(mutation: Mutation) -> bytes:
    """What makes two calls the same call, whatever they are named."""
    return hashlib.sha256(repr((mutation.target, mutation.operations)).encode("utf-8", "surrogateescape")).digest()
