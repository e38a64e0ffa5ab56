"""One connection as a state machine without I/O, in h11's words.

What comes in: ``receive_data(bytes)`` from the peer, ``send(message)`` from our side. What goes out: ``next_event()``
for our side, bytes for the peer. What must not be here: sockets, clocks, tasks, method names.

The rules in prose: an open connection reads messages until the peer ends it or breaks the framing. A message that is
whole but wrong breaks nothing: it is an ``Unusable`` event, and the connection stays. Broken framing cannot be read on
(where would the next message begin?): one farewell may still be sent, then the connection is closed. ``TRANSITIONS``
is these rules as a table.
"""

from __future__ import annotations

import enum
from typing import Final, Literal, final

import msgspec

from memd.errors import LocalProtocolError, RemoteProtocolError, WireError
from memd.protocol.encode import encode_error, encode_protocol_error, encode_result
from memd.protocol.framing import Framer
from memd.protocol.messages import Notification, Reply, Request, Unusable, classify
from memd.protocol.types import ErrorsForm


class State(enum.Enum):
    """Where a connection stands."""

    OPEN = "open"
    BROKEN = "broken"
    CLOSED = "closed"


class Step(enum.Enum):
    """What moves a connection from state to state."""

    MESSAGE = "a message, in or out"
    END = "the peer's end"
    VIOLATION = "broken framing"
    FAREWELL = "farewell sent"


TRANSITIONS: Final[dict[State, dict[Step, State]]] = {
    State.OPEN: {
        Step.MESSAGE: State.OPEN,
        Step.END: State.CLOSED,
        Step.VIOLATION: State.BROKEN,
        Step.FAREWELL: State.CLOSED,
    },
    State.BROKEN: {Step.FAREWELL: State.CLOSED, Step.END: State.CLOSED},
    State.CLOSED: {},
}


class Flag(enum.Enum):
    """Answers of ``next_event`` that are no events."""

    NEED_DATA = "need data"


NEED_DATA: Final = Flag.NEED_DATA


@final
class ConnectionClosed(msgspec.Struct, frozen=True):
    """The peer is gone. ``cut_short`` says that it left in the middle of a message."""

    cut_short: bool


class Result(msgspec.Struct, frozen=True):
    """Our answer to a request."""

    msgid: int
    result: object


class Failure(msgspec.Struct, frozen=True):
    """Our refusal of a request."""

    msgid: int
    error: WireError
    form: ErrorsForm = "map"


class Complaint(msgspec.Struct, frozen=True):
    """Our word about something that cannot be answered; the connection stays."""

    error: WireError


class Farewell(msgspec.Struct, frozen=True):
    """Our last word: why the connection ends."""

    error: WireError


Event = Request | Notification | Unusable | ConnectionClosed
Outgoing = Result | Failure | Complaint | Farewell


class ServerConnection:
    """Our side of one connection."""

    def __init__(self, *, message_bytes: int = 8 * 1024 * 1024) -> None:
        self.state = State.OPEN
        self._framer = Framer(message_bytes)
        self._ended = False
        self._violation: RemoteProtocolError | None = None

    def __repr__(self) -> str:
        return f"<ServerConnection {self.state.value} {self._framer!r}>"

    def receive_data(self, data: bytes) -> None:
        """Take bytes from the peer; ``b""`` is its end.

        Raises:
            LocalProtocolError: data after the end. Nothing was taken.
        """
        if self._ended:
            msg = "receive_data() after the peer's end"
            raise LocalProtocolError(msg)
        if data:
            self._framer.feed(data)
        else:
            self._ended = True

    def next_event(self) -> Event | Literal[Flag.NEED_DATA]:
        """What the peer said next; ``NEED_DATA`` until more bytes arrive. Stray replies are passed over.

        Raises:
            RemoteProtocolError: the framing is broken; every later call raises it again.
            LocalProtocolError: the connection is closed.
        """
        if self._violation is not None:
            raise self._violation
        if self.state is State.CLOSED:
            msg = "next_event() on a closed connection"
            raise LocalProtocolError(msg)
        if not self._framer.pending and not self._ended:
            return NEED_DATA  # after nearly every request: nothing is left to look at
        while (message := self._next_message()) is not None:
            event = classify(message)
            if not isinstance(event, Reply):
                return event
        if self._ended:
            self._move(Step.END)
            return ConnectionClosed(self._framer.pending > 0)
        return NEED_DATA

    def send(self, message: Outgoing) -> bytes:
        """The bytes to send for a message.

        Raises:
            LocalProtocolError: the state does not allow it; nothing may be sent.
        """
        self._move(Step.FAREWELL if isinstance(message, Farewell) else Step.MESSAGE)
        if isinstance(message, Result):
            return encode_result(message.msgid, message.result)
        if isinstance(message, Failure):
            return encode_error(message.msgid, message.error, message.form)
        return encode_protocol_error(message.error)

    def clear(self) -> None:
        """Give back the memory of what has arrived and will not be asked for any more."""
        self._framer.clear()

    def _next_message(self) -> bytes | None:
        try:
            return self._framer.next_message()
        except RemoteProtocolError as violation:
            self._violation = violation
            self._move(Step.VIOLATION)
            raise

    def _move(self, step: Step) -> None:
        after = TRANSITIONS[self.state].get(step)
        if after is None:
            msg = f"{step.value}: not on a connection that is {self.state.value}"
            raise LocalProtocolError(msg)
        self.state = after
