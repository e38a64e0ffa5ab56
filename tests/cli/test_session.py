"""memd.cli.session: the block, byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.scripted_server import ScriptedServer, answers, say_nothing

if TYPE_CHECKING:
    from cli.conftest import Command

TEXT = "══\nMEMORY [1%]\n══\na fact"
OPENED: dict[str, Any] = {"session": "s-1", "resumed": False, "snapshot": {"id": "i", "text": TEXT}, "changes_text": ""}


@pytest.fixture
def scripted(server: ScriptedServer) -> ScriptedServer:
    server.script["session.open"] = answers(OPENED)
    server.script["session.close"] = say_nothing
    server.script["session.refresh"] = answers({"snapshot": {"id": "j", "text": "fresh"}})
    return server


def test_it_prints_the_bytes_and_nothing_else(memd: Command, scripted: ScriptedServer) -> None:
    """Without a key the session is closed again: it has served its purpose."""
    assert (0, TEXT, "") == memd("snapshot")
    assert ["session.open", "session.close"] == scripted.methods()


def test_with_a_key_the_session_stays(memd: Command, scripted: ScriptedServer) -> None:
    memd("snapshot", "--key", "host:1")
    assert ["session.open"] == scripted.methods()
    assert "host:1" == scripted.calls[1][1]["key"]


def test_it_can_be_frozen_anew(memd: Command, scripted: ScriptedServer) -> None:
    assert "fresh" == memd("snapshot", "--key", "host:1", "--refresh").out
    assert "fresh" == memd("snapshot", "--key", "k", "--refresh", "--json").json["snapshot"]["text"]
    assert "session.refresh" in scripted.methods()


def test_on_a_terminal_it_ends_its_line(memd: Command, scripted: ScriptedServer) -> None:
    assert TEXT + "\n" == memd("snapshot", person=True).out
    assert OPENED == memd("snapshot", "--json").json
    assert 2 == scripted.connections
