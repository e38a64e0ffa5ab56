"""The parameters of every method, one struct each; the class name is the method's in CamelCase.

What comes in: nothing; these are shapes for ``decode_params``. What goes out: frozen structs. Absent fields are None
unless the protocol gives a default. What must not be here: checks that need state or a setting, aliases' meaning.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from memd.protocol.types import Access, Context, ErrorsForm, Message, Origin, SomeStores, Style, Target

MAX_WAIT_MS = 600_000
"""The longest wait a caller may ask for: long enough for a long poll, short enough to notice a lost peer."""

MAX_INT = 2**63 - 1
"""What the journal can hold and compare; a larger number is a client's mistake and not a revision of the future."""

REASON_CHARS = 1000
"""A sentence or two on why; whoever has more to say writes an entry. It is kept with every revision."""

CLIENT_CHARS = 200
"""A program's name, not a text; it is kept with every revision."""

Claim = Literal["user", "agent", "tool"]
"""The origins that a caller may name; the others follow from how a write comes in."""

Count = Annotated[int, Meta(ge=0, le=MAX_INT)]
Positive = Annotated[int, Meta(ge=1, le=MAX_INT)]
WaitMs = Annotated[int, Meta(ge=0, le=MAX_WAIT_MS)]


class Params(msgspec.Struct, kw_only=True, frozen=True):
    """What every method takes."""

    deadline_ms: Positive | None = None


class MutationParams(Params, kw_only=True, frozen=True):
    """What every mutation takes."""

    session: str | None = None
    turn: str | None = None
    reason: Annotated[str, Meta(max_length=REASON_CHARS)] | None = None
    origin: Claim | None = None
    request_id: str | None = None
    if_revision: Count | None = None


class ClientInfo(msgspec.Struct, kw_only=True, frozen=True):
    """Who connects; shown in history."""

    name: Annotated[str, Meta(max_length=CLIENT_CHARS)] = ""
    version: Annotated[str, Meta(max_length=CLIENT_CHARS)] = ""


class Hello(Params, kw_only=True, frozen=True):
    """Say who connects, to which profile and in what role; ask who answers.

    May be omitted, and then all defaults hold; it has to be the first call of a connection. ``access`` can only
    lower what the settings give to the context.
    """

    client: ClientInfo = ClientInfo()
    protocol: Annotated[list[int], Meta(min_length=2, max_length=2)] | None = None
    profile: str | None = None
    context: Context = "primary"
    access: Access | None = None
    errors: ErrorsForm = "map"


class SessionOpen(Params, kw_only=True, frozen=True):
    """Open a session and freeze its snapshot, or come back to one by its id or by the host's own ``key``.

    A session that is resumed keeps its snapshot byte for byte, over reconnects and restarts of the daemon.
    """

    session: str | None = None
    key: str | None = None
    parent: str | None = None
    endpoint: str | None = None
    style: Style = "openai"


class SessionSnapshot(Params, kw_only=True, frozen=True):
    """The session's frozen snapshot again, and what has changed in the stores since."""

    session: str


class SessionRefresh(Params, kw_only=True, frozen=True):
    """Freeze a new snapshot at a boundary where the prompt is built anew (compaction, reset).

    The same id means that the prompt can be left alone.
    """

    session: str


class SessionClose(Params, kw_only=True, frozen=True):
    """End a session: its key is free, its id is gone."""

    session: str
    reason: Literal["end", "reset", "switch"] = "end"
    messages: list[Message] = []


class TurnBegin(Params, kw_only=True, frozen=True):
    """Begin a turn: mutations that name the session belong to it, and its failure budget starts at 0.

    A turn still open is ended as interrupted. ``user`` says that a person spoke: only then may a write claim the
    origin ``user``.
    """

    session: str
    turn: str
    user: bool


class TurnEnd(Params, kw_only=True, frozen=True):
    """End a turn. Ending it twice changes nothing."""

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
    """Add an entry. A text that is there already succeeds with ``changed: false``."""


class MemoryReplace(OperationParams, kw_only=True, frozen=True):
    """Replace a whole entry, which keeps its id. If the new text equals another entry the two become one."""


class MemoryEdit(OperationParams, kw_only=True, frozen=True):
    """Change the matched part of an entry only; both texts are taken as they are, blanks included.

    An empty ``new_text`` deletes the match, and an entry that becomes empty is removed.
    """


class MemoryRemove(OperationParams, kw_only=True, frozen=True):
    """Remove an entry, and with it all that are identical to it when it was found by ``old_text``."""


class MemoryApply(MutationParams, kw_only=True, frozen=True):
    """Apply several operations to one store, all or nothing. The limit is checked on the final state only."""

    target: Target
    operations: list[OpParams]


class MemoryRead(Params, kw_only=True, frozen=True):
    """The stores as they are now, outside edits included."""

    target: Target | None = None


class MemoryTool(Params, kw_only=True, frozen=True):
    """Run what a model sent for the memory tool, unchecked, and answer so that a model can go on with it.

    ``done: true`` means that the model should not try again.
    """

    arguments: dict[str, Any]
    style: Style = "openai"
    session: str | None = None
    turn: str | None = None
    origin: Literal["agent", "tool"] | None = None
    request_id: str | None = None


class MemoryToolSchema(Params, kw_only=True, frozen=True):
    """The tool definition to give to a model, with the guidance what to save and what to skip."""

    style: Style = "openai"


