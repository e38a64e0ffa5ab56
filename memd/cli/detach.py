"""A process that outlives its parent and shares nothing with it.

What comes in: a command and an environment. What goes out: a handle that says whether it has ended. What must not be
here: what is run.
"""

from __future__ import annotations

import os
import signal

from memd_client.errors import NotRunning

FIRST_FREE = 3
MOST_DESCRIPTORS = 65536  # where the limit is "unlimited" there is no upper end to close to
CANNOT_RUN = 127


class Daemon:
    """A detached process, still our child."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._status: int | None = None

    def __repr__(self) -> str:
        return f"<Daemon {self.pid} {'runs' if self._status is None else f'ended with {self._status}'}>"

    def ended(self) -> int | None:
        """Its exit status (negative: the signal that killed it), or None while it runs. Does not wait."""
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status


def spawn(argv: list[str], env: dict[str, str]) -> Daemon:
    """Run a command in a session of its own, in ``/``, with null stdio, nothing open, default signals, umask 077.

    By hand, since ``subprocess`` leaves ignored and blocked signals as they are: a daemon that a shell had put into
    the background would never see SIGINT.

    Raises:
        NotRunning: There is no process to be had.
    """
    try:
        pid = os.fork()
    except OSError as error:
        msg = f"memd could not be started: {error.strerror}"
        raise NotRunning(msg, {"errno": error.errno}) from error
    if pid:
        return Daemon(pid)
    try:
        _become_daemon()
        os.execve(argv[0], argv, env)  # noqa: S606 - no shell is wanted
    finally:
        os._exit(CANNOT_RUN)


def _become_daemon() -> None:
    os.setsid()
    os.chdir("/")
    os.umask(0o077)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(FIRST_FREE):
        os.dup2(null, descriptor)
    os.closerange(FIRST_FREE, min(os.sysconf("SC_OPEN_MAX"), MOST_DESCRIPTORS))
