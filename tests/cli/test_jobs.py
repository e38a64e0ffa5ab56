"""memd.cli.jobs: reviews and flushes shown to a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.scripted_server import answers

if TYPE_CHECKING:
    from cli.conftest import Command
    from support.scripted_server import ScriptedServer


def job(**fields: Any) -> dict[str, Any]:
    """One as the daemon tells it."""
    return {
        "id": "j-1", "kind": "review", "session": "s-1", "state": "done", "outcome": "partial", "reviewer": "openai",
        "model": "tiny", "attempts": 2, "steps": 3, "failures": {"count": 1, "limit": 3},
        "tokens": {"input": 100, "cached": 40, "output": 10}, "committed": [7, 8], "staged": ["p-2"],
        "refused": [{"op": {"action": "add", "content": "too long"}, "name": "over_limit"}],
        "conflicts": [{"op": {"action": "remove", "id": "ab12"}, "name": "conflict"}], "reason": "the model stopped",
        "turns": 10, "at": "2026-01-01T00:00:00Z", "us": 1_767_225_600_000_000, "summary": "Likes tea\nLives in \x1b[2JLisbon",
        **fields,
    }  # fmt: skip


@pytest.fixture
def daemon(server: ScriptedServer) -> ScriptedServer:
    server.script["jobs.list"] = answers({"jobs": [job(), job(id="j-2", outcome=None, state="waiting", reason=None)]})
    for method in ("jobs.show", "jobs.run", "jobs.wait", "jobs.cancel"):
        server.script[method] = answers(job())
    return server


def calls(daemon: ScriptedServer) -> list[tuple[str, Any]]:
    return [(method, params) for method, params in daemon.calls if method.startswith("jobs.")]


def test_a_line_for_each(memd: Command, daemon: ScriptedServer) -> None:
    """How it stands, what came of it, why; within the terminal's width."""
    done = memd("jobs")
    first, second = done.out.splitlines()
    assert 0 == done.status
    for words in ("j-1", "3d", "review", "partial", "revision 7, 8; waits for you: p-2"):
        assert words in first
    assert "waiting" in second
    assert all(len(line) <= 80 for line in (first, second))
    assert 20 == calls(daemon)[-1][1]["limit"]


def test_of_one_session_and_none(memd: Command, daemon: ScriptedServer) -> None:
    daemon.script["jobs.list"] = answers({"jobs": []})
    assert "no reviews and no flushes yet" in memd("jobs", "--session", "s-1", "-n", "3").out
    assert {"session": "s-1", "limit": 3}.items() <= calls(daemon)[-1][1].items()


def test_everything_about_one(memd: Command, daemon: ScriptedServer) -> None:
    """What others wrote cannot steer the terminal."""
    done = memd("jobs", "j-1")
    for words in (
        "review of 10 turns", "s-1", "openai, model tiny", "2, 3 steps, 1 of 3 failures", "100 in (40 cached), 10 out",
        "revision 7, 8", "the model stopped", "add too long (over_limit)", "remove ab12 (conflict)", "Likes tea", "Lisbon",
    ):  # fmt: skip
        assert words in done.out
    assert "\x1b[2J" not in done.out


@pytest.mark.parametrize(
    ("options", "method", "params"),
    [
        (["j-1", "--run"], "jobs.run", {"job": "j-1"}),
        (["--run"], "jobs.run", {}),
        (["--run", "--session", "s-1"], "jobs.run", {"session": "s-1"}),
        (["j-1", "--wait", "1.5"], "jobs.wait", {"job": "j-1", "timeout_ms": 1500}),
        (["j-1", "--cancel"], "jobs.cancel", {"job": "j-1"}),
    ],
)
def test_doing_something(
    memd: Command, daemon: ScriptedServer, options: list[str], method: str, params: dict[str, Any]
) -> None:
    assert 0 == memd("jobs", *options).status
    called, given = calls(daemon)[-1]
    assert (method, params) == (called, {key: value for key, value in given.items() if key != "deadline_ms"})


@pytest.mark.parametrize("options", [["--wait", "1"], ["--cancel"], ["j-1", "--run", "--cancel"]])
def test_what_makes_no_sense(memd: Command, daemon: ScriptedServer, options: list[str]) -> None:
    assert 2 == memd("jobs", *options).status
    assert [] == calls(daemon)


def test_json(memd: Command, daemon: ScriptedServer) -> None:
    assert ["j-1", "j-2"] == [one["id"] for one in memd("jobs", "--json").json["jobs"]]
    assert "j-1" == memd("jobs", "j-1", "--json").json["id"]
