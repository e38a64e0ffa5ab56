"""Byte streams in memory for tests of connections, and peers that misbehave.

What it is: ``MemoryWire``, a ``Wire`` whose other end is a test. What comes in: what the test feeds. What goes out: what
the connection sent. What must not be here: sockets, clocks.
"""

from __future__ import annotations

from typing import Any

import msgpack
import trio
import trio.testing


class MemoryWire:
    """The daemon's end of a stream; the test is the peer.

    ``room`` is how much the peer's buffer takes before somebody reads.
    """

    def __init__(self, *, room: int = 1 << 20) -> None:
        self.closed = False
        self.sends: list[bytes] = []
        self._room = room
        self._incoming = bytearray()
        self._ended = False
        self._vanished = False
        self._outgoing = bytearray()
        self._changed = trio.Event()

    # -- the daemon's side ------------------------------------------------------------------------------------------

    async def receive(self) -> bytes:
        await trio.lowlevel.checkpoint()
        while not self._incoming and not self._ended:
            await self._changed.wait()
        data = bytes(self._incoming)
        self._incoming.clear()
        return data

    def send_nowait(self, data: bytes | memoryview) -> int:
        if self._vanished or self.closed:
            raise BrokenPipeError
        size = min(len(data), self._room - len(self._outgoing))
        if size:
            self.sends.append(bytes(data[:size]))
            self._outgoing += data[:size]
        return size

    async def wait_sendable(self) -> None:
        await trio.lowlevel.checkpoint()
        while len(self._outgoing) >= self._room and not self._vanished and not self.closed:
            await self._changed.wait()

    def peer_reads(self) -> bool:
        return not self._vanished and not self.closed

    def close(self) -> None:
        self.closed = True
        self._wake()

    async def wait_closed(self) -> None:
        """Wait until the daemon has closed its end."""
        while not self.closed:
            await self._changed.wait()

    # -- the peer's side --------------------------------------------------------------------------------------------

    def feed(self, *messages: Any) -> None:
        """The peer sends these."""
        for message in messages:
            self._incoming += message if isinstance(message, bytes) else msgpack.packb(message)
        self._wake()

    def end(self) -> None:
        """The peer ends its stream, and still reads."""
        self._ended = True
        self._wake()

    def vanish(self) -> None:
        """The peer is gone without a word."""
        self._ended = self._vanished = True
        self._wake()

    def read(self) -> bytes:
        """The peer reads what is in its buffer."""
        data = bytes(self._outgoing)
        self._outgoing.clear()
        self._wake()
        return data

    async def read_all(self) -> list[Any]:
        """Every message until the daemon has nothing more to say, decoded."""
        unpacker = msgpack.Unpacker(strict_map_key=False)
        while True:
            await trio.testing.wait_all_tasks_blocked()
            data = self.read()
            if not data:
                return list(unpacker)
            unpacker.feed(data)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


class SlowPeer(MemoryWire):
    """Takes a few bytes at a time, and none at all until it is read from."""

    def __init__(self, *, room: int = 10) -> None:
        super().__init__(room=room)


class VanishingPeer(MemoryWire):
    """Goes away in the middle of the send that brings it over ``after`` bytes."""

    def __init__(self, *, after: int) -> None:
        super().__init__(room=after)

    async def wait_sendable(self) -> None:
        await trio.lowlevel.checkpoint()
        self.vanish()
