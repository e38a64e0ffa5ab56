"""memd.cli.daemon: reload, stop, metrics; socket is in test_starting.py, serve in tests/e2e."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.scripted_server import Call, ScriptedServer, answers, say_nothing

if TYPE_CHECKING:
    from cli.conftest import Command


def test_reload_says_what_was_done(memd: Command, operator: ScriptedServer) -> None:
    operator.script["daemon.reload"] = say_nothing
    assert (0, "the settings were read again\n", "") == memd("reload")
    assert {"message": "the settings were read again"} == memd("reload", "--json").json


def test_stop_stops(memd: Command, operator: ScriptedServer) -> None:
    operator.script["daemon.stop"] = say_nothing
    assert (0, "memd stops\n", "") == memd("stop")


def test_a_daemon_that_closes_before_it_answers_has_stopped(memd: Command, operator: ScriptedServer) -> None:
    operator.script["daemon.stop"] = Call.drop
    assert (0, "memd stops\n", "") == memd("stop")
    assert ["daemon.stop"] == operator.methods()


def test_one_that_does_not_run_has_stopped_already(memd: Command) -> None:
    """And none is started for it."""
    del memd.env["MEMD_AUTOSTART"]
    assert (0, "memd is not running\n", "") == memd("stop")


def test_metrics_are_printed_as_they_come(memd: Command, server: ScriptedServer) -> None:
    server.script["daemon.metrics"] = answers({"text": "memd_up 1\n# EOF\n"})
    assert (0, "memd_up 1\n# EOF\n", "") == memd("metrics")
    assert {"text": "memd_up 1\n# EOF\n"} == memd("metrics", "--json").json
