"""One connection's side of the dispatcher: its calls under way and its replies.

What comes in: requests, notifications and the end, from the connection's read loop. What goes out: replies and events
through the channel. What must not be here: methods, bytes' framing, tasks.

Nothing here blocks or raises. ``handle`` may reply at once or later.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import trio

from memd.dispatch.context import Context
from memd.errors import WireError
from memd.protocol.decode import decode_params
from memd.protocol.encode import encode_event
from memd.protocol.params import RpcCancel
from memd.protocol.types import Event, rfc3339

if TYPE_CHECKING:
    import msgspec

    from memd.dispatch.call import Call
    from memd.dispatch.dispatcher import Dispatcher
    from memd.dispatch.ports import Channel
    from memd.protocol.messages import Request
    from memd.protocol.types import ErrorsForm


class Conversation:
    """The calls of one connection. Made by ``Dispatcher.open_conversation``."""

    def __init__(self, dispatcher: Dispatcher, channel: Channel) -> None:
        self.context = Context(dispatcher.services, channel.peer, cancel=self.cancel)
        self.context.notify = self.notify
        self.calls: dict[int, Call] = {}
        self._dispatcher = dispatcher
        self._channel = channel
        channel.on_lost = self._lost_event
        self._closed = False
        self._answered_all: trio.Event | None = None  # only there while somebody waits for it
        self._busy_tasks = 0
        self._held: list[bytes] = []

    def __repr__(self) -> str:
        return f"<Conversation {self.context!r}, {len(self.calls)} calls>"

    # -- from the connection ------------------------------------------------------------------------------------

    def handle(self, request: Request) -> None:
        """Take a request; its reply is sent now or later."""
        self._dispatcher.start(self, request)

    def notification(self, method: str, params: msgspec.Raw) -> None:
        """Take a notification: ``rpc.cancel`` is the only one with a meaning."""
        if method == "rpc.cancel":
            with contextlib.suppress(WireError):  # nobody to tell
                self.cancel(decode_params(params, RpcCancel).msgid)

    def disconnected(self) -> None:
        """The connection is gone: what only it wanted is given up, what it changed runs to its end."""
        self._closed = True
        for call in tuple(self.calls.values()):
            if call.scope is not None and not call.mutation:
                call.scope.cancel()
        self.context.close()
        self._dispatcher.forget(self)

    @property
    def waiting(self) -> bool:
        """True while a request is not answered that does something; one that polls is given up with its peer."""
        return any(not call.polls for call in self.calls.values())

    async def wait_answered(self) -> None:
        """Until ``waiting`` is false."""
        while self.waiting:
            self._answered_all = trio.Event()
            await self._answered_all.wait()

    @property
    def congested(self) -> bool:
        """True while too much is in flight in the whole daemon to read on."""
        return self._dispatcher.flight.congested

    async def wait_clear(self) -> None:
        """Until reading may go on."""
        await self._dispatcher.flight.wait_clear()

    @property
    def errors_form(self) -> ErrorsForm:
        """How the client wants its errors."""
        return self._channel.errors_form

    def ask_errors_form(self, form: ErrorsForm) -> None:
        """What a ``hello`` wants; one that comes too late changes nothing."""
        if not self.context.settled:
            self._channel.errors_form = form

    # -- to the connection --------------------------------------------------------------------------------------

    def answered(self, call: Call, message: bytes) -> None:
        """A call is over."""
        if call.in_flight:
            self._dispatcher.flight.remove(call)
            call.in_flight = False
        if self.calls.get(call.msgid) is call:
            del self.calls[call.msgid]
            if self._answered_all is not None:
                self._answered_all.set()
        if not self._closed:
            self._channel.send(message)

    def notify(self, message: bytes) -> None:
        """Send an event. While a change runs as a task of its own, events wait: its reply comes before its event."""
        if self._busy_tasks:
            self._held.append(message)
        elif not self._closed:
            self._channel.notify(message)

    def hold_events(self) -> None:
        """A change that runs as a task begins."""
        self._busy_tasks += 1

    def let_events_go(self) -> None:
        """It is answered."""
        self._busy_tasks -= 1
        if not self._busy_tasks:
            held, self._held = self._held, []
            for message in held:
                self.notify(message)

    def _lost_event(self) -> bytes:
        """Events were dropped because the client did not read them: it has to read the stores again."""
        profile = self.context.profile
        now_us = self.context.services.clock()
        event = Event(
            seq=profile.events.seq,
            at=rfc3339(now_us),
            us=now_us,
            topic="events.lost",
            profile=profile.name,
            data={},
        )
        return encode_event(event)

    def cancel(self, msgid: int) -> bool:
        """Take a call out if nothing has happened for it yet."""
        call = self.calls.get(msgid)
        return call is not None and self._dispatcher.take_out(call)
