"""Stored records: the shapes in the journal.

What comes in: values from the layers above, flattened. What goes out: rows. What must not be here: what a change means.
They evolve with the journal's schema version, not with the wire and not with the domain values.
"""

from __future__ import annotations

from typing import Any

import msgspec

from memd.store.work import WorkPart


class ChangeRecord(msgspec.Struct, array_like=True):
    """One entry's change inside a revision. Texts are UTF-8 bytes, undecodable ones as they are on disk."""

    action: str
    id: str
    before: bytes | None
    after: bytes | None
    place: int
    created_us: int
    origin: str
    redacted: bool = False


class EntryRecord(msgspec.Struct, array_like=True):
    """What the journal knows of an entry beside its text, which stands in the rendering."""

    id: str
    created_us: int
    updated_us: int
    origin: str


class RevisionRecord(msgspec.Struct, kw_only=True):
    """One revision of one store. ``kind``: change, outside, undo, redo, restore, wipe, import, compensate."""

    revision: int = 0
    store: int
    us: int
    kind: str = "change"
    origin: str
    client: str = ""
    uid: int = 0
    pid: int = 0
    session: str | None = None
    turn: str | None = None
    job: str | None = None
    reason: str | None = None
    changes: list[ChangeRecord] = []
    undoes: list[int] = []
    undone_by: int | None = None


class RenderingRecord(msgspec.Struct, kw_only=True):
    """The exact bytes of a store's file at a revision, with its entries' records in file order."""

    store: int
    revision: int = 0
    us: int
    data: bytes
    entries: list[EntryRecord]


class EventRecord(msgspec.Struct, kw_only=True):
    """One event. ``seq`` is given out by the committer."""

    seq: int = 0
    us: int
    topic: str
    profile: str
    target: str | None = None
    revision: int | None = None
    session: str | None = None
    job: str | None = None
    id: str | None = None
    data: dict[str, Any] = {}


class RequestRecord(msgspec.Struct, kw_only=True):
    """The remembered answer to a ``request_id`` (24 h or 100,000, whichever is less)."""

    profile: str
    request_id: str
    fingerprint: bytes
    us: int
    answer: bytes


class RefusalRecord(msgspec.Struct, kw_only=True):
    """A refused write, without its text: only the text's SHA-256 is kept."""

    us: int
    profile: str
    target: str
    name: str
    text_hash: bytes
    reason: str
    session: str | None = None
    turn: str | None = None


class SnapshotRecord(msgspec.Struct, kw_only=True):
    """A frozen snapshot, stored once per content. ``body`` is opaque to the store."""

    id: str
    body: bytes


class SessionRecord(msgspec.Struct, kw_only=True):
    """An agent session. ``body`` is opaque to the store; the columns are what the store looks up or prunes by."""

    id: str
    profile: str
    key: str | None
    snapshot: str
    seen_us: int
    closed: bool = False
    body: bytes = b""


class TurnRecord(msgspec.Struct, kw_only=True):
    """A turn of a session that was begun; ``status`` is open, completed or interrupted."""

    session: str
    turn: str
    user: bool
    status: str
    us: int


class PreimageRecord(msgspec.Struct, kw_only=True):
    """Bytes that were on disk and would be lost by a merge; kept once per content (SHA-256)."""

    store: int
    revision: int
    us: int
    hash: bytes
    data: bytes


class OperationRecord(msgspec.Struct, array_like=True):
    """One operation of a proposal."""

    action: str
    content: str | None = None
    old_text: str | None = None
    new_text: str | None = None
    id: str | None = None
    if_hash: str | None = None


class FindingRecord(msgspec.Struct, array_like=True):
    """What the scan found when a proposal was staged."""

    rule: str
    class_: str
    severity: str
    start: int
    end: int
    reason: str


class ProposalRecord(msgspec.Struct, kw_only=True):
    """A change that waits for a person, or waited.

    ``state``: pending, needs_review (``problem`` says why), approved (as ``revision``), rejected, expired, or withdrawn: it
    was never answered for. ``settled`` says by whom: client, pid, command, terminal, and what the person said. ``redacted``:
    its operations are not what was proposed.
    """

    id: str
    profile: str
    store: int
    target: str
    us: int
    base: int
    operations: list[OperationRecord]
    findings: list[FindingRecord]
    state: str = "pending"
    problem: str = ""
    origin: str
    client: str = ""
    uid: int = 0
    pid: int = 0
    session: str | None = None
    turn: str | None = None
    job: str | None = None
    reason: str | None = None
    settled_us: int | None = None
    settled: dict[str, Any] = {}
    revision: int | None = None
    redacted: bool = False


class Part(msgspec.Struct, kw_only=True):
    """What one owner adds to a group commit: applied whole or not at all, with everything else in the group.

    ``undone`` marks revisions as undone by another (or by none again); ``checkpoints`` are file checkpoints
    (store, revision); ``forget`` are request ids taken back by a compensating revision; ``approved`` are texts that a person
    lets into prompts (store, SHA-256, microseconds); ``work`` is what concerns jobs.
    """

    revisions: list[RevisionRecord] = []
    renderings: list[RenderingRecord] = []
    entry_ids: list[tuple[int, str]] = []
    preimages: list[PreimageRecord] = []
    events: list[EventRecord] = []
    requests: list[RequestRecord] = []
    refusals: list[RefusalRecord] = []
    sessions: list[SessionRecord] = []
    snapshots: list[SnapshotRecord] = []
    turns: list[TurnRecord] = []
    undone: list[tuple[int, int | None]] = []
    checkpoints: list[tuple[int, int]] = []
    forget: list[tuple[str, str]] = []
    proposals: list[ProposalRecord] = []
    approved: list[tuple[int, bytes, int]] = []
    work: WorkPart | None = None

    @property
    def weight(self) -> int:
        """Approximate size in bytes, for the bound of a group."""
        return (
            sum(len(item.data) for item in self.renderings)
            + sum(len(item.data) for item in self.preimages)
            + sum(len(op.content or op.new_text or "") for item in self.proposals for op in item.operations)
            + 300 * (len(self.revisions) + len(self.events) + len(self.requests) + len(self.proposals))
            + (self.work.weight if self.work is not None else 0)
        )

    @property
    def only_removes(self) -> bool:
        """True if the part makes some store smaller and none larger."""
        changes = [change for revision in self.revisions for change in revision.changes]
        return bool(changes) and all(change.action == "remove" for change in changes)


class StoreRow(msgspec.Struct, kw_only=True):
    """A store as the journal knows it: where it is and up to which revision its file is fsynced."""

    id: int
    directory: str
    name: str
    device: int
    inode: int
    checkpoint: int
