"""Where the sockets are.

What comes in: an argument and the environment. What goes out: paths to try, in the order of ``client/PROTOCOL.md``.
What must not be here: connecting, starting. ``serve`` binds the first path of each list.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def agent_sockets(env: Mapping[str, str], argument: str | None = None) -> list[str]:
    """Where to look for the agent socket. A path that was asked for is the only one to look at."""
    chosen = argument or env.get("MEMD_SOCKET")
    if chosen:
        return [os.path.abspath(chosen)]
    return [*_in_runtime_dir(env, "memd"), os.path.join(state_home(env), "memd", "run", "memd.sock")]


def operator_sockets(env: Mapping[str, str]) -> list[str]:
    """Where to look for the operator socket: with ``$MEMD_SOCKET`` beside the state, not in the runtime directory."""
    state = os.path.join(state_home(env), "memd-operator", "run", "memd.sock")
    return [state] if env.get("MEMD_SOCKET") else [*_in_runtime_dir(env, "memd-operator"), state]


def state_home(env: Mapping[str, str]) -> str:
    """``$XDG_STATE_HOME``, else ``~/.local/state``. The XDG specification says to ignore relative values."""
    chosen = env.get("XDG_STATE_HOME", "")
    return chosen if os.path.isabs(chosen) else os.path.join(home(env), ".local", "state")


def home(env: Mapping[str, str]) -> str:
    """``$HOME`` if it is absolute, else what the password database says."""
    chosen = env.get("HOME", "")
    if os.path.isabs(chosen):
        return chosen
    import pwd  # noqa: PLC0415 - hardly ever needed

    return pwd.getpwuid(os.getuid()).pw_dir


def _in_runtime_dir(env: Mapping[str, str], folder: str) -> list[str]:
    runtime = env.get("XDG_RUNTIME_DIR", "")
    return [os.path.join(runtime, folder, "memd.sock")] if os.path.isabs(runtime) else []
