"""memd_client.repeating, through the client: what is asked again after a lost reply, and what never is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from support.scripted_server import Call, ScriptedServer, answers, in_turn, mutation, say_nothing

from memd.dispatch.handlers import method_table
from memd_client import Client, MemdError
from memd_client.errors import ConnectionLost, NotRunning, Timeout, TooManyRequests
from memd_client.repeating import MUTATIONS, REPEATABLE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ScriptedServer]:
    with ScriptedServer(tmp_path / "s") as running:
        yield running


def client_of(server: ScriptedServer, timeout: float | None = 5.0) -> Client:
    return Client(server.path, client_name="test", timeout=timeout, autostart=False)


def test_mutations_get_a_request_id(server: ScriptedServer) -> None:
    """A version 4 UUID, unless the caller has one."""
    server.script["memory.add"] = answers(mutation())
    with client_of(server) as client:
        client.memory_add("memory", "a fact")
        client.memory_add("memory", "a fact", request_id="mine")
    made = server.calls[1][1]["request_id"]
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", made)
    assert "mine" == server.calls[2][1]["request_id"]


def test_a_lost_mutation_is_repeated_under_its_id(server: ScriptedServer) -> None:
    """The daemon died between the commit and the reply: the second call carries the first one's id."""
    server.script["memory.add"] = in_turn(Call.drop, answers(mutation(replayed=True)))
    with client_of(server) as client:
        assert client.memory_add("memory", "a fact").replayed
    first, second = (params["request_id"] for method, params in server.calls if method == "memory.add")
    assert first == second
    assert 2 == server.connections


def test_a_lost_read_is_repeated(server: ScriptedServer) -> None:
    server.script["memory.read"] = in_turn(Call.drop, answers({"stores": {}}))
    with client_of(server) as client:
        client.memory_read()
    assert ["memory.read", "memory.read"] == server.methods()


def test_a_lost_stop_is_not_repeated(server: ScriptedServer) -> None:
    """The second would stop the daemon that came after."""
    server.script["daemon.stop"] = Call.drop
    with client_of(server) as client, pytest.raises(ConnectionLost):
        client.daemon_stop()
    assert ["daemon.stop"] == server.methods()


def test_an_unknown_method_is_not_repeated(server: ScriptedServer) -> None:
    server.script["jobs.unheard"] = Call.drop
    with client_of(server) as client, pytest.raises(ConnectionLost):
        client.call("jobs.unheard", job="j")
    assert ["jobs.unheard"] == server.methods()


def test_sessions_outlive_connections(server: ScriptedServer) -> None:
    server.script["session.snapshot"] = in_turn(
        Call.drop, answers({"snapshot": {}, "stale": False, "changes_text": ""})
    )
    with client_of(server) as client:
        client.session_snapshot("s-1")
    assert ["s-1", "s-1"] == [params["session"] for method, params in server.calls if method == "session.snapshot"]


def test_closing_a_session_twice_over_a_lost_reply_is_success(server: ScriptedServer) -> None:
    server.script["session.close"] = in_turn(Call.drop, lambda call: call.fail("no_such_session"))
    with client_of(server) as client:
        assert client.session_close("s-1").review is None


def test_closing_an_unknown_session_is_an_error(server: ScriptedServer) -> None:
    server.script["session.close"] = lambda call: call.fail("no_such_session")
    with client_of(server) as client, pytest.raises(MemdError, match="no_such_session"):
        client.session_close("s-1")


@pytest.mark.parametrize("name", ["shutting_down", "busy", "too_many_requests"])
def test_passing_troubles_are_waited_out(server: ScriptedServer, name: str) -> None:
    server.script["memory.add"] = in_turn(lambda call: call.fail(name, outcome="none"), answers(mutation()))
    with client_of(server) as client:
        assert client.memory_add("memory", "a fact").changed


def test_after_shutting_down_the_next_try_is_on_a_new_connection(server: ScriptedServer) -> None:
    server.script["rpc.ping"] = in_turn(lambda call: call.fail("shutting_down"), say_nothing)
    with client_of(server) as client:
        client.rpc_ping()
    assert 2 == server.connections


def test_passing_troubles_end_with_the_timeout(server: ScriptedServer) -> None:
    server.script["rpc.ping"] = lambda call: call.fail("too_many_requests")
    with client_of(server) as client:
        assert 1 == client.hello.protocol
        client.timeout = 0.1
        with pytest.raises(TooManyRequests):
            client.rpc_ping()


def test_full_disks_are_not_waited_out(server: ScriptedServer) -> None:
    """Retryable, but by a person: nothing frees room in a few seconds."""
    server.script["memory.add"] = lambda call: call.fail("no_space", outcome="none")
    with client_of(server) as client, pytest.raises(MemdError, match="no_space"):
        client.memory_add("memory", "a fact")
    assert ["memory.add"] == server.methods()


def test_a_mutation_without_a_reply_in_time_is_of_unknown_outcome(server: ScriptedServer) -> None:
    """With the id to ask again with; and the daemon is told that nobody waits."""
    server.script["memory.add"] = lambda _: None
    with client_of(server) as client:
        assert 1 == client.hello.protocol
        client.timeout = 0.05
        with pytest.raises(Timeout) as caught:
            client.memory_add("memory", "a fact", request_id="r")
        assert ("unknown", "r") == (caught.value.outcome, caught.value.data["request_id"])
        client.timeout = 5.0
        client.rpc_ping()
    assert [("rpc.cancel", [{"msgid": 2}])] == server.notes
    assert 1 == server.connections


def test_doubt_outlasts_later_failures(server: ScriptedServer) -> None:
    """The first attempt may have been carried out, so that nobody being there later does not mean ``none``."""

    def drop_and_vanish(call: Call) -> None:
        server.path.unlink()
        call.drop()

    server.script["memory.add"] = drop_and_vanish
    with client_of(server) as client:
        assert 1 == client.hello.protocol
        client.timeout = 0.1
        with pytest.raises(NotRunning) as caught:
            client.memory_add("memory", "a fact")
    assert "unknown" == caught.value.outcome


def test_what_gets_a_request_id_is_what_the_daemon_takes_for_a_mutation() -> None:
    """A mutation missing here would be done twice; one too many would be refused. Later issues bring the rest."""
    table = method_table()
    assert {row.name for row in table if row.mutation} == {name for name in MUTATIONS if table.get(name)}


def test_every_method_has_a_decision() -> None:
    """The same as in the daemon's own description."""
    assert {row.name for row in method_table() if not row.once} == REPEATABLE & {row.name for row in method_table()}


def test_every_method_is_a_method_of_the_client() -> None:
    """But for those of the connection itself, which ``events()`` and timeouts call, and for ``memd_client.certify``."""
    names = {row.name for row in method_table() if not row.name.startswith("rpc.certify.")}
    missing = {name for name in names if not hasattr(Client, name.replace(".", "_"))}
    assert {"events.subscribe", "events.unsubscribe", "rpc.cancel"} == missing
