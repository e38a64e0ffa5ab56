"""Parameters and results of ``approval.*`` and ``scan.check``.

What comes in: nothing; these are shapes. What goes out: structs, as in ``params`` and ``results``. What must not be here: meaning.
"""

from __future__ import annotations

from typing import Literal

from memd.protocol.params import MutationParams, Params
from memd.protocol.types import Finding, Op, Target, WireStruct

SCAN_CHARS = 1_048_576
"""Characters that ``scan.check`` takes: what a memory file may have in bytes, which is more than a prompt holds."""

State = Literal["pending", "needs_review", "approved", "rejected", "expired"]


class ApprovalList(Params, kw_only=True, frozen=True):
    """The proposals that wait for a person, oldest first, each tried out on its store as it is now.

    An agent gets them with secrets masked.
    """


class ApprovalApprove(MutationParams, kw_only=True, frozen=True):
    """Apply a proposal under its own origin, or let a withheld entry into prompts, by its id.

    ``content`` is another text for a proposal of one operation. What cannot be applied any more becomes ``needs_review``. An
    entry that the scan refuses cannot be approved. Refused to a process with an agent among its ancestors.
    """

    id: str
    content: str | None = None


class ApprovalReject(MutationParams, kw_only=True, frozen=True):
    """Settle a proposal without applying it. Refused to a process with an agent among its ancestors."""

    id: str


class ScanCheck(Params, kw_only=True, frozen=True):
    """Scan a text that is to enter a prompt; nothing is stored. At most 1,048,576 characters."""

    text: str
    where: Literal["memory", "context"] = "context"


class Proposal(WireStruct, kw_only=True, frozen=True):
    """A change that waits for a person, or waited. ``diff`` is what it would do now, ``reason`` why it cannot be applied."""

    id: str
    state: State
    target: Target
    operations: list[Op]
    diff: str
    findings: list[Finding]
    origin: str
    base: int
    at: str
    us: int
    age_s: int
    client: str
    job: str | None = None
    session: str | None = None
    reason: str | None = None
    proposed: str | None = None


class ProposalList(WireStruct, kw_only=True, frozen=True):
    """Method ``approval.list``; ``oldest_s`` is 0 if none waits."""

    proposals: list[Proposal]
    count: int
    oldest_s: int


class Checked(WireStruct, kw_only=True, frozen=True):
    """Method ``scan.check``."""

    findings: list[Finding]
    verdict: Literal["ok", "warn", "stage", "refuse"]
