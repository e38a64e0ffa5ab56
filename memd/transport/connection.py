"""One connection: reading requests, sending replies and events, ending.

What comes in: bytes from a ``Wire``; replies and events from the conversation. What goes out: requests to the
conversation, in the order read and without waiting between them; bytes to the wire. What must not be here: method
names, sockets, what a request means.

Requests are handled inline, in the reading task: a task for each would cost several times the request. All replies to
one read leave in one send. Replies that come later are flushed together a step of the event loop after they came. There
is one sender: while the peer's buffer is full it is a task of its own, and nobody else touches the wire. A send cut
short is never resumed elsewhere; it ends the connection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import trio

from memd.errors import RemoteProtocolError
from memd.protocol.connection import (
    NEED_DATA,
    Complaint,
    ConnectionClosed,
    Failure,
    Farewell,
    ServerConnection,
)
from memd.protocol.messages import Notification, Request, Unusable
from memd.transport.outbox import Outbox

if TYPE_CHECKING:
    from collections.abc import Callable

    import msgspec

    from memd.protocol.types import ErrorsForm, Role
    from memd.transport.wire import Wire

MAX_UNSENT = 1024 * 1024
"""Bytes that the peer has not taken, past which no more of its requests are read: larger than any usual reply."""

CLOSE_GRACE_S = 1.0
"""How long an ending connection waits for its peer to take what is queued."""


HALF_CLOSED_CHECK_S = 0.2
"""How often a peer that ended its stream and waits for replies is looked at: does it still read?"""


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end. ``pid`` and ``command`` are hints: the process may have changed since."""

    uid: int
    pid: int
    command: str
    role: Role


class Channel(Protocol):
    """A connection as its conversation sees it. On a connection that has ended all of this does nothing.

    ``errors_form`` is used for refusals that the transport itself has to send. ``on_lost`` builds the event that stands
    for events that were dropped because the peer did not read them.
    """

    peer: Peer
    errors_form: ErrorsForm
    on_lost: Callable[[], bytes] | None

    def send(self, message: bytes) -> None:
        """Queue a reply; never dropped while the connection lives."""

    def notify(self, message: bytes) -> None:
        """Queue an event; dropped with others when the peer does not read."""

    def close(self) -> None:
        """End the connection once what is queued is sent."""


class Conversation(Protocol):
    """What a connection talks to. Nothing here raises or waits, but for ``wait_clear``."""

    def handle(self, request: Request) -> None:
        """Answer now or later, once, through the channel."""

    def notification(self, method: str, params: msgspec.Raw) -> None:
        """Take note; there is no answer."""

    def disconnected(self) -> None:
        """The peer is gone; nothing sent from now on arrives."""

    @property
    def waiting(self) -> bool:
        """True while a request is not answered that its peer would want an answer to after its last word."""

    async def wait_answered(self) -> None:
        """Wait until ``waiting`` is false."""

    @property
    def congested(self) -> bool:
        """True while no more requests should be read."""

    async def wait_clear(self) -> None:
        """Wait until ``congested`` is false."""


