"""The one interface through which a connection touches the world, and its real implementation on a socket.

What comes in: bytes from the peer. What goes out: bytes to the peer. What must not be here: messages, queues.

A peer that vanishes shows as the end of the stream when reading and as ``ConnectionError`` when sending, whatever errno
the kernel chose.
"""

from __future__ import annotations

import select
from typing import TYPE_CHECKING, Protocol

import trio

if TYPE_CHECKING:
    import socket

READ_BYTES = 65536
"""Read at most this much at once: more than a Unix socket's usual buffer holds is never there."""


class Wire(Protocol):
    """A byte stream to one peer."""

    async def receive(self) -> bytes:
        """Wait for bytes; ``b""`` once the peer has ended or vanished. Always a checkpoint."""

    def send_nowait(self, data: bytes | memoryview) -> int:
        """Send what fits now and return how much that was.

        Raises:
            ConnectionError: the peer is gone; nothing can be sent any more.
        """

    async def wait_sendable(self) -> None:
        """Wait until something may fit again, or the peer is gone."""

    def peer_reads(self) -> bool:
        """False once the peer has closed its end altogether; one that only ended its stream may still read."""

    def close(self) -> None:
        """Give everything up at once. May be called twice."""


class SocketWire:
    """A wire on a connected, non-blocking stream socket.

    Reading into one buffer that all wires share saves an allocation of the full size for every read; nothing waits
    between the read and the copy.
    """

    _buffer = bytearray(READ_BYTES)
    _view = memoryview(_buffer)

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock

    def __repr__(self) -> str:
        return f"<SocketWire fd {self._sock.fileno()}>"

    async def receive(self) -> bytes:
        """Wait for bytes."""
        while True:
            try:
                await trio.lowlevel.wait_readable(self._sock)
                size = self._sock.recv_into(self._buffer)
            except BlockingIOError:
                continue
            except (OSError, trio.ClosedResourceError):
                return b""
            return bytes(self._view[:size])

    def send_nowait(self, data: bytes | memoryview) -> int:
        """Send what fits now."""
        try:
            return self._sock.send(data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise BrokenPipeError(*error.args) from error

    async def wait_sendable(self) -> None:
        """Wait until something may fit again."""
        try:
            await trio.lowlevel.wait_writable(self._sock)
        except (OSError, trio.ClosedResourceError) as error:
            raise BrokenPipeError(*error.args) from error

    def peer_reads(self) -> bool:
        """Ask the kernel: it reports a hang-up only when both directions are closed."""
        if self._sock.fileno() < 0:
            return False
        poll = select.poll()
        poll.register(self._sock, 0)
        return not poll.poll(0)

    def close(self) -> None:
        """Close the socket; whoever waits on it wakes."""
        if self._sock.fileno() >= 0:
            trio.lowlevel.notify_closing(self._sock)
            self._sock.close()
