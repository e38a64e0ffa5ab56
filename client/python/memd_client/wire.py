"""One connection: MessagePack-RPC over a blocking Unix socket.

What comes in: method names and plain parameters. What goes out: plain results, or the typed error of the reply;
notifications are kept for whoever asks. What must not be here: reconnecting, repeating, starting a daemon.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
import time

# The socket module builds enums of every constant when imported: a third of what a one-shot call costs in all.
from _socket import AF_UNIX, SOCK_STREAM, SOL_SOCKET, socket as Socket  # noqa: N812 - it is a class

import msgpack

from memd_client.errors import ConnectionLost, MemdError, NotRunning, Timeout, Untrusted, from_wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SO_PEERCRED = 17  # Linux, struct ucred: pid, uid, gid
LOCAL_PEERCRED = 1  # macOS and the BSDs, struct xucred: version, uid, …
RECEIVE_BYTES = 65536
REPLY_BYTES = 256 * 2**20  # an export of a whole history is the largest reply there is
RETRY_S = 0.01
SHORTEST_S = 0.001

REQUEST, REPLY, NOTIFICATION = 0, 1, 2


class Deadline:
    """A moment on the monotonic clock, or never."""

    __slots__ = ("at",)

    def __init__(self, seconds: float | None) -> None:
        self.at = None if seconds is None else time.monotonic() + seconds

    def left(self) -> float | None:
        """Seconds left, never below 0; None if there is no end."""
        return None if self.at is None else max(0.0, self.at - time.monotonic())

    def patience(self) -> float | None:
        """What is left as a socket's timeout, where 0 would mean not to wait at all."""
        left = self.left()
        return None if left is None else max(left, SHORTEST_S)

    def sleep(self, seconds: float) -> bool:
        """Sleep, but not beyond the end; False if the end has come."""
        left = self.left()
        if left is not None and left <= seconds:
            time.sleep(left)  # noqa: TID251 - a blocking client has no event loop
            return False
        time.sleep(seconds)  # noqa: TID251 - as above
        return True


def peer_uid(sock: Socket, *, linux: bool = sys.platform == "linux") -> int:
    """The uid of the process at the other end of a connected socket."""
    if linux:
        return int(struct.unpack("3i", sock.getsockopt(SOL_SOCKET, SO_PEERCRED, 12))[1])
    # The level SOL_LOCAL is 0; 76 bytes are a whole struct xucred, of which the uid is the second word.
    return int(struct.unpack_from("2I", sock.getsockopt(0, LOCAL_PEERCRED, 76))[1])


def connect(path: str, deadline: Deadline, uid_of: Callable[[Socket], int] = peer_uid) -> Connection:
    """Connect to the socket at ``path``.

    Raises:
        NotRunning: Nobody listens there; ``data`` has ``path`` and ``errno``.
        Untrusted: Somebody else's process does.
        Timeout: The queue of the listener stayed full.
    """
    sock = Socket(AF_UNIX, SOCK_STREAM)
    try:
        _connect(sock, path, deadline)
        uid = uid_of(sock)
    except OSError as error:
        sock.close()
        raise NotRunning(_refusal(path, error), {"path": path, "errno": error.errno}) from error
    except MemdError:
        sock.close()
        raise
    if uid != os.geteuid():
        sock.close()
        msg = f"{path} belongs to uid {uid}, not to you ({os.geteuid()}); nothing was sent"
        raise Untrusted(msg, {"path": path, "uid": uid})
    return Connection(sock, path)


def _connect(sock: Socket, path: str, deadline: Deadline) -> None:
    while True:
        sock.settimeout(deadline.patience())
        try:
            sock.connect(path)
        except BlockingIOError:  # the listen queue is full: a Unix socket does not wait for it by itself
            if not deadline.sleep(RETRY_S):
                msg = f"{path}: too many connections are waiting to be accepted"
                raise Timeout(msg, {"path": path}) from None
        except TimeoutError:
            msg = f"{path}: not accepted in time"
            raise Timeout(msg, {"path": path}) from None
        else:
            return


def _refusal(path: str, error: OSError) -> str:
    if error.errno is None:  # the path does not fit into struct sockaddr_un; the number differs between systems
        length = len(os.fsencode(path))
        return f"{path}: {length} bytes are too long for a socket path; set MEMD_SOCKET or XDG_RUNTIME_DIR to a shorter one"
    if error.errno == errno.EACCES:
        return f"{path}: not allowed to connect ({error.strerror})"
    return f"no memd listens at {path} ({error.strerror})"