class Connection:
    """A ``Channel``, and the task that serves it. ``flush_later`` is asked to call ``flush`` soon, once."""

    def __init__(
        self,
        wire: Wire,
        peer: Peer,
        *,
        message_bytes: int,
        flush_later: Callable[[Connection], None],
        max_unsent: int = MAX_UNSENT,
    ) -> None:
        self.peer = peer
        self.errors_form: ErrorsForm = "map"
        self._wire = wire
        self._core = ServerConnection(message_bytes=message_bytes)
        self._outbox = Outbox()
        self._flush_later = flush_later
        self._max_unsent = max_unsent
        self._state: Literal["reading", "closing", "gone"] = "reading"
        self._holding = False  # replies wait for the end of the read, or for the flush that was asked for
        self._unsent: memoryview | None = None  # what the peer's buffer did not take; the sender task's alone
        self._sent = trio.Event()
        self._reading = trio.CancelScope()
        self._nursery: trio.Nursery | None = None
        self._half_closed = False  # the peer said all it has to say; it may still read
        self._parted = False  # the conversation knows that the peer is gone

    def __repr__(self) -> str:
        return f"<Connection {self.peer.role} pid {self.peer.pid} {self._state} {self._outbox!r}>"

    @property
    def on_lost(self) -> Callable[[], bytes] | None:
        """Builds the event that stands for dropped ones."""
        return self._outbox.on_lost

    @on_lost.setter
    def on_lost(self, build: Callable[[], bytes] | None) -> None:
        self._outbox.on_lost = build

    def send(self, message: bytes) -> None:
        """Queue a reply."""
        if self._state != "gone":
            self._outbox.add_reply(message)
            self._hold()

    def notify(self, message: bytes) -> None:
        """Queue an event."""
        if self._state != "gone":
            self._outbox.add_event(message)
            self._hold()

    def close(self) -> None:
        """End the connection once what is queued is sent."""
        if self._state == "reading":
            self._state = "closing"
            self._reading.cancel()

    def flush(self) -> None:
        """Send what is queued, as far as the peer takes it now."""
        self._holding = False
        if self._unsent is not None or not self._outbox or self._state == "gone":
            return
        data = self._outbox.take()
        try:
            size = self._wire.send_nowait(data)
        except ConnectionError:
            self._vanish()
            return
        if size < len(data) and self._nursery is not None:  # it is never None while there is something to flush
            self._unsent = memoryview(data)[size:]
            self._nursery.start_soon(self._send_rest)

    async def run(self, open_conversation: Callable[[Channel], Conversation]) -> None:
        """Serve the connection until either side ends it, or it is cancelled."""
        conversation = open_conversation(self)
        try:
            async with trio.open_nursery() as self._nursery:
                with self._reading:
                    await self._read(conversation)
                self._part(conversation)
                await self._finish()
                self._nursery.cancel_scope.cancel()
        finally:
            self._part(conversation)
            self._vanish()
            self._unsent = None
            self._core.clear()  # connections end in cycles, which the collector may leave for long
            self._wire.close()

    async def _read(self, conversation: Conversation) -> None:
        paused = False
        while self._state == "reading":
            if paused:  # the rest of the last read comes first, after the other connections
                await trio.lowlevel.checkpoint()
            else:
                self._core.receive_data(await self._wire.receive())
            self._holding = True
            goes_on = self._handle_all(conversation)
            paused = self._outbox_full
            self.flush()
            if not goes_on:
                if self._half_closed:
                    await self._answer_rest(conversation)
                return
            if self._unsent is not None and len(self._unsent) + self._outbox.size > self._max_unsent:
                await self._wait_sent()
            if conversation.congested:
                await conversation.wait_clear()

    async def _answer_rest(self, conversation: Conversation) -> None:
        """Stay for a peer that said all it had to say and reads on, as at the end of a shell's pipe."""
        while conversation.waiting and self._state == "reading":
            if not self._wire.peer_reads():
                return
            with trio.move_on_after(HALF_CLOSED_CHECK_S):
                await conversation.wait_answered()

    @property
    def _outbox_full(self) -> bool:
        """One read may hold tens of thousands of tiny messages, each with a reply a hundred times its size."""
        return self._outbox.size > self._max_unsent

    def _handle_all(self, conversation: Conversation) -> bool:
        """Hand over what has arrived, until the outbox is full; False if nothing more can come."""
        while self._state == "reading" and not self._outbox_full:
            try:
                event = self._core.next_event()
            except RemoteProtocolError as violation:
                self.send(self._core.send(Farewell(violation.wire)))
                return False
            if event is NEED_DATA:
                return True
            if isinstance(event, Request):
                conversation.handle(event)
            elif isinstance(event, Notification):
                conversation.notification(event.method, event.params)
            elif isinstance(event, ConnectionClosed):
                self._half_closed = True
                return False
            else:
                self._refuse(event)
        return self._state == "reading"

    def _refuse(self, message: Unusable) -> None:
        if message.msgid is None:
            self.send(self._core.send(Complaint(message.error)))
        else:
            self.send(self._core.send(Failure(message.msgid, message.error, self.errors_form)))

    def _hold(self) -> None:
        """Make sure that what was queued leaves soon."""
        if not self._holding and self._unsent is None:
            self._holding = True
            self._flush_later(self)

    async def _send_rest(self) -> None:
        """Send what the peer's buffer did not take, and what is queued meanwhile."""
        rest = self._unsent
        try:
            while rest:
                await self._wire.wait_sendable()
                rest = rest[self._wire.send_nowait(rest) :] or memoryview(self._outbox.take())
                self._unsent = rest
        except ConnectionError:
            self._vanish()
        else:
            self._unsent = None
        self._sent.set()

    async def _wait_sent(self) -> None:
        """Wait until the sender task has sent everything."""
        while self._unsent is not None and self._state != "gone":
            self._sent = trio.Event()
            await self._sent.wait()

    async def _finish(self) -> None:
        """Send what is queued, within a short time; then nothing more is sent."""
        self.flush()
        with trio.move_on_after(CLOSE_GRACE_S):
            await self._wait_sent()
        self._vanish()

    def _part(self, conversation: Conversation) -> None:
        """Tell the conversation, once, that nothing it sends arrives any more."""
        if not self._parted:
            self._parted = True
            conversation.disconnected()

    def _vanish(self) -> None:
        """Nobody reads any more: forget what is queued, and stop reading."""
        self._state = "gone"
        self._outbox.clear()
        self._reading.cancel()
