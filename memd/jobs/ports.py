"""What jobs need of their neighbours, as structural types: the journal, profiles, reviewers, the commit.

What comes in: nothing; these are shapes that ``memd/store``, ``memd/profile`` and ``memd/jobs``'s own parts fulfil, and that the tests
fulfil in memory. What goes out: types. What must not be here: behaviour.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from memd.config import ProfileSettings
    from memd.deferred import Ticket
    from memd.errors import StoreError
    from memd.profile.stored import (
        CompactionRecord,
        DeskRecord,
        EventRecord,
        JobRecord,
        MessageRecord,
        Part,
        RangeRecord,
        RefusedRecord,
        SpendingRecord,
        TallyRecord,
    )
    from memd.profile.values import Mutation, StoreState, Target

T = TypeVar("T")


class Journal(Protocol):
    """Where jobs are kept. Questions raise ``StoreError`` while it cannot be read."""

    def put(self, part: Part, committed: Callable[[], None], failed: Callable[[StoreError], None]) -> None:
        """Make a part durable with the next group; one of the two is called then."""

    def add(self, part: Part, committed: Callable[[], None] | None = None) -> None:
        """Let a part ride with a group within a second; should that fail, nobody is told."""

    async def live(self) -> list[JobRecord]:
        """Every job that has not ended."""

    async def job(self, profile: str, job: str) -> JobRecord | None:
        """One job, ended or not."""

    async def by_key(self, profile: str, key: str) -> JobRecord | None:
        """The job of this key, ended or not."""

    async def listed(self, profile: str, *, session: str | None = None, limit: int = 50) -> list[JobRecord]:
        """The newest jobs of a profile, newest first."""

    async def messages(self, ranges: Sequence[RangeRecord]) -> list[MessageRecord]:
        """The copies in these ranges."""

    async def tallies(self) -> list[TallyRecord]:
        """Every count."""

    async def last_agent_writes(self) -> dict[str, int]:
        """When an agent last changed a store, by session."""

    async def compaction(self, profile: str, session: str, epoch: str) -> CompactionRecord | None:
        """What became of one compaction."""

    async def compactions(self, profile: str, *, state: str, since_us: int = 0) -> list[CompactionRecord]:
        """The compactions of a profile in one state."""

    async def spent(self, day: int) -> list[SpendingRecord]:
        """What each profile spent on a day."""


class Masking(Protocol):
    """Texts that are to be hidden, as ``memd.store.masking`` hides them."""

    def text(self, text: str) -> str:
        """A text without them."""

    def packed(self, data: bytes) -> bytes:
        """A MessagePack value without them."""


class Events(Protocol):
    """The events of one profile, as ``memd.profile.events`` has them."""

    def expect(self, records: Iterable[EventRecord]) -> None:
        """These are durable now and will be released."""

    def release(self, records: Iterable[EventRecord]) -> None:
        """Pass them on."""


class Named(Protocol):
    """A profile as counting sees it."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def settings(self) -> ProfileSettings:
        """What holds for it now."""


class JobProfile(Named, Protocol):
    """A profile as a job sees it."""

    @property
    def events(self) -> Events:
        """What happens in it."""

    def state(self, target: Target) -> StoreState:
        """The published state of a store."""

    def submit(self, mutation: Mutation) -> Ticket:
        """Queue a change to one store. The ticket's result is ``Committed``."""

    def answered(self, request_id: str, fingerprint: bytes) -> Ticket | None:
        """The answer of a change that was asked for under this id before, if it was."""


class Runner(Protocol):
    """Where blocking calls run."""

    async def run(self, fn: Callable[..., T], *args: Any) -> T:
        """Call ``fn(*args)`` and return its result; raises what it raises. Not cancellable."""


@dataclass(frozen=True, slots=True)
class JobCommit:
    """What a job's commit came to: revisions, proposals, what was not done and why, what had changed meanwhile."""

    committed: Sequence[int] = ()
    staged: Sequence[str] = ()
    refused: Sequence[RefusedRecord] = ()
    conflicts: Sequence[RefusedRecord] = ()


@dataclass(slots=True)
class Used:
    """What an attempt has cost so far. ``cached``: of the input, what a cache gave."""

    input: int = 0
    cached: int = 0
    output: int = 0
    steps: int = 0
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one attempt of a reviewer is about."""

    job: JobRecord
    messages: Sequence[MessageRecord]
    tokens_left: int
    failures_left: int


@dataclass(slots=True)
class Found:
    """What an attempt has brought so far. It is filled in as the attempt goes on, so that a failure keeps what there is."""

    operations: list[DeskRecord] = field(default_factory=list)
    refused: list[RefusedRecord] = field(default_factory=list)
    failures: int = 0
    used: Used = field(default_factory=Used)


class Worker(Protocol):
    """A reviewer as the runner sees it: a kind, an endpoint, and an attempt that fills in what it finds."""

    @property
    def kind(self) -> str:
        """``rules``, ``openai``, ``anthropic`` or ``command``."""

    @property
    def endpoint(self) -> str | None:
        """Its base URL; None for what needs no other program."""

    async def attempt(self, profile: JobProfile, attempt: Attempt, found: Found) -> str:
        """Review; returns a sentence on it. Raises ``ReviewFailed``."""
