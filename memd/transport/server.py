"""Accepting connections, and the life of all of them.

What comes in: listeners, and the function that opens a conversation. What goes out: a served ``Connection`` for each
client. What must not be here: method names, settings files, signals.

Two nurseries: the listeners live in the inner one and the connections in the outer, so that stopping can take away the
first while the second goes on answering what is in flight.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import trio

from memd.errors import PermissionDenied, TooManyRequests, WireError
from memd.protocol.encode import encode_protocol_error
from memd.transport.connection import Connection
from memd.transport.peer import peer_of
from memd.transport.wire import SocketWire

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from memd.protocol.types import Role
    from memd.transport.connection import Channel, Conversation, Peer
    from memd.transport.listener import Listener

_OUT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
OPERATOR_ROOM = 8
"""Connections that operators have beyond the limit: agents that use it up must not keep `memd stop` out."""
_PAUSE_S = 0.1
"""How long to wait for descriptors or memory to come free: trio's ``serve_listeners`` waits the same."""


class Log(Protocol):
    """Where it is told that something went wrong outside a request."""

    def warning(self, event: str, **fields: Any) -> Any:
        """Something that a person may want to know."""


@dataclass(frozen=True, slots=True)
class ServerStatistics:
    """Connections since the start, and now."""

    open: int
    accepted: int
    refused: int


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Bounds of the server and its connections; ``uids`` may connect."""

    message_bytes: int
    connections: int
    uids: frozenset[int] = frozenset({os.geteuid()})


class Flusher:
    """Flushes connections one step of the event loop after the first of them asked: a commit answers many at once."""

    def __init__(self) -> None:
        self._waiting: list[Connection] = []
        self._wake = trio.Event()

    def later(self, connection: Connection) -> None:
        """Flush this connection in the next step."""
        self._waiting.append(connection)
        self._wake.set()

    async def run(self) -> None:
        """Flush until cancelled."""
        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            waiting, self._waiting = self._waiting, []
            for connection in waiting:
                connection.flush()


class Server:
    """Serves clients from ``run`` on until ``close``."""

    def __init__(
        self,
        open_conversation: Callable[[Channel], Conversation],
        options: ServerOptions,
        log: Log,
        *,
        identify: Callable[[socket.socket, Role], Peer] = peer_of,
    ) -> None:
        self._open_conversation = open_conversation
        self._identify = identify
        self._options = options
        self._log = log
        self._flusher = Flusher()
        self._connections: set[Connection] = set()
        self._accepting = trio.CancelScope()
        self._emptied = trio.Event()
        self._accepted = 0
        self._refused = 0

    def __repr__(self) -> str:
        return f"<Server {len(self._connections)} connections>"

    def statistics(self) -> ServerStatistics:
        """Counters for the status and the metrics."""
        return ServerStatistics(len(self._connections), self._accepted, self._refused)

    def reconfigure(self, options: ServerOptions) -> None:
        """Use these bounds for connections from now on."""
        self._options = options

    async def run(
        self, listeners: Sequence[Listener], *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve until ``stop_listening`` was called and every connection has ended. Closes the listeners."""
        try:
            async with trio.open_nursery() as handlers:
                handlers.start_soon(self._flusher.run)
                with self._accepting:
                    async with trio.open_nursery() as accepting:
                        for listener in listeners:
                            accepting.start_soon(self._accept_all, listener, handlers)
                        task_status.started()
                _close(listeners)
                while self._connections:
                    self._emptied = trio.Event()
                    await self._emptied.wait()
                handlers.cancel_scope.cancel()
        finally:
            _close(listeners)

    def stop_listening(self) -> None:
        """Take no more connections; those there are go on."""
        self._accepting.cancel()

    def close(self) -> None:
        """Take no more connections, and end those there are once what is queued for them is sent."""
        self.stop_listening()
        for connection in self._connections:
            connection.close()

    async def _accept_all(self, listener: Listener, handlers: trio.Nursery) -> None:
        while True:
            await trio.lowlevel.wait_readable(listener.sock)
            try:
                sock, _ = listener.sock.accept()
            except OSError as error:
                if error.errno in _OUT_OF_RESOURCES:
                    self._log.warning("accept_paused", reason=os.strerror(error.errno or 0), path=listener.path)
                    await trio.sleep(_PAUSE_S)
                continue  # the client was gone again, or another step took it
            self._admit(sock, listener, handlers)

    def _admit(self, sock: socket.socket, listener: Listener, handlers: trio.Nursery) -> None:
        """Begin to serve a client, or tell it why not."""
        options = self._options
        wire = SocketWire(sock)
        try:
            peer = self._identify(sock, listener.role)
        except OSError:  # gone again
            wire.close()
            return
        if peer.uid not in options.uids:
            self._refuse(wire, PermissionDenied(f"this daemon serves uid {os.geteuid()}, not {peer.uid}"))
            self._log.warning("peer_refused", uid=peer.uid, pid=peer.pid, command=peer.command)
        elif len(self._connections) >= options.connections + (OPERATOR_ROOM if listener.role == "operator" else 0):
            self._refuse(wire, TooManyRequests(f"{options.connections} connections are open (wire.connections)"))
        else:
            self._accepted += 1
            connection = Connection(wire, peer, message_bytes=options.message_bytes, flush_later=self._flusher.later)
            self._connections.add(connection)
            handlers.start_soon(self._serve, connection)

    async def _serve(self, connection: Connection) -> None:
        try:
            await connection.run(self._open_conversation)
        finally:
            self._connections.discard(connection)
            if not self._connections:
                self._emptied.set()

    def _refuse(self, wire: SocketWire, error: WireError) -> None:
        """Say why, as far as the socket's buffer takes it, and hang up."""
        self._refused += 1
        try:
            wire.send_nowait(encode_protocol_error(error))
        except ConnectionError:
            pass  # it did not wait for the reason
        finally:
            wire.close()


def _close(listeners: Sequence[Listener]) -> None:
    for listener in listeners:
        listener.close()
