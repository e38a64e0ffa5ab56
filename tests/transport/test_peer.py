"""Who is at the other end."""

from __future__ import annotations

import os
import socket
import struct
import sys
from pathlib import Path

import pytest

from memd.transport.connection import Peer
from memd.transport.peer import command_of, peer_of


class DarwinSocket(socket.socket):
    """Answers ``getsockopt`` as macOS does for a peer of uid 501 and pid 77."""

    def getsockopt(self, level: int, option: int, size: int = 0) -> int | bytes:  # type: ignore[override]  # one signature for all overloads
        answers: dict[tuple[int, int], int | bytes] = {
            (0, 1): struct.pack("II", 0, 501) + bytes(68),
            (0, 2): 77,
        }
        answer = answers[level, option]
        assert size == (len(answer) if isinstance(answer, bytes) else 0)
        return answer


def test_ourselves() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        peer = peer_of(ours, "operator")
    assert (os.geteuid(), os.getpid(), "operator") == (peer.uid, peer.pid, peer.role)


def test_macos() -> None:
    with DarwinSocket(socket.AF_UNIX) as sock:
        assert Peer(501, 77, command_of(77), "agent") == peer_of(sock, "agent", platform="darwin")


def test_a_socket_that_is_gone() -> None:
    ours, theirs = socket.socketpair()
    ours.close()
    theirs.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        peer_of(ours, "agent")


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_the_command_of_this_process() -> None:
    assert Path("/proc/self/comm").read_text().strip() == command_of(os.getpid())


def test_command_names_of_any_bytes(tmp_path: Path) -> None:
    """A process may call itself what it likes."""
    (tmp_path / "5").mkdir()
    (tmp_path / "5" / "comm").write_bytes(b"a\xff b\n")
    assert "a\ufffd b" == command_of(5, proc=str(tmp_path))


def test_an_unknown_process_has_no_command(tmp_path: Path) -> None:
    assert "" == command_of(5, proc=str(tmp_path))
