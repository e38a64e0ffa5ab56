"""daemon.*: status, metrics, and an operator's hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio.testing
from support.fake_daemon import World

from memd.errors import InvalidRequest

if TYPE_CHECKING:
    from support.fake_daemon import Client


async def test_status_shows_what_a_person_wants_to_see_first(client: Client, world: World) -> None:
    """Counters, profiles with their files, notices."""
    world.clock.advance(90)
    client.ok("session.open")
    world.profile.put("user", condition="read_only")
    status = client.ok("daemon.status")
    assert {"acknowledged": 5, "fsyncs": 3, "groups": 2} == status["commits"]
    assert (90, 1, 1) == (status["uptime_s"], status["connections"], status["sessions"])
    (profile,) = status["profiles"]
    assert ("default", "/memory/default") == (profile["name"], profile["dir"])
    assert world.profile.state("user").path == profile["stores"]["user"]["path"]
    assert ["store_read_only"] == [notice["name"] for notice in status["notices"]]
    assert {"queued": 0, "running": 0, "ended_failed": 0, "tokens_today": 0, "endpoints_down": 0}.items() <= status[
        "jobs"
    ].items()


async def test_metrics_are_openmetrics_text() -> None:
    """Every family once, with type and help, and the end mark."""
    world = World('od"d')
    client = world.client()
    client.ok("memory.add", target="memory", content="four")
    text = client.ok("daemon.metrics")["text"]
    assert text.endswith("# EOF\n")
    assert "memd_acknowledged_total 5\n" in text
    assert 'memd_store_chars{profile="od\\"d",target="memory"} 4\n' in text
    families = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert sorted(set(families)) == sorted(families)
    assert families == [line.split()[2] for line in text.splitlines() if line.startswith("# HELP")]


async def test_stop_and_handover(operator: Client, world: World) -> None:
    """Answered, then done by the daemon."""
    assert {} == operator.ok("daemon.stop")
    assert {"draining": True} == operator.ok("daemon.handover", version="9.9")
    assert ["stop", "handover 9.9"] == world.control.done


async def test_a_reload_that_fails_says_why(operator: Client, world: World) -> None:
    """Line and key come from whoever read the file."""
    msgid = operator.send("daemon.reload")
    await trio.testing.wait_all_tasks_blocked()
    assert {} == operator.answer(msgid)
    world.control.error = InvalidRequest("config.toml:3: limits.memory: a number expected")
    msgid = operator.send("daemon.reload")
    await trio.testing.wait_all_tasks_blocked()
    assert "config.toml:3" in operator.error(msgid)["message"]
    assert ["reload"] == world.control.done
