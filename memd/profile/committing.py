"""Committing: a planned group made durable, swapped in, published and answered.

What comes in: a group and its temp files. What goes out: journaled parts, new heads, settled tickets, events; or errors for
the callers and stores that try again. What must not be here: the queue, planning. Only the writer task uses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from memd.errors import IoFailure, StoreError
from memd.store.records import Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from memd.profile.conditions import Conditions
    from memd.profile.group import Group
    from memd.profile.memory_store import Foreign, MemoryStore
    from memd.profile.requests import Requests
    from memd.profile.swapping import Swapper
    from memd.store.clock import Clock
    from memd.store.committer import Committer


class Committing:
    """The second half of a writer's cycle. ``answered`` counts the successes."""

    def __init__(
        self, committer: Committer, swapper: Swapper, conditions: Conditions, requests: Requests, *, clock: Clock
    ) -> None:
        self.answered = 0
        self._committer = committer
        self._swapper = swapper
        self._conditions = conditions
        self._requests = requests
        self._clock = clock

    def __repr__(self) -> str:
        return f"<Committing {self.answered} answered>"

    async def commit(self, group: Group, temps: Mapping[MemoryStore, str]) -> None:
        """See a group through. Its work is answered when this returns."""
        if not group.needs_commit:
            self._answer_only(group)
            return
        part = group.part(self._clock.now_us())
        try:
            await self._committer.commit(part, lambda: self._conditions.expect(part.events))
        except StoreError as error:
            await self._swapper.discard(temps)
            self._fail(group, error)
            return
        adopted = {store: tuple(store.foreign) for store in group.drafts}
        for store, draft in group.drafts.items():
            store.attention = draft.unfinished and draft.data is None  # else it is put aside now
            store.unfinished = False
            store.foreign.clear()  # adopted by this group; the swaps may bring new ones
        failures = await self._swapper.swap_all(group, temps)
        for store, foreign in adopted.items():
            if store not in failures:
                _let_go(store, foreign)
            elif group.drafts[store].adopted:
                _take_back(store, foreign)
        self._finish(group, part, failures)

    def _answer_only(self, group: Group) -> None:
        """Nothing in it has to be durable."""
        for store in group.drafts:
            _let_go(store, store.foreign)  # looked at, and nothing in it that the head does not have
            store.foreign.clear()
        if group.refusals.events or group.refusals.proposals:
            self._conditions.add(group.refusals)  # nobody waits for these
        self._finish(group, Part(), {})

    def _fail(self, group: Group, error: StoreError) -> None:
        """The journal refused the group: whatever was planned on it, refusals too, is answered with that.

        What waits behind it is planned anew, and so is what the files hold that the journal does not.
        """
        now = trio.current_time()
        for store in group.drafts:
            if error.outcome == "unknown":
                store.reload = store.attention = True
            store.postpone(now)
        for answer in group.answers:
            if not isinstance(answer.error, StoreError):
                answer.error = error
            if answer.error.outcome == "unknown" and answer.work.request_id is not None:
                self._requests.doubt(answer.work.profile, answer.work.request_id)
            answer.give()

    def _finish(self, group: Group, part: Part, failures: Mapping[MemoryStore, StoreError]) -> None:
        """Publish, answer, let the events out: in this order, so that a client reads its own writes."""
        now = trio.current_time()
        for store, draft in group.drafts.items():
            if store not in failures:
                draft.settle()
                _note_commit(store, len(draft.part.revisions), now)
            self._conditions.publish(store)
        for answer in group.answers:
            failed = [failures[store] for store in answer.work.plan.stores if store in failures]
            if failed:
                answer.error = failed[0] if len(failed) == len(answer.work.plan.stores) else _half_done(failed[0])
        succeeded = {(answer.work.profile, answer.work.request_id) for answer in group.answers if answer.error is None}
        for record in part.requests:
            if (record.profile, record.request_id) in succeeded:
                self._requests.remember(record)
        self.answered += sum(answer.error is None for answer in group.answers)
        group.give()
        self._conditions.release(part.events)


def _let_go(store: MemoryStore, adopted: Iterable[Foreign]) -> None:
    """What is durable in the journal, or nothing new, need not lie in a file of its own any longer."""
    store.leftovers += [foreign.path for foreign in adopted if foreign.path]


def _take_back(store: MemoryStore, adopted: Sequence[Foreign]) -> None:
    """What was adopted was taken back with all that could not be swapped in: it is still to be adopted."""
    store.foreign.extendleft(reversed(adopted))
    store.attention = True
    store.postpone(trio.current_time())


def _note_commit(store: MemoryStore, revisions: int, now: float) -> None:
    if revisions:
        store.read_only = None
        store.last_commit = now
        store.unsynced += revisions
        if store.first_unsynced is None:
            store.first_unsynced = now


def _half_done(error: StoreError) -> StoreError:
    """One of two files could not be swapped in and was taken back; the other has its change."""
    message = (
        f"{error.message}; the change to the other store was made: history.list shows it, history.undo takes it back"
    )
    return IoFailure(message, path=error.path, errno=error.errno, outcome="unknown")
