"""Another user of the machine gets nothing, even where a careless chmod opened the way to the socket."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import msgpack
import pytest

if TYPE_CHECKING:
    from support.daemon import DaemonProcess

OTHER = os.environ.get("MEMD_TEST_OTHER_USER", "")
CONNECT = """
import contextlib, socket, sys
sock = socket.socket(socket.AF_UNIX)
sock.settimeout(10)
sock.connect(sys.argv[1])
with contextlib.suppress(BrokenPipeError):  # refused before it asked
    sock.sendall(bytes.fromhex(sys.argv[2]))
with contextlib.suppress(ConnectionResetError):  # refused with the request unread
    while data := sock.recv(4096):
        sys.stdout.buffer.write(data)
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not OTHER, reason="needs a second user whom sudo lets us be; .ci/run makes one"),
]


def ask_as_other(daemon: DaemonProcess) -> bytes:
    """All that the daemon sends to a process of the other user that asks for the memory."""
    request = msgpack.packb([0, 1, "memory.read", []]).hex()
    command = ["sudo", "-n", "-u", OTHER, "/usr/bin/python3", "-c", CONNECT, str(daemon.socket), request]
    found = subprocess.run(command, cwd="/", capture_output=True, timeout=30, check=False)
    return found.stdout if found.returncode == 0 else b""


def test_the_directories_keep_others_out(daemon: DaemonProcess) -> None:
    """Without a careless chmod there is nothing to connect to."""
    daemon.start()
    daemon.home.chmod(0o755)
    assert ask_as_other(daemon) == b""


def test_another_uid_is_told_so_and_gets_nothing(daemon: DaemonProcess) -> None:
    """One notification, then the end of the connection; the request is not answered."""
    daemon.memory.write_text("my cat is called Felix\n")
    daemon.start()
    for path in (daemon.home, daemon.home / "run", daemon.socket.parent):
        path.chmod(0o755)
    daemon.socket.chmod(0o666)
    answer = ask_as_other(daemon)
    kind, method, (error,) = msgpack.unpackb(answer)
    assert (2, "rpc.protocol_error", "permission_denied") == (kind, method, error["name"])
    assert b"Felix" not in answer
