"""Approvals: what waits for a person in one profile, and what a person decides.

What comes in: ids from an operator, published changes of the stores, the passing of time. What goes out: settled proposals, entries
let into prompts, counts. What must not be here: wire types, who may decide (dispatch).

A decision is durable before it is answered. An approval that cannot be carried out leaves the proposal as ``needs_review`` with the
reason, so that nobody tries it in vain again and again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import trio
from msgspec.structs import replace

from memd.deferred import Ticket
from memd.errors import Conflict, InvalidParams, NoSuchProposal
from memd.profile.approving import Approve
from memd.profile.content import text_hash
from memd.profile.history import ExplainState, Explanation
from memd.profile.policy import blocked
from memd.profile.proposals import Proposal, Trial, to_record, try_out, with_content
from memd.profile.values import Committed
from memd.profile.work import Work, entry_by_id
from memd.store.records import EventRecord, Part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from memd.profile.approving import Decider
    from memd.profile.entries import Document, Entry
    from memd.profile.means import Means
    from memd.profile.memory_store import MemoryStore
    from memd.profile.scans import Scans
    from memd.profile.values import Operation, StoreState, Target

CHECKED_AT_ONCE = 16
"""Proposals that are tried out between two turns of the event loop: well under a millisecond's work."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A proposal and what it would do now."""

    proposal: Proposal
    trial: Trial


