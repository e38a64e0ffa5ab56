"""Approvals in memory for tests of dispatch.

What it is: ``FakeApprovals``. What comes in: what handlers ask. What goes out: what a test has put there. What must not be here: rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from memd.deferred import Ticket
from memd.profile.approvals import Listed
from memd.profile.entries import Document
from memd.profile.proposals import Trial
from memd.profile.values import Committed

if TYPE_CHECKING:
    from support.fake_profile import MemoryProfile

    from memd.errors import WireError
    from memd.profile.approving import Decider
    from memd.profile.proposals import Proposal

NOW_US = 1_700_000_000_000_000


class FakeApprovals:
    """What waits, as a test put it there; what is decided is noted in ``decided``."""

    def __init__(self, profile: MemoryProfile) -> None:
        self.waiting: list[Proposal] = []
        self.trial = Trial(Document(), Document())
        self.decided: list[tuple[str, str, Decider, str | None]] = []
        self.error: WireError | None = None
        self._profile = profile

    def pending(self) -> tuple[int, int]:
        return len(self.waiting), max((one.age_s(NOW_US) for one in self.waiting), default=0)

    async def listed(self) -> list[Listed]:
        return [self.describe(one) for one in self.waiting]

    def describe(self, proposal: Proposal) -> Listed:
        return Listed(proposal, self.trial)

    def approve(
        self,
        approved: str,
        by: Decider,
        *,
        content: str | None = None,
        request_id: str | None = None,
        fingerprint: bytes = b"",
    ) -> Ticket:
        self.decided.append(("approve", approved, by, content))
        ticket = Ticket()
        if self.error is not None:
            ticket.fail(self.error)
        else:
            state = self._profile.state("memory")
            done = Committed(True, "memory", 7, None, (), state.usage, f"Approved {approved}.", (), ())
            ticket.finish(done)
        return ticket

    async def reject(self, rejected: str, by: Decider, *, request_id: str | None = None) -> Proposal:
        self.decided.append(("reject", rejected, by, by.caller.reason))
        if self.error is not None:
            raise self.error
        proposal = next(one for one in self.waiting if one.id == rejected)
        self.waiting.remove(proposal)
        return replace(proposal, state="rejected", settled_us=NOW_US, settled={"reason": by.caller.reason or ""})
