"""The contract of a wire, held by the real one and by the one that tests use."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any, Protocol

import pytest
import trio
import trio.testing
from support.wires import MemoryWire

from memd.transport.wire import SocketWire, Wire

if TYPE_CHECKING:
    from collections.abc import Iterator


class Peer(Protocol):
    """The other end, in plain calls."""

    def feed(self, data: bytes) -> None: ...
    def read(self) -> bytes: ...
    def end(self) -> None: ...
    def vanish(self) -> None: ...


class SocketPeer:
    """The other end of a socket pair."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def feed(self, data: bytes) -> None:
        self._sock.sendall(data)

    def read(self) -> bytes:
        return self._sock.recv(1 << 20)

    def end(self) -> None:
        self._sock.shutdown(socket.SHUT_WR)

    def vanish(self) -> None:
        self._sock.close()


@pytest.fixture(params=["socket", "memory"])
def ends(request: pytest.FixtureRequest) -> Iterator[tuple[Wire, Peer]]:
    if request.param == "memory":
        wire = MemoryWire(room=200_000)
        yield wire, wire
        return
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield SocketWire(ours), SocketPeer(theirs)


async def fill(wire: Wire) -> int:
    """Send until nothing more fits."""
    total = 0
    while size := wire.send_nowait(b"x" * 65536):
        total += size
    return total


async def test_receives_what_was_sent(ends: tuple[Wire, Peer]) -> None:
    wire, peer = ends
    peer.feed(b"abc")
    assert b"abc" == await wire.receive()


async def test_receive_waits(ends: tuple[Wire, Peer]) -> None:
    wire, peer = ends
    async with trio.open_nursery() as nursery:
        with trio.testing.assert_checkpoints():
            nursery.start_soon(trio.testing.wait_all_tasks_blocked)
            peer.feed(b"later")
            assert b"later" == await wire.receive()


async def test_the_end_is_no_bytes(ends: tuple[Wire, Peer]) -> None:
    """After what came before it, and again when asked again."""
    wire, peer = ends
    peer.feed(b"last")
    peer.end()
    assert b"last" == await wire.receive()
    assert b"" == await wire.receive()
    assert b"" == await wire.receive()


async def test_a_vanished_peer_reads_as_the_end(ends: tuple[Wire, Peer]) -> None:
    wire, peer = ends
    peer.vanish()
    assert b"" == await wire.receive()


async def test_a_peer_that_vanished_with_our_bytes_unread_reads_as_the_end(ends: tuple[Wire, Peer]) -> None:
    """The kernel says ECONNRESET then."""
    wire, peer = ends
    wire.send_nowait(b"unread")
    peer.vanish()
    assert b"" == await wire.receive()


async def test_sending_to_a_vanished_peer_is_a_connection_error(ends: tuple[Wire, Peer]) -> None:
    wire, peer = ends
    peer.vanish()
    with pytest.raises(ConnectionError):
        wire.send_nowait(b"x")


async def test_sends_what_fits(ends: tuple[Wire, Peer]) -> None:
    """A full buffer takes nothing, and takes again once the peer has read."""
    wire, peer = ends
    total = await fill(wire)
    assert 0 == wire.send_nowait(b"x")
    while total > 0:
        total -= len(peer.read())
    await wire.wait_sendable()
    assert 1 == wire.send_nowait(memoryview(b"y"))


async def test_waiting_to_send_ends_when_the_peer_vanishes(ends: tuple[Wire, Peer]) -> None:
    wire, peer = ends
    await fill(wire)

    async def wait() -> None:
        try:
            await wire.wait_sendable()
            wire.send_nowait(b"x")
        except ConnectionError:
            gone.set()

    gone = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        assert not gone.is_set()
        peer.vanish()
        await gone.wait()


async def test_receive_can_be_cancelled(ends: tuple[Wire, Peer]) -> None:
    """And takes nothing with it."""
    wire, peer = ends
    with trio.CancelScope() as scope:
        scope.cancel()
        await wire.receive()
    assert scope.cancelled_caught
    peer.feed(b"still there")
    assert b"still there" == await wire.receive()


async def test_a_peer_that_ended_its_stream_still_reads(ends: tuple[Wire, Peer]) -> None:
    """Only one that has closed everything does not; nor does anybody once we have."""
    wire, peer = ends
    assert wire.peer_reads()
    peer.end()
    assert wire.peer_reads()
    peer.vanish()
    assert not wire.peer_reads()
    wire.close()
    assert not wire.peer_reads()


async def test_close_twice(ends: tuple[Wire, Peer]) -> None:
    wire, _ = ends
    wire.close()
    wire.close()
    with pytest.raises(ConnectionError):
        wire.send_nowait(b"x")


async def test_closing_wakes_who_reads() -> None:
    """A connection that is closed by another task ends."""
    ours, theirs = socket.socketpair()
    with theirs:
        wire = SocketWire(ours)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wire.receive)
            await trio.testing.wait_all_tasks_blocked()
            wire.close()


async def test_closing_wakes_who_waits_to_send() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        wire = SocketWire(ours)
        await fill(wire)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_expect_connection_error, wire)
            await trio.testing.wait_all_tasks_blocked()
            wire.close()


async def _expect_connection_error(wire: Wire) -> None:
    with pytest.raises(ConnectionError):
        await wire.wait_sendable()


class Spurious(socket.socket):
    """Readable, says the kernel, and then there is nothing to read."""

    attempts = 0

    def recv_into(self, *arguments: Any) -> int:
        self.attempts += 1
        if self.attempts == 1:
            raise BlockingIOError
        return super().recv_into(*arguments)


async def test_a_spurious_wake_up_is_waited_over() -> None:
    """select(2) warns of them."""
    ours, theirs = socket.socketpair()
    sock = Spurious(fileno=ours.detach())
    with sock, theirs:
        theirs.send(b"abc")
        assert b"abc" == await SocketWire(sock).receive()
        assert 2 == sock.attempts


def test_repr() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert f"<SocketWire fd {ours.fileno()}>" == repr(SocketWire(ours))
