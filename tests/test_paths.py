"""Where memd's things are."""

from __future__ import annotations

import os
import pwd

import pytest

from memd.config import agent_sockets, config_file, home_dir, operator_sockets, profile_dir, state_dir
from memd_client import places

HOME = {"HOME": "/home/u"}


def test_base_directories_default_to_those_under_the_home() -> None:
    """Without XDG variables everything is where the XDG specification puts it."""
    assert config_file(HOME) == "/home/u/.config/memd/config.toml"
    assert state_dir(HOME) == "/home/u/.local/state/memd"
    assert profile_dir(HOME, "work") == "/home/u/.local/share/memd/profiles/work"


def test_xdg_variables_move_them() -> None:
    """Absolute XDG values win."""
    env = {**HOME, "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s", "XDG_DATA_HOME": "/d"}
    assert config_file(env) == "/c/memd/config.toml"
    assert state_dir(env) == "/s/memd"
    assert profile_dir(env, "x") == "/d/memd/profiles/x"


def test_relative_xdg_values_are_ignored() -> None:
    """The XDG specification calls them invalid."""
    assert config_file({**HOME, "XDG_CONFIG_HOME": "c"}) == "/home/u/.config/memd/config.toml"
    assert agent_sockets({**HOME, "XDG_RUNTIME_DIR": "run"}) == ["/home/u/.local/state/memd/run/memd.sock"]


def test_a_home_that_is_missing_or_relative_comes_from_the_password_database() -> None:
    """Services start without HOME."""
    expected = pwd.getpwuid(os.getuid()).pw_dir
    assert home_dir({}) == expected
    assert home_dir({"HOME": "here"}) == expected


def test_agent_sockets_are_looked_for_in_the_order_of_the_protocol() -> None:
    """Argument, MEMD_SOCKET, runtime directory, state directory."""
    env = {**HOME, "XDG_RUNTIME_DIR": "/run/user/1000"}
    assert agent_sockets(env) == ["/run/user/1000/memd/memd.sock", "/home/u/.local/state/memd/run/memd.sock"]
    assert agent_sockets({**env, "MEMD_SOCKET": "/x/y.sock"}) == ["/x/y.sock"]
    assert agent_sockets({**env, "MEMD_SOCKET": "/x/y.sock"}, "/z.sock") == ["/z.sock"]


def test_the_operator_socket_is_beside_the_state_where_memd_socket_is_set() -> None:
    """The one in the runtime directory belongs to the usual daemon; one with another socket runs beside it."""
    env = {**HOME, "XDG_RUNTIME_DIR": "/run/user/1000"}
    state = "/home/u/.local/state/memd-operator/run/memd.sock"
    assert operator_sockets(env) == ["/run/user/1000/memd-operator/memd.sock", state]
    assert operator_sockets({**env, "MEMD_SOCKET": "/x/y.sock"}) == [state]
    assert operator_sockets(env, "/z.sock") == ["/z.sock"]


@pytest.mark.parametrize("argument", [None, "/a/b.sock", "here.sock"])
@pytest.mark.parametrize("runtime", ["", "run", "/run/user/1"])
@pytest.mark.parametrize("state", ["", "s", "/s"])
@pytest.mark.parametrize("chosen", ["", "/x/y.sock"])
def test_the_client_looks_where_the_daemon_listens(argument: str | None, runtime: str, state: str, chosen: str) -> None:
    """The client has its own copy of the rules, since it loads nothing of the daemon."""
    env = {**HOME, "XDG_RUNTIME_DIR": runtime, "XDG_STATE_HOME": state, "MEMD_SOCKET": chosen}
    assert agent_sockets(env, argument) == places.agent_sockets(env, argument)
    assert operator_sockets(env) == places.operator_sockets(env)
