"""What dispatch needs of its neighbours, as structural types: connections, profiles, events, the daemon's controls.

What comes in: nothing; these are shapes that ``memd/transport``, ``memd/profile`` and ``memd/daemon.py`` fulfil without
importing them, and that the tests fulfil in memory. What goes out: types. What must not be here: behaviour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from memd.profile.history import ANY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from memd.config import ProfileSettings
    from memd.deferred import Ticket
    from memd.profile.approvals import Listed
    from memd.profile.approving import Decider
    from memd.profile.entries import Entry
    from memd.profile.history import Chosen, Explanation, RevisionRow, Selector
    from memd.profile.proposals import Proposal
    from memd.profile.scans import Finding, Verdict
    from memd.profile.values import Caller, Mutation, Notice, StoreState, Target, TargetChange, Undone
    from memd.protocol.types import ErrorsForm
    from memd.store.records import EventRecord


class Peer(Protocol):
    """Who is at the other end of a connection."""

    @property
    def uid(self) -> int:
        """The user."""

    @property
    def pid(self) -> int:
        """The process when it connected; a hint."""

    @property
    def command(self) -> str:
        """Its command's name, ``""`` if that is not known; a hint."""

    @property
    def role(self) -> Literal["agent", "operator"]:
        """By the socket that was connected to."""


class Lineage(Protocol):
    """Where a process comes from."""

    @property
    def ancestors(self) -> tuple[int, ...]:
        """Its parent first."""

    @property
    def terminal(self) -> str:
        """The terminal that it is on, ``""`` without one."""


class _Nobody:
    ancestors: tuple[int, ...] = ()
    terminal = ""


NOBODY: Lineage = _Nobody()
"""Of whom nothing is known."""


class Channel(Protocol):
    """The sending half of a connection. Sending on one that has ended does nothing.

    ``errors_form`` is how the client wants its errors. ``on_lost`` makes the event that stands for dropped ones.
    """

    errors_form: ErrorsForm
    on_lost: Callable[[], bytes] | None

    @property
    def peer(self) -> Peer:
        """Who is at the other end."""

    def send(self, message: bytes) -> None:
        """A reply: never dropped while the connection lives."""

    def notify(self, message: bytes) -> None:
        """An event: dropped when the peer does not read."""


class Events(Protocol):
    """The events of one profile."""

    @property
    def seq(self) -> int:
        """The number of the newest event."""

    def subscribe(self, callback: Callable[[EventRecord], None]) -> Callable[[], None]:
        """Call back with every event from now on; returns what ends it."""

    async def since(self, seq: int, topics: Sequence[str] = (), *, limit: int) -> tuple[list[EventRecord], bool]:
        """Events after ``seq``, oldest first, and whether some are gone or did not fit. No topics means all."""


class Approvals(Protocol):
    """What waits for a person in a profile."""

    def pending(self) -> tuple[int, int]:
        """How many proposals wait, and for how many seconds the oldest."""

    async def listed(self) -> Sequence[Listed]:
        """What waits, oldest first, tried out."""

    def describe(self, proposal: Proposal) -> Listed:
        """A proposal, tried out."""

    def approve(
        self,
        approved: str,
        by: Decider,
        *,
        content: str | None = None,
        request_id: str | None = None,
        fingerprint: bytes = b"",
    ) -> Ticket:
        """Apply a proposal or let an entry into prompts; the result is ``Committed``."""

    async def reject(self, rejected: str, by: Decider, *, request_id: str | None = None) -> Proposal:
        """Settle a proposal without applying it."""


