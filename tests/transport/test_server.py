"""Accepting and refusing clients, and stopping in two steps. Real sockets, real time, no waiting for it."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgpack
import pytest
import trio
import trio.testing

from memd.protocol.encode import encode_result
from memd.transport.connection import Channel, Connection, Peer
from memd.transport.listener import Listener, claim
from memd.transport.server import Flusher, Server, ServerOptions, ServerStatistics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import msgspec

    from memd.protocol.messages import Request

OPTIONS = ServerOptions(message_bytes=1 << 20, connections=3)


class Later:
    """Answers each request a step after it was read, with the role of who asked."""

    congested = False
    waiting = False

    def __init__(self, channel: Channel, nursery: trio.Nursery) -> None:
        self._channel = channel
        self._nursery = nursery

    def handle(self, request: Request) -> None:
        self._nursery.start_soon(self._answer, request.msgid)

    async def _answer(self, msgid: int) -> None:
        self._channel.send(encode_result(msgid, self._channel.peer.role))

    def notification(self, method: str, params: msgspec.Raw) -> None:
        raise AssertionError

    def disconnected(self) -> None:
        pass

    async def wait_clear(self) -> None:
        raise AssertionError

    async def wait_answered(self) -> None:
        raise AssertionError


class Notes:
    """A log that remembers."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def warning(self, event: str, **fields: Any) -> None:
        self.lines.append((event, fields))


class Client:
    """A bare peer on trio's own socket."""

    def __init__(self, sock: trio.socket.SocketType) -> None:
        self._sock = sock
        self._unpacker = msgpack.Unpacker()

    @classmethod
    async def connect(cls, path: str) -> Client:
        sock = trio.socket.socket(socket.AF_UNIX)
        try:
            await sock.connect(path)
        except OSError:
            sock.close()
            raise
        return cls(sock)

    async def send(self, *message: Any) -> None:
        await self._sock.send(msgpack.packb(list(message)))

    async def receive(self) -> Any:
        """The next message, None at the end."""
        while True:
            for message in self._unpacker:
                return message
            data = await self._sock.recv(65536)
            if not data:
                return None
            self._unpacker.feed(data)

    async def ask(self) -> Any:
        await self.send(0, 1, "x", [])
        return await self.receive()

    def close(self) -> None:
        self._sock.close()


class Running:
    """A server under way on both sockets."""

    def __init__(self, home: Path, options: ServerOptions, nursery: trio.Nursery) -> None:
        self.log = Notes()
        self.server = Server(lambda channel: Later(channel, nursery), options, self.log)
        self.agent, self.operator = str(home / "a"), str(home / "o")
        self.stopped = trio.Event()

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        listeners = [claim(self.agent, "agent"), claim(self.operator, "operator")]
        await self.server.run(listeners, task_status=task_status)
        self.stopped.set()


@asynccontextmanager
async def running(options: ServerOptions = OPTIONS) -> AsyncIterator[Running]:
    home = Path(tempfile.mkdtemp(prefix="memd-"))
    try:
        async with trio.open_nursery() as nursery:
            world = Running(home, options, nursery)
            await nursery.start(world.run)
            with trio.fail_after(10):
                yield world
            nursery.cancel_scope.cancel()
        assert [] == os.listdir(home)
    finally:
        shutil.rmtree(home)


async def test_the_role_follows_from_the_socket() -> None:
    async with running() as world:
        for path, role in ((world.agent, "agent"), (world.operator, "operator")):
            client = await Client.connect(path)
            assert [1, 1, None, role] == await client.ask()
            client.close()


async def test_clients_beyond_the_limit_are_told() -> None:
    """And there is room again once one has gone."""
    async with running() as world:
        clients = [await Client.connect(world.agent) for _ in range(3)]
        for client in clients:
            await client.ask()
        surplus = await Client.connect(world.agent)
        method, (error,) = (await surplus.receive())[1:]
        assert ("rpc.protocol_error", "too_many_requests", True) == (method, error["name"], error["retryable"])
        assert None is await surplus.receive()
        assert ServerStatistics(open=3, accepted=3, refused=1) == world.server.statistics()
        assert "<Server 3 connections>" == repr(world.server)
        clients[0].close()
        while world.server.statistics().open == 3:
            await trio.lowlevel.checkpoint()
        late = await Client.connect(world.agent)
        assert [1, 1, None, "agent"] == await late.ask()
        late.close()
        surplus.close()
        for client in clients[1:]:
            client.close()


async def test_operators_are_let_in_when_agents_have_used_up_the_limit() -> None:
    """Else nobody could stop the daemon."""
    async with running() as world:
        clients = [await Client.connect(world.agent) for _ in range(3)]
        for client in clients:
            await client.ask()
        operator = await Client.connect(world.operator)
        assert [1, 1, None, "operator"] == await operator.ask()
        for client in (*clients, operator):
            client.close()


