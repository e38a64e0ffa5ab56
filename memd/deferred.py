"""Tickets: answers that are not there yet.

What it is: the handle for one queued piece of work, so that a connection's loop can dispatch it inline and go on
reading (a task per request costs several times the request). What comes in: a result or an error, once. What goes
out: the callbacks, called synchronously, in the order they were added. What must not be here: threads, I/O.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import trio

from memd.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Callable

    from memd.errors import MemdError


class Ticket:
    """One piece of work under way.

    ``drained`` is set by the worker when the work can no longer be taken out; until then ``withdraw`` works.
    ``blocked_by`` says what it waits for (a lock somebody holds): the error to tell when its deadline passes.
    ``doubtful``: it repeats a call of which nobody knows yet whether it was done, so that no error may say that nothing was.
    """

    __slots__ = ("_callbacks", "blocked_by", "done", "doubtful", "drained", "error", "result", "withdrawn")

    def __init__(self) -> None:
        self.done = False
        self.drained = False
        self.withdrawn = False
        self.doubtful = False
        self.blocked_by: MemdError | None = None
        self.result: Any = None
        self.error: MemdError | None = None
        self._callbacks: list[Callable[[Ticket], None]] = []

    def on_done(self, callback: Callable[[Ticket], None]) -> None:
        """Call ``callback(ticket)`` when the work is done; at once if it already is."""
        if self.done:
            callback(self)
        else:
            self._callbacks.append(callback)

    def finish(self, result: Any) -> None:
        """Settle with a result. A ticket settles once; later calls are ignored (a late result after a deadline)."""
        self._settle(result, None)

    def fail(self, error: MemdError) -> None:
        """Settle with an error. A ticket settles once; later calls are ignored."""
        self._settle(None, error)

    def withdraw(self, error: MemdError) -> bool:
        """Take the work out of its queue and settle with ``error``; False (and nothing happens) once it is drained."""
        if self.done or self.drained:
            return False
        self.withdrawn = True
        self._settle(None, error)
        return True

    async def wait(self) -> Any:
        """Wait for the result, or raise the error. Cancelling the wait leaves the work under way."""
        if not self.done:
            event = trio.Event()
            self.on_done(lambda _: event.set())
            await event.wait()
        if self.error is not None:
            raise self.error
        return self.result

    def _settle(self, result: Any, error: MemdError | None) -> None:
        if self.done:
            return
        self.done = True
        self.result = result
        self.error = error if error is None or not self.doubtful else _in_doubt(error)
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)


def _in_doubt(error: MemdError) -> MemdError:
    """The error, not saying that nothing was done; others may have been given the same one."""
    if not isinstance(error, WireError):
        return error
    found = copy.copy(error)
    found.outcome = "unknown"
    return found
