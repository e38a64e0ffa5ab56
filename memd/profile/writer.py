"""The writer: the one task that changes a set of memory files.

What comes in: work in a queue, wake-ups from polls, timers. What goes out: group parts to the committer, swapped files,
published states, settled tickets. What must not be here: the meaning of an edit (``work``), planning (``group``), wire
types.

One cycle: prepare each store (outside lock, read, compare), plan a group on drafts, write the temp files, hand the part
to the committer, swap the files in, publish, answer. A store that is locked, unreadable or not settled is left out and
tried again; only its own work waits.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

import trio

from memd.deferred import Ticket
from memd.errors import StoreError, WireError
from memd.profile.committing import Committing
from memd.profile.conditions import Conditions
from memd.profile.draft import Draft
from memd.profile.gathering import Gathering
from memd.profile.group import plan_group
from memd.profile.intake import Intake
from memd.profile.memory_store import RETRY_S, UNREADABLE_S
from memd.profile.preparing import Prepared, Preparer
from memd.profile.prescan import Prescan
from memd.profile.swapping import LINGERING_LIMIT, Swapper

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memd.profile.events import EventStream
    from memd.profile.group import Group
    from memd.profile.memory_store import MemoryStore
    from memd.profile.requests import Requests
    from memd.profile.work import Work
    from memd.store.clock import Clock
    from memd.store.committer import Committer
    from memd.store.files import Image
    from memd.store.threads import Runner

POLL_S = 1.0
"""Between looks at the files of a profile that has clients."""
FULL_READ_S = 10.0
"""Between reads that do not trust the file's times."""
LOOK_SLACK_S = 0.25
"""Second looks are gathered for this long, so that a busy store needs four thread hops a second for them."""
IDLE_CHECKPOINT_S = 1.0
CHECKPOINT_S = 5.0
CHECKPOINT_REVISIONS = 1000
LAST_LOOKS = 4
"""At the end: each commit displaces a file that somebody may still write to."""


