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


class MutationParams(Params):
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


class Hello(Params):
    """``hello``"""

    client: ClientInfo = ClientInfo()
    protocol: Annotated[list[int], Meta(min_length=2, max_length=2)] | None = None
    profile: str | None = None
    context: Context = "primary"
    access: Access | None = None
    errors: ErrorsForm = "map"


class SessionOpen(Params):
    """``session.open``"""

    session: str | None = None
    key: str | None = None
    parent: str | None = None
    endpoint: str | None = None
    style: Style = "openai"


class SessionSnapshot(Params):
    """``session.snapshot``"""

    session: str


class SessionRefresh(Params):
    """``session.refresh``"""

    session: str


class SessionClose(Params):
    """``session.close``"""

    session: str
    reason: Literal["end", "reset", "switch"] = "end"
    messages: list[Message] = []


class TurnBegin(Params):
    """``turn.begin``"""

    session: str
    turn: str
    user: bool


class TurnEnd(Params):
    """``turn.end``"""

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


class OperationParams(MutationParams):
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


class MemoryAdd(OperationParams):
    """``memory.add``"""


class MemoryReplace(OperationParams):
    """``memory.replace``"""


class MemoryEdit(OperationParams):
    """``memory.edit``"""


class MemoryRemove(OperationParams):
    """``memory.remove``"""


class MemoryApply(MutationParams):
    """``memory.apply``"""

    target: Target
    operations: list[OpParams]


class MemoryRead(Params):
    """``memory.read``"""

    target: Target | None = None


class MemoryTool(Params):
    """``memory.tool``; ``arguments`` is what a model sent, unchecked."""

    arguments: dict[str, Any]
    style: Style = "openai"
    session: str | None = None
    turn: str | None = None
    origin: Literal["agent", "tool"] | None = None
    request_id: str | None = None


class MemoryToolSchema(Params):
    """``memory.tool_schema``"""

    style: Style = "openai"


class MemoryExplain(Params):
    """``memory.explain``"""

    text: str


class MemoryWipe(MutationParams):
    """``memory.wipe``"""

    target: Target
    confirm: str


class HistoryList(Params):
    """``history.list``"""

    target: Target | None = None
    session: str | None = None
    job: str | None = None
    entry: str | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 50
    before: Count | None = None


class HistoryShow(Params):
    """``history.show``"""

    revision: Count


class HistoryDiff(Params, rename={"from_": "from"}):
    """``history.diff``"""

    target: Target
    from_: Count
    to: Count | None = None


class SelectorParams(MutationParams):
    """Which revisions to undo or redo; ``session`` selects where nothing else does."""

    revision: Count | None = None
    job: str | None = None
    last: Positive | None = None


class HistoryUndo(SelectorParams):
    """``history.undo``"""


class HistoryRedo(SelectorParams):
    """``history.redo``"""


class HistoryRestore(MutationParams):
    """``history.restore``"""

    target: Target
    revision: Count


class EventsSubscribe(Params):
    """``events.subscribe``; no topics means all of them."""

    topics: list[str] = []
    since_seq: Count | None = None


class EventsUnsubscribe(Params):
    """``events.unsubscribe``"""


class EventsWait(Params):
    """``events.wait``"""

    topics: list[str] = []
    since_seq: Count | None = None
    timeout_ms: WaitMs = 0


class ProfileList(Params):
    """``profile.list``"""


class ProfileExport(Params):
    """``profile.export``"""


class ProfileCreate(MutationParams):
    """``profile.create``"""

    name: str
    dir: str | None = None


class ProfileImport(MutationParams):
    """``profile.import``; ``data`` is what ``profile.export`` gave."""

    name: str
    data: dict[str, Any]


class DaemonStatus(Params):
    """``daemon.status``"""


class DaemonMetrics(Params):
    """``daemon.metrics``"""


class DaemonReload(Params):
    """``daemon.reload``"""


class DaemonStop(Params):
    """``daemon.stop``"""


class DaemonHandover(Params):
    """``daemon.handover``"""

    version: str


class RpcPing(Params):
    """``rpc.ping``"""


class RpcCancel(Params):
    """``rpc.cancel``"""

    msgid: int


class RpcDiscover(Params):
    """``rpc.discover``"""
