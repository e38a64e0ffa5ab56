"""Reaching the daemon: finding, starting, connecting, shaking hands.

What comes in: where to look, what to say in ``hello``, and how to start a daemon, if at all. What goes out: a
connection on which calls can be made. What must not be here: the calls, and repeating them.
"""

from __future__ import annotations

import errno
import os

from memd_client.errors import ConnectionLost, NotRunning
from memd_client.types import Hello
from memd_client.wire import connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from memd_client.wire import Connection, Deadline

    Starter = Callable[[Deadline], str]  # starts a daemon, returns the path of its socket


ABSENT = (errno.ENOENT, errno.ECONNREFUSED)


class Link:
    """The way to one daemon. ``connection`` is None until the first use and after ``drop``.

    Args:
        paths: Where it may listen, in order.
        hello: What to say in ``hello``; None says none, for calls about the daemon as a whole: they work too where a
            profile has to be named, or cannot be served.
        starter: Starts a daemon.
    """

    def __init__(self, paths: Sequence[str], hello: dict[str, Any] | None, starter: Starter | None) -> None:
        self.hello_params = hello
        self.met = False  # whether there has been a connection: then a daemon that is gone is probably coming back
        self.hello: Hello | None = None
        self.connection: Connection | None = None
        self._paths = list(paths)
        self._starter = starter

    def __repr__(self) -> str:
        return f"<Link {self._paths[0]} {'connected' if self.connection else 'idle'}>"

    def passive(self) -> Link:
        """Another way to the same daemon that never starts one."""
        return Link(self._paths, self.hello_params, None)

    def connected(self, deadline: Deadline) -> Connection:
        """The open connection, or a new one that has said hello.

        Raises:
            NotRunning: Nobody listens, and nobody could be started.
            MemdError: The daemon refused the hello.
        """
        if self.connection is not None and self.connection.pid == os.getpid() and self.connection.usable():
            return self.connection
        self.drop()  # after a fork this closes our copy only; the parent's goes on
        connection = self._reach(deadline)
        if self.hello_params is not None:
            try:
                self.hello = Hello(connection.request("hello", self.hello_params, deadline))
            except BaseException as error:
                connection.close()
                if isinstance(error, ConnectionLost):
                    error.data["sent"] = False  # nothing but hello was
                raise
        self.met = True
        self.connection = connection
        return connection

    def drop(self) -> None:
        """Close the connection, if there is one."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def _reach(self, deadline: Deadline) -> Connection:
        errors: list[NotRunning] = []
        for path in self._paths:
            try:
                return connect(path, deadline)
            except NotRunning as error:
                errors.append(error)
        if self._starter is None:
            raise _nobody(errors)
        return connect(self._starter(deadline), deadline)


def _nobody(errors: list[NotRunning]) -> NotRunning:
    """One error for all the paths that were tried; only what is more than an absence is told in full."""
    paths = [error.data["path"] for error in errors]
    told = [error.message for error in errors if error.data["errno"] not in ABSENT]
    message = "; ".join(told) or f"memd is not running: nobody listens at {' or '.join(paths)}"
    return NotRunning(message, {**errors[0].data, "paths": paths})
