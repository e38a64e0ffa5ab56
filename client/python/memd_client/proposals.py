"""What approvals and scans answer; apart from the other types, as few calls need it.

What comes in: the maps of the replies. What goes out: records. What must not be here: I/O.
"""

from __future__ import annotations

from memd_client.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memd_client.types import Finding, Target


class Op(Record):
    """One operation."""

    action: str
    content: str | None = None
    old_text: str | None = None
    new_text: str | None = None
    id: str | None = None
    if_hash: str | None = None


class Proposal(Record):
    """A change that waits for a person, or waited; ``reason`` says why it cannot be applied, ``proposed`` why it was wanted."""

    id: str
    state: str
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


class ProposalList(Record):
    """What waits, oldest first."""

    proposals: list[Proposal]
    count: int
    oldest_s: int


class Checked(Record):
    """What the scan says about a text: ``ok``, ``warn``, ``stage`` or ``refuse``."""

    findings: list[Finding]
    verdict: str
