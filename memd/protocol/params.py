"""The parameters of every method, one struct each; the class name is the method's in CamelCase.

What comes in: nothing; these are shapes for ``decode_params``. What goes out: frozen structs. Absent fields are None
unless the protocol gives a default. What must not be here: checks that need state or a setting, aliases' meaning.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from memd.protocol.types import Access, Context, ErrorsForm, Message, Origin, Style, Target

MAX_WAIT_MS = 600_000
"""The longest wait a caller may ask for: long enough for a long poll, short enough to notice a lost peer."""

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
WaitMs = Annotated[int, Meta(ge=0, le=MAX_WAIT_MS)]


class Params(msgspec.Struct, kw_only=True, frozen=True):
    """What every method takes."""

    deadline_ms: Count | None = None


class MutationParams(Params, kw_only=True, frozen=True):
    """What every mutation takes."""

    session: str | None = None
    turn: str | None = None
    reason: str | None = None
    origin: Origin | None = None
    request_id: str | None = None
    if_revision: Count | None = None


class ClientInfo(msgspec.Struct, kw_only=True, frozen=True):
    """Who connects; shown in history."""

    name: str = ""
    version: str = ""


class Hello(Params, kw_only=True, frozen=True):
    """Method ``hello``."""

    client: ClientInfo = ClientInfo()
    protocol: Annotated[list[int], Meta(min_length=2, max_length=2)] | None = None
    profile: str | None = None
    context: Context = "primary"
    access: Access | None = None
    errors: ErrorsForm = "map"


class SessionOpen(Params, kw_only=True, frozen=True):
    """Method ``session.open``."""

    session: str | None = None
    key: str | None = None
    parent: str | None = None
    endpoint: str | None = None
    style: Style = "openai"


class SessionSnapshot(Params, kw_only=True, frozen=True):
    """Method ``session.snapshot``."""

    session: str


class SessionRefresh(Params, kw_only=True, frozen=True):
    """Method ``session.refresh``."""

    session: str


class SessionClose(Params, kw_only=True, frozen=True):
    """Method ``session.close``."""

    session: str
    reason: Literal["end", "reset", "switch"] = "end"
    messages: list[Message] = []


class TurnBegin(Params, kw_only=True, frozen=True):
    """Method ``turn.begin``."""

    session: str
    turn: str
    user: bool


class TurnEnd(Params, kw_only=True, frozen=True):
    """Method ``turn.end``."""

    session: str
    turn: str
    status: Literal["completed", "interrupted"]
    messages: list[Message] = []
    first: Count | None = None


class OpParams(msgspec.Struct, kw_only=True, frozen=True):
    """One operation as a client sends it: the names and all their aliases."""

    action: str | None = None
    content: str | None = None
    old_text: str | None = None
    new_text: str | None = None
    id: str | None = None
    if_hash: str | None = None
    old: str | None = None
    old_string: str | None = None
    new: str | None = None
    new_string: str | None = None
    new_content: str | None = None
    text: str | None = None


class OperationParams(MutationParams, kw_only=True, frozen=True):
    """One operation as a method of its own: the names and all their aliases."""

    target: Target
    content: str | None = None
    old_text: str | None = None
    new_text: str | None = None
    id: str | None = None
    if_hash: str | None = None
    old: str | None = None
    old_string: str | None = None
    new: str | None = None
    new_string: str | None = None
    new_content: str | None = None
    text: str | None = None


class MemoryAdd(OperationParams, kw_only=True, frozen=True):
    """Method ``memory.add``."""


class MemoryReplace(OperationParams, kw_only=True, frozen=True):
    """Method ``memory.replace``."""


class MemoryEdit(OperationParams, kw_only=True, frozen=True):
    """Method ``memory.edit``."""


class MemoryRemove(OperationParams, kw_only=True, frozen=True):
    """Method ``memory.remove``."""


class MemoryApply(MutationParams, kw_only=True, frozen=True):
    """Method ``memory.apply``."""

    target: Target
    operations: list[OpParams]


class MemoryRead(Params, kw_only=True, frozen=True):
    """Method ``memory.read``."""

    target: Target | None = None


class MemoryTool(Params, kw_only=True, frozen=True):
    """Method ``memory.tool``; ``arguments`` is what a model sent, unchecked."""

    arguments: dict[str, Any]
    style: Style = "openai"
    session: str | None = None
    turn: str | None = None
    origin: Literal["agent", "tool"] | None = None
    request_id: str | None = None


class MemoryToolSchema(Params, kw_only=True, frozen=True):
    """Method ``memory.tool_schema``."""

    style: Style = "openai"


class MemoryExplain(Params, kw_only=True, frozen=True):
    """Method ``memory.explain``."""

    text: str


class MemoryWipe(MutationParams, kw_only=True, frozen=True):
    """Method ``memory.wipe``."""

    target: Target
    confirm: str


class HistoryList(Params, kw_only=True, frozen=True):
    """Method ``history.list``."""

    target: Target | None = None
    session: str | None = None
    job: str | None = None
    entry: str | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 50
    before: Count | None = None


class HistoryShow(Params, kw_only=True, frozen=True):
    """Method ``history.show``."""

    revision: Count


class HistoryDiff(Params, kw_only=True, frozen=True, rename={"from_": "from"}):
    """Method ``history.diff``."""

    target: Target
    from_: Count
    to: Count | None = None


class SelectorParams(MutationParams, kw_only=True, frozen=True):
    """Which revisions to undo or redo; ``session`` selects where nothing else does."""

    revision: Count | None = None
    job: str | None = None
    last: Positive | None = None


class HistoryUndo(SelectorParams, kw_only=True, frozen=True):
    """Method ``history.undo``."""


class HistoryRedo(SelectorParams, kw_only=True, frozen=True):
    """Method ``history.redo``."""


class HistoryRestore(MutationParams, kw_only=True, frozen=True):
    """Method ``history.restore``."""

    target: Target
    revision: Count


class EventsSubscribe(Params, kw_only=True, frozen=True):
    """Method ``events.subscribe``; no topics means all of them."""

    topics: list[str] = []
    since_seq: Count | None = None


class EventsUnsubscribe(Params, kw_only=True, frozen=True):
    """Method ``events.unsubscribe``."""


class EventsWait(Params, kw_only=True, frozen=True):
    """Method ``events.wait``."""

    topics: list[str] = []
    since_seq: Count | None = None
    timeout_ms: WaitMs = 0


class ProfileList(Params, kw_only=True, frozen=True):
    """Method ``profile.list``."""


class ProfileExport(Params, kw_only=True, frozen=True):
    """Method ``profile.export``."""


class ProfileCreate(MutationParams, kw_only=True, frozen=True):
    """Method ``profile.create``."""

    name: str
    dir: str | None = None


class ProfileImport(MutationParams, kw_only=True, frozen=True):
    """Method ``profile.import``; ``data`` is what ``profile.export`` gave."""

    name: str
    data: dict[str, Any]


class DaemonStatus(Params, kw_only=True, frozen=True):
    """Method ``daemon.status``."""


class DaemonMetrics(Params, kw_only=True, frozen=True):
    """Method ``daemon.metrics``."""


class DaemonReload(Params, kw_only=True, frozen=True):
    """Method ``daemon.reload``."""


class DaemonStop(Params, kw_only=True, frozen=True):
    """Method ``daemon.stop``."""


class DaemonHandover(Params, kw_only=True, frozen=True):
    """Method ``daemon.handover``."""

    version: str


class RpcPing(Params, kw_only=True, frozen=True):
    """Method ``rpc.ping``."""


class RpcCancel(Params, kw_only=True, frozen=True):
    """Method ``rpc.cancel``."""

    msgid: int


class RpcDiscover(Params, kw_only=True, frozen=True):
    """Method ``rpc.discover``."""