class Writer:
    """Writes the stores it is given, and nobody else does. ``run`` is its task."""

    def __init__(
        self,
        stores: Sequence[MemoryStore],
        *,
        committer: Committer,
        runner: Runner,
        clock: Clock,
        requests: Requests,
        streams: Mapping[str, EventStream],
    ) -> None:
        self.stores = tuple(stores)
        self.attached = 0
        self.file_fsyncs = 0
        self.committer = committer
        self.clock = clock
        self.runner = runner
        self._conditions = Conditions(committer, clock, streams)
        self._preparer = Preparer(committer, runner, self._conditions, requests)
        self._prescan = Prescan(runner)
        self._swapper = Swapper(committer, runner, clock, self._conditions)
        self._intake = Intake(self._swapper, runner)
        self._committing = Committing(committer, self._swapper, self._conditions, requests, clock=clock)
        self._queue: deque[Work] = deque()
        self._looks: list[Ticket] = []
        self._wake = trio.Event()
        self._gathering = Gathering()
        self._gathered = trio.Event()
        self._enough = 0
        self.running = False
        self.ended = trio.Event()
        self._closing = False
        self._next_poll = 0.0

    def __repr__(self) -> str:
        names = ", ".join(store.place.path for store in self.stores)
        return f"<Writer of {names}: {len(self._queue)} waiting>"

    # -- asked from other tasks ---------------------------------------------------------------------------------

    @property
    def answered(self) -> int:
        """Changes acknowledged since the start."""
        return self._committing.answered

    @property
    def waiting(self) -> int:
        """Work in the queue."""
        return len(self._queue)

    def submit(self, work: Work) -> Ticket:
        """Queue work; its ticket settles once it is durable and visible, or refused."""
        self._queue.append(work)
        self._wake.set()
        if len(self._queue) >= self._enough:
            self._gathered.set()
        return work.ticket

    def look(self) -> Ticket:
        """See to it that outside edits made until now are taken in; the ticket settles then."""
        ticket = Ticket()
        self._looks.append(ticket)
        self._wake.set()
        return ticket

    def close(self) -> None:
        """Let ``run`` end once the queue is empty and the files are checkpointed."""
        self._closing = True
        self._wake.set()

    # -- the task -----------------------------------------------------------------------------------------------

    async def start(self, stores: Sequence[MemoryStore]) -> None:
        """Take in whatever the files of these stores hold that the journal does not, before anybody connects.

        While the task runs already (for a profile that shares a store), it is asked to do so.
        """
        self.stores = (*self.stores, *(store for store in stores if store not in self.stores))
        for store in stores:
            store.starting = True
            store.attention = store.enabled
        end = trio.current_time() + 2 * UNREADABLE_S
        while any(store.attention for store in stores) and trio.current_time() < end:
            if self.running:
                await self.look().wait()
            else:
                await self._cycle()
            if any(store.attention for store in stores):
                await trio.sleep(RETRY_S / 2)
        for store in stores:
            store.starting = False
            await self._swapper.discard_leftovers(store)

    async def run(self) -> None:
        """Write until ``close``."""
        while not (self._closing and not self._queue):
            await self._wait()
            await self._gather()
            begun, answered = trio.current_time(), self.answered
            await self._cycle()
            self._gathering.answered(self.answered - answered, trio.current_time() - begun)
            await self._chores()
            if self._closing:
                self._refuse_blocked()
        await self._look_last()
        for store in self.stores:
            await self._checkpoint(store)
        self.ended.set()

    async def _look_last(self) -> None:
        """Take in what comes to light in displaced files now; each commit displaces others."""
        for _ in range(LAST_LOOKS):
            for store in self.stores:
                self._swapper.last_looks(store)
            if not any(store.foreign for store in self.stores):
                break
            await self._cycle()
        for store in self.stores:
            self._swapper.last_looks(store)
            await self._swapper.discard_leftovers(store)

    async def _wait(self) -> None:
        if self._closing:
            await trio.sleep(RETRY_S if self._queue else 0)
            return
        if self._work_due() <= trio.current_time() or (self._looks and not self._unsettled()):
            self._wake = trio.Event()
            await trio.lowlevel.checkpoint()
            return
        with trio.move_on_at(self._next_timer()):
            await self._wake.wait()
        self._wake = trio.Event()

    async def _gather(self) -> None:
        """Wait a moment for the clients that were just answered."""
        before = len(self._queue)
        patience = 0.0 if self._closing else self._gathering.patience(before)
        if patience:
            self._enough = before + self._gathering.expected
            self._gathered = trio.Event()
            with trio.move_on_after(patience):
                await self._gathered.wait()
            self._gathering.came(len(self._queue) - before)

    def _unsettled(self) -> bool:
        """True while some file holds what may not be believed yet, for as long as this is worth waiting for."""
        now = trio.current_time()
        return any(store.unsettled is not None and not store.unsettled.overdue(now) for store in self.stores)

    def _work_due(self) -> float:
        """When the first work can be planned. What stands behind work on the same store has to wait for it."""
        due = math.inf
        held: set[MemoryStore] = set()
        for work in self._queue:
            stores = work.plan.stores
            if not work.ticket.done and held.isdisjoint(stores):
                due = min(due, max(store.retry_at for store in stores))
                held.update(stores)
        return due

    def _next_timer(self) -> float:
        times = [self._work_due()]
        if self.attached:
            times.append(self._next_poll)
        for store in self.stores:
            if store.attention:
                times.append(store.retry_at)
            if store.lingering:
                times.append(store.lingering[0].due + LOOK_SLACK_S)
            if store.first_unsynced is not None:
                times.append(self._checkpoint_due(store))
        return min(times)

    def _refuse_blocked(self) -> None:
        """At the end nobody waits for what others block; it is told why."""
        for work in self._queue:
            if work.ticket.blocked_by is not None:
                work.ticket.withdraw(work.ticket.blocked_by)

    # -- one cycle ----------------------------------------------------------------------------------------------

    async def _cycle(self) -> None:
        self._queue = deque(work for work in self._queue if not work.ticket.done and not _refused(work))
        looks, self._looks = self._looks, []
        wanted = await self._wanted(looking=bool(looks))
        await self._prescan.work(self._queue)
        guess = self._guess(wanted)
        prepared: dict[MemoryStore, Prepared] = {}
        try:
            await self._preparer.prepare(wanted, prepared, guess.drafts if guess else {}, self._queue)
            if guess and not guess.outdated and all(s in prepared and prepared[s].as_guessed for s in wanted):
                temps = {store: found.temp for store, found in prepared.items() if found.temp is not None}
                await self._settle_group(guess, temps)
            else:
                await self._swapper.discard({store: found.temp for store, found in prepared.items() if found.temp})
                if prepared or any(store.failure for store in wanted):
                    await self._commit_group({store: found.image for store, found in prepared.items()})
        finally:
            for store in prepared:
                store.lock.release()
        if self._unsettled():
            self._looks = looks + self._looks  # what others wrote is seen, and not believed yet
        else:
            for ticket in looks:
                ticket.finish(None)

    async def _wanted(self, *, looking: bool) -> list[MemoryStore]:
        """The stores this cycle is about: with work, with something to adopt, or looked at and found changed."""
        now = trio.current_time()
        asked = {store for work in self._queue for store in work.plan.stores}
        found: list[MemoryStore] = []
        for store in self.stores:
            if store.broken is not None:
                store.attention = False  # it has stopped writing
                continue
            if looking and store.enabled and not store.attention and store not in asked:
                store.attention = not await self.runner.run(store.looks_unchanged)
            if store.enabled and (store in asked or store.attention) and store.retry_at <= now:
                found.append(store)
        return found

    # -- group --------------------------------------------------------------------------------------------------

    def _guess(self, wanted: Sequence[MemoryStore]) -> Group | None:
        """Plan on the assumption that the files are as we left them, which nearly always holds.

        The temp file is then written in the same thread hop that locks and reads the file.
        """
        if not wanted or any(
            store.attention or store.reload or store.failure or store.read_at == 0 for store in wanted
        ):
            return None
        now_us = self.clock.now_us()
        group = plan_group(
            self._queue, self._drafts({store: store.image for store in wanted}, now_us), now_us=now_us, failed={}
        )
        for draft in group.drafts.values():
            draft.data = draft.finish()
        return group

    def _drafts(self, images: Mapping[MemoryStore, Image], now_us: int) -> dict[MemoryStore, Draft]:
        return {store: Draft(store, image, now_us, self.committer.take_revision) for store, image in images.items()}

    async def _commit_group(self, images: Mapping[MemoryStore, Image]) -> None:
        failed: dict[MemoryStore, StoreError] = {
            store: store.failure for store in self.stores if store.failure is not None and store not in images
        }
        older = await self._intake.older_renderings(images, failed)
        while True:
            now_us = self.clock.now_us()
            drafts = self._drafts({store: image for store, image in images.items() if store not in failed}, now_us)
            await self._intake.take(drafts, older)
            group = plan_group(self._queue, drafts, now_us=now_us, failed=failed)
            await self._prescan.drafts(group.drafts.values())
            temps, failures = await self._swapper.write_temps(group)
            if not failures and not group.outdated:
                break
            await self._swapper.discard(temps)
            failed.update(failures)
            for store in failures:
                store.postpone(trio.current_time())
                self._conditions.publish_failure(store, failures[store])
        await self._settle_group(group, temps)

    async def _settle_group(self, group: Group, temps: Mapping[MemoryStore, str]) -> None:
        """Take what was planned out of the queue and see it through: from here on it runs to its end."""
        for answer in group.answers:
            answer.ticket.drained = True
        planned = {id(answer.work) for answer in group.answers}
        self._queue = deque(work for work in self._queue if id(work) not in planned)
        await self._committing.commit(group, temps)

    # -- chores -------------------------------------------------------------------------------------------------

    async def _chores(self) -> None:
        now = trio.current_time()
        if self.attached and now >= self._next_poll:
            self._next_poll = now + POLL_S
            await self._poll(now)
        for store in self.stores:
            if store.lingering and (
                store.lingering[0].due + LOOK_SLACK_S <= now or len(store.lingering) > LINGERING_LIMIT
            ):
                await self._swapper.second_looks(store, now)
            await self._swapper.discard_leftovers(store)
            if store.first_unsynced is not None and now >= self._checkpoint_due(store):
                await self._checkpoint(store)

    async def _poll(self, now: float) -> None:
        for store in self.stores:
            if store.enabled and not store.attention and store.broken is None:
                due = store.failure is not None or now - store.read_at >= FULL_READ_S
                if due or not await self.runner.run(store.looks_unchanged):
                    store.attention = True

    def _checkpoint_due(self, store: MemoryStore) -> float:
        first = store.first_unsynced if store.first_unsynced is not None else math.inf
        if store.unsynced >= CHECKPOINT_REVISIONS:
            return 0.0
        return min(first + CHECKPOINT_S, store.last_commit + IDLE_CHECKPOINT_S)

    async def _checkpoint(self, store: MemoryStore) -> None:
        if store.first_unsynced is not None:
            store.first_unsynced = None
            store.unsynced = 0
            self.file_fsyncs += await self._swapper.checkpoint(store)


def _refused(work: Work) -> bool:
    """Answer work on a store that was switched off or has stopped writing since it was queued."""
    try:
        for store in work.plan.stores:
            store.require_usable()
    except WireError as error:
        work.ticket.fail(error)
        return True
    return False
