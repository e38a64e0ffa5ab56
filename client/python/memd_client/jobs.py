"""What reviews, flushes and compactions answer; apart from the other types, as few calls need it.

What comes in: the maps of the replies. What goes out: records. What must not be here: I/O.
"""

from __future__ import annotations

from memd_client.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypedDict

    from memd_client.proposals import Op
    from memd_client.types import Failures, Snapshot

    class Submission(TypedDict, total=False):
        """What is told beside the operations: a sentence, what it cost, by which model; or why it led nowhere."""

        summary: str | None
        tokens: Mapping[str, int] | None
        model: str | None
        error: str | None


class Tokens(Record):
    """Tokens of a job; ``cached`` are those of the input that a cache gave."""

    input: int
    cached: int
    output: int


class RefusedOp(Record):
    """An operation that was not done, and the name of the error."""

    op: Op
    name: str


class Job(Record):
    """A review or a flush: where it is, what it cost, what came of it."""

    id: str
    kind: str
    session: str
    state: str
    outcome: str | None = None
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


class JobList(Record):
    """Reviews and flushes, newest first."""

    jobs: list[Job]


class Claimed(Record):
    """The proof of a claim, how many seconds it lasts, and what the model is told: the task, messages, the tool."""

    lease: str
    lease_s: int
    system: str
    messages: list[dict[str, Any]]
    tool: dict[str, Any]


class Renewed(Record):
    """How many seconds a claim lasts from now."""

    lease_s: int


class Inline(Record):
    """What an agent that flushes by itself puts into its conversation; ``strip`` takes the exchange out again."""

    message: dict[str, Any]
    marker: str


class CompactionReceipt(Record):
    """What became of the messages that were handed over; ``summary_text`` is what was found so far, for a compressor."""

    job: str | None = None
    state: str
    reason: str | None = None
    summary_text: str
    inline: Inline | None = None


class CompactionEnded(Record):
    """The snapshot from here on; ``missed``: nobody had said that the compaction begins."""

    snapshot: Snapshot
    missed: bool