class MemoryExplain(Params, kw_only=True, frozen=True):
    """What became of a text: stored, refused, removed, when and why."""

    text: str


class MemoryWipe(MutationParams, kw_only=True, frozen=True):
    """Empty a store. ``confirm`` is the profile's name; ``history.undo`` takes it back."""

    target: Target
    confirm: str


class HistoryList(Params, kw_only=True, frozen=True):
    """Revisions, newest first. ``next`` of the result is ``before`` of the next page."""

    target: Target | None = None
    session: str | None = None
    job: str | None = None
    entry: str | None = None
    origin: Origin | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 50
    before: Count | None = None


class HistoryShow(Params, kw_only=True, frozen=True):
    """One revision, and the entries of both stores as they stood after it."""

    revision: Count


class HistoryDiff(Params, kw_only=True, frozen=True, rename={"from_": "from"}):
    """How a store differs between two revisions, the newest if ``to`` is absent."""

    target: Target
    from_: Count
    to: Count | None = None


class SelectorParams(MutationParams, kw_only=True, frozen=True):
    """Which revisions to undo or redo; ``session`` selects where nothing else does."""

    revision: Count | None = None
    job: str | None = None
    last: Positive | None = None
    preview: bool = False


class HistoryUndo(SelectorParams, kw_only=True, frozen=True):
    """Take back one revision, a job's, a session's or the last n, entry by entry.

    If any part conflicts with what came later, nothing is done and the conflicts are the result. ``session`` selects
    where nothing else does. With ``preview`` nothing is done in any case: the result says what would be.
    """


class HistoryRedo(SelectorParams, kw_only=True, frozen=True):
    """Undo an undo; takes the same selectors, ``last`` being the newest n undos that are not yet redone."""


class HistoryRestore(MutationParams, kw_only=True, frozen=True):
    """Make a store what it was at a revision, or with ``preview`` only say what that would change."""

    target: Target
    revision: Count
    preview: bool = False


class HistoryRedact(MutationParams, kw_only=True, frozen=True):
    """Take a text, or what a revision holds, out of every memory file, every session and the whole history, for good.

    Live entries are masked by revisions of their own; older revisions stay as stubs. All profiles are searched. It may
    be repeated at any time, so that its ``request_id`` is not remembered: a hash of the call would tell of the text.
    """

    text: str | None = None
    revision: Count | None = None


class EventsSubscribe(Params, kw_only=True, frozen=True):
    """Have events sent as notifications ``event``; no topics means all of them.

    With ``since_seq`` those after it come first, and ``lost`` says that some of them are gone. A second call
    replaces the first.
    """

    topics: list[str] = []
    since_seq: Count | None = None


class EventsUnsubscribe(Params, kw_only=True, frozen=True):
    """Have no more events sent."""


class EventsWait(Params, kw_only=True, frozen=True):
    """Wait for the next events, for clients that cannot take notifications."""

    topics: list[str] = []
    since_seq: Count | None = None
    timeout_ms: WaitMs = 0


class ProfileList(Params, kw_only=True, frozen=True):
    """The profiles, where they live and how full they are."""


class ProfileExport(Params, kw_only=True, frozen=True):
    """The profile's entries and revisions as plain data."""


class ProfileCreate(MutationParams, kw_only=True, frozen=True):
    """Create a profile; its directory is made where the settings keep profiles unless ``dir`` says otherwise."""

    name: str
    dir: str | None = None


class ProfileImport(MutationParams, kw_only=True, frozen=True):
    """Add to a profile what it does not have yet: one revision a store, all stores or none.

    ``data`` is ``{version: 1}`` and one of: ``entries`` as ``profile.export`` gives them (ids are kept where they are free,
    origins and times of creation always; ``revisions`` may be there and are not taken over); ``markdown``, a map from a
    store to a text, of which headings, paragraphs and list items become entries; ``foreign``, a list of stores whose
    entries of foreign Markdown are split so. With ``preview`` nothing is done, and what would be over a limit is a notice.
    ``if_revisions`` is ``if_revision`` for several stores: what a preview gives as ``heads``.
    """

    name: str
    data: dict[str, Any]
    preview: bool = False
    if_revisions: SomeStores[Count] | None = None


class DaemonStatus(Params, kw_only=True, frozen=True):
    """How the daemon and its stores are."""


class DaemonMetrics(Params, kw_only=True, frozen=True):
    """Counters and gauges as OpenMetrics text."""


class DaemonReload(Params, kw_only=True, frozen=True):
    """Read the settings again. A file that cannot be used keeps the old ones, and the error names line and key."""


class DaemonStop(Params, kw_only=True, frozen=True):
    """Stop: answer what is in flight, then exit."""


class DaemonHandover(Params, kw_only=True, frozen=True):
    """Ask this daemon to drain for a newer one, whose ``version`` is given."""

    version: str


class RpcPing(Params, kw_only=True, frozen=True):
    """Nothing, as a sign of life."""


class RpcCancel(Params, kw_only=True, frozen=True):
    """Take a request of this connection out of its queue, by its ``msgid``. Also taken as a notification."""

    msgid: int


class RpcDiscover(Params, kw_only=True, frozen=True):
    """Every method with its parameters and result as JSON Schema, every error, every topic."""
