"""memd_client.wire: one connection, its deadline and its peer."""

from __future__ import annotations

import errno
import os
import socket
import struct
import threading
from typing import TYPE_CHECKING

import msgpack
import pytest
from support.scripted_server import Call, ScriptedServer

from memd_client.errors import ConnectionLost, NotRunning, Timeout, Untrusted
from memd_client.wire import Connection, Deadline, _refusal, connect, peer_uid

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ScriptedServer]:
    with ScriptedServer(tmp_path / "s") as running:
        yield running


@pytest.fixture
def connection(server: ScriptedServer) -> Iterator[Connection]:
    opened = connect(os.fspath(server.path), Deadline(5))
    yield opened
    opened.close()


def test_a_path_nobody_listens_at_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotRunning, match="no memd listens"):
        connect(str(tmp_path / "nowhere"), Deadline(1))


def test_a_stale_socket_says_so(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(tmp_path / "s"))
    with pytest.raises(NotRunning, match="Connection refused"):
        connect(str(tmp_path / "s"), Deadline(1))


def test_a_path_too_long_says_what_shortens_it(tmp_path: Path) -> None:
    with pytest.raises(NotRunning, match="bytes are too long for a socket path; set MEMD_SOCKET"):
        connect(str(tmp_path / ("x" * 120)), Deadline(1))


def test_a_full_queue_is_waited_for_until_the_deadline(tmp_path: Path) -> None:
    """A Unix socket refuses at once instead of waiting, when many clients come together."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen(0)
        first = connect(str(tmp_path / "s"), Deadline(1))
        with pytest.raises(Timeout):
            connect(str(tmp_path / "s"), Deadline(0.05))
        first.close()


def test_the_peer_is_known_by_its_uid() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert os.geteuid() == peer_uid(ours)


def test_the_peer_is_known_on_macos_too() -> None:
    """There the kernel gives a struct xucred: version, uid, groups."""

    class SocketOfMacos:
        def getsockopt(self, level: int, option: int, size: int) -> bytes:
            assert (0, 1, 76) == (level, option, size)
            return struct.pack("2I", 0, 501).ljust(size, b"\0")

    assert 501 == peer_uid(SocketOfMacos(), linux=False)  # type: ignore[arg-type] # as much of a socket as is used


def test_a_socket_that_is_not_ours_to_open_says_so(tmp_path: Path) -> None:
    """Said apart: root, who runs CI, may open everything."""
    refused = _refusal(str(tmp_path), PermissionError(errno.EACCES, "Permission denied"))
    assert f"{tmp_path}: not allowed to connect (Permission denied)" == refused


def test_another_users_process_is_told_nothing(server: ScriptedServer) -> None:
    """Whoever could put a socket there would read the user's memory."""
    other = os.geteuid() + 1
    with pytest.raises(Untrusted, match=f"belongs to uid {other}, not to you"):
        connect(os.fspath(server.path), Deadline(1), lambda _: other)
    assert [] == server.calls


def test_replies_may_come_in_pieces(server: ScriptedServer, connection: Connection) -> None:
    def dribble(call: Call) -> None:
        data = msgpack.packb([1, 1, None, {"text": "§" * 40}])
        for byte in data:
            call.raw(bytes([byte]))

    server.script["daemon.metrics"] = dribble
    assert {"text": "§" * 40} == connection.request("daemon.metrics", None, Deadline(5))


def test_large_messages_pass_both_ways(server: ScriptedServer, connection: Connection) -> None:
    """Beyond what a socket buffers: each side has to read while the other writes."""
    server.script["echo"] = lambda call: call.reply(call.params)
    text = "x" * 4_000_000
    assert {"text": text} == connection.request("echo", {"text": text}, Deadline(10))


def test_a_request_that_cannot_be_sent_in_time_was_not_seen(tmp_path: Path) -> None:
    """The daemon does not read: half a message is never carried out, so the call may be made again."""
    ours, theirs = socket.socketpair()
    with theirs:
        raw = socket.socket(fileno=ours.detach())
        cut = Connection(raw, str(tmp_path))
        with pytest.raises(ConnectionLost) as caught:
            cut.request("memory.add", {"content": "x" * 4_000_000}, Deadline(0.05))
        raw.close()
    assert caught.value.data["sent"] is False
    assert cut.closed


def test_no_reply_in_time_leaves_the_connection_open(server: ScriptedServer, connection: Connection) -> None:
    server.script["slow"] = lambda _: None
    with pytest.raises(Timeout):
        connection.request("slow", None, Deadline(0.02))
    assert {} == connection.request("rpc.ping", None, Deadline(5))


@pytest.mark.parametrize(
    "foreign", [b"\xc1", msgpack.packb({"a": 1}), msgpack.packb([1, 2]), msgpack.packb([7, 1, None, None]), b"\x01"]
)
def test_what_is_no_message_ends_the_connection(server: ScriptedServer, connection: Connection, foreign: bytes) -> None:
    server.script["rpc.ping"] = lambda call: call.raw(foreign)
    with pytest.raises(ConnectionLost, match="does not speak MessagePack-RPC"):
        connection.request("rpc.ping", None, Deadline(5))
    assert connection.closed


def test_notifications_are_dropped_unless_asked_for(server: ScriptedServer, connection: Connection) -> None:
    def note(call: Call) -> None:
        call.notify("event", {"seq": 1})
        call.reply({})

    server.script["rpc.ping"] = note
    connection.request("rpc.ping", None, Deadline(5))
    assert connection.next_notification(Deadline(0.01)) is None
    connection.keep_notifications = True
    connection.request("rpc.ping", None, Deadline(5))
    assert ("event", [{"seq": 1}]) == connection.next_notification(Deadline(5))


def test_an_idle_connection_knows_when_it_was_closed(server: ScriptedServer, connection: Connection) -> None:
    connection.request("rpc.ping", None, Deadline(5))
    assert connection.usable()
    server.stop()
    assert not connection.usable()
    assert f"<Connection {server.path} closed>" == repr(connection)
    assert not connection.usable()
    server.start()


def test_a_deadline_that_has_passed_still_looks_once() -> None:
    deadline = Deadline(0)
    assert 0.0 == deadline.left()
    assert 0.001 == deadline.patience()
    assert not deadline.sleep(1)
    assert Deadline(None).patience() is None
    assert Deadline(None).sleep(0)


def test_an_interrupted_send_closes_the_connection(tmp_path: Path) -> None:
    """Whatever interrupts it: nothing after half a message could be understood."""

    class InterruptedSocket:
        def settimeout(self, _: float | None) -> None:
            pass

        def sendall(self, _: bytes) -> None:
            raise KeyboardInterrupt

        def close(self) -> None:
            pass

    cut = Connection(InterruptedSocket(), str(tmp_path))  # type: ignore[arg-type] # as much of a socket as is used
    with pytest.raises(KeyboardInterrupt):
        cut.request("rpc.ping", None, Deadline(1))
    assert cut.closed


def test_many_threads_may_have_a_connection_each(server: ScriptedServer) -> None:
    done: list[int] = []

    def ask(number: int) -> None:
        mine = connect(os.fspath(server.path), Deadline(10))
        mine.request("rpc.ping", None, Deadline(10))
        mine.close()
        done.append(number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(range(16)) == sorted(done)
