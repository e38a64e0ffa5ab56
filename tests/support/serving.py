"""Starting a daemon in ways that ``DaemonProcess.start`` does not know, and being its service manager.

What comes in: a scratch home, a command to put in front, descriptors to pass on. What goes out: the daemon running in that
home, and what it said to its manager. What must not be here: expectations.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Self

from support.rpc import PATIENCE_S, Peer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from support.daemon import DaemonProcess

POLL_S = 0.02
DEFAULT_PATIENCE_S = PATIENCE_S


def serve_command(*arguments: str) -> list[str]:
    """``memd serve`` as an argument list."""
    return [sys.executable, "-m", "memd", "serve", *arguments]


def spawn(
    daemon: DaemonProcess,
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
) -> None:
    """Run a command that becomes the daemon of this home; nothing is waited for."""
    assert daemon.process is None
    with daemon.log_file.open("ab") as log:
        daemon.process = subprocess.Popen(
            list(command),
            env={**daemon.env, **(env or {})},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=pass_fds,
        )


def wait_until(condition: Callable[[], bool], what: str, *, patience_s: float = DEFAULT_PATIENCE_S) -> None:
    """Look again and again.

    Raises:
        AssertionError: It never came true.
    """
    end = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(POLL_S)  # noqa: TID251 - no event loop here


def answers(path: Path) -> bool:
    """Whether a daemon answers at a socket."""
    with contextlib.suppress(OSError), Peer(path) as peer:
        return bool(peer.call("rpc.ping") == {})
    return False


def wait_answering(daemon: DaemonProcess) -> None:
    """Wait for the daemon of this home to answer, or to have ended."""
    process = daemon.process
    assert process is not None
    wait_until(lambda: process.poll() is not None or answers(daemon.socket), "an answer")
    assert process.poll() is None, daemon.log()


class Manager:
    """A service manager's ``$NOTIFY_SOCKET``."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "manager"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(os.fspath(self.path))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def receive(self, timeout: float = PATIENCE_S) -> dict[str, str]:
        """The next datagram, as a map."""
        self._socket.settimeout(timeout)
        lines = self._socket.recv(4096).decode().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def receive_nowait(self) -> dict[str, str]:
        """The next datagram if it is there, else ``BlockingIOError``."""
        return self.receive(0)

    def wait_for(self, name: str) -> dict[str, str]:
        """The next datagram that has this variable; others are let go."""
        while True:
            found = self.receive()
            if name in found:
                return found
