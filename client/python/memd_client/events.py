"""A stream of events that survives a restart of the daemon.

What comes in: topics and where to begin. What goes out: events in order, each once; where some are gone for good, one
``events.lost`` that says to read the stores again. What must not be here: calls; they have a connection of their own.
"""

from __future__ import annotations

from memd_client.errors import ConnectionLost, MemdError, NotRunning, ShuttingDown
from memd_client.types import Event
from memd_client.wire import Deadline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Self

    from memd_client.link import Link
    from memd_client.wire import Connection

PAUSE_S = 0.1


class EventStream:
    """Iterate over it, or ask with ``get``. ``seq`` is that of the last event seen: where a later stream can begin.

    The subscription is made at once, so that nothing that happens after the constructor is missed.

    Raises:
        MemdError: The daemon cannot be reached, or knows no such topic.
    """

    def __init__(
        self, link: Link, topics: list[str], *, since_seq: int | None = None, timeout: float | None = 10.0
    ) -> None:
        self.seq = since_seq
        self._topics = topics
        self._timeout = timeout
        self._closed = False
        self._lost: Event | None = None
        link.connected(Deadline(timeout))  # may start the daemon; our own link never does
        self._link = link.passive()
        try:
            self._connection = self._subscribed(Deadline(timeout))
        except BaseException:
            self._link.drop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        event = None if self._closed else self.get()
        if event is None:
            raise StopIteration
        return event

    def close(self) -> None:
        """End the subscription."""
        self._closed = True
        self._link.drop()

    def get(self, timeout: float | None = None) -> Event | None:
        """The next event, or None after ``timeout`` seconds without one. None as ``timeout`` waits for ever.

        Raises:
            MemdError: The daemon is gone and did not come back within the client's timeout.
        """
        deadline = Deadline(timeout)
        while True:
            if self._lost is not None:
                lost, self._lost = self._lost, None
                return lost
            try:
                note = self._connection.next_notification(deadline)
            except ConnectionLost:
                self._connection = self._resubscribed()
                continue
            if note is None:
                return None
            event = self._taken(*note)
            if event is not None:
                return event

    def _taken(self, method: str, params: list[Any]) -> Event | None:
        if method != "event" or not params:
            return None
        event = Event(params[0])
        if self.seq is not None and event.seq <= self.seq and event.topic != "events.lost":
            return None  # replayed and live at once
        self.seq = max(self.seq or 0, event.seq)
        return event

    def _subscribed(self, deadline: Deadline) -> Connection:
        connection = self._link.connected(deadline)
        connection.keep_notifications = True
        params = {"topics": self._topics, **({} if self.seq is None else {"since_seq": self.seq})}
        reply = connection.request("events.subscribe", params, deadline)
        if reply.get("lost"):
            self._lost = self._loss(reply["seq"])
        if self.seq is None:
            self.seq = reply["seq"]
        return connection

    def _resubscribed(self) -> Connection:
        deadline = Deadline(self._timeout)
        while True:
            try:
                return self._subscribed(deadline)
            except (NotRunning, ConnectionLost, ShuttingDown) as error:
                self._link.drop()
                if not deadline.sleep(PAUSE_S):
                    raise _gone(error) from error

    def _loss(self, seq: int) -> Event:
        """Our own ``events.lost``: the journal does not reach back to where we were."""
        profile = self._link.hello.profile if self._link.hello else ""
        empty = {"at": "", "us": 0, "data": {"since_seq": self.seq}}
        return Event({"seq": seq, "topic": "events.lost", "profile": profile, **empty})


def _gone(error: MemdError) -> MemdError:
    return ConnectionLost(f"memd went away and did not come back: {error.message}", error.data)
