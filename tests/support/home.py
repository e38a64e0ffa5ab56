"""A scratch home in which clients start the daemon themselves.

What comes in: nothing. What goes out: a home whose ``MEMD_BIN`` is the memd under test; whatever was started there is ended
with it. What must not be here: expectations.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

from support.daemon import DaemonProcess
from support.serving import wait_until

from memd_client import Client


class Home(DaemonProcess):
    """A home in which autostart works, with this very memd; whatever was started is stopped at the end."""

    def __init__(self) -> None:
        super().__init__()
        script = self.home / "memd"
        script.write_text(f'#!/bin/sh\nPYTHONPATH={self.env["PYTHONPATH"]} exec {sys.executable} -m memd "$@"\n')
        script.chmod(0o700)
        self.env |= {"MEMD_BIN": str(script), "MEMD_AUTOSTART": "1"}

    def __exit__(self, *_: object) -> None:
        self.end_all()
        super().__exit__()

    def client(self, name: str = "test", *, timeout: float = 15) -> Client:
        """A client that starts the daemon if it finds none."""
        return Client(client_name=name, env=self.env, timeout=timeout)

    def pid(self) -> int:
        """The daemon's, as it says itself."""
        with Client(env=self.env, autostart=False) as client:
            return client.hello.server.pid

    def daemons(self) -> list[int]:
        """Every process that runs ``memd serve`` for this home's socket, whoever started it."""
        wanted = {"serve", str(self.socket)}
        found = []
        for folder in Path("/proc").iterdir():
            with suppress(OSError, ValueError):
                number = int(folder.name)
                if wanted <= set((folder / "cmdline").read_bytes().decode().split("\0")):
                    found.append(number)
        return found

    def stop_all(self) -> None:
        """End what was started here, politely, and wait for it."""
        for number in self.daemons():
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGTERM)
        wait_until(lambda: not self.daemons(), "the end of all daemons")

    def end_all(self) -> None:
        """End what was started here, one way or the other."""
        with suppress(AssertionError):
            self.stop_all()
        for number in self.daemons():
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
