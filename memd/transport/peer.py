"""Who is at the other end of a Unix socket, as the kernel says.

What comes in: a connected socket. What goes out: uid, pid and command name. What must not be here: whether they may.
"""

from __future__ import annotations

import socket
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from memd.transport.connection import Peer

if TYPE_CHECKING:
    from memd.protocol.types import Role

_UCRED = struct.Struct("3i")  # Linux, unix(7): pid, uid, gid
_XUCRED_UID = struct.Struct("II")  # macOS, sys/ucred.h: version, uid, then groups
_SOL_LOCAL = 0  # macOS, sys/un.h
_LOCAL_PEERCRED = 1
_LOCAL_PEERPID = 2
_XUCRED_BYTES = 76


def peer_of(sock: socket.socket, role: Role, *, platform: str = sys.platform) -> Peer:
    """The peer of a connected Unix socket.

    Raises:
        OSError: the kernel does not say; the peer may be gone already.
    """
    uid, pid = _darwin_ids(sock) if platform == "darwin" else _linux_ids(sock)
    return Peer(uid, pid, command_of(pid), role)


def _linux_ids(sock: socket.socket) -> tuple[int, int]:
    pid, uid, _gid = _UCRED.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    return uid, pid


def _darwin_ids(sock: socket.socket) -> tuple[int, int]:
    _version, uid = _XUCRED_UID.unpack_from(sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED_BYTES))
    return uid, sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID)


def command_of(pid: int, *, proc: str = "/proc") -> str:
    """The command name of a process, ``""`` where that cannot be known."""
    try:
        return Path(proc, str(pid), "comm").read_bytes().decode("utf-8", "replace").rstrip("\n")
    except OSError:
        return ""
