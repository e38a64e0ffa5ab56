"""memd.cli.detach: a process that shares nothing with its parent."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest

from memd.cli.detach import CANNOT_RUN, Daemon, spawn

if TYPE_CHECKING:
    from pathlib import Path

REPORT = """
import json, os, signal, sys
os.umask(mask := os.umask(0))
report = {
    "cwd": os.getcwd(),
    "env": dict(os.environ),
    "umask": mask,
    "leader": os.getsid(0) == os.getpid(),
    "null": [os.path.sameopenfile(fd, os.open(os.devnull, os.O_RDWR)) for fd in range(3)],
    "open": [fd for fd in range(3, 256) if os.path.exists(f"/proc/self/fd/{fd}") and not os.readlink(f"/proc/self/fd/{fd}").startswith(("/dev/null", "/proc"))],
    "ignored": [s for s in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1) if signal.getsignal(s) == signal.SIG_IGN],
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
}
with open(sys.argv[1] + ".tmp", "w") as file:
    json.dump(report, file)
os.rename(sys.argv[1] + ".tmp", sys.argv[1])
"""


def wait(daemon: Daemon) -> int:
    """Its status, once it has ended."""
    os.waitid(os.P_PID, daemon.pid, os.WEXITED | os.WNOWAIT)
    status = daemon.ended()
    assert status is not None
    return status


@pytest.fixture
def report(tmp_path: Path) -> dict[str, Any]:
    """What a spawned process finds, its parent being full of things it must not inherit."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    try:
        argv = [sys.executable, "-I", "-S", "-c", REPORT, str(tmp_path / "report")]
        assert 0 == wait(spawn(argv, {"HOME": "/h"}))
    finally:
        os.close(reading)
        os.close(writing)
        signal.signal(signal.SIGINT, before)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    found: dict[str, Any] = json.loads((tmp_path / "report").read_text())
    return found


def test_it_stands_at_the_root_with_a_session_of_its_own(report: dict[str, Any]) -> None:
    assert ("/", True, 0o077) == (report["cwd"], report["leader"], report["umask"])


def test_it_has_null_stdio_and_nothing_else(report: dict[str, Any]) -> None:
    """A pipe it kept would hang whoever waits for its end."""
    assert ([True] * 3, []) == (report["null"], report["open"])


def test_it_has_the_environment_it_was_given(report: dict[str, Any]) -> None:
    assert {"HOME": "/h"} == {key: value for key, value in report["env"].items() if key != "LC_CTYPE"}


def test_it_has_default_signals(report: dict[str, Any]) -> None:
    """A shell starts what runs in the background with SIGINT ignored."""
    assert ([], []) == (report["ignored"], report["blocked"])


def test_a_running_process_has_no_status() -> None:
    daemon = spawn(["/bin/sh", "-c", "exec sleep 60"], {"PATH": "/usr/bin:/bin"})
    assert daemon.ended() is None
    assert f"<Daemon {daemon.pid} runs>" == repr(daemon)
    os.kill(daemon.pid, signal.SIGKILL)
    assert -signal.SIGKILL == wait(daemon)
    assert -signal.SIGKILL == daemon.ended()
    assert f"<Daemon {daemon.pid} ended with -9>" == repr(daemon)


def test_a_command_that_cannot_be_run_ends_at_once() -> None:
    assert CANNOT_RUN == wait(spawn(["/nowhere/memd"], {}))
