"""Parameters and results of ``jobs.*`` and ``compaction.*``.

What comes in: nothing; these are shapes. What goes out: structs, as in ``params`` and ``results``. What must not be here: meaning.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from memd.protocol.params import REASON_CHARS, OpParams, Params, WaitMs
from memd.protocol.types import Failures, Message, Op, Snapshot, Style, WireStruct

MOST_LISTED = 1000

State = Literal["queued", "leased", "running", "waiting", "done"]
Outcome = Literal["ok", "nothing", "partial", "failed", "cancelled"]


class Tokens(WireStruct, kw_only=True, frozen=True):
    """Tokens of a job; ``cached`` are those of the input that a cache gave."""

    input: int
    cached: int
    output: int


class JobsList(Params, kw_only=True, frozen=True):
    """The newest reviews and flushes, newest first, of all sessions or of one."""

    session: str | None = None
    limit: Annotated[int, Meta(ge=1, le=MOST_LISTED)] = 50


class JobsShow(Params, kw_only=True, frozen=True):
    """One review or flush: where it is, what it cost, what came of it."""

    job: str


class JobsWait(Params, kw_only=True, frozen=True):
    """Wait until a job has ended; the job as it is when that is so, or when the time is over."""

    job: str
    timeout_ms: WaitMs = 0


class JobsCancel(Params, kw_only=True, frozen=True):
    """A job is not wanted any more. What it has committed stays; one that has ended stays as it is."""

    job: str
    reason: Annotated[str, Meta(max_length=REASON_CHARS)] | None = None


class JobsRun(Params, kw_only=True, frozen=True):
    """Do something now: a job that waits, or a review of what none has seen of a session.

    Without either it is a review of what the sessions that have ended left.
    """

    job: str | None = None
    session: str | None = None


class JobsClaim(Params, kw_only=True, frozen=True):
    """Take a review that is placed with the client: its own model does it, with its warm cache.

    A client that does not submit before the lease ends leaves the job to the daemon.
    """

    job: str
    session: str
    style: Style = "openai"


class JobsRenew(Params, kw_only=True, frozen=True):
    """Hold a claimed job for another ``lease_s``."""

    job: str
    lease: str


class JobOpParams(OpParams, kw_only=True, frozen=True):
    """One operation of a job: which store, and what to do, under all its names."""

    target: str | None = None


class JobsSubmit(Params, kw_only=True, frozen=True):
    """What a client's model wants; the daemon tries it, commits it, and answers with the job that has ended.

    With ``error`` the model led nowhere, and the daemon's own reviewer takes the job.
    """

    job: str
    lease: str
    operations: list[JobOpParams] = field(default_factory=list)
    summary: Annotated[str, Meta(max_length=4000)] | None = None
    tokens: Tokens | None = None
    model: Annotated[str, Meta(max_length=200)] | None = None
    error: Annotated[str, Meta(max_length=REASON_CHARS)] | None = None


class CompactionBegin(Params, kw_only=True, frozen=True):
    """Messages are about to be compressed or dropped: hand them over, and go on with the receipt.

    There is one flush for a session and epoch at most; the same call again has the same answer. ``wait_ms`` waits that long for
    the result, never longer. With ``inline`` the agent flushes in its own conversation: it injects the message, and its client
    takes what lies between the markers out of the history afterwards.
    """

    session: str
    epoch: str | int
    messages: list[Message] = field(default_factory=list)
    wait_ms: WaitMs = 0
    mode: Literal["daemon", "inline"] = "daemon"


class CompactionEnd(Params, kw_only=True, frozen=True):
    """The compaction is over. A completed one is a boundary: the snapshot is frozen anew.

    One that nobody said the beginning of is written down as a missed flush.
    """

    session: str
    epoch: str | int
    status: Literal["completed", "failed"] = "completed"


class RefusedOp(WireStruct, kw_only=True, frozen=True):
    """An operation that was not done, and the name of the error."""

    op: Op
    name: str


class Job(WireStruct, kw_only=True, frozen=True):
    """A review or a flush.

    ``committed`` are revisions and ``staged`` proposals; ``conflicts`` are operations on entries that had changed meanwhile.
    ``summary`` is what it found, its secrets masked.
    """

    id: str
    kind: Literal["review", "flush"]
    session: str
    state: State
    outcome: Outcome | None = None
    reviewer: str
    model: str | None = None
    attempts: int
    steps: int
    failures: Failures
    tokens: Tokens
    committed: list[int]
    staged: list[str]
    refused: list[RefusedOp]
    conflicts: list[RefusedOp]
    reason: str | None = None
    turns: int
    epoch: str | None = None
    at: str
    us: int
    started_at: str | None = None
    started_us: int | None = None
    done_at: str | None = None
    done_us: int | None = None
    summary: str


class JobList(WireStruct, kw_only=True, frozen=True):
    """Method ``jobs.list``."""

    jobs: list[Job]


class Claimed(WireStruct, kw_only=True, frozen=True):
    """Method ``jobs.claim``: the proof of the claim and how long it lasts, and what the model is told.

    ``messages`` are what is in memory, then the conversation, which a model that has it in its context need not be sent again.
    ``tool`` is the one that it may call; the client collects the calls' arguments and submits them.
    """

    lease: str
    lease_s: int
    system: str
    messages: list[Message]
    tool: dict[str, Any]


class Renewed(WireStruct, kw_only=True, frozen=True):
    """Method ``jobs.renew``."""

    lease_s: int


class Inline(WireStruct, kw_only=True, frozen=True):
    """What an agent that flushes by itself puts into its conversation; ``marker`` stands in it and ends the exchange."""

    message: Message
    marker: str


class CompactionReceipt(WireStruct, kw_only=True, frozen=True):
    """Method ``compaction.begin``. ``summary_text`` is what the job found so far, inside the session's fence."""

    job: str | None = None
    state: Literal["queued", "running", "done", "skipped"]
    reason: str | None = None
    summary_text: str
    inline: Inline | None = None


class CompactionEnded(WireStruct, kw_only=True, frozen=True):
    """Method ``compaction.end``. ``missed``: nobody had said that it begins."""

    snapshot: Snapshot
    missed: bool