class Approvals:
    """The approvals of one profile. ``view`` gives its view of a store, ``refreshed`` is called when an entry was let in."""

    def __init__(
        self, means: Means, *, view: Callable[[Target], StoreState], refreshed: Callable[[MemoryStore], None]
    ) -> None:
        self._guard = means.guard
        self._stores = means.stores
        self._writer = means.writer
        self._events = means.events
        self._requests = means.requests
        self._clock = means.clock
        self._view = view
        self._refreshed = refreshed
        self._trials: dict[str, tuple[Document, Proposal, Scans, Trial]] = {}
        self._dirty: set[Target] = set(means.stores)

    def __repr__(self) -> str:
        return f"<Approvals of {self._guard.profile}: {self._guard.proposals!r}>"

    # -- questions ----------------------------------------------------------------------------------------------

    def pending(self) -> tuple[int, int]:
        """How many proposals wait, and for how many seconds the oldest."""
        return self._guard.proposals.count(self._clock.now_us())

    def changed(self, target: Target) -> None:
        """A store is another now: what waits for it is tried out anew, at the latest when somebody asks."""
        self._dirty.add(target)

    async def listed(self) -> list[Listed]:
        """What waits, oldest first, and what each would do now."""
        self.expire()
        await self.recheck()
        return [self.describe(one) for one in self._guard.proposals.waiting()]

    def describe(self, proposal: Proposal) -> Listed:
        """A proposal, and what it would do now."""
        return Listed(proposal, self._trial(proposal))

    def explain(self, wanted: str) -> list[Explanation]:
        """What became of a text that was proposed, and why one that is stored is kept out of prompts."""
        withheld = [one for target in self._stores for one in self._withheld(target, wanted)]
        proposals = self._guard.proposals.everything()
        return withheld + [
            _explained(one) for one in proposals if wanted and any(wanted in text for text in one.texts())
        ]

    # -- decisions ----------------------------------------------------------------------------------------------

    def approve(
        self,
        approved: str,
        by: Decider,
        *,
        content: str | None = None,
        request_id: str | None = None,
        fingerprint: bytes = b"",
    ) -> Ticket:
        """Apply a proposal, or let a withheld entry into prompts. The ticket's result is ``Committed``.

        Raises:
            NoSuchProposal: There is nothing of this id to approve.
            InvalidParams: ``content`` where it could not take one text's place.
            BlockedContent: The scan refuses the entry: no approval can help.
            Conflict: Somebody else decides about it at this moment, or the request id was used otherwise.
        """
        if request_id is not None:
            repeated = self._requests.repeat(self._guard.profile, request_id, fingerprint, self._clock.now_us())
            if repeated is not None:
                return repeated
        self.expire()
        proposal = self._guard.proposals.find(approved)
        if proposal is None:
            return self._approve_entry(approved, by, content)
        proposal = self._guard.proposals.require_open(approved)
        store = self._stores[proposal.target]
        plan = Approve(store, self._guard, approved, _wanted(proposal, content), by)
        store.require_usable()
        self._claim(approved)
        work = Work(plan, self._guard.profile, by.caller, request_id, fingerprint)
        work.ticket.on_done(lambda _: self._guard.proposals.release(approved))
        if request_id is not None:
            work.ticket.doubtful = self._requests.doubtful(self._guard.profile, request_id)
            self._requests.start(self._guard.profile, request_id, fingerprint, work.ticket)
        return self._writer.submit(work)

    async def reject(self, rejected: str, by: Decider, *, request_id: str | None = None) -> Proposal:
        """Settle a proposal without applying it. Durable on return. The same call again has the same answer.

        Raises:
            NoSuchProposal: Unknown or settled.
            Conflict: It is being approved at this moment.
            StoreError: It could not be made durable, and is as it was if ``outcome`` says so.
        """
        known = self._guard.proposals.find(rejected)
        if known is not None and request_id is not None and known.settled.get("request_id") == request_id:
            return known
        proposal = self._guard.proposals.require_open(rejected)
        self._claim(rejected)
        try:
            said = by.caller.reason or ""
            extra = {"reason": said, "request_id": request_id}
            data = {**by.data(), **{name: value for name, value in extra.items() if value}}
            settled = replace(proposal, state="rejected", settled_us=self._clock.now_us(), settled=data)
            part = self._settling(settled, said)
            await self._writer.committer.commit(part, lambda: self._events.expect(part.events))
            self._guard.proposals.put(settled)
            self._events.release(part.events)
        finally:
            self._guard.proposals.release(rejected)
        return settled

    # -- time and change ----------------------------------------------------------------------------------------

    def expire(self) -> None:
        """Settle what has waited for too long; with the next group, since nobody waits for it."""
        now_us = self._clock.now_us()
        for proposal in self._guard.proposals.due(now_us, self._guard.approval["expiry_days"]):
            if self._guard.proposals.claim(proposal.id):
                self._guard.proposals.release(proposal.id)
                settled = replace(proposal, state="expired", settled_us=now_us)
                self._guard.proposals.put(settled)
                self._add(self._settling(settled, f"nobody decided within {self._guard.approval['expiry_days']} days"))

    async def recheck(self) -> None:
        """Try out what waits for stores that have changed, and note what fits no longer or again."""
        dirty, self._dirty = self._dirty, set()
        if not dirty:
            return
        for number, proposal in enumerate(self._guard.proposals.waiting(), 1):
            if proposal.target in dirty:
                self._check(proposal)
            if number % CHECKED_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()

    # -- inside -------------------------------------------------------------------------------------------------

    def _check(self, proposal: Proposal) -> None:
        trial = self._trial(proposal)
        now = self._guard.proposals.find(proposal.id)
        if now is None or not now.is_open:
            return
        state = "needs_review" if trial.problem else "pending"
        if (now.state, now.problem) != (state, trial.problem):
            after = replace(now, state="needs_review" if trial.problem else "pending", problem=trial.problem)
            self._guard.proposals.put(after)
            self._add(Part(proposals=[to_record(after)]))

    def _trial(self, proposal: Proposal) -> Trial:
        store, scans = self._stores[proposal.target], self._guard.scans
        document = self._view(proposal.target).document
        known = self._trials.get(proposal.id)
        if known is not None and known[0] is document and known[1] is proposal and known[2] is scans:
            return known[3]
        trial = try_out(document, proposal, limits=store.limits, scans=scans)
        if len(self._trials) > len(self._guard.proposals.waiting()) + CHECKED_AT_ONCE:
            self._trials.clear()
        self._trials[proposal.id] = (document, proposal, scans, trial)
        return trial

    def _approve_entry(self, entry_id: str, by: Decider, content: str | None) -> Ticket:
        state, entry = self._entry(entry_id)
        if content is not None:
            msg = "content: an entry is approved as it is; change it with memory.replace"
            raise InvalidParams(msg, field="content")
        refused = [one for one in state.findings.get(entry.id, ()) if one.severity == "refuse"]
        if refused:
            rules = ", ".join(sorted({one.rule for one in refused}))
            advice = f"this cannot be approved: remove or reword the entry, or set scan.warn or scan.off for {rules}"
            raise blocked(refused, advice)
        store, digest = self._stores[state.target], text_hash(entry.text)
        if digest in store.approved:
            known = Ticket()
            known.finish(_let_in(state, entry))
            return known
        self._claim(entry_id)
        now_us = self._clock.now_us()
        data = {"state": "approved", "entry": entry.id, "rule": state.withheld[entry.id], **by.data()}
        event = self._event("approval.settled", state.target, entry.id, data)
        part = Part(approved=[(store.id, digest, now_us)], events=[event])
        ticket = Ticket()
        ticket.drained = True
        ticket.on_done(lambda _: self._guard.proposals.release(entry_id))

        def committed() -> None:
            self._events.expect(part.events)
            store.approved.add(digest)
            self._refreshed(store)
            self._events.release(part.events)
            ticket.finish(_let_in(self._view(state.target), entry))

        self._writer.committer.put(part, committed, ticket.fail)
        return ticket

    def _entry(self, entry_id: str) -> tuple[StoreState, Entry]:
        """An entry that is withheld, or that would be had nobody approved it."""
        for target, store in self._stores.items():
            state = self._view(target)
            entry = entry_by_id(state.document, entry_id)
            if entry is not None and (entry_id in state.withheld or text_hash(entry.text) in store.approved):
                return state, entry
        raise NoSuchProposal(entry_id)

    def _withheld(self, target: Target, wanted: str) -> Iterable[Explanation]:
        state = self._view(target)
        for entry in state.document.entries:
            rule_id = state.withheld.get(entry.id)
            if rule_id is not None and wanted in entry.text:
                reasons = [one.reason for one in state.findings.get(entry.id, ()) if one.rule == rule_id]
                reason = f"stored, and kept out of prompts: {reasons[0] if reasons else 'another program wrote it'}"
                yield Explanation("withheld", target, entry.updated_us, reason, entry.id, rule=rule_id)

    def _claim(self, proposal_id: str) -> None:
        if not self._guard.proposals.claim(proposal_id):
            msg = f"somebody decides about {proposal_id} at this moment; look again"
            raise Conflict(msg, reason="being_settled", current="")

    def _settling(self, settled: Proposal, why: str) -> Part:
        data = {"state": settled.state, **settled.settled, **({"reason": why} if why else {})}
        data.pop("request_id", None)
        return Part(
            proposals=[to_record(settled)],
            events=[self._event("approval.settled", settled.target, settled.id, data, settled)],
        )

    def _event(
        self, topic: str, target: Target, about: str, data: dict[str, Any], proposal: Proposal | None = None
    ) -> EventRecord:
        return EventRecord(
            us=self._clock.now_us(),
            topic=topic,
            profile=self._guard.profile,
            target=target,
            revision=self._view(target).revision,
            session=proposal.session if proposal else None,
            job=proposal.job if proposal else None,
            id=about,
            data=data,
        )

    def _add(self, part: Part) -> None:
        def committed() -> None:
            self._events.expect(part.events)
            self._events.release(part.events)

        self._writer.committer.add(part, committed)


