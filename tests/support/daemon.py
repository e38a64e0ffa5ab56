"""A real daemon in a scratch home, for tests from end to end.

What comes in: settings, signals. What goes out: a running ``memd serve``, its files, its log, connections to it. What must
not be here: expectations.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from support.rpc import PATIENCE_S, Peer

import memd

if TYPE_CHECKING:
    from collections.abc import Mapping

_PASSED_ON = ("COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG", "LD_PRELOAD", "PATH", "TMPDIR")
_PROBE_S = 0.02


class DaemonProcess:
    """One scratch home and the daemon in it. Starts nothing by itself.

    ``home`` has ``mem`` (the directory of the profile ``default``), ``config``, ``state``, ``data`` and ``run``.
    """

    def __init__(self, *, config: str = "", env: Mapping[str, str] | None = None) -> None:
        # Not pytest's tmp_path: a socket's path may have 108 bytes, and test names are long.
        self.home = Path(tempfile.mkdtemp(prefix="memd-"))
        for name in ("config/memd", "data", "mem", "run", "state"):
            (self.home / name).mkdir(parents=True, mode=0o700)
        self.log_file = self.home / "log"
        self.memory = self.home / "mem/MEMORY.md"
        self.user = self.home / "mem/USER.md"
        self.journal = self.home / "state/memd/journal.db"
        self.socket = self.home / "run/memd/memd.sock"
        self.operator_socket = self.home / "run/memd-operator/memd.sock"
        self.env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        self.env |= {
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "MEMD_AUTOSTART": "0",
            "PYTHONPATH": _import_path(),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "XDG_DATA_HOME": str(self.home / "data"),
            "XDG_RUNTIME_DIR": str(self.home / "run"),
            "XDG_STATE_HOME": str(self.home / "state"),
            **(env or {}),
        }
        self.wrapper: list[str] = []  # a command that runs the daemon, with limits or mounts of its own
        self.process: subprocess.Popen[bytes] | None = None
        self.configure(config)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self.home, ignore_errors=True)

    def configure(self, config: str) -> None:
        """Write the settings file; unless it configures profiles itself there is one, ``default``, in ``home/mem``."""
        if "[profiles." not in config:
            config += f'\n[profiles.default]\ndir = "{self.home}/mem"\n'
        file = self.home / "config/memd/config.toml"
        file.write_text(config)
        file.chmod(0o600)

    def start(self, *arguments: str) -> None:
        """Start ``memd serve`` and wait until it says that it is ready.

        Raises:
            AssertionError: It ended or stayed silent instead; the message has the end of its log.
        """
        assert self.process is None, "it runs already"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready, self.log_file.open("ab") as log:
            name = self.home / "notify"
            name.unlink(missing_ok=True)
            ready.bind(str(name))
            ready.settimeout(_PROBE_S)
            command = [*self.wrapper, sys.executable, "-m", "memd", "serve", *arguments]
            env = {**self.env, "NOTIFY_SOCKET": str(name)}
            self.process = subprocess.Popen(
                command, env=env, cwd=self.home, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
            self._wait_ready(ready)

    def wait(self, timeout: float = PATIENCE_S) -> int:
        """The exit status, once it has ended by itself or by a signal."""
        assert self.process is not None
        status = self.process.wait(timeout)
        self.process = None
        return status

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        assert self.process is not None
        self.process.terminate()
        return self.wait()

    def kill(self) -> None:
        """SIGKILL, if it runs."""
        if self.process is not None:
            self.process.kill()
            self.wait()

    def restart(self, *, kill: bool = False) -> None:
        """Stop it, politely or not, and start it again."""
        if kill:
            self.kill()
        else:
            self.stop()
        self.start()

    def reload(self) -> None:
        """SIGHUP."""
        assert self.process is not None
        self.process.send_signal(signal.SIGHUP)

    def connect(self, *, operator: bool = False, **hello: Any) -> Peer:
        """A connection; ``hello`` is sent only if it says something."""
        peer = Peer(self.operator_socket if operator else self.socket)
        try:
            if hello:
                peer.call("hello", **hello)
        except BaseException:
            peer.close()
            raise
        return peer

    def call(self, method: str, **params: Any) -> Any:
        """One request on a connection of its own."""
        with self.connect() as peer:
            return peer.call(method, **params)

    def memd(
        self, *arguments: str, stdin: str = "", env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a verb of the ``memd`` command in this home."""
        return subprocess.run(
            [sys.executable, "-m", "memd", *arguments],
            env={**self.env, **(env or {})},
            cwd=self.home,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=4 * PATIENCE_S,
            check=False,
        )

    def log(self) -> str:
        """All that the daemon wrote so far, over all its lives in this home."""
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def _wait_ready(self, ready: socket.socket) -> None:
        assert self.process is not None
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            with suppress(TimeoutError):
                if b"READY=1" in ready.recv(4096):
                    return
            if self.process.poll() is not None:
                status, self.process = self.process.returncode, None
                raise AssertionError(f"memd serve ended with {status}: {self.log()[-2000:]}")  # noqa: EM102 - read in a test report, not caught
        self.kill()
        raise AssertionError(f"memd serve was not ready in {PATIENCE_S} s: {self.log()[-2000:]}")  # noqa: EM102 - read in a test report, not caught


def _import_path() -> str:
    """Where this very memd was imported from, so that the daemon is the code under test whatever its directory."""
    import memd_client  # noqa: PLC0415 - only end-to-end tests need it

    roots = {str(Path(package.__path__[0]).resolve().parent) for package in (memd, memd_client)}
    return os.pathsep.join(sorted(roots))
