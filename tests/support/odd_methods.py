"""Methods that misbehave or wait, for tests of the dispatcher.

What it is: ``Odd``, a table of them beside the real methods. What comes in: a ticket's result, an event. What goes out:
what was cancelled. What must not be here: the dispatcher.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from memd.deferred import Ticket
from memd.dispatch import Method, MethodTable, method_table
from memd.dispatch.call import Pending, after
from memd.errors import NotFound
from memd.protocol.params import EventsWait, RpcPing
from memd.protocol.results import Empty

if TYPE_CHECKING:
    from memd.dispatch.context import Context

_RESULTS: dict[str, Empty] = {}


class Odd:
    """Methods that misbehave, each with the ticket or the event that lets it go on."""

    def __init__(self) -> None:
        self.ticket = Ticket()
        self.go = trio.Event()
        self.cancelled: list[str] = []

    def bug(self, _context: Context, _params: RpcPing) -> Empty:
        return _RESULTS["no such key"]

    def unencodable(self, _context: Context, _params: RpcPing) -> object:
        return object()

    def bad_error(self, _context: Context, _params: RpcPing) -> Empty:
        msg = "an error whose data cannot be sent"
        raise NotFound(msg, nearest=object())

    def waiting(self, _context: Context, _params: RpcPing) -> Pending:
        return Pending(self.ticket, self.settle)

    def shared(self, _context: Context, _params: RpcPing) -> Pending:
        return after(self.ticket, Empty)

    def settle(self, ticket: Ticket) -> object:
        if ticket.error is not None:
            raise ticket.error
        if ticket.result == "bug":
            msg = "a bug while settling"
            raise RuntimeError(msg)
        return ticket.result

    async def task(self, _context: Context, _params: RpcPing) -> Empty:
        try:
            await self.go.wait()
        except trio.Cancelled:
            self.cancelled.append("task")
            raise
        return Empty()

    async def task_bug(self, _context: Context, _params: RpcPing) -> Empty:
        await trio.lowlevel.checkpoint()
        msg = "a bug in a task"
        raise RuntimeError(msg)

    def table(self) -> MethodTable:
        rows = [
            Method("x.bug", RpcPing, Empty, "none", self.bug),
            Method("x.bug_write", RpcPing, Empty, "none", self.bug, "deferred", mutation=True),
            Method("x.unencodable", RpcPing, Empty, "none", self.unencodable),
            Method("x.bad_error", RpcPing, Empty, "none", self.bad_error),
            Method("x.write", RpcPing, Empty, "none", self.waiting, "deferred", mutation=True),
            Method("x.shared", RpcPing, Empty, "none", self.shared, "deferred"),
            Method("x.task", RpcPing, Empty, "none", self.task, "task"),
            Method("x.task_write", RpcPing, Empty, "none", self.task, "task", mutation=True),
            Method("x.task_bug", RpcPing, Empty, "none", self.task_bug, "task"),
            Method("x.wait", EventsWait, Empty, "none", self.task, "task", waits=True),
        ]
        return MethodTable([*method_table(), *rows])