def _wanted(proposal: Proposal, content: str | None) -> tuple[Operation, ...]:
    try:
        return with_content(proposal, content)
    except ValueError:
        count = len(proposal.operations)
        what = f"has {count} operations" if count > 1 else "has no text"
        msg = f"content: {proposal.id} {what}, so that it can only be approved as it is or rejected"
        raise InvalidParams(msg, field="content") from None


def _let_in(state: StoreState, entry: Entry) -> Committed:
    """The answer to the approval of an entry: the store itself is as it was."""
    message = f"Approved: the entry {entry.id} is in every snapshot that is made from now on."
    return Committed(
        changed=False,
        target=state.target,
        revision=state.revision,
        entry=entry_by_id(state.document, entry.id),
        changes=(),
        usage=state.usage,
        message=message,
        notices=(),
        steps=(),
    )


def _explained(proposal: Proposal) -> Explanation:
    """What became of a proposal, as ``memory.explain`` has it."""
    rule_id = next((one.rule for one in proposal.findings), None)
    state, reason = _fate(proposal)
    us = proposal.settled_us or proposal.us
    reason = f"proposed by {proposal.origin}, {reason}"
    return Explanation(state, proposal.target, us, reason, proposal.id, proposal.revision, rule_id)


def _fate(proposal: Proposal) -> tuple[ExplainState, str]:
    by = proposal.settled.get("command") or proposal.settled.get("client") or "a person"
    if proposal.state == "pending":
        return "staged", "waits for approval"
    if proposal.state == "needs_review":
        return "staged", f"waits for approval and cannot be applied as it is: {proposal.problem}"
    if proposal.state == "expired":
        return "expired", "and nobody decided about it"
    if proposal.state == "rejected":
        said = proposal.settled.get("reason")
        return "refused", f"rejected by {by}" + (f": {said}" if said else "")
    return "stored", f"approved by {by}"
