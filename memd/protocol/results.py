"""The results of methods that answer with more than one of the shared types.

What comes in: nothing; these are shapes. What goes out: structs that encode to maps, optional fields left out when
they are None. What must not be here: how a result is found.
"""

from __future__ import annotations

from typing import Any, Literal

from memd.protocol.types import (
    Access,
    Change,
    Context,
    Entry,
    EntryRef,
    Event,
    Failures,
    Notice,
    PerStore,
    Revision,
    Role,
    Snapshot,
    SomeStores,
    StoreCondition,
    StoreInfo,
    Target,
    Usage,
    WireStruct,
)


class Empty(WireStruct, kw_only=True, frozen=True):
    """Nothing to say beyond that it is done."""


class ServerInfo(WireStruct, kw_only=True, frozen=True):
    """Who answers; ``instance`` changes with every start."""

    name: str
    version: str
    pid: int
    instance: str


class WireLimits(WireStruct, kw_only=True, frozen=True):
    """The limits of the connection: the keys of ``[wire]`` in the settings."""

    message_bytes: int
    in_flight: int
    connections: int
    deadline_ms: int


class HelloResult(WireStruct, kw_only=True, frozen=True):
    """Method ``hello``."""

    protocol: int
    server: ServerInfo
    profile: str
    role: Role
    context: Context
    access: Access
    limits: WireLimits
    features: list[str]
    stores: PerStore[StoreInfo]
    notices: list[Notice]


class Fence(WireStruct, kw_only=True, frozen=True):
    """The lines between which recalled or changed material stands."""

    open: str
    close: str


class Pending(WireStruct, kw_only=True, frozen=True):
    """Proposals that wait for a person; ``oldest_s`` is 0 if there are none."""

    count: int
    oldest_s: int


class SessionOpened(WireStruct, kw_only=True, frozen=True):
    """Method ``session.open``."""

    session: str
    resumed: bool
    snapshot: Snapshot
    stale: bool
    changes_text: str
    fence: Fence
    tool: dict[str, Any]
    pending: Pending
    notices: list[Notice]


class SessionShown(WireStruct, kw_only=True, frozen=True):
    """Method ``session.snapshot``."""

    snapshot: Snapshot
    stale: bool
    changes_text: str


class SessionRefreshed(WireStruct, kw_only=True, frozen=True):
    """Method ``session.refresh``."""

    snapshot: Snapshot


class ReviewPlan(WireStruct, kw_only=True, frozen=True):
    """A review that was queued, and who runs it."""

    job: str
    placement: Literal["daemon", "client"]


class SessionClosed(WireStruct, kw_only=True, frozen=True):
    """Method ``session.close``."""

    review: ReviewPlan | None = None
    flush: str | None = None


class TurnBegun(WireStruct, kw_only=True, frozen=True):
    """Method ``turn.begin``."""

    turn: str
    failures: Failures
    changes_text: str


class TurnEnded(WireStruct, kw_only=True, frozen=True):
    """Method ``turn.end``."""

    review: ReviewPlan | None = None


class StoreContent(WireStruct, kw_only=True, frozen=True):
    """One store as it is now."""

    entries: list[Entry]
    usage: Usage
    revision: int
    state: StoreCondition
    path: str
    detail: str | None = None


class ReadResult(WireStruct, kw_only=True, frozen=True):
    """Method ``memory.read``."""

    stores: SomeStores[StoreContent]


class ToolAnswer(WireStruct, kw_only=True, frozen=True):
    """Method ``memory.tool``: for a model to read; ``error`` is the error's name, ``staged`` what waits for the user."""

    success: bool
    done: bool
    message: str
    usage: str
    error: str | None = None
    current_entries: list[EntryRef] | None = None
    matches: list[EntryRef] | None = None
    failures: Failures | None = None
    staged: str | None = None


class ExplainMatch(WireStruct, kw_only=True, frozen=True):
    """What became of one text that matches."""

    state: Literal["stored", "refused", "staged", "withheld", "removed", "expired"]
    target: Target
    at: str
    us: int
    reason: str
    id: str | None = None
    revision: int | None = None
    rule: str | None = None


class ExplainResult(WireStruct, kw_only=True, frozen=True):
    """Method ``memory.explain``."""

    matches: list[ExplainMatch]


