"""The shared types of the wire, named as in ``client/PROTOCOL.md``.

What comes in: nothing; these are shapes. What goes out: structs that encode to maps with string keys; an optional field
that is None is left out. What must not be here: domain values (``profile/values.py``), stored records, meaning.

Fields that every reply carries have no default, so that leaving defaults out never drops one of them. A time stands
twice, ``X_at`` for people and ``X_us`` for programs; ``rfc3339`` makes the first from the second.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Generic, Literal, TypeVar

import msgspec

PROTOCOL_VERSION = 1

Target = Literal["memory", "user"]
Action = Literal["add", "replace", "edit", "remove"]
Context = Literal["primary", "subagent", "cron", "job"]
Access = Literal["none", "read", "add", "full"]
Role = Literal["agent", "operator"]
ErrorsForm = Literal["map", "pair"]
Origin = Literal["user", "agent", "tool", "review", "flush", "import", "outside"]
Style = Literal["openai", "anthropic", "mcp"]
StoreCondition = Literal["ok", "foreign", "stale", "read_only", "unreadable", "disabled"]

TOPICS = (
    "memory.changed",
    "memory.refused",
    "memory.withheld",
    "memory.near_limit",
    "outside.adopted",
    "approval.staged",
    "approval.settled",
    "job.started",
    "job.finished",
    "snapshot.stale",
    "store.state",
    "config.changed",
    "events.lost",
    "daemon.closing",
)
"""Every topic of protocol 1, those of parts that a daemon lacks included."""

T = TypeVar("T")


class WireStruct(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """Base of everything memd sends."""


class PerStore(WireStruct, Generic[T], kw_only=True, frozen=True):
    """One value for each store."""

    memory: T
    user: T


class SomeStores(WireStruct, Generic[T], kw_only=True, frozen=True):
    """One value for each store that was asked for or concerned."""

    memory: T | None = None
    user: T | None = None


class Usage(WireStruct, kw_only=True, frozen=True):
    """How full a store is, in Unicode code points; ``percent`` is not capped."""

    chars: int
    limit: int
    free: int
    percent: int
    near_limit: bool


class Finding(WireStruct, kw_only=True, frozen=True, rename={"class_": "class"}):
    """What the scan found in a text; ``start`` and ``end`` are code points."""

    rule: str
    class_: str
    severity: Literal["refuse", "stage", "warn"]
    start: int
    end: int
    reason: str


class Entry(WireStruct, kw_only=True, frozen=True):
    """One entry of a store; ``hash`` is SHA-256 of the text in UTF-8, in hex."""

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


class EntryRef(WireStruct, kw_only=True, frozen=True):
    """An entry as errors and tool answers show it."""

    id: str
    chars: int
    text: str


class Notice(WireStruct, kw_only=True, frozen=True):
    """Something worth telling that is no error."""

    name: str
    message: str
    data: dict[str, Any]


class Op(WireStruct, kw_only=True, frozen=True):
    """One operation, names and aliases settled."""

    action: Action
    content: str | None = None
    old_text: str | None = None
    new_text: str | None = None
    id: str | None = None
    if_hash: str | None = None


class Change(WireStruct, kw_only=True, frozen=True):
    """What happened to one entry; an absent text means that there was none."""

    action: Action
    target: Target
    id: str
    before: str | None = None
    after: str | None = None


class Mutation(WireStruct, kw_only=True, frozen=True):
    """The answer to a change; ``entry`` is absent after a removal and for a batch."""

    changed: bool
    target: Target
    revision: int
    changes: list[Change]
    usage: Usage
    message: str
    notices: list[Notice]
    replayed: bool
    entry: Entry | None = None
    staged: str | None = None


class OpResult(WireStruct, kw_only=True, frozen=True):
    """What became of one operation of a batch; ``error`` is an error map."""

    index: int
    status: Literal["applied", "unchanged", "staged", "refused", "not_tried"]
    id: str | None = None
    error: dict[str, Any] | None = None


class ApplyResult(Mutation, kw_only=True, frozen=True):
    """The answer to a batch."""

    applied: int
    results: list[OpResult]


class Withheld(WireStruct, kw_only=True, frozen=True):
    """An entry that the snapshot names instead of showing it."""

    target: Target
    id: str
    rule: str


class Snapshot(WireStruct, kw_only=True, frozen=True):
    """The frozen bytes of a session; ``id`` is SHA-256 of ``text`` in hex."""

    id: str
    text: str
    blocks: PerStore[str]
    headers: PerStore[str]
    revisions: PerStore[int]
    withheld: list[Withheld]
    left_out: PerStore[int]


class Revision(WireStruct, kw_only=True, frozen=True):
    """One accepted change with its provenance.

    ``kind``: change, outside, undo, redo, restore, wipe, import, compensate or redact. ``redacted``: texts of it are hidden.
    """

    revision: int
    target: Target
    at: str
    us: int
    origin: str
    client: str
    uid: int
    pid: int
    kind: str
    changes: list[Change]
    undoes: list[int]
    redacted: bool
    session: str | None = None
    turn: str | None = None
    job: str | None = None
    reason: str | None = None
    undone_by: int | None = None


class Event(WireStruct, kw_only=True, frozen=True):
    """Something that happened; ``seq`` grows by the order of the journal."""

    seq: int
    at: str
    us: int
    topic: str
    profile: str
    data: dict[str, Any]
    target: Target | None = None
    revision: int | None = None
    session: str | None = None
    job: str | None = None
    id: str | None = None


class Failures(WireStruct, kw_only=True, frozen=True):
    """The failure budget of a turn: how many repairable refusals there were, and how many there may be."""

    count: int
    limit: int


class StoreInfo(WireStruct, kw_only=True, frozen=True):
    """Where a store stands; ``detail`` says in a sentence why ``state`` is not ``ok``."""

    path: str
    state: StoreCondition
    usage: Usage
    revision: int
    detail: str | None = None


class Part(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """One part of a message's content."""

    type: str
    text: str | None = None


class Message(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """One message of a conversation, as chat interfaces have it. ``content`` may be missing beside ``tool_calls``."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | list[Part] = ""
    name: str | None = None
    tool_calls: Any = None
    tool_call_id: str | None = None
    synthetic: bool | None = None


_LAST_US = 253_402_300_799_999_999
"""The last microsecond that RFC 3339 can write: the end of the year 9999."""


@lru_cache(maxsize=16384)
def rfc3339(us: int) -> str:
    """Microseconds since the epoch as RFC 3339 in UTC, with all six digits; clamped to what it can write."""
    seconds, micros = divmod(min(max(us, 0), _LAST_US), 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{micros:06d}Z"
