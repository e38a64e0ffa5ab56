"""memd.cli.watch: one line an event."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from cli.conftest import Command
    from support.scripted_server import Call, ScriptedServer

PATIENCE_S = "0.2"  # both for connecting, which a busy machine may take its time for, and for the end of the test

EVENT: dict[str, Any] = {
    "seq": 7,
    "at": "2026-01-03T22:10:11.000000Z",
    "us": 1,
    "topic": "memory.changed",
    "profile": "default",
    "target": "memory",
    "revision": 12,
    "data": {"action": "add", "changes": [1]},
}


@pytest.fixture
def scripted(server: ScriptedServer) -> ScriptedServer:
    """Two events, then the daemon goes for good."""

    def subscribe(call: Call) -> None:
        call.reply({"seq": 6, "lost": False})
        call.notify("event", EVENT)
        call.notify("event", {**EVENT, "seq": 8, "at": "", "topic": "events.lost", "data": {}})
        server.path.unlink()
        call.drop()

    server.script["events.subscribe"] = subscribe
    return server


def test_an_event_is_a_line(memd: Command, scripted: ScriptedServer) -> None:
    done = memd("watch", "memory.changed", "--since", "5", "--timeout", PATIENCE_S)
    assert [
        "7  22:10:11  memory.changed    default memory revision 12 action=add",
        "8  --:--:--  events.lost       default memory revision 12",
    ] == done.out.splitlines()
    assert {"topics": ["memory.changed"], "since_seq": 5} == {
        key: value for key, value in scripted.calls[-1][1].items() if key != "deadline_ms"
    }


def test_a_daemon_that_stays_away_ends_it(memd: Command, scripted: ScriptedServer) -> None:
    done = memd("watch", "--timeout", PATIENCE_S)
    assert 75 == done.status
    assert "memd: memd went away and did not come back" in done.err
    assert 1 <= scripted.connections


def test_json_is_an_event_a_line(memd: Command, scripted: ScriptedServer) -> None:
    first, *_ = memd("watch", "--json", "--timeout", PATIENCE_S).out.splitlines()
    assert EVENT == json.loads(first)
    assert "events.subscribe" in scripted.methods()
