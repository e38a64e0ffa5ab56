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
from memd.errors import StoreError
from memd.profile.adoption import needs_base
from memd.profile.conditions import Conditions
from memd.profile.gathering import Gathering
from memd.profile.group import plan_group
from memd.profile.memory_store import RETRY_S, UNREADABLE_S
from memd.profile.preparing import Prepared, Preparer
from memd.profile.swapping import LINGERING_LIMIT, Swapper
from memd.store.records import Part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memd.profile.adoption import Older
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
        self.answered = 0
        self.file_fsyncs = 0
        self.committer = committer
        self.clock = clock
        self.runner = runner
        self._requests = requests
        self._conditions = Conditions(committer, clock, streams)
        self._preparer = Preparer(committer, runner, self._conditions)
        self._swapper = Swapper(committer, runner, clock)
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

    def adopt_stores(self, stores: Sequence[MemoryStore]) -> None:
        """Take over more stores: those of a profile that shares one of ours."""
        self.stores = (*self.stores, *stores)

    # -- the task -----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Take in whatever the files hold that the journal does not, before anybody connects."""
        self._preparer.starting = True
        for store in self.stores:
            store.attention = store.enabled
        end = trio.current_time() + 2 * UNREADABLE_S
        while any(store.attention for store in self.stores) and trio.current_time() < end:
            await self._cycle()
            if any(store.attention for store in self.stores):
                await trio.sleep(RETRY_S / 2)
        self._preparer.starting = False
        for store in self.stores:
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
        for store in self.stores:
            self._swapper.last_looks(store)
        await self._cycle()  # what came to light just now
        for store in self.stores:
            self._swapper.last_looks(store)
            await self._checkpoint(store)
        self.ended.set()

    async def _wait(self) -> None:
        if self._closing:
            await trio.sleep(RETRY_S if self._queue else 0)
            return
        if self._ready_work() or self._looks:
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

    def _ready_work(self) -> bool:
        now = trio.current_time()
        return any(
            not work.ticket.withdrawn and all(store.retry_at <= now for store in work.plan.stores)
            for work in self._queue
        )

    def _next_timer(self) -> float:
        times = [math.inf]
        if self.attached:
            times.append(self._next_poll)
        for store in self.stores:
            if store.attention or any(store in work.plan.stores for work in self._queue):
                times.append(store.retry_at)
            if store.lingering:
                times.append(store.lingering[0].due + LOOK_SLACK_S)
            if store.first_unsynced is not None:
                times.append(self._checkpoint_due(store))
        return min(times)

    # -- one cycle ----------------------------------------------------------------------------------------------

    async def _cycle(self) -> None:
        self._queue = deque(work for work in self._queue if not work.ticket.withdrawn)
        looks, self._looks = self._looks, []
        wanted = await self._wanted(looking=bool(looks))
        guess = self._guess(wanted)
        prepared: dict[MemoryStore, Prepared] = {}
        try:
            await self._preparer.prepare(wanted, prepared, guess.drafts if guess else {}, self._queue)
            if guess is not None and all(store in prepared and prepared[store].as_guessed for store in wanted):
                temps = {store: found.temp for store, found in prepared.items() if found.temp is not None}
                await self._settle_group(guess, temps)
            else:
                await self._discard_guess(guess, prepared)
                if prepared or any(store.failure or store.broken for store in wanted):
                    await self._commit_group({store: found.image for store, found in prepared.items()})
        finally:
            for store in prepared:
                store.lock.release()
        for ticket in looks:
            ticket.finish(None)

    async def _wanted(self, *, looking: bool) -> list[MemoryStore]:
        """The stores this cycle is about: with work, with something to adopt, or looked at and found changed."""
        now = trio.current_time()
        asked = {store for work in self._queue for store in work.plan.stores}
        found: list[MemoryStore] = []
        for store in self.stores:
            if looking and store.enabled and not store.attention and store not in asked:
                store.attention = not await self.runner.run(store.looks_unchanged)
            if store.enabled and (store in asked or store.attention or store.reload) and store.retry_at <= now:
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
        group = self._plan({store: store.image for store in wanted}, {}, {})
        for draft in group.drafts.values():
            draft.data = draft.finish()
        return group

    async def _discard_guess(self, guess: Group | None, prepared: Mapping[MemoryStore, Prepared]) -> None:
        """Some file was not as guessed: what was planned on it is planned anew."""
        if guess is not None:
            for answer in guess.answers:
                answer.ticket.drained = False
            await self._swapper.discard({store: found.temp for store, found in prepared.items() if found.temp})

    def _plan(
        self,
        images: Mapping[MemoryStore, Image],
        older: Mapping[MemoryStore, Sequence[Older]],
        failed: Mapping[MemoryStore, StoreError],
    ) -> Group:
        group = plan_group(
            self._queue,
            images,
            older,
            now_us=self.clock.now_us(),
            take_revision=self.committer.take_revision,
            failed=failed,
        )
        for answer in group.answers:
            answer.ticket.drained = True
        return group

    async def _commit_group(self, images: Mapping[MemoryStore, Image]) -> None:
        older = await self._older_renderings(images)
        failed: dict[MemoryStore, StoreError] = {
            store: store.failure for store in self.stores if store.failure is not None and store not in images
        }
        while True:
            group = self._plan(images, older, failed)
            temps, failures = await self._swapper.write_temps(group)
            if not failures:
                break
            failed.update(failures)
            for store in failures:
                self._conditions.publish_failure(store, failures[store])
        await self._settle_group(group, temps)

    async def _settle_group(self, group: Group, temps: Mapping[MemoryStore, str]) -> None:
        """Take what was planned out of the queue and see it through."""
        planned = {id(answer.work) for answer in group.answers}
        self._queue = deque(work for work in self._queue if id(work) not in planned)
        await self._make_durable(group, temps)

    async def _make_durable(self, group: Group, temps: Mapping[MemoryStore, str]) -> None:
        if not group.needs_commit:
            for store in group.drafts:
                store.foreign.clear()  # looked at, and nothing in it that the head does not have
            if group.refusals.events:
                self._conditions.add(group.refusals)  # nobody waits for these
            self._finish(group, Part(), {})
            return
        part = group.part(self.clock.now_us())
        try:
            await self.committer.commit(part, lambda: self._conditions.expect(part.events))
        except StoreError as error:
            await self._swapper.discard(temps)
            self._fail_group(group, error)
            return
        for store in group.drafts:
            store.attention = False
            store.foreign.clear()  # adopted by this group; the swaps may bring new ones
        failures = await self._swapper.swap_all(group, temps)
        self._finish(group, part, failures)

    def _fail_group(self, group: Group, error: StoreError) -> None:
        """The journal refused the group; its operations are answered, those behind them are planned anew."""
        if error.outcome == "unknown":
            for store in group.drafts:
                store.reload = True
        for answer in group.answers:
            if answer.error is None:
                answer.error = error
            answer.give()

    def _finish(self, group: Group, part: Part, failures: Mapping[MemoryStore, StoreError]) -> None:
        """Publish, answer, let the events out: in this order, so that a client reads its own writes."""
        now = trio.current_time()
        for store, draft in group.drafts.items():
            if store not in failures:
                draft.settle()
                self._note_commit(store, len(draft.part.revisions), now)
            self._conditions.publish(store)
        for answer in group.answers:
            failure = next((failures[store] for store in answer.work.plan.stores if store in failures), None)
            if failure is not None:
                answer.error = failure
        failed = {answer.work.request_id for answer in group.answers if answer.error is not None}
        for record in part.requests:
            if record.request_id not in failed:
                self._requests.remember(record)
        for answer in group.answers:
            self.answered += answer.error is None
            answer.give()
        self._conditions.release(part.events)

    def _note_commit(self, store: MemoryStore, revisions: int, now: float) -> None:
        if revisions:
            store.read_only = None
            store.last_commit = now
            store.unsynced += revisions
            if store.first_unsynced is None:
                store.first_unsynced = now

    async def _older_renderings(self, images: Mapping[MemoryStore, Image]) -> dict[MemoryStore, list[Older]]:
        found: dict[MemoryStore, list[Older]] = {}
        for store, image in images.items():
            changed = (image.data or b"") != (store.data or b"") and needs_base(store.document, image.data)
            if changed or any(needs_base(foreign.base, foreign.data) for foreign in store.foreign):
                found[store] = await self._swapper.older_renderings(store)
        return found

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
