"""Starting memd when nobody listens.

What comes in: the environment and a deadline. What goes out: the path of a socket that answers, from a run of
``memd socket --start``. What must not be here: how the daemon is started; that is the command's own business.
"""

from __future__ import annotations

import os
import stat

from memd_client.errors import NotRunning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from memd_client.wire import Deadline

START_S = 15.0  # the command gives up after 10 s by itself
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def wanted(env: Mapping[str, str]) -> bool:
    """Whether the environment allows starting."""
    return env.get("MEMD_AUTOSTART", "") != "0"


def start(env: Mapping[str, str], socket: str | None, deadline: Deadline) -> str:
    """Have memd started and return the path of its socket.

    The command gets null stdio and a session of its own: it never holds a pipe or a terminal of its caller.

    Raises:
        NotRunning: There is no ``memd`` to be trusted, or it could not start the daemon.
    """
    import subprocess  # noqa: PLC0415 - needed once a day, and slow to import

    argv = [find_memd(env), "socket", "--start", *(["--socket", socket] if socket else [])]
    left = deadline.left()
    try:
        done = subprocess.run(  # noqa: S603 - find_memd says whom we trust
            argv,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            start_new_session=True,
            timeout=START_S if left is None else min(left, START_S),
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        msg = f"memd is not running and could not be started: {error}"
        raise NotRunning(msg, {"command": argv[0]}) from error
    path = os.fsdecode(done.stdout).strip()
    if done.returncode != 0 or not path:
        said = os.fsdecode(done.stderr).strip() or f"exit status {done.returncode}"
        msg = f"memd is not running and could not be started: {said}"
        raise NotRunning(msg, {"command": argv[0], "status": done.returncode})
    return path


def find_memd(env: Mapping[str, str]) -> str:
    """``$MEMD_BIN``, else the first ``memd`` in a PATH entry that only we or root can have put it into.

    Raises:
        NotRunning: There is none.
    """
    chosen = env.get("MEMD_BIN")
    if chosen:
        if os.path.isabs(chosen):
            return chosen
        msg = f"memd is not running, and MEMD_BIN={chosen} is not an absolute path"
        raise NotRunning(msg)
    found = find_program("memd", env)
    if found is None:
        msg = "memd is not running, and no trusted `memd` is on PATH to start it; run `memd serve`, or set MEMD_BIN"
        raise NotRunning(msg)
    return found


def find_program(name: str, env: Mapping[str, str]) -> str | None:
    """The first executable ``name`` on PATH whose folder and file belong to us or root and are closed to others."""
    for folder in env.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, name)
        if os.path.isabs(folder) and os.access(path, os.X_OK) and _trusted(folder) and _trusted(path):
            return path
    return None


def _trusted(path: str) -> bool:
    try:
        status = os.stat(path)
    except OSError:
        return False
    return status.st_uid in (os.geteuid(), 0) and not status.st_mode & WRITABLE_BY_OTHERS
