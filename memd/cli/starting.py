"""Finding the daemon, or starting it.

What comes in: the environment, a socket that was asked for, a deadline. What goes out: the path of a socket that answers.
What must not be here: serving. Any number of starters may run at once: the daemon's own locks let one daemon live, and
the starters wait for whichever that is.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from memd.cli.detach import Daemon, spawn
from memd.cli.exits import SETTINGS, TEMPORARY
from memd_client.autostart import find_program
from memd_client.errors import ConnectionTrouble, MemdError, NotRunning
from memd_client.places import agent_sockets, home, operator_sockets, state_home
from memd_client.wire import Deadline, connect

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

START_S = 10.0
STARTS = 3
"""A daemon that is killed while it starts is started again: whoever killed it did not mean the next one."""
POLL_S = 0.03
PING_S = 2.0  # a daemon that is recovering accepts late; one that is stuck must not hold its clients
UNIT = "memd.socket"
KEPT = ("HOME", "PATH", "LANG", "TZ")  # and XDG_*: the rest of a caller's environment is none of the daemon's business


def find(env: Mapping[str, str], socket: str | None) -> str | None:
    """The first place of the agent socket where a daemon answers."""
    return next((path for path in agent_sockets(env, socket) if answers(path, Deadline(PING_S))), None)


def find_or_start(
    env: Mapping[str, str],
    socket: str | None,
    deadline: Deadline,
    start: Callable[[Mapping[str, str], str], Daemon | None] | None = None,
) -> str:
    """The path of a socket that answers, after starting a daemon if need be.

    Raises:
        NotRunning: None answered within ten seconds; the message says what is known of the reason.
    """
    left = deadline.left()
    patience = Deadline(START_S if left is None else min(left, START_S))
    path = agent_sockets(env, socket)[0]
    lock = _start_lock(env)
    try:
        while not _locked(lock):  # whoever holds it is starting: wait for that rather than start one more
            found = find(env, socket)
            if found:
                return found
            if not patience.sleep(POLL_S):
                break
        return find(env, socket) or _started(path, lambda: (start or launch)(env, path), patience)
    finally:
        if lock is not None:
            os.close(lock)


def _started(path: str, start: Callable[[], Daemon | None], patience: Deadline) -> str:
    """Start a daemon and wait for the socket to answer, or for the daemon to give up."""
    daemon, left = start(), STARTS
    while not answers(path, patience):
        status = daemon.ended() if daemon else None
        if status is not None and status < 0 and left > 1:  # killed: that says nothing of the next one
            daemon, left = start(), left - 1
        elif status is not None and status != TEMPORARY:  # then another daemon owns the profiles: it will answer
            raise _failed(status)
        if not patience.sleep(POLL_S):
            owned = status == TEMPORARY
            hint = "; another memd owns the profiles and listens elsewhere: is XDG_RUNTIME_DIR the one it had?"
            msg = f"memd was started, but nobody answers at {path}{hint if owned else ''}"
            raise NotRunning(msg, {"path": path})
    return path


def _failed(status: int) -> NotRunning:
    if status == SETTINGS:
        msg = f"memd serve ended at once (exit status {status}): the settings or the journal cannot be used"
    elif status < 0:
        msg = f"memd serve was killed {STARTS} times while it started (signal {-status})"
    else:
        msg = f"memd serve ended at once (exit status {status})"
    return NotRunning(f"{msg}; run `memd serve` to see why", {"status": status})


def answers(path: str, deadline: Deadline) -> bool:
    """Whether a daemon answers at the path."""
    try:
        connection = connect(path, deadline)
    except ConnectionTrouble:
        return False
    try:
        connection.request("rpc.ping", None, deadline)
    except ConnectionTrouble:
        return False
    except MemdError:  # an error is an answer too
        return True
    finally:
        connection.close()
    return True


def launch(env: Mapping[str, str], path: str) -> Daemon | None:
    """Start the unit where there is one for this socket, else a process of its own (which is returned)."""
    if _start_unit(env, path):
        return None
    sockets = ["--socket", path, "--operator-socket", operator_sockets(env)[0]]
    return spawn([*serve_command(env), "serve", *sockets], reduced(env))


def serve_command(env: Mapping[str, str]) -> list[str]:
    """What runs ``memd``: ``$MEMD_BIN``, else this very installation."""
    chosen = env.get("MEMD_BIN", "")
    return [chosen] if os.path.isabs(chosen) else [sys.executable, "-P", "-m", "memd"]


def reduced(env: Mapping[str, str]) -> dict[str, str]:
    """The environment of a daemon that outlives its starter: no secrets, no settings of one shell."""
    return {key: value for key, value in env.items() if key in KEPT or key.startswith("XDG_")}


def _start_unit(env: Mapping[str, str], path: str) -> bool:
    """Have systemd listen. Only for the socket that the unit is about, and only where a user manager runs."""
    runtime = env.get("XDG_RUNTIME_DIR", "")
    if path != os.path.join(runtime, "memd", "memd.sock") or not os.path.exists(os.path.join(runtime, "systemd")):
        return False
    systemctl = find_program("systemctl", env)
    if systemctl is None or not any(os.path.exists(os.path.join(folder, UNIT)) for folder in unit_folders(env)):
        return False
    try:
        done = subprocess.run(  # noqa: S603 - find_program says whom we trust
            [systemctl, "--user", "start", UNIT],
            env=dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=START_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def unit_folders(env: Mapping[str, str]) -> list[str]:
    """Where systemd looks for units of a user, most of it (systemd.unit(5))."""
    at_home = home(env)
    config = env.get("XDG_CONFIG_HOME") or os.path.join(at_home, ".config")
    data = env.get("XDG_DATA_HOME") or os.path.join(at_home, ".local", "share")
    system = ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib")
    runtime = [env["XDG_RUNTIME_DIR"]] if env.get("XDG_RUNTIME_DIR") else []
    return [os.path.join(folder, "systemd", "user") for folder in (config, *runtime, data, *system)]


def _start_lock(env: Mapping[str, str]) -> int | None:
    """Memd's state directory, to be locked while starting: fifty starters at once would be fifty interpreters.

    Not the socket's directory: the daemon locks that one itself while it claims the socket, and would wait for us. Only a
    courtesy: without it the daemon's own locks sort things out. The lock leaves no file behind.
    """
    folder = os.path.join(state_home(env), "memd")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None


def _locked(descriptor: int | None) -> bool:
    """Try to take the lock; True also where there is none to take."""
    if descriptor is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
