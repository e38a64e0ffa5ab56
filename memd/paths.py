"""Where memd's things are: settings, state, data, sockets.

What it is: the XDG rules and the order in which sockets are looked for. What comes in: an environment, and what the command
line named. What goes out: absolute paths. What must not be here: touching the disk, beyond asking who the home belongs to.
The Python client has its own copy of the socket rules, since it may not load this package. Import these from ``memd.config``.
"""

from __future__ import annotations

import os
import pwd
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

AGENT_SOCKET = "memd/memd.sock"
OPERATOR_SOCKET = "memd-operator/memd.sock"  # a directory of its own: a sandbox is given one without the other


def home_dir(env: Mapping[str, str]) -> str:
    """``$HOME`` if it is absolute, else what the password database says."""
    home = env.get("HOME", "")
    return home if os.path.isabs(home) else pwd.getpwuid(os.getuid()).pw_dir


def config_file(env: Mapping[str, str]) -> str:
    """The settings file, whether it exists or not."""
    return os.path.join(_base(env, "XDG_CONFIG_HOME", ".config"), "memd", "config.toml")


def state_dir(env: Mapping[str, str]) -> str:
    """Where the journal is."""
    return os.path.join(_base(env, "XDG_STATE_HOME", ".local/state"), "memd")


def profile_dir(env: Mapping[str, str], name: str) -> str:
    """The directory of a profile whose settings name none."""
    return os.path.join(_base(env, "XDG_DATA_HOME", ".local/share"), "memd", "profiles", name)


def agent_sockets(env: Mapping[str, str], argument: str | None = None) -> list[str]:
    """The paths a client tries, in order; ``serve`` binds the first.

    Args:
        env: The environment.
        argument: A path given by hand; nothing else is tried then, as with ``$MEMD_SOCKET``.
    """
    given = argument or env.get("MEMD_SOCKET")
    if given:
        return [os.path.abspath(given)]
    state = os.path.join(_base(env, "XDG_STATE_HOME", ".local/state"), "memd", "run", "memd.sock")
    return [*_in_runtime_dir(env, AGENT_SOCKET), state]


def operator_sockets(env: Mapping[str, str], argument: str | None = None) -> list[str]:
    """The same for the operator socket.

    With ``$MEMD_SOCKET`` it is beside that daemon's state: the runtime directory's belongs to the usual daemon, and two
    that differ in sockets and state may run side by side.
    """
    if argument:
        return [os.path.abspath(argument)]
    state = os.path.join(_base(env, "XDG_STATE_HOME", ".local/state"), "memd-operator", "run", "memd.sock")
    return [state] if env.get("MEMD_SOCKET") else [*_in_runtime_dir(env, OPERATOR_SOCKET), state]


def _base(env: Mapping[str, str], variable: str, fallback: str) -> str:
    """An XDG base directory. A relative value is invalid by the XDG specification, and ignored as it asks."""
    value = env.get(variable, "")
    return value if os.path.isabs(value) else os.path.join(home_dir(env), fallback)


def _in_runtime_dir(env: Mapping[str, str], name: str) -> list[str]:
    runtime = env.get("XDG_RUNTIME_DIR", "")
    return [os.path.join(runtime, name)] if os.path.isabs(runtime) else []
