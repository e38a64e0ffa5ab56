"""``memory.tool``: a model's call, whatever the model made of it.

What comes in: arguments that nobody checked. What goes out: an answer that the host hands to the model as it is: what
happened, or how to repair the call, or that it should stop. What must not be here: RPC errors for what a model did; those
are for what the host did (an unknown session, a turn that is not open) and for what neither can help.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memd.dispatch import translate
from memd.dispatch.call import Pending
from memd.dispatch.handlers.memory import require_adds
from memd.dispatch.table import Method
from memd.dispatch.writes import Write, submit
from memd.errors import (
    Conflict,
    CurationError,
    InvalidParams,
    PermissionDenied,
    StoreDisabled,
    StoreError,
    StoreUnreadable,
    TurnBudgetExhausted,
    WireError,
)
from memd.profile.aliases import tool_operations
from memd.profile.snapshot import withheld_marker
from memd.profile.values import TARGETS
from memd.protocol import params as p, results, types

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from memd.deferred import Ticket
    from memd.dispatch.context import Context, Writing
    from memd.profile.values import Committed, StoreState, Target

FOR_MODELS = (CurationError, Conflict, TurnBudgetExhausted, StoreDisabled, StoreError, PermissionDenied, InvalidParams)
"""What a model is told. Everything else is the host's business."""

NOTHING_TO_READ = {"unreadable": StoreUnreadable.wire_name, "disabled": StoreDisabled.wire_name}
"""Conditions of a store in which no entries are known, and the errors a model is told."""

FOR_PEOPLE = ("staged", "approved")
"""Notices that say what a person can do; the message has what concerns a model."""

REPAIRABLE = (CurationError, Conflict, InvalidParams)
"""After these another, repaired call makes sense."""


def tool(
    context: Context, params: p.MemoryTool
) -> results.ToolAnswer | Pending | Coroutine[Any, Any, results.ToolAnswer]:
    """Do what a model asks for."""
    context.writing(params, through_tool=True)  # the host's own mistakes are errors, also beside nonsense
    try:
        target, operations, batch = tool_operations(params.arguments)
        require_adds(context, "memory", operations)
    except (InvalidParams, PermissionDenied) as error:
        return _refused(context, _target_of(params.arguments), error)
    if not operations:
        return _look_and_read(context, target) if context.profile.look_due() else _read(context, target)
    return _write(context, params, Write("memory.tool", target, tuple(operations), batch, through_tool=True))


def _write(context: Context, params: p.MemoryTool, write: Write) -> results.ToolAnswer | Pending:
    try:
        pending = submit(context, write, params, _done)
    except FOR_MODELS as error:
        return _refused(context, write.target, error)

    def settle(done: Ticket) -> results.ToolAnswer:
        try:
            answer: results.ToolAnswer = pending.settle(done)
        except FOR_MODELS as error:
            return _refused(context, write.target, error)
        return answer

    return Pending(pending.ticket, settle)


def _done(committed: Committed, writing: Writing) -> results.ToolAnswer:
    told = [item for item in committed.notices if item.name not in FOR_PEOPLE]
    notices = [item.message for item in (*told, *writing.notices)]
    return results.ToolAnswer(
        success=True,
        done=True,
        message=" ".join([committed.message, *notices]),
        usage=translate.usage_line(committed.usage),
        staged=committed.staged,
    )


async def _look_and_read(context: Context, target: Target) -> results.ToolAnswer:
    await context.profile.look()
    return _read(context, target)


def _read(context: Context, target: Target) -> results.ToolAnswer:
    state = context.profile.state(target)
    entries = [translate.entry_ref(item, state) for item in state.document.entries]
    if state.condition in NOTHING_TO_READ:  # not the same as empty: a model told so would save everything anew
        return results.ToolAnswer(
            success=False,
            done=True,
            message=f"{target} cannot be read: {state.detail}",
            usage=translate.usage_line(state.usage),
            error=NOTHING_TO_READ[state.condition],
        )
    count = f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'}"
    message = f"{target} has {count}." if entries else f"{target} is empty."
    if state.condition == "stale":
        message += f" This is the last good state, the file cannot be read now: {state.detail}"
    return results.ToolAnswer(
        success=True,
        done=True,
        message=message,
        usage=translate.usage_line(state.usage),
        current_entries=entries,
    )


def _refused(context: Context, target: Target | None, error: WireError) -> results.ToolAnswer:
    """The answer to a call that was refused; with everything that a repaired call needs."""
    state = None if target is None else context.profile.state(target)
    repairable = isinstance(error, REPAIRABLE)
    failures = error.extra.get("failures")
    matches = error.extra.get("matches")
    return results.ToolAnswer(
        success=False,
        done=not repairable,
        message=error.message,
        usage="" if state is None else translate.usage_line(state.usage),
        error=error.wire_name,
        current_entries=(
            [translate.entry_ref(item, state) for item in state.document.entries]
            if state is not None and repairable
            else None
        ),
        matches=None
        if matches is None
        else [types.EntryRef(id=m["id"], chars=m["chars"], text=_matched(m, state)) for m in matches],
        failures=None if failures is None else types.Failures(count=failures["count"], limit=failures["limit"]),
    )


def _matched(match: dict[str, Any], state: StoreState | None) -> str:
    """The text of a match; of an entry that is kept out of prompts, that it is."""
    rule = None if state is None else state.withheld.get(match["id"])
    return str(match["text"]) if rule is None else withheld_marker(match["id"], rule)


def _target_of(arguments: dict[str, Any]) -> Target | None:
    """The store that a call which makes no sense is at least about."""
    found = arguments.get("target")
    return next((target for target in TARGETS if target == found), None)


METHODS = (Method("memory.tool", p.MemoryTool, results.ToolAnswer, "add", tool, "task", mutation=True),)
