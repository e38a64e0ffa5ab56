"""What the daemon answers, as objects with typed attributes.

What comes in: the maps of a reply. What goes out: records whose attributes are the fields of ``client/PROTOCOL.md``,
optional ones None when absent, unknown ones kept. What must not be here: I/O, checks (the daemon's types are strict).
"""

from __future__ import annotations

from memd_client.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    Target = Literal["memory", "user"]


class Usage(Record):
    """How full a store is, in code points."""

    chars: int
    limit: int
    free: int
    percent: int
    near_limit: bool


class Finding(Record):
    """What the scan found in a text. The wire's ``class`` is ``class_``."""

    rule: str
    class_: str
    severity: str
    start: int
    end: int
    reason: str


class Entry(Record):
    """One entry of a store."""

    id: str
    text: str
    chars: int
    hash: str
    origin: str
    created_at: str
    created_us: int
    updated_at: str
    updated_us: int
    findings: list[Finding]
    undecodable: bool


class Notice(Record):
    """Something worth telling that is no error."""

    name: str
    message: str
    data: dict[str, Any]


class Change(Record):
    """What happened to one entry."""

    action: str
    target: Target
    id: str
    before: str | None = None
    after: str | None = None


class Mutation(Record):
    """A change that is durable and visible."""

    changed: bool
    target: Target
    revision: int
    entry: Entry | None = None
    changes: list[Change]
    usage: Usage
    message: str
    notices: list[Notice]
    staged: str | None = None
    replayed: bool


class OpResult(Record):
    """What became of one operation of a batch."""

    index: int
    status: str
    id: str | None = None
    error: dict[str, Any] | None = None


class ApplyResult(Mutation):
    """A batch that is durable and visible."""

    applied: int
    results: list[OpResult]


class Withheld(Record):
    """An entry that a snapshot does not show, and the rule that withholds it."""

    target: Target
    id: str
    rule: str


class Snapshot(Record):
    """The frozen text of a session. Maps are keyed by store: ``"memory"`` and ``"user"``."""

    id: str
    text: str
    blocks: dict[str, str]
    headers: dict[str, str]
    revisions: dict[str, int]
    withheld: list[Withheld]
    left_out: dict[str, int]


class Store(Record):
    """One store as ``memory.read`` shows it; ``hello`` and ``daemon.status`` leave ``entries`` out."""

    entries: list[Entry]
    usage: Usage
    revision: int
    state: str
    path: str


class ReadResult(Record):
    """The live state of the stores, by name."""

    stores: dict[str, Store]


class Server(Record):
    """Who answers; ``instance`` changes with every start."""

    name: str
    version: str
    pid: int
    instance: str


class Hello(Record):
    """What the handshake settled."""

    protocol: int
    server: Server
    profile: str
    role: str
    context: str
    access: str
    limits: dict[str, int]
    features: list[str]
    stores: dict[str, Store]
    notices: list[Notice]


class Fence(Record):
    """The marks around recalled text."""

    open: str
    close: str


class Pending(Record):
    """How many proposals wait, and for how long the oldest."""

    count: int
    oldest_s: int


class SessionOpened(Record):
    """A session and its frozen snapshot."""

    session: str
    resumed: bool
    snapshot: Snapshot
    stale: bool
    changes_text: str
    fence: Fence
    tool: dict[str, Any]
    pending: Pending
    notices: list[Notice]


class SessionSnapshot(Record):
    """A session's snapshot, and what changed since."""

    snapshot: Snapshot
    stale: bool
    changes_text: str


class Refreshed(Record):
    """The snapshot after a boundary; the same id means leave the prompt alone."""

    snapshot: Snapshot


class Review(Record):
    """A review that was queued, and who runs it."""

    job: str
    placement: str


class SessionClosed(Record):
    """What closing a session set off."""

    review: Review | None = None
    flush: str | None = None


class Failures(Record):
    """Refusals of this turn, and how many it may have."""

    count: int
    limit: int


class TurnBegun(Record):
    """An open turn."""

    turn: str
    failures: Failures
    changes_text: str


class TurnEnded(Record):
    """A turn that is over."""

    review: Review | None = None


class Explanation(Record):
    """What became of a text, and when."""

    state: str
    target: Target
    id: str | None = None
    revision: int | None = None
    at: str
    us: int
    rule: str | None = None
    reason: str


class Explained(Record):
    """Everything the journal knows about a text."""

    matches: list[Explanation]


class Revision(Record):
    """One accepted change."""

    revision: int
    target: Target
    at: str
    us: int
    origin: str
    client: str
    uid: int
    pid: int
    session: str | None = None
    turn: str | None = None
    job: str | None = None
    reason: str | None = None
    changes: list[Change]
    undone_by: int | None = None
    kind: str
    undoes: list[int]
    redacted: bool


class RevisionShown(Revision):
    """A revision with the entries as they were after it."""

    entries: dict[str, list[Entry]]


class RevisionList(Record):
    """A page of history, newest first; ``next`` is the ``before`` of the next page."""

    revisions: list[Revision]
    next: int | None = None


class Diff(Record):
    """The difference of two revisions of one store."""

    text: str
    changes: list[Change]


class UndoConflict(Record):
    """Why an entry stands in the way of an undo."""

    id: str
    reason: str


class Undone(Record):
    """Result of undo, redo and restore; nothing was done if there are conflicts."""

    revision: int | None = None
    revisions: list[int]
    changes: list[Change]
    conflicts: list[UndoConflict]
    usage: dict[str, Usage]
    replayed: bool


class Event(Record):
    """Something that happened; ``seq`` only grows."""

    seq: int
    at: str
    us: int
    topic: str
    profile: str
    target: Target | None = None
    revision: int | None = None
    session: str | None = None
    job: str | None = None
    id: str | None = None
    data: dict[str, Any]


class Events(Record):
    """A page of events; ``lost`` means that some before it are gone: read the stores again."""

    events: list[Event]
    seq: int
    lost: bool


class ProfileInfo(Record):
    """A profile, where it lives and what is in it."""

    name: str
    dir: str
    stores: dict[str, Store]


class ProfileList(Record):
    """Every profile."""

    profiles: list[ProfileInfo]


class Exported(Record):
    """A profile as data."""

    version: int
    profile: str
    entries: dict[str, list[Entry]]
    revisions: list[Revision]


class Commits(Record):
    """How many writes were acknowledged, in how many groups, with how many fsyncs."""

    acknowledged: int
    fsyncs: int
    groups: int


class Status(Record):
    """The daemon, its profiles and its notices."""

    server: Server
    uptime_s: int
    commits: Commits
    connections: int
    sessions: int
    profiles: list[ProfileInfo]
    jobs: dict[str, int]
    pending: Pending
    notices: list[Notice]