class Profile(Protocol):
    """One profile: its published state, its writer, its history."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def dir(self) -> str:
        """Where its files are."""

    @property
    def settings(self) -> ProfileSettings:
        """What holds for it now."""

    @property
    def events(self) -> Events:
        """What happens in it."""

    @property
    def approvals(self) -> Approvals:
        """What waits for a person."""

    def state(self, target: Target) -> StoreState:
        """The published state of a store; a new object after every change."""

    def head(self) -> tuple[int, ...]:
        """The revisions of both stores, and whatever else changes what they are to a reader."""

    def kept_out(self, target: Target, text: str) -> str | None:
        """The rule that keeps a text which is no longer in a store out of prompts."""

    def mask(self, text: str) -> str:
        """The text with its secrets masked."""

    def masking_is_slow(self, texts: Sequence[str]) -> bool:
        """True if masking all of these would hold up the event loop."""

    def mask_all(self, texts: Sequence[str]) -> list[str]:
        """Texts with their secrets masked, here and now; nothing of them is remembered."""

    async def masked(self, texts: Sequence[str]) -> list[str]:
        """The same in a thread."""

    async def check(self, text: str) -> tuple[tuple[Finding, ...], Verdict]:
        """What the rules say about a text that is not in memory."""

    def attach(self) -> None:
        """A connection works with it from now on."""

    def detach(self) -> None:
        """That connection is gone."""

    def look_due(self) -> bool:
        """True if ``look`` would look at the files now, False if it was done just before."""

    async def look(self) -> None:
        """See what others wrote until now."""

    def submit(self, mutation: Mutation) -> Ticket:
        """Queue a change; the result is ``Committed``."""

    def wipe(
        self,
        target: Target,
        caller: Caller,
        *,
        request_id: str | None = None,
        fingerprint: bytes = b"",
        if_revision: int | None = None,
    ) -> Ticket:
        """Empty a store; the result is ``Committed``."""

    async def undo(
        self,
        selector: Selector,
        caller: Caller,
        *,
        redo: bool = False,
        request_id: str | None = None,
        fingerprint: bytes = b"",
        if_revision: int | None = None,
    ) -> Undone:
        """Undo or redo."""

    async def restore(
        self,
        target: Target,
        revision: int,
        caller: Caller,
        *,
        request_id: str | None = None,
        fingerprint: bytes = b"",
        if_revision: int | None = None,
    ) -> Undone:
        """Make a store what it was at a revision."""

    async def import_entries(
        self,
        data: Mapping[str, Any],
        caller: Caller,
        *,
        request_id: str | None = None,
        fingerprint: bytes = b"",
        if_revisions: Mapping[Target, int],
    ) -> Undone:
        """Take over exported entries, or make entries of Markdown."""

    def preview_import(self, data: Mapping[str, Any], caller: Caller, *, if_revisions: Mapping[Target, int]) -> Undone:
        """What ``import_entries`` would do; nothing is done."""

    async def preview_undo(
        self, selector: Selector, caller: Caller, *, redo: bool = False, if_revision: int | None = None
    ) -> Undone:
        """What ``undo`` would do; nothing is done."""

    async def preview_restore(
        self, target: Target, revision: int, caller: Caller, *, if_revision: int | None = None
    ) -> Undone:
        """What ``restore`` would do; nothing is done."""

    async def list_revisions(
        self,
        chosen: Chosen = ANY,
        *,
        target: Target | None = None,
        limit: int = 50,
        before: int | None = None,
    ) -> tuple[list[RevisionRow], int | None]:
        """Revisions, newest first, and where the next page begins."""

    async def show_revision(self, revision: int) -> tuple[RevisionRow, Mapping[Target, tuple[Entry, ...]]]:
        """A revision and what stood in both stores after it."""

    async def diff(self, target: Target, from_: int, to: int | None = None) -> tuple[str, tuple[TargetChange, ...]]:
        """The difference between two revisions of a store, for people and for programs."""

    async def explain(self, text: str) -> Sequence[Explanation]:
        """What became of a text."""

    def emit(
        self,
        topic: str,
        *,
        target: Target | None = None,
        session: str | None = None,
        id: str | None = None,  # noqa: A002 - the event's own field name
        data: Mapping[str, Any] | None = None,
    ) -> None:
        """Journal an event with the next group, then publish it."""


@dataclass(frozen=True, slots=True)
class DaemonStatistics:
    """The daemon's own counters since its start."""

    started_us: int
    acknowledged: int
    fsyncs: int
    groups: int
    connections: int
    requests: int = 0
    request_errors: int = 0
    bugs: int = 0


@dataclass(frozen=True, slots=True)
class Redaction:
    """What a redaction did: changed rows by table, the revisions that masked live entries, what was not looked at."""

    tables: Mapping[str, int]
    revisions: Sequence[int]
    notices: Sequence[Notice]


class Control(Protocol):
    """What the daemon lets an operator do, and what it knows of itself."""

    @property
    def version(self) -> str:
        """Of the daemon."""

    @property
    def pid(self) -> int:
        """Its process."""

    @property
    def instance(self) -> str:
        """Changes with every start."""

    def statistics(self) -> DaemonStatistics:
        """Counters of the other layers."""

    def notices(self) -> Sequence[Notice]:
        """What a person should know: settings weakened, a clock that jumped, a journal set aside."""

    async def reload(self) -> None:
        """Read the settings again; raises a ``WireError`` and keeps the old ones if they cannot be used."""

    def stop(self) -> None:
        """Begin to stop; returns at once."""

    def handover(self, version: str) -> bool:
        """A newer daemon asks for the profiles: True if this one drains for it."""

    async def create_profile(self, name: str, directory: str | None) -> None:
        """Add a profile that can be used from now on."""

    async def redact(self, profile: str, caller: Caller, *, text: str | None, revision: int | None) -> Redaction:
        """Take a text out of every memory file, every session and the journal; it may be run again at any time."""