class RevisionList(WireStruct, kw_only=True, frozen=True):
    """Method ``history.list``; ``next`` is the ``before`` of the next page, absent on the last."""

    revisions: list[Revision]
    next: int | None = None


class RevisionShown(Revision, kw_only=True, frozen=True):
    """Method ``history.show``: a revision and the entries that stood after it."""

    entries: PerStore[list[Entry]]


class DiffResult(WireStruct, kw_only=True, frozen=True):
    """Method ``history.diff``."""

    text: str
    changes: list[Change]


class UndoConflict(WireStruct, kw_only=True, frozen=True):
    """Why one entry could not be put back."""

    id: str
    reason: str


class UndoResult(WireStruct, kw_only=True, frozen=True):
    """Methods ``history.undo``, ``redo``, ``restore``; ``revision`` is absent if there are conflicts and nothing was done."""

    revisions: list[int]
    changes: list[Change]
    conflicts: list[UndoConflict]
    usage: SomeStores[Usage]
    replayed: bool
    revision: int | None = None


class Redacted(WireStruct, kw_only=True, frozen=True):
    """Method ``history.redact``: changed rows by table (``set_aside`` are damaged journals), and live entries' revisions."""

    tables: dict[str, int]
    revisions: list[int]
    notices: list[Notice]


class Subscribed(WireStruct, kw_only=True, frozen=True):
    """Method ``events.subscribe``."""

    seq: int
    lost: bool


class EventList(WireStruct, kw_only=True, frozen=True):
    """Method ``events.wait``."""

    events: list[Event]
    seq: int
    lost: bool


class ProfileInfo(WireStruct, kw_only=True, frozen=True):
    """A profile and where it lives."""

    name: str
    dir: str
    stores: PerStore[StoreInfo]


class ProfileListed(WireStruct, kw_only=True, frozen=True):
    """Method ``profile.list``."""

    profiles: list[ProfileInfo]


class ProfileExported(WireStruct, kw_only=True, frozen=True):
    """Method ``profile.export``."""

    version: int
    profile: str
    entries: PerStore[list[Entry]]
    revisions: list[Revision]


class ProfileImported(WireStruct, kw_only=True, frozen=True):
    """Method ``profile.import``: one revision a store; ``heads``, of a preview, are the revisions it was made for.

    Notices say what is not as in the data: ``duplicates``, ``ids_not_kept``, ``undecodable``, ``history_not_imported``,
    ``nothing_foreign``, and in a preview ``over_limit``.
    """

    revisions: list[int]
    changes: list[Change]
    usage: SomeStores[Usage]
    notices: list[Notice]
    replayed: bool
    heads: SomeStores[int] | None = None


class Commits(WireStruct, kw_only=True, frozen=True):
    """What the journal did since the start."""

    acknowledged: int
    fsyncs: int
    groups: int


class StatusResult(WireStruct, kw_only=True, frozen=True):
    """Method ``daemon.status``."""

    server: ServerInfo
    uptime_s: int
    commits: Commits
    connections: int
    sessions: int
    profiles: list[ProfileInfo]
    jobs: dict[str, int]
    pending: Pending
    notices: list[Notice]


class MetricsResult(WireStruct, kw_only=True, frozen=True):
    """Method ``daemon.metrics``: OpenMetrics text."""

    text: str


class HandoverResult(WireStruct, kw_only=True, frozen=True):
    """Method ``daemon.handover``."""

    draining: bool


class CancelResult(WireStruct, kw_only=True, frozen=True):
    """Method ``rpc.cancel``: false if the request is unknown or can no longer be taken out."""

    cancelled: bool


class MethodDescription(WireStruct, kw_only=True, frozen=True):
    """One method; ``params`` and ``result`` are JSON Schema.

    ``mutation``: it takes a ``request_id``, and with one may be called again after a lost reply. ``repeatable``: it may be called
    again in any case.
    """

    name: str
    params: dict[str, Any]
    result: dict[str, Any]
    access: str
    mutation: bool
    repeatable: bool


class ErrorDescription(WireStruct, kw_only=True, frozen=True):
    """One error."""

    name: str
    code: int


class Discovery(WireStruct, kw_only=True, frozen=True):
    """Method ``rpc.discover``."""

    methods: list[MethodDescription]
    errors: list[ErrorDescription]
    events: list[str]
