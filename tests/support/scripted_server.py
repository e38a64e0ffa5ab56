"""A daemon that says what a test tells it to, on a real socket.

What comes in: one function per method. What goes out: replies, errors, notifications, silence or a closed connection.
What must not be here: memory. Threads, because the client under test blocks.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from typing import TYPE_CHECKING, Any

import msgpack

from memd_client.errors import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Self

USAGE = {"chars": 22, "limit": 2200, "free": 2178, "percent": 1, "near_limit": False}


class Call:
    """One request, and what can be done about it."""

    def __init__(self, sock: socket.socket, msgid: int, method: str, params: dict[str, Any]) -> None:
        self.method = method
        self.params = params
        self._sock = sock
        self._msgid = msgid

    def reply(self, result: Any) -> None:
        self._send([1, self._msgid, None, result])

    def fail(self, name: str, message: str = "no", **data: Any) -> None:
        cls = BY_NAME[name]
        error = {"code": cls.code, "name": name, "message": message, "retryable": cls.retryable, "data": data}
        self._send([1, self._msgid, error, None])

    def notify(self, method: str, *params: Any) -> None:
        self._send([2, method, list(params)])

    def raw(self, data: bytes) -> None:
        self._sock.sendall(data)

    def drop(self) -> None:
        self._sock.shutdown(socket.SHUT_RDWR)

    def _send(self, message: list[Any]) -> None:
        with contextlib.suppress(OSError):  # a client that has gone away is part of the tests
            self._sock.sendall(msgpack.packb(message))


class ScriptedServer:
    """Answers on ``path`` with ``script``; a method that is not in it is ``method_not_found``."""

    def __init__(self, path: Path, script: dict[str, Callable[[Call], None]] | None = None) -> None:
        self.path = path
        self.script: dict[str, Callable[[Call], None]] = {"hello": say_hello, "rpc.ping": say_nothing, **(script or {})}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.notes: list[tuple[str, list[Any]]] = []
        self.connections = 0
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener: socket.socket | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def methods(self) -> list[str]:
        """The methods called, without the handshakes."""
        return [method for method, _ in self.calls if method != "hello"]

    def start(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(os.fspath(self.path))
        self._listener.listen(64)
        self._run(self._accept, self._listener)

    def stop(self) -> None:
        if self._listener is not None:
            self._listener.shutdown(socket.SHUT_RDWR)
        for sock in self._open:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            self.path.unlink(missing_ok=True)
        self._open.clear()
        self._threads.clear()

    def restart(self) -> None:
        self.stop()
        self.start()

    def _run(self, target: Callable[[socket.socket], None], sock: socket.socket) -> None:
        thread = threading.Thread(target=target, args=(sock,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(sock)
            self._run(self._serve, sock)

    def _serve(self, sock: socket.socket) -> None:
        unpacker = msgpack.Unpacker()
        with sock, contextlib.suppress(OSError):
            while data := sock.recv(65536):
                unpacker.feed(data)
                for message in unpacker:
                    self._handle(sock, message)

    def _handle(self, sock: socket.socket, message: list[Any]) -> None:
        if message[0] == 2:
            self.notes.append((message[1], message[2]))
            return
        _, msgid, method, params = message
        call = Call(sock, msgid, method, params[0] if params else {})
        self.calls.append((method, call.params))
        handler = self.script.get(method)
        if handler is None:
            call.fail("method_not_found", f"there is no method {method!r}")
        else:
            handler(call)


def say_nothing(call: Call) -> None:
    call.reply({})


def say_hello(call: Call) -> None:
    store = {"path": "/m/MEMORY.md", "state": "ok", "usage": USAGE, "revision": 3}
    call.reply(
        {
            "protocol": 1,
            "server": {"name": "memd", "version": "0.1.0", "pid": os.getpid(), "instance": "i-1"},
            "profile": call.params.get("profile", "default"),
            "role": "agent",
            "context": call.params.get("context", "primary"),
            "access": "full",
            "limits": {"message_bytes": 8388608, "in_flight": 64, "connections": 1024, "deadline_ms": 10000},
            "features": ["memory"],
            "stores": {"memory": store, "user": {**store, "path": "/m/USER.md"}},
            "notices": [],
        }
    )


def answers(result: Any) -> Callable[[Call], None]:
    """A handler that always gives this result."""
    return lambda call: call.reply(result)


def in_turn(*handlers: Callable[[Call], None]) -> Callable[[Call], None]:
    """The first handler for the first call, and so on; the last one from then on."""
    left = list(handlers)

    def handle(call: Call) -> None:
        handler = left.pop(0) if len(left) > 1 else left[0]
        handler(call)

    return handle


def entry(text: str, number: int = 1, **fields: Any) -> dict[str, Any]:
    """An entry of the wire."""
    return {
        "id": f"e{number}",
        "text": text,
        "chars": len(text),
        "hash": "0" * 64,
        "origin": "agent",
        "created_at": "2026-01-01T00:00:00.000000Z",
        "created_us": 1_767_225_600_000_000,
        "updated_at": "2026-01-01T00:00:00.000000Z",
        "updated_us": 1_767_225_600_000_000,
        "findings": [],
        "undecodable": False,
        **fields,
    }


def mutation(text: str | None = "a fact", **fields: Any) -> dict[str, Any]:
    """A mutation's result."""
    shown = {} if text is None else {"entry": entry(text)}
    return {
        "changed": True,
        "target": "memory",
        "revision": 4,
        **shown,
        "changes": [],
        "usage": USAGE,
        "message": "added",
        "notices": [],
        "replayed": False,
        **fields,
    }
