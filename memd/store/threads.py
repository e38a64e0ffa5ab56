"""Threads for blocking calls, cheaper than a thread hop of trio's and under our own control.

What comes in: a function and its arguments. What goes out: its result or its exception, back in the trio task.
What must not be here: knowledge of what the function does.

``ThreadRunner(size=1)`` gives the journal its one thread; a larger one serves the files. Threads start when they are
needed and are daemons, so that a call stuck on a hung disk cannot keep the process from ending. A running call cannot
be cancelled: a cancelled write would complete anyway, unseen.
"""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import outcome
import trio

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


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
    """Up to ``size`` threads sharing one queue.

    A queue and ``run_sync_soon`` cost about half of ``trio.to_thread.run_sync`` (measured 146 µs for a no-op there).
    """

    def __init__(self, name: str, *, size: int = 1) -> None:
        self._name = name
        self._size = size
        self._queue: queue.SimpleQueue[tuple[Any, ...] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._waiting = 0
        self._closed = False

    def __repr__(self) -> str:
        return f"<ThreadRunner {self._name}: {len(self._threads)}/{self._size} threads, {self._waiting} calls>"

    async def run(self, fn: Callable[..., T], *args: Any) -> T:
        """Call ``fn(*args)`` in a thread. Not cancellable once queued. Raises what it raises."""
        result: T = await self._submit(fn, args, _never_abort)
        return result

    async def ask(self, fn: Callable[..., T], *args: Any) -> T:
        """The same for a call that only looks: cancelling leaves it to its thread and its answer to nobody."""
        abandoned = trio.Event()

        def abort(_: Any) -> trio.lowlevel.Abort:
            abandoned.set()
            return trio.lowlevel.Abort.SUCCEEDED

        result: T = await self._submit(fn, args, abort, abandoned)
        return result

    async def _submit(
        self,
        fn: Callable[..., T],
        args: tuple[Any, ...],
        abort: Callable[[Any], trio.lowlevel.Abort],
        abandoned: Any = None,
    ) -> Any:
        if self._closed:
            msg = f"{self!r} is closed"
            raise RuntimeError(msg)
        self._waiting += 1
        if self._waiting > len(self._threads) and len(self._threads) < self._size:
            self._start()
        task = trio.lowlevel.current_task()
        self._queue.put((fn, args, trio.lowlevel.current_trio_token(), task, abandoned))
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
            fn, args, token, task, abandoned = item
            result = outcome.capture(fn, *args)
            try:
                token.run_sync_soon(self._deliver, task, result, abandoned)
            except trio.RunFinishedError:
                return

    def _deliver(self, task: trio.lowlevel.Task, result: outcome.Outcome[Any], abandoned: trio.Event | None) -> None:
        self._waiting -= 1
        if abandoned is None or not abandoned.is_set():
            trio.lowlevel.reschedule(task, result)


def _never_abort(_: Any) -> trio.lowlevel.Abort:
    return trio.lowlevel.Abort.FAILED
