"""Listening sockets: claiming a path, or taking over what a service manager opened.

What comes in: a path, or the environment of socket activation. What goes out: ``Listener`` objects that give their path
back when they close. What must not be here: accepting, who may connect.

A path is claimed under a lock on its directory, so that of several daemons that start at once none unlinks the fresh
socket of another; and a daemon that stops removes the path only if it still is its own socket.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import stat
import sys
from typing import TYPE_CHECKING

from memd.errors import SocketUnusable

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping

    from memd.protocol.types import Role

BACKLOG = 512
"""Connections that may wait for being accepted: fifty clients that start one daemon wait there while it recovers."""

SUN_PATH_BYTES = 104 if sys.platform == "darwin" else 108
"""``sizeof(sun_path)``, the closing NUL included: unix(7), sys/un.h."""

_FIRST_FD = 3  # sd_listen_fds(3)
_ROLES: dict[str, Role] = {
    "memd": "agent",
    "memd.socket": "agent",
    "memd-operator": "operator",
    "memd-operator.socket": "operator",
}
"""By ``FileDescriptorName=``, or the unit's own name where that is not set."""


class Listener:
    """A listening socket. ``inode`` is None for an inherited one, whose path is not ours to remove."""

    def __init__(self, sock: socket.socket, path: str, role: Role, inode: tuple[int, int] | None) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.path = path
        self.role: Role = role
        self._inode = inode

    def __repr__(self) -> str:
        return f"<Listener {self.role} {self.path} fd {self.sock.fileno()}>"

    def close(self) -> None:
        """Stop listening, and remove the path if it still is this socket. May be called twice."""
        if self.sock.fileno() < 0:
            return
        self.sock.close()
        if self._inode is None:
            return
        with contextlib.suppress(OSError), _locked(os.path.dirname(self.path)):
            if _inode_of(self.path) == self._inode:
                os.unlink(self.path)


def claim(path: str, role: Role) -> Listener:
    """Listen on a path of the file system, clearing a stale socket that stands there.

    The caller owns the profiles already (their locks are held): whoever may clear a path may also serve it.

    Raises:
        SocketUnusable: the path is too long, in use, not a socket, or in a directory that others may write.
            Nothing is left behind but directories that were missing.
    """
    _check_length(path)
    directory = os.path.dirname(path)
    try:
        _make_directory(directory)
        with _locked(directory):
            _clear_stale(path)
            sock = _bind(path)
            return Listener(sock, path, role, _inode_of(path))
    except OSError as error:
        msg = f"cannot listen on {path}: {error.strerror} ({errno.errorcode.get(error.errno or 0, error.errno)})"
        raise SocketUnusable(msg) from error


def adopt(environ: MutableMapping[str, str], *, pid: int, first_fd: int = _FIRST_FD) -> list[Listener]:
    """Take over the sockets that a service manager passed to this process; none if it passed none.

    The variables are removed, so that no child takes them for its own, and the descriptors are closed on exec.

    Raises:
        SocketUnusable: a descriptor is no listening Unix socket, or its name says neither role.
    """
    for_pid, count, names = (environ.pop(f"LISTEN_{key}", "") for key in ("PID", "FDS", "FDNAMES"))
    if for_pid != str(pid) or not count.isdecimal():
        return []
    named = [*names.split(":"), *[""] * int(count)]
    return [_adopt_one(first_fd + index, named[index]) for index in range(int(count))]


def _adopt_one(fd: int, name: str) -> Listener:
    role = _ROLES.get(name)
    if role is None:
        msg = f"inherited socket {fd} is named {name!r}; FileDescriptorName= has to be memd or memd-operator"
        raise SocketUnusable(msg)
    try:
        os.set_inheritable(fd, False)
        sock = socket.socket(fileno=fd)
        listening = sock.family == socket.AF_UNIX and sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError as error:
        msg = f"inherited descriptor {fd} ({name}): {error.strerror}"
        raise SocketUnusable(msg) from error
    if not listening:
        sock.close()
        msg = f"inherited descriptor {fd} ({name}) is no listening Unix stream socket"
        raise SocketUnusable(msg)
    return Listener(sock, os.fsdecode(sock.getsockname()), role, None)


def _check_length(path: str) -> None:
    size = len(os.fsencode(path)) + 1
    if size > SUN_PATH_BYTES:
        msg = (
            f"the socket path is {size} bytes with its end, this system takes {SUN_PATH_BYTES}: {path}; "
            "set MEMD_SOCKET, XDG_RUNTIME_DIR or --socket to a shorter one"
        )
        raise SocketUnusable(msg)


def _make_directory(directory: str) -> None:
    """Make the directory and its missing parents, each 0700 whatever the umask, and see that only we may write it."""
    if not os.path.isdir(directory):
        parent = os.path.dirname(directory)
        if parent != directory and not os.path.isdir(parent):
            _make_directory(parent)
        with contextlib.suppress(FileExistsError):  # another daemon was faster
            os.mkdir(directory, 0o700)
            os.chmod(directory, 0o700)
    status = os.stat(directory)
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        mode = stat.S_IMODE(status.st_mode)
        msg = (
            f"{directory} (mode {mode:04o}, owner {status.st_uid}) may be written by others, who could put a socket of "
            "theirs in place of ours; choose a directory of your own with mode 0700"
        )
        raise SocketUnusable(msg)


@contextlib.contextmanager
def _locked(directory: str) -> Iterator[None]:
    """Hold the directory against other daemons that claim or give back a path in it; only for a moment."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _clear_stale(path: str) -> None:
    """Remove a socket that nobody listens on. Only the kernel's refusal proves that."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(status.st_mode):
        msg = f"{path} exists and is no socket; move it away"
        raise SocketUnusable(msg)
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except BlockingIOError:  # its backlog is full, so somebody listens
            pass
    msg = f"{path} is in use: another daemon answers there"
    raise SocketUnusable(msg)


def _bind(path: str) -> socket.socket:
    """A listening socket at the path, 0600 from its first moment."""
    sock = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        sock.bind(path)
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    finally:
        os.umask(before)
    return sock


def _inode_of(path: str) -> tuple[int, int]:
    status = os.lstat(path)
    return status.st_dev, status.st_ino
