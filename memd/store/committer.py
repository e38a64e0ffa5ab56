"""The committer: gathers parts from every profile into groups and makes each group durable with one fsync.

What comes in: parts, from writers and sessions. What goes out: ``committed`` callbacks in the order of the group, or
the error for each part. What must not be here: what is in a part, files, wire types.

While one group syncs, the next gathers; there is no linger. A group is bounded in bytes; what does not fit waits for
the next. One task owns the journal; everybody else asks it.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import trio

from memd.deferred import Ticket
from memd.errors import IoFailure, NoSpace, StoreError
from memd.store.records import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memd.store.journal import Journal
    from memd.store.records import SessionRecord, SnapshotRecord, TurnRecord
    from memd.store.reserve import Reserve
    from memd.store.threads import Runner
    from memd.store.work import WorkPart

T = TypeVar("T")

GROUP_BYTES = 4 * 1024 * 1024
LAZY_S = 1.0
"""How long parts that nobody waits for may stay unwritten when no group comes by."""
_REOPEN_S = 1.0
"""Between attempts to reopen a journal that failed."""


class CommitStatistics(msgspec.Struct, frozen=True):
    """Counters since start: groups committed, fsyncs of the journal, parts committed."""

    groups: int
    fsyncs: int
    parts: int


class _Item:
    __slots__ = ("committed", "error", "event", "part", "settled", "ticket")

    def __init__(self, part: Part, committed: Callable[[], None] | None, event: trio.Event | None) -> None:
        self.part = part
        self.committed = committed
        self.event = event
        self.ticket: Ticket | None = None
        self.error: StoreError | None = None
        self.settled = False

    @property
    def waited_for(self) -> bool:
        return self.event is not None or self.ticket is not None

    def settle(self, error: StoreError | None) -> None:
        self.error = error
        self.settled = True
        if error is None and self.committed is not None:
            self.committed()
        if self.ticket is not None:
            if error is None:
                self.ticket.finish(None)
            else:
                self.ticket.fail(error)
        if self.event is not None:
            self.event.set()


class Committer:
    """Owns the journal. Run ``run`` in a nursery; everything else may be called from any task of the same loop."""

    def __init__(
        self, journal: Journal, runner: Runner, *, next_revision: int, next_seq: int, reserve: Reserve | None = None
    ) -> None:
        self.journal = journal
        self.reserve = reserve
        self._runner = runner
        self._next_revision = next_revision
        self._next_seq = next_seq
        self._items: deque[_Item] = deque()
        self._group: list[_Item] = []
        self._wake = trio.Event()
        self._urgent = False
        self._parts = 0
        self._failed = False
        self._blocked: StoreError | None = None
        self._closing = False

    def __repr__(self) -> str:
        return f"<Committer {len(self._items)} waiting, revision {self._next_revision}, seq {self._next_seq}>"

    @property
    def seq(self) -> int:
        """The newest event number given out."""
        return self._next_seq - 1

    def statistics(self) -> CommitStatistics:
        """Counters since start."""
        journal = self.journal.statistics()
        return CommitStatistics(journal.groups, journal.fsyncs, self._parts)

    def take_revision(self) -> int:
        """The next revision number. One sequence for all profiles; a number whose group fails is never used again."""
        number = self._next_revision
        self._next_revision += 1
        return number

    async def commit(self, part: Part, committed: Callable[[], None] | None = None) -> None:
        """Make a part durable. ``committed`` is called in the order of the group, before this returns.

        Not cancellable once it is in a group.

        Raises:
            StoreError: With ``outcome`` "none" or "unknown".
        """
        event = trio.Event()
        item = self._put(part, committed, event)
        with trio.CancelScope(shield=True):
            await event.wait()
        if item.error is not None:
            raise item.error

    def add(self, part: Part, committed: Callable[[], None] | None = None) -> None:
        """Let a part ride with the next group, at the latest after a second; nobody waits for it."""
        self._put(part, committed, None)

    def put(self, part: Part, committed: Callable[[], None], failed: Callable[[StoreError], None]) -> None:
        """Make a part durable with the next group, which comes at once; ``committed`` or ``failed`` is called then."""
        item = self._put(part, committed, None)
        item.ticket = ticket = Ticket()
        ticket.on_done(lambda done: failed(done.error) if isinstance(done.error, StoreError) else None)
        self._urgent = True

    def put_session(
        self,
        record: SessionRecord,
        snapshot: SnapshotRecord | None = None,
        turns: Sequence[TurnRecord] = (),
        work: WorkPart | None = None,
    ) -> Ticket:
        """Make a session durable with the next group, and ``work`` in one with it; the ticket settles then, or fails."""
        snapshots = [snapshot] if snapshot is not None else []
        part = Part(sessions=[record], snapshots=snapshots, turns=list(turns), work=work)
        ticket = Ticket()
        item = self._put(part, None, None)
        item.ticket = ticket
        self._urgent = True
        return ticket

    async def query(self, fn: Callable[..., T], *args: Any) -> T:
        """Run ``fn(*args)`` in the journal's thread, between groups.

        Raises:
            StoreError: The journal cannot be read now, or what ``fn`` raises.
        """
        try:
            return await self._runner.run(fn, *args)
        except sqlite3.Error as error:
            raise self.journal.failure(error, step="ask") from error

    async def run(self) -> None:
        """Commit groups until ``close``. However it ends, nobody is left waiting."""
        try:
            while not (self._closing and not self._items):
                if self._failed and not await self._reopen():
                    continue
                await self._wait_for_work()
                if not self._urgent and not self._closing:
                    with trio.move_on_after(LAZY_S):
                        await self._wait_urgent()
                self._group = self._gather()
                if self._group:
                    await self._commit(self._group)
                    self._group = []
        finally:
            self._abandon()

    def flush(self) -> None:
        """Commit what is waiting now, although nobody waits for it."""
        if self._items:
            self._urgent = True
            self._wake.set()

    async def settle(self) -> None:
        """Wait until everything handed in so far is durable; at once if nothing waits. Failures are its owners' business."""
        if self._items:
            with contextlib.suppress(StoreError):
                await self.commit(Part())

    def block(self, error: StoreError) -> None:
        """Take no more commits: every one from now on fails with ``error``."""
        self._blocked = error
        self._wake.set()

    def close(self) -> None:
        """Let ``run`` end once everything handed in is durable."""
        self._closing = True
        self._wake.set()

    # -- inside -------------------------------------------------------------------------------------------------

    def _put(self, part: Part, committed: Callable[[], None] | None, event: trio.Event | None) -> _Item:
        item = _Item(part, committed, event)
        self._items.append(item)
        if event is not None:
            self._urgent = True
        self._wake.set()
        return item

    async def _wait_for_work(self) -> None:
        while not self._items and not self._closing:
            self._wake = trio.Event()
            await self._wake.wait()

    async def _wait_urgent(self) -> None:
        while not self._urgent and not self._closing:
            self._wake = trio.Event()
            await self._wake.wait()

    def _gather(self) -> list[_Item]:
        items: list[_Item] = []
        weight = 0
        while self._items and (not items or weight < GROUP_BYTES):
            item = self._items.popleft()
            weight += item.part.weight
            items.append(item)
        self._urgent = any(item.waited_for for item in self._items)
        for item in items:
            for event in item.part.events:
                event.seq = self._next_seq
                self._next_seq += 1
        return items

    async def _commit(self, items: list[_Item]) -> None:
        error = self._blocked or await self._try(items)
        if isinstance(error, NoSpace) and error.outcome == "none":
            items, error = await self._commit_removals(items, error)
        self._settle(items, error)
        if error is None and self.journal.wal_due:
            await self._runner.run(self.journal.checkpoint_wal)

    async def _try(self, items: list[_Item]) -> StoreError | None:
        try:
            await self._runner.run(self.journal.commit, [item.part for item in items])
        except StoreError as error:
            self._failed = not self.journal.is_open
            return error
        return None

    async def _commit_removals(self, items: list[_Item], error: StoreError) -> tuple[list[_Item], StoreError | None]:
        """On a full disk spend the reserve on the parts that only remove; the others hear that there is no room."""
        removals = [item for item in items if item.part.only_removes]
        if not removals or self.reserve is None or not await self._runner.run(self.reserve.spend):
            return items, error
        self._settle([item for item in items if not item.part.only_removes], error)
        return removals, await self._try(removals)

    def _settle(self, items: list[_Item], error: StoreError | None) -> None:
        if error is None:
            self._parts += len(items)
        for item in items:
            item.settle(error)

    async def _reopen(self) -> bool:
        """Try to bring a failed journal back; everybody waiting is told meanwhile."""
        if await self._runner.run(self.journal.reopen):
            self._failed = False
            return True
        error = IoFailure(
            f"the journal {self.journal.path} cannot be opened after a failure; nothing is written until it can",
            path=str(self.journal.path),
            outcome="none",
        )
        waiting = [item for item in self._items if item.waited_for]
        self._items = deque(item for item in self._items if not item.waited_for)
        self._urgent = False
        self._settle(waiting, error)
        if self._closing:
            self._items.clear()
        else:
            await trio.sleep(_REOPEN_S)
        return False

    def _abandon(self) -> None:
        """The task is over. What it had begun may be durable; what still waits was never tried."""
        path = str(self.journal.path)
        for items, outcome in ((self._group, "unknown"), (list(self._items), "none")):
            error = IoFailure("memd stopped before the change was committed", path=path, outcome=outcome)
            self._settle([item for item in items if not item.settled], error)
        self._items.clear()
