"""memd_client.places: where the sockets are looked for."""

from __future__ import annotations

import os
import pwd

import pytest

from memd import paths
from memd_client.places import agent_sockets, operator_sockets

ENVIRONMENTS: dict[str, dict[str, str]] = {
    "bare": {"HOME": "/h"},
    "runtime": {"HOME": "/h", "XDG_RUNTIME_DIR": "/run/user/7"},
    "state": {"HOME": "/h", "XDG_STATE_HOME": "/s"},
    "relative": {"HOME": "/h", "XDG_STATE_HOME": "s", "XDG_RUNTIME_DIR": "r"},
    "named": {"HOME": "/h", "XDG_RUNTIME_DIR": "/run/user/7", "MEMD_SOCKET": "/x/y"},
    "empty": {"HOME": "/h", "XDG_RUNTIME_DIR": "", "MEMD_SOCKET": ""},
    "homeless": {"HOME": "", "XDG_RUNTIME_DIR": "/r"},
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_client_and_daemon_look_in_the_same_places(name: str) -> None:
    """The client has its own copy of the rules, since it may not load the daemon's."""
    env = ENVIRONMENTS[name]
    assert paths.agent_sockets(env) == agent_sockets(env)
    assert paths.operator_sockets(env) == operator_sockets(env)
    assert paths.agent_sockets(env, "rel/sock") == agent_sockets(env, "rel/sock")


def test_the_runtime_directory_comes_first() -> None:
    expected = ["/run/user/7/memd/memd.sock", "/h/.local/state/memd/run/memd.sock"]
    assert expected == agent_sockets(ENVIRONMENTS["runtime"])


def test_a_path_asked_for_is_the_only_one() -> None:
    assert ["/x/y"] == agent_sockets(ENVIRONMENTS["named"])
    assert ["/z"] == agent_sockets(ENVIRONMENTS["named"], "/z")


def test_the_operator_socket_is_in_a_directory_of_its_own() -> None:
    expected = ["/run/user/7/memd-operator/memd.sock", "/h/.local/state/memd-operator/run/memd.sock"]
    assert expected == operator_sockets(ENVIRONMENTS["runtime"])


def test_without_a_home_the_password_database_knows() -> None:
    home = pwd.getpwuid(os.getuid()).pw_dir
    assert f"{home}/.local/state/memd/run/memd.sock" == agent_sockets(ENVIRONMENTS["homeless"])[1]
