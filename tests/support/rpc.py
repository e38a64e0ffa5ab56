"""A bare MessagePack-RPC peer for tests: it knows the wire and nothing of memd.

What comes in: the path of a socket, methods, parameters. What goes out: results, or ``RpcError`` with the error map.
What must not be here: typed results, retries, or anything else that could paper over what the daemon does.
"""

from __future__ import annotations

import itertools
import socket
from typing import TYPE_CHECKING, Any, Self

import msgpack

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE_S = 60.0


class RpcError(Exception):
    """An error reply; ``error`` is its map."""

    def __init__(self, error: Any) -> None:
        super().__init__(repr(error))
        self.error = error

    @property
    def name(self) -> str:
        return str(self.error["name"])


class Peer:
    """One connection. ``notifications`` collects what the daemon sent unasked, as ``[method, params]``."""

    def __init__(self, path: Path, *, timeout: float = PATIENCE_S) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout)
        try:
            self.socket.connect(str(path))
        except OSError:
            self.socket.close()
            raise
        self.notifications: list[list[Any]] = []
        self._unpacker = msgpack.Unpacker(raw=False, strict_map_key=False)
        self._ids = itertools.count(1)
        self._replies: dict[int, list[Any]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def send(self, method: str, **params: Any) -> int:
        """Send a request without waiting; the number is for ``wait``."""
        number = next(self._ids)
        self.socket.sendall(msgpack.packb([0, number, method, [params] if params else []]))
        return number

    def wait(self, number: int) -> Any:
        """The result of a request that was sent.

        Raises:
            RpcError: The reply is an error.
            ConnectionError: The daemon closed the connection before it answered.
        """
        while number not in self._replies:
            self._read()
        error, result = self._replies.pop(number)
        if error is not None:
            raise RpcError(error)
        return result

    def call(self, method: str, **params: Any) -> Any:
        """Send and wait."""
        return self.wait(self.send(method, **params))

    def wait_notification(self, method: str) -> Any:
        """Take the first notification of this name, which may have come already."""
        while True:
            for index, (name, params) in enumerate(self.notifications):
                if name == method:
                    del self.notifications[index]
                    return params
            self._read()

    def _read(self) -> None:
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionResetError
        self._unpacker.feed(data)
        for message in self._unpacker:
            if message[0] == 1:
                self._replies[message[1]] = message[2:]
            else:
                self.notifications.append(message[1:])
