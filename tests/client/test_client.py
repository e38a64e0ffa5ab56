"""memd_client.client: calls, typed results, and what happens when the daemon goes away."""

from __future__ import annotations

import os
import socket
import threading
from typing import TYPE_CHECKING

import msgpack
import pytest
from support.scripted_server import Call, ScriptedServer, answers, entry, in_turn, mutation, say_hello

from memd_client import Client, MemdError
from memd_client.errors import (
    ConnectionLost,
    Internal,
    NotRunning,
    OverLimit,
    Timeout,
    TooLarge,
)
from memd_client.wire import Deadline, connect

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ScriptedServer]:
    with ScriptedServer(tmp_path / "s") as running:
        yield running


def client_of(server: ScriptedServer, timeout: float | None = 5.0) -> Client:
    return Client(server.path, client_name="test", timeout=timeout, autostart=False)


def test_it_shakes_hands_before_the_first_call(server: ScriptedServer) -> None:
    """The hello says who calls and with what; what is None is left out."""
    with Client(server.path, profile="work", client_name="test", context="cron", autostart=False) as client:
        client.rpc_ping()
    expected = {
        "client": {"name": "test", "version": "0.1.0"},
        "protocol": [1, 1],
        "profile": "work",
        "context": "cron",
    }
    assert expected == server.calls[0][1]
    assert ["rpc.ping"] == server.methods()


def test_the_handshake_can_be_left_out(server: ScriptedServer) -> None:
    """For calls about the daemon as a whole, which no profile may stand in the way of; a restart is survived too."""
    with Client(server.path, profile="gone", autostart=False, handshake=False) as client:
        client.rpc_ping()
        server.restart()
        client.rpc_ping()
    assert ["rpc.ping", "rpc.ping"] == [method for method, _ in server.calls]


def test_one_connection_serves_many_calls(server: ScriptedServer) -> None:
    with client_of(server) as client:
        client.rpc_ping()
        client.rpc_ping()
    assert 1 == server.connections


def test_hello_tells_what_was_settled(server: ScriptedServer) -> None:
    with client_of(server) as client:
        assert "agent" == client.hello.role
        assert 1 == client.hello.stores["user"].usage.percent
        assert os.getpid() == client.hello.server.pid


def test_results_are_typed(server: ScriptedServer) -> None:
    server.script["memory.add"] = answers(mutation("a fact"))
    with client_of(server) as client:
        added = client.memory_add("memory", "a fact", reason="why not")
    assert added.entry is not None
    assert ("a fact", 2178, None) == (added.entry.text, added.usage.free, added.staged)
    assert "why not" == server.calls[1][1]["reason"]


def test_absent_parameters_are_not_sent(server: ScriptedServer) -> None:
    server.script["memory.read"] = answers({"stores": {}})
    with client_of(server) as client:
        client.memory_read()
    assert {"deadline_ms"} == set(server.calls[1][1])


def test_the_daemon_gets_a_deadline_a_little_before_ours(server: ScriptedServer) -> None:
    with client_of(server, timeout=5.0) as client:
        client.rpc_ping()
    assert 4000 < server.calls[1][1]["deadline_ms"] <= 4750


def test_without_a_timeout_there_is_no_deadline(server: ScriptedServer) -> None:
    with client_of(server, timeout=None) as client:
        client.rpc_ping()
    assert {} == server.calls[1][1]


def test_waiting_is_added_to_the_deadline(server: ScriptedServer) -> None:
    """The daemon adds ``timeout_ms`` to ``deadline_ms`` itself, so it is not in there."""
    server.script["events.wait"] = answers({"events": [], "seq": 1, "lost": False})
    with client_of(server, timeout=5.0) as client:
        client.events_wait(timeout_ms=60_000)
    assert 5000 == server.calls[1][1]["deadline_ms"]


def test_any_method_can_be_called_by_name(server: ScriptedServer) -> None:
    server.script["history.diff"] = answers({"text": "", "changes": []})
    with client_of(server) as client:
        assert {"text": "", "changes": []} == client.call("history.diff", target="memory", **{"from": 1, "to": None})
    assert {"target", "from", "deadline_ms"} == set(server.calls[1][1])


