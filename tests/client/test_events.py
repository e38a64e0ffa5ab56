"""memd_client.events: a stream that survives a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.scripted_server import Call, ScriptedServer, in_turn

from memd_client import Client, MemdError
from memd_client.errors import ConnectionLost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ScriptedServer]:
    with ScriptedServer(tmp_path / "s") as running:
        yield running


@pytest.fixture
def client(server: ScriptedServer) -> Iterator[Client]:
    with Client(server.path, timeout=2.0, autostart=False) as opened:
        yield opened


def happening(seq: int, topic: str = "memory.changed") -> dict[str, Any]:
    return {"seq": seq, "at": "", "us": 0, "topic": topic, "profile": "default", "data": {}}


def subscription(*events: dict[str, Any], seq: int = 10, lost: bool = False) -> Callable[[Call], None]:
    """Reply, then send these events."""

    def handle(call: Call) -> None:
        call.reply({"seq": seq, "lost": lost})
        for event in events:
            call.notify("event", event)

    return handle


def test_events_arrive_in_order(server: ScriptedServer, client: Client) -> None:
    server.script["events.subscribe"] = subscription(happening(11), happening(12))
    with client.events(["memory.changed"]) as stream:
        assert [11, 12] == [next(stream).seq, next(stream).seq]
        assert 12 == stream.seq
    assert {"topics": ["memory.changed"]} == server.calls[-1][1]


def test_an_event_that_overtakes_the_reply_is_not_lost(server: ScriptedServer, client: Client) -> None:
    def handle(call: Call) -> None:
        call.notify("event", happening(11))
        call.reply({"seq": 10, "lost": False})

    server.script["events.subscribe"] = handle
    with client.events() as stream:
        assert 11 == next(stream).seq


def test_calls_go_on_beside_the_stream(server: ScriptedServer, client: Client) -> None:
    server.script["events.subscribe"] = subscription(happening(11))
    with client.events() as stream:
        client.rpc_ping()
        assert 11 == next(stream).seq
    assert 2 == server.connections


def test_after_a_restart_it_goes_on_where_it_was(server: ScriptedServer, client: Client) -> None:
    """What is replayed and was seen already is left out."""

    def drop_after_one(call: Call) -> None:
        subscription(happening(11))(call)
        call.drop()

    server.script["events.subscribe"] = in_turn(drop_after_one, subscription(happening(11), happening(12)))
    with client.events() as stream:
        assert [11, 12] == [next(stream).seq, next(stream).seq]
    assert 11 == server.calls[-1][1]["since_seq"]


def test_before_the_first_event_it_resumes_from_the_subscription(server: ScriptedServer, client: Client) -> None:
    """Nothing between the subscription and the loss is missed, although no event was seen."""

    def drop(call: Call) -> None:
        subscription()(call)
        call.drop()

    server.script["events.subscribe"] = in_turn(drop, subscription(happening(11)))
    with client.events() as stream:
        assert 11 == next(stream).seq
    assert 10 == server.calls[-1][1]["since_seq"]


def test_a_gap_is_told(server: ScriptedServer, client: Client) -> None:
    """The journal does not reach back to where the stream begins."""
    server.script["events.subscribe"] = subscription(happening(90), seq=90, lost=True)
    with client.events(since_seq=3) as stream:
        assert ["events.lost", "memory.changed"] == [next(stream).topic, next(stream).topic]


def test_without_an_event_get_returns_none(server: ScriptedServer, client: Client) -> None:
    server.script["events.subscribe"] = subscription()
    with client.events() as stream:
        assert stream.get(0.01) is None


def test_a_closed_stream_ends(server: ScriptedServer, client: Client) -> None:
    server.script["events.subscribe"] = subscription(happening(11))
    stream = client.events()
    stream.close()
    assert [] == list(stream)


def test_an_unknown_topic_is_an_error_at_once(server: ScriptedServer, client: Client) -> None:
    server.script["events.subscribe"] = lambda call: call.fail("invalid_params", "no such topic")
    with pytest.raises(MemdError, match="no such topic"):
        client.events(["memory.exploded"])


def test_a_daemon_that_stays_away_ends_the_stream_with_an_error(server: ScriptedServer) -> None:
    server.script["events.subscribe"] = subscription()
    with Client(server.path, timeout=5.0, autostart=False) as client, client.events() as stream:
        stream._timeout = 0.1
        server.stop()
        with pytest.raises(ConnectionLost, match="did not come back"):
            next(stream)


def test_foreign_notifications_are_passed_over(server: ScriptedServer, client: Client) -> None:
    def handle(call: Call) -> None:
        call.reply({"seq": 10, "lost": False})
        call.notify("something.new", {})
        call.notify("event", happening(11))

    server.script["events.subscribe"] = handle
    with client.events() as stream:
        assert 11 == next(stream).seq
