"""What waits to be sent on one connection.

What comes in: replies, which are never dropped, and events, which are when there are too many. What goes out: the bytes
for the next send. What must not be here: sockets, tasks.

Replies leave before events, so that whoever changes something hears of its own change after the answer. Events that
nobody reads must not fill the memory: at the bound they are all dropped, and one message says so instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_EVENTS = 1000
"""Events that wait for one slow reader: a burst of commits fits, and at some 300 bytes each they stay small."""


class Outbox:
    """Two queues in one. ``on_lost`` makes the message that stands for dropped events; ``size`` is in bytes."""

    __slots__ = ("_events", "_max_events", "_replies", "on_lost", "size")

    def __init__(self, *, max_events: int = MAX_EVENTS) -> None:
        self.on_lost: Callable[[], bytes] | None = None
        self.size = 0
        self._replies: list[bytes] = []
        self._events: list[bytes] = []
        self._max_events = max_events

    def __bool__(self) -> bool:
        return self.size > 0

    def __repr__(self) -> str:
        return f"<Outbox {len(self._replies)} replies, {len(self._events)} events>"

    def add_reply(self, message: bytes) -> None:
        """Queue a reply."""
        self._replies.append(message)
        self.size += len(message)

    def add_event(self, message: bytes) -> None:
        """Queue an event; at the bound, drop it with all that wait."""
        if len(self._events) >= self._max_events:
            self.size -= sum([len(event) for event in self._events])
            self._events.clear()
            if self.on_lost is None:
                return
            message = self.on_lost()
        self._events.append(message)
        self.size += len(message)

    def take(self) -> bytes:
        """Everything that waits, as one piece; ``b""`` if nothing does."""
        if len(self._replies) == 1 and not self._events:
            data = self._replies[0]
        else:
            data = b"".join([*self._replies, *self._events])
        self.clear()
        return data

    def clear(self) -> None:
        """Forget everything."""
        self._replies.clear()
        self._events.clear()
        self.size = 0
