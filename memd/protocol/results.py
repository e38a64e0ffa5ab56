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
    Wire,
)


class Empty(Wire):
    """Nothing to say beyond that it is done."""


class ServerInfo(Wire):
    """Who answers; ``instance`` changes with every start."""

    name: str
    version: str
    pid: int
    instance: str


class WireLimits(Wire):
    """The limits of the connection: the keys of ``[wire]`` in the settings."""

    message_bytes: int
    in_flight: int
    connections: int
    deadline_ms: int


class HelloResult(Wire):
    """``hello``"""

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


class Fence(Wire):
    """The lines between which recalled or changed material stands."""

    open: str
    close: str


class Pending(Wire):
    """Proposals that wait for a person; ``oldest_s`` is 0 if there are none."""

    count: int
    oldest_s: int


class SessionOpened(Wire):
    """``session.open``"""

    session: str
    resumed: bool
    snapshot: Snapshot
    stale: bool
    changes_text: str
    fence: Fence
    tool: dict[str, Any]
    pending: Pending
    notices: list[Notice]


class SessionShown(Wire):
    """``session.snapshot``"""

    snapshot: Snapshot
    stale: bool
    changes_text: str


class SessionRefreshed(Wire):
    """``session.refresh``"""

    snapshot: Snapshot


class ReviewPlan(Wire):
    """A review that was queued, and who runs it."""

    job: str
    placement: Literal["daemon", "client"]


class SessionClosed(Wire):
    """``session.close``"""

    review: ReviewPlan | None = None
    flush: str | None = None


class TurnBegun(Wire):
    """``turn.begin``"""

    turn: str
    failures: Failures
    changes_text: str


class TurnEnded(Wire):
    """``turn.end``"""

    review: ReviewPlan | None = None


class StoreContent(Wire):
    """One store as it is now."""

    entries: list[Entry]
    usage: Usage
    revision: int
    state: StoreCondition
    path: str
    detail: str | None = None


class ReadResult(Wire):
    """``memory.read``"""

    stores: SomeStores[StoreContent]


class ToolAnswer(Wire):
    """``memory.tool``: for a model to read; ``error`` is the error's name."""

    success: bool
    done: bool
    message: str
    usage: str
    error: str | None = None
    current_entries: list[EntryRef] | None = None
    matches: list[EntryRef] | None = None
    failures: Failures | None = None


class ExplainMatch(Wire):
    """What became of one text that matches."""

    state: Literal["stored", "refused", "staged", "withheld", "removed", "expired"]
    target: Target
    at: str
    us: int
    reason: str
    id: str | None = None
    revision: int | None = None
    rule: str | None = None


class ExplainResult(Wire):
    """``memory.explain``"""

    matches: list[ExplainMatch]


class RevisionList(Wire):
    """``history.list``; ``next`` is the ``before`` of the next page, absent on the last."""

    revisions: list[Revision]
    next: int | None = None


class RevisionShown(Revision):
    """``history.show``: a revision and the entries that stood after it."""

    entries: PerStore[list[Entry]]


class DiffResult(Wire):
    """``history.diff``"""

    text: str
    changes: list[Change]


class UndoConflict(Wire):
    """Why one entry could not be put back."""

    id: str
    reason: str


class UndoResult(Wire):
    """``history.undo``, ``redo``, ``restore``; ``revision`` is absent if there are conflicts and nothing was done."""

    revisions: list[int]
    changes: list[Change]
    conflicts: list[UndoConflict]
    usage: SomeStores[Usage]
    replayed: bool
    revision: int | None = None


class Subscribed(Wire):
    """``events.subscribe``"""

    seq: int
    lost: bool


class EventList(Wire):
    """``events.wait``"""

    events: list[Event]
    seq: int
    lost: bool


class ProfileInfo(Wire):
    """A profile and where it lives."""

    name: str
    dir: str
    stores: PerStore[StoreInfo]


class ProfileListed(Wire):
    """``profile.list``"""

    profiles: list[ProfileInfo]


class ProfileExported(Wire):
    """``profile.export``"""

    version: int
    profile: str
    entries: PerStore[list[Entry]]
    revisions: list[Revision]


class ProfileImported(Wire):
    """``profile.import``: one revision a store."""

    revisions: list[int]
    changes: list[Change]
    usage: SomeStores[Usage]
    notices: list[Notice]
    replayed: bool


class Commits(Wire):
    """What the journal did since the start."""

    acknowledged: int
    fsyncs: int
    groups: int


class StatusResult(Wire):
    """``daemon.status``"""

    server: ServerInfo
    uptime_s: int
    commits: Commits
    connections: int
    sessions: int
    profiles: list[ProfileInfo]
    jobs: dict[str, int]
    pending: Pending
    notices: list[Notice]


class MetricsResult(Wire):
    """``daemon.metrics``: OpenMetrics text."""

    text: str


class HandoverResult(Wire):
    """``daemon.handover``"""

    draining: bool


class CancelResult(Wire):
    """``rpc.cancel``: false if the request is unknown or can no longer be taken out."""

    cancelled: bool


class MethodDescription(Wire):
    """One method; ``params`` and ``result`` are JSON Schema."""

    name: str
    params: dict[str, Any]
    result: dict[str, Any]
    access: str


class ErrorDescription(Wire):
    """One error."""

    name: str
    code: int


class Discovery(Wire):
    """``rpc.discover``"""

    methods: list[MethodDescription]
    errors: list[ErrorDescription]
    events: list[str]
