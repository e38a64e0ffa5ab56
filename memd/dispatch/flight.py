"""Requests in flight: their deadlines and their bytes, over all connections.

What comes in: calls that could not be answered at once, and when they settle. What goes out: the calls whose deadline has
passed, and whether reading should pause. What must not be here: what to do about either, tasks, the clock.

Deadlines lie in buckets of 50 ms, so that adding and removing a call costs a dictionary access and one sweep serves
them all: a cancel scope for each request costs more than the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from memd.dispatch.call import Call

BUCKET_S = 0.05
MAX_BYTES = 64 * 1024 * 1024
"""Requests in flight over all connections; past it no more is read, which is the backpressure on senders."""

MAX_COUNT = 4096
"""The same as a number of requests: the writers' queues together, a few seconds' work."""


class Flight:
    """Everything under way. All methods are plain calls but the two waits."""

    def __init__(self, *, max_bytes: int = MAX_BYTES, max_count: int = MAX_COUNT) -> None:
        self._max_bytes = max_bytes
        self._max_count = max_count
        self._buckets: dict[int, dict[Call, None]] = {}
        self._bytes = 0
        self._count = 0
        self._clear = trio.Event()
        self._busy = trio.Event()
        self._idle = trio.Event()

    def __repr__(self) -> str:
        return f"<Flight {self._count} requests, {self._bytes} bytes>"

    @property
    def count(self) -> int:
        """Requests in flight."""
        return self._count

    @property
    def congested(self) -> bool:
        """True while senders should wait."""
        return self._bytes > self._max_bytes or self._count > self._max_count

    def add(self, call: Call) -> None:
        """A call is under way; its ``deadline`` and ``size`` are set."""
        self._buckets.setdefault(_bucket(call.deadline), {})[call] = None
        self._bytes += call.size
        self._count += 1
        self._busy.set()

    def remove(self, call: Call) -> None:
        """It is answered."""
        number = _bucket(call.deadline)
        bucket = self._buckets[number]
        del bucket[call]
        if not bucket:
            del self._buckets[number]
        self._bytes -= call.size
        self._count -= 1
        if not self.congested:
            self._clear.set()
        if not self._count:
            self._idle.set()

    def due(self, now: float) -> list[Call]:
        """Every call whose deadline has passed, up to one bucket late."""
        current = _bucket(now)
        return [call for number in sorted(n for n in self._buckets if n < current) for call in self._buckets[number]]

    def everything(self) -> list[Call]:
        """Every call."""
        return [call for bucket in self._buckets.values() for call in bucket]

    async def wait_busy(self) -> None:
        """Until something is in flight."""
        while not self._count:
            self._busy = _unset(self._busy)
            await self._busy.wait()

    async def wait_clear(self) -> None:
        """Until there is room for more."""
        while self.congested:
            self._clear = _unset(self._clear)
            await self._clear.wait()

    async def wait_idle(self) -> None:
        """Until nothing is in flight."""
        while self._count:
            self._idle = _unset(self._idle)
            await self._idle.wait()


def _unset(event: trio.Event) -> trio.Event:
    """The event itself while others wait on it, else a new one."""
    return trio.Event() if event.is_set() else event


def _bucket(moment: float) -> int:
    return int(moment / BUCKET_S)