async def test_another_user_is_told_and_noted() -> None:
    """Who is refused is known by uid, pid and command."""
    async with running(ServerOptions(message_bytes=1, connections=1, uids=frozenset({os.geteuid() + 1}))) as world:
        client = await Client.connect(world.agent)
        method, (error,) = (await client.receive())[1:]
        assert ("rpc.protocol_error", "permission_denied") == (method, error["name"])
        assert None is await client.receive()
        client.close()
        (event, fields) = world.log.lines[0]
        assert ("peer_refused", os.geteuid(), os.getpid()) == (event, fields["uid"], fields["pid"])


async def test_bounds_can_change_for_those_who_come_later() -> None:
    async with running() as world:
        world.server.reconfigure(ServerOptions(message_bytes=1, connections=0))
        client = await Client.connect(world.agent)
        assert "too_many_requests" == (await client.receive())[2][0]["name"]
        client.close()


async def test_stopping_takes_no_more_and_goes_on_answering() -> None:
    """The paths are free at once; who is connected is served until ``close``."""
    async with running() as world:
        client = await Client.connect(world.agent)
        await client.ask()
        world.server.stop_listening()
        while os.listdir(os.path.dirname(world.agent)):
            await trio.lowlevel.checkpoint()
        with pytest.raises(FileNotFoundError):
            await Client.connect(world.agent)
        assert [1, 1, None, "agent"] == await client.ask()
        assert not world.stopped.is_set()
        world.server.close()
        assert None is await client.receive()
        await world.stopped.wait()
        client.close()


async def test_closing_without_connections() -> None:
    async with running() as world:
        world.server.close()
        await world.stopped.wait()


async def test_cancelled_it_ends_everything() -> None:
    """Paths and connections, without waiting for anybody."""
    async with running() as world:
        client = await Client.connect(world.agent)
        await client.ask()
    assert None is await client.receive()
    client.close()


class Exhausted(socket.socket):
    """A listening socket that finds no descriptor free for the first client."""

    attempts = 0

    def accept(self) -> tuple[socket.socket, Any]:
        self.attempts += 1
        if self.attempts == 1:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().accept()


async def test_without_descriptors_it_waits_and_goes_on() -> None:
    """It neither dies nor spins."""
    home = tempfile.mkdtemp(prefix="memd-")
    path = f"{home}/s"
    sock = Exhausted(socket.AF_UNIX)
    sock.bind(path)
    sock.listen()
    log = Notes()
    async with trio.open_nursery() as nursery:
        server = Server(lambda channel: Later(channel, nursery), OPTIONS, log)
        nursery.start_soon(server.run, [Listener(sock, path, "agent", None)])
        client = await Client.connect(path)
        assert [1, 1, None, "agent"] == await client.ask()
        client.close()
        assert ["accept_paused"] == [event for event, _ in log.lines]
        assert 3 > sock.attempts
        server.close()
    shutil.rmtree(home)


def nobody(_sock: socket.socket, _role: object) -> Peer:
    """What the kernel says of a peer that it has forgotten."""
    raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))


async def test_a_client_that_cannot_be_identified_is_not_served() -> None:
    """Without a uid there is nobody to trust."""
    home = tempfile.mkdtemp(prefix="memd-")
    async with trio.open_nursery() as nursery:
        server = Server(lambda channel: Later(channel, nursery), OPTIONS, Notes(), identify=nobody)
        nursery.start_soon(server.run, [claim(f"{home}/s", "agent")])
        client = await Client.connect(f"{home}/s")
        assert None is await client.receive()
        client.close()
        assert 0 == server.statistics().accepted
        server.close()
    shutil.rmtree(home)


async def test_a_client_that_is_gone_before_it_is_refused() -> None:
    """It costs nothing and is counted."""
    async with running(ServerOptions(message_bytes=1, connections=0)) as world:
        (await Client.connect(world.agent)).close()
        await trio.testing.wait_all_tasks_blocked()
        while world.server.statistics().refused == 0:
            await trio.lowlevel.checkpoint()
        assert 0 == world.server.statistics().open


class Counted(Connection):
    """A connection of which only the flushes matter."""

    def __init__(self) -> None:
        self.flushes = 0

    def flush(self) -> None:
        self.flushes += 1


async def test_the_flusher_flushes_in_the_next_step() -> None:
    """Everybody who asked, together, and again when they ask again."""
    flusher = Flusher()
    one, two = Counted(), Counted()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(flusher.run)
        for rounds in (1, 2):
            await trio.testing.wait_all_tasks_blocked()
            flusher.later(one)
            flusher.later(two)
            assert (rounds - 1, rounds - 1) == (one.flushes, two.flushes)
            await trio.testing.wait_all_tasks_blocked()
            assert (rounds, rounds) == (one.flushes, two.flushes)
        nursery.cancel_scope.cancel()


def test_a_peer_is_what_the_kernel_said() -> None:
    assert Peer(1, 2, "x", "agent") == Peer(uid=1, pid=2, command="x", role="agent")
