"""Threads for blocking calls, cheaper than a thread hop of trio's and under our own control.

What comes in: a function and its arguments. What goes out: its result or its exception, back in the trio task.
What must not be here: knowledge of what the function does.

``ThreadRunner(size=1)`` gives the journal its one thread; a larger one serves the files. Threads start when they are
needed and are daemons, so that a call stuck on a hung disk cannot keep the process from ending. A running call cannot
be cancelled: a cancelled write would complete anyway, unseen. A call that does not come back does not keep others from
theirs either: its thread is made up for out of ``spare``.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import outcome
import trio

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

STUCK_S = 0.25
"""A call that takes longer is on a disk that hangs, or may be: until it is back another thread does its work."""


class Runner(Protocol):
    """Where blocking calls run: an argument everywhere, so that tests run them inline under virtual time."""

    async def run(self, fn: Callable[..., T], *args: Any) -> T:
        """Call ``fn(*args)`` and return its result; raises what it raises. Not cancellable."""
        ...

    async def ask(self, fn: Callable[..., T], *args: Any) -> T:
        """The same for a call that only looks, and may be abandoned."""
        ...


class InlineRunner:
    """Runs the call at once in the calling task. For virtual time and fakes."""

    async def run(self, fn: Callable[..., T], *args: Any) -> T:
        """Call ``fn(*args)`` here, after one checkpoint."""
        await trio.lowlevel.cancel_shielded_checkpoint()
        return fn(*args)

    async def ask(self, fn: Callable[..., T], *args: Any) -> T:
        """Call ``fn(*args)`` here, after one checkpoint."""
        await trio.lowlevel.checkpoint()
        return fn(*args)


class ThreadRunner:
    """Up to ``size`` threads sharing one queue, and up to ``spare`` more in place of those whose calls are stuck.

    A queue and ``run_sync_soon`` cost about half of ``trio.to_thread.run_sync`` (measured 146 µs for a no-op there).
    """

    def __init__(self, name: str, *, size: int = 1, spare: int = 0) -> None:
        self._name = name
        self._size = size
        self._spare = spare
        self._queue: queue.SimpleQueue[tuple[Any, ...] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._admitted: dict[trio.Event, float] = {}  # calls that have a thread, and since when; oldest first
        self._standing: deque[trio.Event] = deque()  # calls that have none yet, in their order
        self._closed = False

    def __repr__(self) -> str:
        calls = len(self._admitted) + len(self._standing)
        return f"<ThreadRunner {self._name}: {len(self._threads)}/{self._size} threads, {calls} calls>"

    async def run(self, fn: Callable[..., T], *args: Any) -> T:
        """Call ``fn(*args)`` in a thread. Not cancellable. Raises what it raises."""
        call = trio.Event()
        if not self._admit(call):
            with trio.CancelScope(shield=True):
                await self._wait_admitted(call)
        result: T = await self._submit(fn, args, _never_abort, call)
        return result

    async def ask(self, fn: Callable[..., T], *args: Any) -> T:
        """The same for a call that only looks: cancelling leaves it to its thread and its answer to nobody."""
        call, abandoned = trio.Event(), trio.Event()

        def abort(_: Any) -> trio.lowlevel.Abort:
            abandoned.set()
            return trio.lowlevel.Abort.SUCCEEDED

        if not self._admit(call):
            await self._wait_admitted(call)
        result: T = await self._submit(fn, args, abort, call, abandoned)
        return result

    def _admit(self, call: trio.Event) -> bool:
        """Give the call a thread if there is one for it now."""
        if self._closed:
            msg = f"{self!r} is closed"
            raise RuntimeError(msg)
        if self._standing or not self._has_room():
            return False
        self._admitted[call] = trio.current_time()
        return True

    def _has_room(self) -> bool:
        if len(self._admitted) < self._size or not self._spare:
            return True  # without spare threads the queue itself is the line
        if len(self._admitted) >= self._size + self._spare:
            return False
        since = trio.current_time() - STUCK_S
        return len(self._admitted) < self._size + sum(begun <= since for begun in self._admitted.values())

    async def _wait_admitted(self, call: trio.Event) -> None:
        """Stand in line until a call comes back or turns out to be stuck."""
        self._standing.append(call)
        try:
            while not call.is_set():
                with trio.move_on_after(STUCK_S):
                    await call.wait()
                self._let_in()
        except trio.Cancelled:
            if call.is_set():
                self._over(call)
            else:
                self._standing.remove(call)
            raise

    def _let_in(self) -> None:
        while self._standing and self._has_room():
            call = self._standing.popleft()
            self._admitted[call] = trio.current_time()
            call.set()

    def _over(self, call: trio.Event) -> None:
        del self._admitted[call]
        self._let_in()

    async def _submit(
        self,
        fn: Callable[..., T],
        args: tuple[Any, ...],
        abort: Callable[[Any], trio.lowlevel.Abort],
        call: trio.Event,
        abandoned: trio.Event | None = None,
    ) -> Any:
        if len(self._threads) < min(len(self._admitted), self._size + self._spare):
            self._start()
        task = trio.lowlevel.current_task()
        self._queue.put((fn, args, trio.lowlevel.current_trio_token(), task, call, abandoned))
        return await trio.lowlevel.wait_task_rescheduled(abort)

    def close(self, timeout: float = 0.5) -> None:
        """End the threads; one that is stuck in a call after ``timeout`` seconds is left behind as a daemon."""
        self._closed = True
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join(timeout)

    def _start(self) -> None:
        name = f"{self._name}-{len(self._threads)}"
        thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            fn, args, token, task, call, abandoned = item
            result = outcome.capture(fn, *args)
            try:
                token.run_sync_soon(self._deliver, task, result, call, abandoned)
            except trio.RunFinishedError:
                return

    def _deliver(
        self,
        task: trio.lowlevel.Task,
        result: outcome.Outcome[Any],
        call: trio.Event,
        abandoned: trio.Event | None,
    ) -> None:
        self._over(call)
        if abandoned is None or not abandoned.is_set():
            trio.lowlevel.reschedule(task, result)


def _never_abort(_: Any) -> trio.lowlevel.Abort:
    return trio.lowlevel.Abort.FAILED