class Connection:
    """One connection. After any ``ConnectionLost`` it is closed; after a ``Timeout`` it can be used on."""

    def __init__(self, sock: Socket, path: str) -> None:
        self.path = path
        self.pid = os.getpid()
        self.closed = False
        self.keep_notifications = False
        self._notifications: list[tuple[str, list[Any]]] = []
        self._sock = sock
        self._unpacker = msgpack.Unpacker(raw=False, max_buffer_size=REPLY_BYTES)
        self._last = 0
        self._parting: MemdError | None = None

    def __repr__(self) -> str:
        return f"<Connection {self.path} {'closed' if self.closed else 'open'}>"

    def close(self) -> None:
        """Close; harmless when closed."""
        self.closed = True
        self._sock.close()

    def request(self, method: str, params: dict[str, Any] | None, deadline: Deadline) -> Any:
        """Send a request and wait for its reply.

        Raises:
            MemdError: The reply's error, or what the daemon said before it closed the connection.
            ConnectionLost: It broke. ``data["sent"]`` says whether the daemon may have seen the request.
            Timeout: No reply in time; one that comes late is dropped.
        """
        msgid = self._last = self._last + 1
        self._send([REQUEST, msgid, method, [params] if params else []], deadline)
        while True:
            message = self._receive(deadline)
            if message is None:
                self._cancel(msgid)
                msg = f"no reply to {method} in time"
                raise Timeout(msg, {"path": self.path, "sent": True})
            if message[0] == REPLY and message[1] == msgid:
                break
        if message[2] is not None:
            raise from_wire(message[2])
        return message[3]

    def next_notification(self, deadline: Deadline) -> tuple[str, list[Any]] | None:
        """The oldest notification not yet asked for; None if the deadline comes first.

        Raises:
            ConnectionLost: It broke, and no notification is left.
        """
        while not self._notifications:
            if self._receive(deadline) is None:
                return None
        return self._notifications.pop(0)

    def usable(self) -> bool:
        """Look, without waiting, whether the daemon has closed an idle connection: what is sent then is lost."""
        if self.closed:
            return False
        self._sock.setblocking(False)
        try:
            data = self._sock.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            data = b""
        if data:
            self._unpacker.feed(data)
        else:
            self.close()
        return not self.closed

    def _send(self, message: list[Any], deadline: Deadline) -> None:
        data = msgpack.packb(message)
        self._sock.settimeout(deadline.patience())
        try:
            self._sock.sendall(data)
        except OSError as error:  # a message that was cut is never carried out
            self._hear_out()
            raise self._lost(error, sent=False) from error
        except BaseException:
            self.close()  # cut in the middle, nothing after it could be understood
            raise

    def _hear_out(self) -> None:
        """Take what the daemon said before it hung up on a message, for example that it is too large."""
        try:
            self._sock.setblocking(False)
            while data := self._sock.recv(RECEIVE_BYTES):
                self._unpacker.feed(data)
        except OSError:
            pass  # it said nothing more
        try:
            while self._buffered() is not None:
                pass
        except MemdError:
            return  # the connection is lost, whatever that was

    def _receive(self, deadline: Deadline) -> list[Any] | None:
        """The next message; notifications are also put aside. None if the deadline comes first."""
        while True:
            message = self._buffered()
            if message is not None:
                return message
            self._sock.settimeout(deadline.patience())
            try:
                data = self._sock.recv(RECEIVE_BYTES)
            except TimeoutError:
                return None
            except OSError as error:
                raise self._lost(error) from error
            if not data:
                raise self._lost(None)
            self._unpacker.feed(data)

    def _buffered(self) -> list[Any] | None:
        try:
            message = self._unpacker.unpack()
        except msgpack.OutOfData:
            return None
        except (ValueError, msgpack.UnpackException) as error:
            raise self._foreign(error) from error
        kind = message[0] if isinstance(message, list) and message else None
        if kind == REPLY and len(message) == 4:
            return list(message)
        if kind == NOTIFICATION and len(message) == 3:
            self._note(message[1], message[2])
            return list(message)
        raise self._foreign(None)

    def _note(self, method: str, params: list[Any]) -> None:
        if method == "rpc.protocol_error":
            self._parting = from_wire(params[0] if params else None)
        elif self.keep_notifications:
            self._notifications.append((method, params))

    def _cancel(self, msgid: int) -> None:
        """Tell the daemon that nobody waits any more; nothing is lost if it cannot be told."""
        try:
            self._send([NOTIFICATION, "rpc.cancel", [{"msgid": msgid}]], Deadline(SHORTEST_S))
        except MemdError:
            return

    def _lost(self, error: OSError | None, *, sent: bool = True) -> MemdError:
        self.close()
        if self._parting is not None:
            return self._parting
        why = error.strerror or str(error) if error else "closed by the daemon"
        return ConnectionLost(f"the connection to {self.path} is lost: {why}", {"path": self.path, "sent": sent})

    def _foreign(self, error: Exception | None) -> MemdError:
        self.close()
        msg = f"{self.path} does not speak MessagePack-RPC{f': {error}' if error else ''}"
        return ConnectionLost(msg, {"path": self.path, "sent": True, "foreign": True})