def test_errors_are_typed(server: ScriptedServer) -> None:
    server.script["memory.add"] = lambda call: call.fail("over_limit", "25 too many", excess=25, outcome="none")
    with client_of(server) as client, pytest.raises(OverLimit) as caught:
        client.memory_add("user", "x" * 1400)
    assert "over_limit: 25 too many" == str(caught.value)
    assert (22, False, "none", 25) == (
        caught.value.code,
        caught.value.retryable,
        caught.value.outcome,
        caught.value.data["excess"],
    )


def test_an_idle_connection_that_was_closed_is_noticed_before_sending(server: ScriptedServer) -> None:
    """So a call that may not be repeated survives a restart in between."""
    server.script["daemon.handover"] = answers({"draining": True})
    with client_of(server) as client:
        client.rpc_ping()
        server.restart()
        assert client.daemon_handover("2")


def test_a_late_reply_is_not_taken_for_the_next_one(server: ScriptedServer) -> None:
    late: list[Call] = []

    def answer_both(call: Call) -> None:
        late[0].reply({"text": "late"})
        call.reply({"text": "right"})

    server.script["daemon.metrics"] = in_turn(late.append, answer_both)
    with client_of(server) as client:
        client.rpc_ping()
        client.timeout = 0.05
        with pytest.raises(Timeout):
            client.daemon_metrics()
        client.timeout = 5.0
        assert "right" == client.daemon_metrics()


def test_nobody_at_first_is_an_error_at_once(tmp_path: Path) -> None:
    with Client(tmp_path / "nowhere", timeout=60, autostart=False) as client, pytest.raises(NotRunning) as caught:
        client.memory_add("memory", "a fact")
    assert "none" == caught.value.outcome
    assert [str(tmp_path / "nowhere")] == caught.value.data["paths"]


def test_a_path_that_cannot_be_is_told_in_full(tmp_path: Path) -> None:
    with Client(tmp_path / ("x" * 120), autostart=False) as client, pytest.raises(NotRunning, match="too long"):
        client.rpc_ping()


def test_a_daemon_that_was_there_is_waited_for(server: ScriptedServer) -> None:
    with client_of(server) as client:
        client.rpc_ping()
        server.stop()
        client.timeout = 0.1
        with pytest.raises(NotRunning):
            client.rpc_ping()
        client.timeout = 5.0
        server.start()
        client.rpc_ping()


def test_a_daemon_that_refuses_hello_says_why(server: ScriptedServer) -> None:
    server.script["hello"] = lambda call: call.fail("no_such_profile", profiles=["a", "b"])
    with client_of(server) as client, pytest.raises(MemdError) as caught:
        client.rpc_ping()
    assert ["a", "b"] == caught.value.data["profiles"]


def test_the_parting_words_are_heard_by_a_client_that_is_still_sending(tmp_path: Path) -> None:
    """A message over the limit is refused at its header; sending it again and again would not make it smaller."""

    def refuse(listener: socket.socket) -> None:
        sock, _ = listener.accept()
        with sock:
            sock.recv(1024)
            error = {"code": 6, "name": "too_large", "message": "8 MiB at most", "retryable": False, "data": {}}
            sock.sendall(msgpack.packb([2, "rpc.protocol_error", [error]]))

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        thread = threading.Thread(target=refuse, args=(listener,))
        thread.start()
        connection = connect(str(tmp_path / "s"), Deadline(5))
        with pytest.raises(TooLarge, match="8 MiB at most"):
            connection.request("memory.add", {"content": "x" * 2**22}, Deadline(5))
        thread.join()
    assert connection.closed


def test_the_parting_words_of_a_daemon_are_the_error(server: ScriptedServer) -> None:
    def refuse(call: Call) -> None:
        call.notify("rpc.protocol_error", {"code": 11, "name": "internal", "message": "gone mad", "data": {}})
        call.drop()

    server.script["rpc.ping"] = refuse
    with client_of(server) as client, pytest.raises(Internal, match="gone mad"):
        client.rpc_ping()


