"""``memory.*`` but for the model's tool: reads, and changes to one store.

What comes in: entries to add, places to change. What goes out: what the store is now, and what the change did. What must
not be here: how a change is made (``memd/profile``), who may (the table).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from memd.dispatch import translate
from memd.dispatch.call import Pending
from memd.dispatch.table import Method
from memd.dispatch.tool_schema import tool_schema
from memd.dispatch.writes import Write, fingerprint, submit
from memd.errors import InvalidParams, WireError
from memd.profile.aliases import operation
from memd.profile.values import TARGETS, Committed, Operation
from memd.protocol import params as p, results, types
from memd.protocol.encode import error_map

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from memd.deferred import Ticket
    from memd.dispatch.context import Context, Writing
    from memd.dispatch.ports import Profile
    from memd.profile.values import Action


def changing(action: Action) -> Callable[[Context, p.OperationParams], Pending]:
    """The handler of ``memory.add``, ``replace``, ``edit`` or ``remove``."""
    method = f"memory.{action}"

    def handler(context: Context, params: p.OperationParams) -> Pending:
        wanted = operation({**msgspec.structs.asdict(params), "action": action})
        write = Write(method, params.target, (wanted,))
        return submit(context, write, params, partial(_mutation, context.profile))

    return handler


def apply(context: Context, params: p.MemoryApply) -> Pending:
    """A batch on one store, all or nothing."""
    if not params.operations:
        msg = "operations: at least one is needed"
        raise InvalidParams(msg, field="operations")
    operations = _operations(params.operations)
    require_adds(context, "memory.apply", operations)
    write = Write("memory.apply", params.target, tuple(operations), batch=True)
    pending = submit(context, write, params, partial(_applied, context.profile))

    def settle(done: Ticket) -> types.ApplyResult:
        try:
            result: types.ApplyResult = pending.settle(done)
        except WireError as error:
            _explain_failing(error, done.error)
            raise
        return result

    return Pending(pending.ticket, settle)


def require_adds(context: Context, name: str, operations: list[Operation]) -> None:
    """What a connection that may only add can have done.

    Raises:
        PermissionDenied: Something else than an add is among the operations.
    """
    if any(item.action != "add" for item in operations):
        context.require(f"{name} with anything but adds", "full")


def read(context: Context, params: p.MemoryRead) -> Mapping[str, Any] | Coroutine[Any, Any, Mapping[str, Any]]:
    """Both stores, or one, as they are now; what others wrote until now included."""
    if context.profile.look_due():
        return _look_and_read(context, params)
    return _content(context, context.profile, params)


async def _look_and_read(context: Context, params: p.MemoryRead) -> Mapping[str, Any]:
    profile = context.profile
    await profile.look()
    return _content(context, profile, params)


def _content(context: Context, profile: Profile, params: p.MemoryRead) -> Mapping[str, Any]:
    targets = TARGETS if params.target is None else (params.target,)
    return {"stores": {target: context.services.answers.store(profile, target) for target in targets}}


def schema(_context: Context, params: p.MemoryToolSchema) -> dict[str, Any]:
    """The tool definition to offer to a model."""
    return tool_schema(params.style)


async def explain(context: Context, params: p.MemoryExplain) -> results.ExplainResult:
    """What became of a text."""
    found = await context.profile.explain(params.text)
    return results.ExplainResult(matches=[translate.explanation(item, context.profile.mask) for item in found])


def wipe(context: Context, params: p.MemoryWipe) -> Pending:
    """Empty a store, confirmed with the profile's name; can be undone."""
    profile = context.profile
    if params.confirm != profile.name:
        msg = f"confirm: to wipe this store, repeat the profile's name, {profile.name!r}"
        raise InvalidParams(msg, field="confirm")
    writing = context.writing(params)
    ticket = profile.wipe(
        params.target,
        writing.caller,
        request_id=params.request_id,
        fingerprint=fingerprint("memory.wipe", params),
        if_revision=params.if_revision,
    )

    def settle(done: Ticket) -> types.Mutation:
        if done.error is not None:
            raise done.error
        return translate.mutation(done.result, context.profile.mask, writing.notices)

    return Pending(ticket, settle)


def _mutation(profile: Profile, committed: Committed, writing: Writing) -> types.Mutation:
    return translate.mutation(committed, profile.mask, writing.notices, profile.state(committed.target).findings)


def _applied(profile: Profile, committed: Committed, writing: Writing) -> types.ApplyResult:
    return translate.apply_result(committed, profile.mask, writing.notices)


def _operations(items: list[p.OpParams]) -> list[Operation]:
    """The batch's operations.

    Raises:
        InvalidParams: One cannot be understood; the data is that of an aborted batch.
    """
    found = []
    for index, item in enumerate(items):
        try:
            found.append(operation(msgspec.structs.asdict(item)))
        except InvalidParams as error:
            rows = [{"index": at, "status": "refused" if at == index else "not_tried"} for at in range(len(items))]
            message = f"operations[{index}]: {error.message}"
            field = f"operations[{index}].{error.extra.get('field')}"
            raise InvalidParams(message, field=field, applied=0, index=index, results=rows) from None
    return found


def _explain_failing(error: WireError, original: object) -> None:
    """Put the failing operation's own error into its row of an aborted batch."""
    rows = error.extra.get("results")
    if not isinstance(original, WireError) or not isinstance(rows, list):
        return
    own = error_map(original)
    own["data"] = {key: value for key, value in own["data"].items() if key not in {"results", "index", "applied"}}
    index = error.extra["index"]
    error.extra["results"] = [{**row, "error": own} if row["index"] == index else row for row in rows]


METHODS = (
    Method("memory.add", p.MemoryAdd, types.Mutation, "add", changing("add"), "deferred", mutation=True),
    Method("memory.replace", p.MemoryReplace, types.Mutation, "full", changing("replace"), "deferred", mutation=True),
    Method("memory.edit", p.MemoryEdit, types.Mutation, "full", changing("edit"), "deferred", mutation=True),
    Method("memory.remove", p.MemoryRemove, types.Mutation, "full", changing("remove"), "deferred", mutation=True),
    Method("memory.apply", p.MemoryApply, types.ApplyResult, "add", apply, "deferred", mutation=True),
    Method("memory.read", p.MemoryRead, results.ReadResult, "read", read, "task"),
    Method("memory.tool_schema", p.MemoryToolSchema, dict[str, Any], "none", schema),
    Method("memory.explain", p.MemoryExplain, results.ExplainResult, "read", explain, "task"),
    Method("memory.wipe", p.MemoryWipe, types.Mutation, "operator", wipe, "deferred", mutation=True),
)
