"""The words the layers below the wire share: what is asked of a profile and what it answers.

What comes in: nothing; these are values. What goes out: frozen structures without behaviour beyond arithmetic.
What must not be here: wire types (``protocol/types.py``), stored records (``store/records.py``), I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field

from memd.profile.entries import Document, Entry
from memd.scan import Finding

Target = Literal["memory", "user"]
Action = Literal["add", "replace", "edit", "remove"]
StoreCondition = Literal["ok", "foreign", "stale", "read_only", "unreadable", "disabled"]

TARGETS: tuple[Target, Target] = ("memory", "user")
FILE_NAMES: dict[Target, str] = {"memory": "MEMORY.md", "user": "USER.md"}


class Operation(Struct, frozen=True):
    """One thing to do to a store, names and aliases already settled. Absent fields are None.

    ``content`` for add and replace; ``id`` or ``old_text`` says where; ``new_text`` is what edit puts there.
    """

    action: Action
    content: str | None = None
    old_text: str | None = None
    new_text: str | None = None
    id: str | None = None
    if_hash: str | None = None


class Change(Struct, frozen=True):
    """What happened to one entry. ``before`` and ``after`` are logical texts, None where there was none.

    ``place`` is the entry's index: before the change for a removal, after it for everything else. ``created_us`` and
    ``origin`` are those of the entry before the change (of the new one for an add), so that undo can put it back.
    ``redacted``: the texts are no longer, or not all of, what they were.
    """

    action: Action
    id: str
    before: str | None
    after: str | None
    place: int
    created_us: int = 0
    origin: str = ""
    redacted: bool = False


class Notice(Struct, frozen=True):
    """Something worth telling that is no error."""

    name: str
    message: str
    data: Mapping[str, Any] = field(default_factory=dict)


class Limits(Struct, frozen=True):
    """Bounds of one store. ``chars`` in code points; ``near_percent`` is where ``near_limit`` begins."""

    chars: int
    near_percent: int = 85
    entries: int = 1000


class Usage(Struct, frozen=True):
    """How full a store is, in code points of the counted text. ``percent`` is the floor, not capped."""

    chars: int
    limit: int
    free: int
    percent: int
    near_limit: bool


class Stamp(Struct, frozen=True):
    """When and by whom: microseconds since the epoch and an origin."""

    us: int
    origin: str


class Step(Struct, frozen=True):
    """What one operation of a batch did. ``status`` is ``applied``, ``unchanged``, or ``staged``: it waits for a person."""

    status: Literal["applied", "unchanged", "staged"]
    id: str | None
    changes: tuple[Change, ...]
    message: str
    notices: tuple[Notice, ...] = ()


class Applied(Struct, frozen=True):
    """A store after one operation or one batch; ``document`` is the old one itself if nothing changed."""

    document: Document
    steps: tuple[Step, ...]
    message: str
    notices: tuple[Notice, ...] = ()

    @property
    def changes(self) -> tuple[Change, ...]:
        """All changes in the order they were made."""
        return tuple(change for step in self.steps for change in step.changes)


class Caller(Struct, frozen=True):
    """Who asks: recorded with the revision. ``origin`` is already lowered to what the caller may claim.

    ``person``: it came over the operator socket, where what would be staged elsewhere is decided by asking for it.
    """

    client: str = ""
    uid: int = 0
    pid: int = 0
    origin: str = "agent"
    session: str | None = None
    turn: str | None = None
    job: str | None = None
    reason: str | None = None
    person: bool = False


OUTSIDE = Caller(origin="outside")
"""Another program that changed the file itself."""


class Mutation(Struct, frozen=True):
    """A change to one store, as it is queued with the profile's writer.

    ``fingerprint`` identifies method and parameters, for ``request_id``. ``batch`` is ``memory.apply``.
    """

    target: Target
    operations: tuple[Operation, ...]
    caller: Caller
    batch: bool = False
    if_revision: int | None = None
    request_id: str | None = None
    fingerprint: bytes = b""


class Committed(Struct, frozen=True):
    """A mutation that is durable and visible. ``entry`` is None after a removal and for batches.

    ``staged`` is the proposal that holds what was not applied; it is durable, too.
    """

    changed: bool
    target: Target
    revision: int
    entry: Entry | None
    changes: tuple[Change, ...]
    usage: Usage
    message: str
    notices: tuple[Notice, ...]
    steps: tuple[Step, ...]
    replayed: bool = False
    staged: str | None = None


class TargetChange(Struct, frozen=True):
    """A change together with its store."""

    target: Target
    change: Change


class Undone(Struct, frozen=True):
    """Result of undo, redo, restore and import. Nothing was done if there are ``conflicts``: (entry id, reason) pairs."""

    revisions: tuple[int, ...]
    changes: tuple[TargetChange, ...]
    conflicts: tuple[tuple[str, str], ...]
    usage: Mapping[Target, Usage]
    replayed: bool = False
    notices: tuple[Notice, ...] = ()


class StoreState(Struct, frozen=True):
    """The published state of one store: what reads are answered from.

    ``detail`` says in a sentence why ``condition`` is not ``ok``; ``""`` otherwise. ``revision`` is 0 before the first
    write. ``notices`` are standing ones, told to every session. ``findings`` and ``withheld`` (the rule that keeps an entry
    out of prompts) are by entry id, and as the profile's settings have it.
    """

    target: Target
    path: str
    document: Document
    revision: int
    usage: Usage
    condition: StoreCondition = "ok"
    detail: str = ""
    notices: tuple[Notice, ...] = ()
    findings: Mapping[str, tuple[Finding, ...]] = {}
    withheld: Mapping[str, str] = {}


def usage_of(chars: int, limits: Limits) -> Usage:
    """The usage for a counted length; a limit of 0 counts as 100 % full."""
    percent = chars * 100 // limits.chars if limits.chars else 100
    return Usage(chars, limits.chars, max(0, limits.chars - chars), percent, percent >= limits.near_percent)