def test_who_does_not_speak_the_protocol_is_not_asked_again(server: ScriptedServer) -> None:
    server.script["rpc.ping"] = lambda call: call.raw(b"HTTP/1.1 400 Bad Request\r\n")
    with client_of(server) as client, pytest.raises(ConnectionLost, match="does not speak"):
        client.rpc_ping()
    assert ["rpc.ping"] == server.methods()


def test_a_forked_child_opens_a_connection_of_its_own(server: ScriptedServer) -> None:
    """Two processes on one stream would read each other's replies."""
    with client_of(server) as client:
        client.rpc_ping()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                client.rpc_ping()
                status = 0
            finally:
                os._exit(status)
        assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        client.rpc_ping()
    assert 2 == server.connections


def test_a_starter_is_called_once_when_nobody_listens(tmp_path: Path) -> None:
    server = ScriptedServer(tmp_path / "s")

    def start(_: object) -> str:
        server.start()
        return str(server.path)

    try:
        with Client(tmp_path / "elsewhere", autostart=start) as client:
            client.rpc_ping()
    finally:
        server.stop()
    assert ["rpc.ping"] == server.methods()


def test_it_shows_where_it_leads(server: ScriptedServer) -> None:
    with client_of(server) as client:
        assert f"<Client <Link {server.path} idle>>" == repr(client)
        client.rpc_ping()
        assert f"<Client <Link {server.path} connected>>" == repr(client)


def test_every_typed_method_calls_its_namesake(server: ScriptedServer) -> None:
    """An underscore for the dot, and nothing else to learn."""
    for method in METHODS:
        server.script[method] = answers({"text": "", "draining": True})
    with client_of(server) as client:
        client.memory_apply("memory", [{"action": "add", "content": "x"}])
        client.memory_replace("memory", "new", id="e1")
        client.memory_edit("memory", "a", "b")
        client.memory_remove("memory", old_text="x")
        client.memory_wipe("memory", "default")
        client.memory_tool_schema()
        client.memory_explain("x")
        client.session_open(key="k")
        client.session_refresh("s")
        client.session_close("s", messages=[{"role": "user", "content": "bye"}])
        client.turn_begin("s", "t", user=True)
        client.turn_end("s", "t")
        client.history_list(target="user")
        client.history_show(1)
        client.history_diff("memory", 1)
        client.history_undo(last=1)
        client.history_redo(last=1)
        client.history_restore("memory", 1)
        client.profile_list()
        client.profile_export()
        client.profile_create("new")
        client.profile_import("new", {})
        client.daemon_status()
        client.daemon_metrics()
        client.daemon_reload()
        client.daemon_stop()
        assert client.daemon_handover("2")
        client.rpc_discover()
    assert METHODS == server.methods()


METHODS = [
    *("memory.apply", "memory.replace", "memory.edit", "memory.remove", "memory.wipe", "memory.tool_schema"),
    *("memory.explain", "session.open", "session.refresh", "session.close", "turn.begin", "turn.end"),
    *("history.list", "history.show", "history.diff", "history.undo", "history.redo", "history.restore"),
    *("profile.list", "profile.export", "profile.create", "profile.import", "daemon.status"),
    *("daemon.metrics", "daemon.reload", "daemon.stop", "daemon.handover", "rpc.discover"),
]


def test_entries_of_every_store_are_typed(server: ScriptedServer) -> None:
    store = {"entries": [entry("one")], "usage": {}, "revision": 1, "state": "ok", "path": "/m"}
    server.script["memory.read"] = answers({"stores": {"memory": store}})
    with client_of(server) as client:
        assert "one" == client.memory_read("memory").stores["memory"].entries[0].text


def test_hello_is_said_again_after_a_restart(server: ScriptedServer) -> None:
    server.script["hello"] = say_hello
    with client_of(server) as client:
        client.rpc_ping()
        server.restart()
        client.rpc_ping()
    assert ["hello", "rpc.ping", "hello", "rpc.ping"] == [method for method, _ in server.calls]
