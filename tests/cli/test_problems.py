"""memd.cli.problems: one clear line, what to do, and what it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from cli.conftest import Command
    from support.scripted_server import ScriptedServer


def failing(server: ScriptedServer, name: str, message: str = "no", **data: Any) -> None:
    server.script["memory.add"] = lambda call: call.fail(name, message, **data)


def test_the_first_line_is_what_happened(memd: Command, server: ScriptedServer) -> None:
    failing(server, "conflict", "the store has changed", current="now\nthis")
    assert [
        "memd: the store has changed",
        "  it is now: now this",
        "  look at it again with `memd read`, then repeat the change on what is there now",
    ] == memd("add", "x").err.splitlines()


@pytest.mark.parametrize(
    ("key", "title"), [("entries", "entries"), ("matches", "matches"), ("nearest", "nearest entries")]
)
def test_entries_are_listed_with_ids(memd: Command, server: ScriptedServer, key: str, title: str) -> None:
    failing(server, "not_found", "no", **{key: [{"id": "e1", "chars": 3, "text": "one"}]})
    assert [f"  {title}:", "    e1      3  one"] == memd("add", "x").err.splitlines()[1:3]


def test_findings_and_profiles_are_told(memd: Command, server: ScriptedServer) -> None:
    failing(
        server, "blocked_content", findings=[{"rule": "secret.key", "reason": "looks like a key"}], profiles=["a", "b"]
    )
    err = memd("add", "x").err
    assert "  secret.key: looks like a key\n  profiles: a, b\n" in err


def test_long_messages_wrap(memd: Command, server: ScriptedServer) -> None:
    failing(server, "internal", "word " * 40)
    lines = memd("add", "x").err.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[1].startswith("      word")


def test_an_error_cannot_act_on_the_terminal(memd: Command, server: ScriptedServer) -> None:
    failing(server, "not_found", "\x1b[2J", nearest=[{"id": "\x07", "chars": 1, "text": "\x1b[0m"}])
    assert "\x1b" not in memd("add", "x").err


def test_programs_get_the_error_map_on_standard_output(memd: Command, server: ScriptedServer) -> None:
    failing(server, "over_limit", "too much", excess=25)
    done = memd("add", "x", "--json")
    expected = {"code": 22, "name": "over_limit", "message": "too much", "retryable": False, "data": {"excess": 25}}
    assert (1, "", {"error": expected}) == (done.status, done.err, done.json)
