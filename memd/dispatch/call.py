"""One request from its arrival to its answer.

What comes in: the request's identity, then one result or one error. What goes out: exactly one reply. What must not be
here: who handles it, deadlines' passing.

Handlers answer in one of three ways: with a result; with ``Pending`` (a ticket, and how to make the answer of it); or, as
``async def``, as a task. ``Answer`` around a result adds something to do right after the reply has been queued.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from memd.protocol.encode import encode_error, encode_result

if TYPE_CHECKING:
    from collections.abc import Callable

    import trio

    from memd.deferred import Ticket
    from memd.errors import WireError
    from memd.protocol.types import ErrorsForm


@dataclass(slots=True)
class Pending:
    """An answer that is not there yet. ``settle`` makes it of the done ticket, or raises.

    ``shared`` tickets belong to others too: a caller that gives up leaves them alone.
    """

    ticket: Ticket
    settle: Callable[[Ticket], Any]
    shared: bool = False


def after(ticket: Ticket, make: Callable[[], Any]) -> Pending:
    """An answer that does not depend on the ticket's result, only on its success; the ticket may be others' too."""

    def settle(done: Ticket) -> Any:
        if done.error is not None:
            raise done.error
        return make()

    return Pending(ticket, settle, shared=True)


@dataclass(slots=True)
class Answer:
    """A result, and what to do once its reply is queued."""

    result: Any
    then: Callable[[], None]


class Outlet(Protocol):
    """Where a call's reply goes."""

    @property
    def errors_form(self) -> ErrorsForm:
        """How the connection wants its errors."""

    def answered(self, call: Call, message: bytes) -> None:
        """The call is over; send this."""


class Call:
    """A request under way. It is answered once; what comes later is dropped. ``polls``: it waits for something to happen."""

    __slots__ = (
        "deadline",
        "done",
        "in_flight",
        "method",
        "msgid",
        "mutation",
        "outlet",
        "pending",
        "polls",
        "scope",
        "size",
    )

    def __init__(self, outlet: Outlet, msgid: int, method: str, *, mutation: bool, size: int) -> None:
        self.outlet = outlet
        self.msgid = msgid
        self.method = method
        self.mutation = mutation
        self.size = size
        self.deadline = 0.0
        self.done = False
        self.in_flight = False
        self.polls = False
        self.pending: Pending | None = None
        self.scope: trio.CancelScope | None = None

    def __repr__(self) -> str:
        return f"<Call {self.msgid} {self.method}{' done' if self.done else ''}>"

    def reply(self, result: object) -> None:
        """Answer with a result."""
        if self.done:
            return
        if isinstance(result, Answer):
            self._send(encode_result(self.msgid, result.result))
            result.then()
        else:
            self._send(encode_result(self.msgid, result))

    def fail(self, error: WireError) -> None:
        """Answer with an error. Every error of a mutation says whether something may have changed."""
        if self.done:
            return
        if self.mutation and error.outcome is None:
            error.outcome = "none"
        self._send(encode_error(self.msgid, error, self.outlet.errors_form))

    def _send(self, message: bytes) -> None:
        self.done = True
        self.outlet.answered(self, message)
