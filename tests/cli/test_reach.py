"""memd.cli.reach: which socket a verb goes to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.scripted_server import Call, ScriptedServer, answers, mutation, say_hello, say_nothing

from memd_client.places import operator_sockets

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.conftest import Command


@pytest.fixture
def both(server: ScriptedServer, operator: ScriptedServer) -> tuple[ScriptedServer, ScriptedServer]:
    for running in (server, operator):
        running.script["memory.add"] = answers(mutation())
        running.script["daemon.reload"] = say_nothing
        running.script["history.undo"] = answers({"changes": [], "conflicts": [], "usage": {}, "revisions": []})
    return server, operator


def status_of(instance: str) -> Callable[[Call], None]:
    """What a daemon of this instance says of itself."""
    commits = {"acknowledged": 0, "fsyncs": 0, "groups": 0}
    server = {"name": "memd", "version": "0.1.0", "pid": 1, "instance": instance}
    return answers({"server": server, "commits": commits, "profiles": [], "notices": []})


def several_profiles(call: Call) -> None:
    """A hello that needs a profile."""
    if "profile" in call.params:
        say_hello(call)
    else:
        call.fail("no_such_profile", profiles=["a", "b"])


def test_a_program_writes_as_an_agent(memd: Command, both: tuple[ScriptedServer, ScriptedServer]) -> None:
    memd("add", "x")
    assert (["memory.add"], []) == (both[0].methods(), both[1].methods())


def test_a_person_writes_as_the_user(memd: Command, both: tuple[ScriptedServer, ScriptedServer]) -> None:
    """The daemon takes what comes over the operator socket for a person's; undo too."""
    memd("add", "x", person=True)
    memd("undo", person=True)
    assert ([], ["memory.add", "history.undo"]) == (both[0].methods(), both[1].methods())


def test_the_origin_can_be_chosen(memd: Command, both: tuple[ScriptedServer, ScriptedServer]) -> None:
    memd("add", "x", "--origin", "user")
    memd("add", "x", "--origin", "agent", person=True)
    assert (["memory.add"], ["memory.add"]) == (both[0].methods(), both[1].methods())


def test_without_an_operator_socket_a_person_writes_as_an_agent(memd: Command, server: ScriptedServer) -> None:
    """In a sandbox that was given the agent socket only."""
    server.script["memory.add"] = answers(mutation())
    assert 0 == memd("add", "x", person=True).status


def test_a_socket_that_was_named_is_the_one(
    memd: Command, both: tuple[ScriptedServer, ScriptedServer], tmp_path: Path
) -> None:
    with ScriptedServer(tmp_path / "third", {"daemon.reload": say_nothing, "memory.add": answers(mutation())}) as third:
        memd("reload", "--socket", str(third.path))
        memd("add", "x", "--socket", str(third.path), person=True)
    assert ["daemon.reload", "memory.add"] == third.methods()
    assert ([], []) == (both[0].methods(), both[1].methods())


def test_operators_verbs_go_to_the_operator_socket(memd: Command, both: tuple[ScriptedServer, ScriptedServer]) -> None:
    assert 0 == memd("reload").status
    assert ([], ["daemon.reload"]) == (both[0].methods(), both[1].methods())


def test_beside_memd_socket_both_sockets_must_be_of_one_daemon(
    memd: Command, both: tuple[ScriptedServer, ScriptedServer]
) -> None:
    """Else `memd stop` would stop another daemon than the one that was meant."""
    memd.env["MEMD_SOCKET"] = str(both[0].path)
    path = Path(operator_sockets(memd.env)[0])
    path.parent.mkdir(parents=True)
    both[0].script["daemon.status"] = status_of("i-1")
    with ScriptedServer(path, {"daemon.reload": say_nothing, "daemon.status": status_of("i-2")}) as beside:
        done = memd("reload")
        assert (69, True) == (done.status, "are of two daemons" in " ".join(done.err.split()))
        beside.script["daemon.status"] = status_of("i-1")
        assert 0 == memd("reload").status
    assert [] == both[1].methods()


def test_beside_memd_socket_a_person_writes_as_an_agent(
    memd: Command, both: tuple[ScriptedServer, ScriptedServer]
) -> None:
    memd.env["MEMD_SOCKET"] = str(both[0].path)
    memd("add", "x", person=True)
    assert (["memory.add"], []) == (both[0].methods(), both[1].methods())


def test_profile_and_name_are_in_the_handshake(memd: Command, both: tuple[ScriptedServer, ScriptedServer]) -> None:
    memd("add", "x", "--profile", "work")
    hello = both[0].calls[0][1]
    assert ("work", "memd-cli") == (hello["profile"], hello["client"]["name"])


def test_what_concerns_the_whole_daemon_needs_no_profile(
    memd: Command, both: tuple[ScriptedServer, ScriptedServer]
) -> None:
    """Neither where several are configured, nor where the only one cannot be served: that is when they are wanted."""
    for running in both:
        running.script.update({"hello": several_profiles, "daemon.stop": say_nothing, "profile.create": answers({})})
    both[0].script.update({"daemon.status": status_of("i-1"), "profile.list": answers({"profiles": []})})
    both[0].script["daemon.metrics"] = answers({"text": "# EOF\n"})
    verbs = (["status"], ["profile"], ["metrics"], ["reload"], ["stop"], ["profile", "create", "c"])
    assert [0] * 6 == [memd(*verb).status for verb in verbs]
    assert 1 == memd("add", "x").status


def test_an_import_goes_to_the_profile_of_the_export(
    memd: Command, both: tuple[ScriptedServer, ScriptedServer], tmp_path: Path
) -> None:
    exported = tmp_path / "exported.json"
    exported.write_text('{"version": 1, "profile": "b", "entries": {}}', encoding="utf-8")
    both[1].script.update({"hello": several_profiles, "profile.import": answers({"changes": []})})
    assert 0 == memd("import", str(exported)).status
    assert ["b", "b"] == [both[1].calls[0][1]["profile"], both[1].calls[1][1]["name"]]


def test_a_verb_that_finds_nobody_starts_memd(memd: Command) -> None:
    """Here with a command that ends at once; the real thing is in tests/e2e/test_first_client.py."""
    del memd.env["MEMD_AUTOSTART"]
    memd.env["MEMD_BIN"] = "/bin/false"
    for verb in (["add", "x"], ["wipe", "memory"], ["profile", "create", "new"]):
        done = memd(*verb, "--timeout", "5")
        assert (69, True) == (done.status, "memd serve ended at once" in " ".join(done.err.split()))


def test_a_verb_that_ends_something_starts_nothing(memd: Command) -> None:
    del memd.env["MEMD_AUTOSTART"]
    memd.env["MEMD_BIN"] = "/bin/false"
    assert "nobody listens" in memd("reload").err
