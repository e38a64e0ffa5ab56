"""Groups: the planning of one commit over the stores of a writer.

What comes in: drafts of the stores, into which everything was taken that their files hold, and the work that waits. What goes
out: those drafts with the work on them, a part for the journal, and the answers to give once it is durable. What must not be
here: I/O, tasks.

Everything is planned on drafts, so that a group can be planned anew when one of its stores falls out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memd.deferred import Ticket  # noqa: TC001 - dataclass field
from memd.errors import StoreError, WireError
from memd.profile import requests
from memd.store.records import Part, RequestRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from memd.profile.draft import Draft
    from memd.profile.memory_store import MemoryStore
    from memd.profile.requests import Result
    from memd.profile.work import Work

GROUP_OPERATIONS = 256


@dataclass
class Answer:
    """What to tell one piece of work: a result or an error."""

    work: Work
    result: Result | None
    error: WireError | None

    @property
    def ticket(self) -> Ticket:
        """The ticket to settle."""
        return self.work.ticket

    def give(self) -> None:
        """Settle the ticket."""
        if self.error is not None:
            self.ticket.fail(self.error)
        else:
            self.ticket.finish(self.result)


@dataclass
class Group:
    """One planned commit."""

    drafts: dict[MemoryStore, Draft]
    answers: list[Answer] = field(default_factory=list)
    refusals: Part = field(default_factory=Part)
    afterwards: list[Callable[[], None]] = field(default_factory=list)

    @property
    def needs_commit(self) -> bool:
        """True if somebody waits for something durable."""
        return any(draft.part.revisions or draft.part.proposals for draft in self.drafts.values()) or any(
            answer.result is not None and answer.work.request_id is not None for answer in self.answers
        )

    @property
    def outdated(self) -> bool:
        """True if work was taken out since it was planned: what was planned on top of it no longer holds."""
        return any(answer.ticket.done for answer in self.answers)

    def give(self) -> None:
        """See to what refusals leave behind, then settle every ticket."""
        for then in self.afterwards:
            then()
        for answer in self.answers:
            answer.give()

    def part(self, now_us: int) -> Part:
        """Everything the group puts into the journal."""
        part = Part()
        for draft in self.drafts.values():
            found = draft.part
            part.revisions += found.revisions
            part.renderings += found.renderings
            part.entry_ids += found.entry_ids
            part.preimages += found.preimages
            part.events += found.events
            part.undone += found.undone
            part.proposals += found.proposals
            part.approved += found.approved
        part.requests = self.request_records(now_us)
        part.events += self.refusals.events
        part.refusals += self.refusals.refusals
        part.proposals += self.refusals.proposals
        return part

    def request_records(self, now_us: int) -> list[RequestRecord]:
        """The answers that are remembered under a request id."""
        return [
            RequestRecord(
                profile=answer.work.profile,
                request_id=answer.work.request_id,
                fingerprint=answer.work.fingerprint,
                us=now_us,
                answer=requests.encode(answer.result),
            )
            for answer in self.answers
            if answer.work.request_id is not None and answer.result is not None
        ]

    def answers_about(self, store: MemoryStore) -> list[Answer]:
        """The answers of work that needs this store."""
        return [answer for answer in self.answers if store in answer.work.plan.stores]


def plan_group(
    queue: Iterable[Work],
    drafts: dict[MemoryStore, Draft],
    *,
    now_us: int,
    failed: Mapping[MemoryStore, StoreError],
) -> Group:
    """Plan as much of the queue as belongs to the stores that are ready.

    Work on a store that is not ready stays where it is, and so does everything behind it on the same stores.

    Args:
        queue: Waiting work in the order it was read from the sockets.
        drafts: The stores that are ready, with what their files hold.
        now_us: The time of every revision of the group.
        failed: Stores that fell out of this group, and why; their work is answered with it.
    """
    group = Group(drafts)
    held: set[MemoryStore] = set()
    operations = 0
    for work in queue:
        stores = work.plan.stores
        if work.ticket.done or operations >= GROUP_OPERATIONS:
            continue
        blame = next((failed[store] for store in stores if store in failed), None)
        if blame is not None:
            group.answers.append(Answer(work, None, blame))
        elif held.isdisjoint(stores) and all(store in drafts for store in stores):
            operations += work.plan.operations
            _plan_work(group, work, now_us)
        else:
            held.update(stores)
    return group


def _plan_work(group: Group, work: Work, now_us: int) -> None:
    try:
        for store in work.plan.stores:
            store.require_usable()
        result = work.plan.plan(group.drafts)
    except WireError as error:
        group.answers.append(Answer(work, None, error))
        _note_refusal(group, work, error, now_us)
        return
    group.answers.append(Answer(work, result, None))


def _note_refusal(group: Group, work: Work, error: WireError, now_us: int) -> None:
    """Keep what a refusal leaves behind."""
    left = work.plan.refused(error, now_us)
    if left is None:
        return
    for refusal in left.part.refusals:
        refusal.profile = work.profile
    for event in left.part.events:
        event.profile = work.profile
    group.refusals.refusals += left.part.refusals
    group.refusals.events += left.part.events
    group.refusals.proposals += left.part.proposals
    if left.then is not None:
        group.afterwards.append(left.then)
