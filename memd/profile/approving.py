"""Approving: a proposal applied, as a plan for the writer.

What comes in: a proposal, who lets it through, perhaps with another text. What goes out: a revision of the proposal's own origin and the
note that it is settled, in one transaction; or the typed refusal, and the proposal needs a review. What must not be here: I/O, the
table of proposals (``proposals``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from memd.errors import Conflict, CurationError, InvalidParams, WireError
from memd.profile.policy import rule
from memd.profile.proposals import REDACTED, attempt, problem_of, to_record
from memd.profile.values import Caller, Committed
from memd.profile.work import Quiet, Refused, entry_by_id
from memd.store.records import Part

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memd.profile.memory_store import MemoryStore
    from memd.profile.policy import Guard
    from memd.profile.proposals import Proposal
    from memd.profile.scans import Scans
    from memd.profile.values import Operation
    from memd.profile.work import Drafts


@dataclass(frozen=True, slots=True)
class Decider:
    """The person who decides, as far as that can be known."""

    caller: Caller
    command: str = ""
    terminal: str = ""

    def data(self) -> dict[str, Any]:
        """What events and records keep of it."""
        found = {"client": self.caller.client, "uid": self.caller.uid, "pid": self.caller.pid}
        return {**found, "command": self.command, "terminal": self.terminal}

    @property
    def words(self) -> str:
        """The same in a few words."""
        where = f" on {self.terminal}" if self.terminal else ""
        return f"{self.command or self.caller.client or 'an operator'} (pid {self.caller.pid}){where}"


@dataclass(eq=False)
class Approve(Quiet):
    """Apply a proposal on what the store is now, under its own origin, together with the note that it is settled."""

    store: MemoryStore
    guard: Guard
    proposal: str
    wanted: tuple[Operation, ...]
    by: Decider
    if_revision: int | None = None

    @property
    def stores(self) -> tuple[MemoryStore, ...]:
        """The one store."""
        return (self.store,)

    @property
    def operations(self) -> int:
        """As many as the proposal has."""
        return len(self.wanted)

    def texts(self) -> tuple[Scans, Iterable[str]] | None:
        """What it puts in."""
        return self.guard.scans, [text for one in self.wanted for text in (one.content, one.new_text) if text]

    def plan(self, drafts: Drafts) -> Committed:
        """Apply it.

        Raises:
            NoSuchProposal: It is settled.
            Conflict: A text in it was redacted.
            WireError: It cannot be applied; see ``refused``.
        """
        draft = drafts[self.store]
        proposal = self.guard.proposals.require_open(self.proposal)
        if proposal.redacted and self.wanted == proposal.operations:
            raise Conflict(REDACTED, reason="redacted", current="")
        stamp = draft.stamp(proposal.origin)
        applied = attempt(draft.document, self.wanted, limits=self.store.limits, stamp=stamp, new_id=draft.new_id)
        # Whose it was has been judged when it was staged: what is asked now is whether a person may do it.
        person = replace(self.by.caller, person=True, origin="user")
        rulings = [
            rule(self.guard, operation, step, person, draft.approved)
            for operation, step in zip(self.wanted, applied.steps, strict=True)
        ]
        for ruling in rulings:
            draft.approve(ruling.approved)
        revision = draft.revision
        if applied.changes:
            revision = draft.record("change", applied.document, applied.changes, self._provenance(proposal))
        settled = replace(
            proposal,
            state="approved",
            problem="",
            operations=self.wanted,
            settled_us=draft.now_us,
            settled=self.by.data(),
            revision=revision,
        )
        draft.settle_proposal(proposal, settled, self.guard.proposals)
        only = applied.steps[0].id if len(applied.steps) == 1 else None
        return Committed(
            changed=bool(applied.changes),
            target=proposal.target,
            revision=revision,
            entry=entry_by_id(draft.document, only) if only else None,
            changes=applied.changes,
            usage=draft.usage,
            message=f"Approved {proposal.id}. {applied.message}",
            notices=(*draft.notices, *applied.notices),
            steps=applied.steps,
        )

    def refused(self, error: WireError, _now_us: int) -> Refused | None:
        """The proposal needs a review, and why."""
        proposal = self.guard.proposals.find(self.proposal)
        if proposal is None or not proposal.is_open or not isinstance(error, CurationError | Conflict | InvalidParams):
            return None
        after = replace(proposal, state="needs_review", problem=problem_of(error))
        return Refused(Part(proposals=[to_record(after)]), lambda: self.guard.proposals.put(after))

    def _provenance(self, proposal: Proposal) -> Caller:
        """The caller of the proposal, with who let it through."""
        said = [f"approved by {self.by.words}", proposal.reason, self.by.caller.reason]
        return Caller(
            client=proposal.client,
            uid=proposal.uid,
            pid=proposal.pid,
            origin=proposal.origin,
            session=proposal.session,
            turn=proposal.turn,
            job=proposal.job,
            reason=": ".join(part for part in said if part),
        )
