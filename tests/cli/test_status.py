"""memd.cli.status: which files, how full, who wrote last, what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.scripted_server import USAGE, ScriptedServer, answers, entry

if TYPE_CHECKING:
    from cli.conftest import Command

STORE: dict[str, Any] = {"path": "/m/MEMORY.md", "state": "ok", "usage": USAGE, "revision": 3}
USER: dict[str, Any] = {**STORE, "path": "/m/USER.md", "state": "read_only", "detail": "mode 0444, owner 0"}
STATUS: dict[str, Any] = {
    "server": {"name": "memd", "version": "0.1.0", "pid": 42, "instance": "i"},
    "uptime_s": 7200,
    "commits": {"acknowledged": 12, "fsyncs": 5, "groups": 5},
    "connections": 2,
    "sessions": 1,
    "profiles": [{"name": "default", "dir": "/m", "stores": {"memory": STORE, "user": USER}}],
    "jobs": {},
    "pending": {"count": 0, "oldest_s": 0},
    "notices": [{"name": "in_git", "message": "USER.md is inside a git work tree", "data": {}}],
}
LAST: dict[str, Any] = {
    "revision": 3,
    "target": "memory",
    "at": "",
    "us": 1_767_225_600_000_000,
    "origin": "user",
    "client": "memd-cli",
    "uid": 0,
    "pid": 1,
    "changes": [],
}


@pytest.fixture
def scripted(server: ScriptedServer) -> ScriptedServer:
    server.script["daemon.status"] = answers(STATUS)
    server.script["memory.read"] = answers(
        {"stores": {"memory": {**STORE, "entries": [entry("x")]}, "user": {**USER, "entries": []}}}
    )
    server.script["history.list"] = lambda call: call.reply(
        {"revisions": [LAST] if call.params["target"] == "memory" else []}
    )
    return server


def test_status_names_files_usage_revisions_and_the_last_writer(memd: Command, scripted: ScriptedServer) -> None:
    assert [
        "memd 0.1.0  pid 42  up 2h",
        "  12 writes in 5 groups, 5 fsyncs",
        "  2 connections, 1 session",
        "",
        "profile default  /m",
        "  memory  #--------- 1%  22/2,200 characters  1 entry  revision 3",
        "          /m/MEMORY.md",
        "          last written 3d ago by user through memd-cli",
        "  user    #--------- 1%  22/2,200 characters  0 entries  revision 3  read_only",
        "          /m/USER.md",
        "          mode 0444, owner 0",
        "",
        "note: USER.md is inside a git work tree",
    ] == memd("status").out.splitlines()
    assert [] == scripted.notes


def test_json_adds_entries_and_the_last_revision(memd: Command, scripted: ScriptedServer) -> None:
    stores = memd("status", "--json").json["profiles"][0]["stores"]
    assert {**STORE, "entries": 1, "last": LAST} == stores["memory"]
    assert {**USER, "entries": 0, "last": None} == stores["user"]
    assert scripted.connections == 2


def test_a_profile_that_cannot_be_asked_still_shows(memd: Command, scripted: ScriptedServer) -> None:
    """Its state says why."""
    scripted.script["memory.read"] = lambda call: call.fail("store_unreadable")
    done = memd("status")
    assert 0 == done.status
    assert "  memory  #--------- 1%  22/2,200 characters  revision 3\n" in done.out
    assert STORE == memd("status", "--json").json["profiles"][0]["stores"]["memory"]


def test_without_a_daemon_it_says_so(memd: Command) -> None:
    done = memd("status")
    assert 69 == done.status
    assert "start it with `memd socket --start`" in " ".join(done.err.split())


def test_reviews_and_flushes_that_have_not_ended_are_counted(memd: Command, scripted: ScriptedServer) -> None:
    figures = {"queued": 1, "leased": 0, "running": 0, "waiting": 2, "ok": 7, "tokens_input": 5}
    scripted.script["daemon.status"] = answers({**STATUS, "jobs": figures})
    assert "  reviews and flushes: 1 queued, 2 waiting" in memd("status").out.splitlines()
