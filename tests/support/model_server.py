"""A model's endpoint that answers as it is told, over a real socket.

What comes in: replies, one for each request, in order. What goes out: its URL, the requests that came. What must not be here: any sense.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio

from memd.errors import ReviewFailed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class ModelServer:
    """Use ``serving``. A reply is a JSON value, ``(status, headers, bytes)``, or bytes to send as they are before the connection is cut."""

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.url = ""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[ModelServer]:
        async with trio.open_nursery() as nursery:
            (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
            self.url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
            nursery.start_soon(trio.serve_listeners, self._serve, [listener])
            failure: ReviewFailed | None = None
            try:
                yield self
            except ReviewFailed as error:  # out of the nursery, so that it is no group
                failure = error
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _serve(self, stream: trio.SocketStream) -> None:
        with trio.CancelScope():
            head, rest = await self._head(stream)
            lines = head.decode().split("\r\n")
            fields = dict(line.split(": ", 1) for line in lines[1:])
            headers = {name.lower(): value for name, value in fields.items()}
            while len(rest) < int(headers.get("content-length", 0)):
                rest += await stream.receive_some(65_536)
            self.paths.append(lines[0].split(" ")[1])
            self.headers.append(headers)
            self.requests.append(json.loads(rest))
            await stream.send_all(_encoded(self.replies.pop(0)))
        await stream.aclose()

    async def _head(self, stream: trio.SocketStream) -> tuple[bytes, bytes]:
        data = b""
        while b"\r\n\r\n" not in data:
            data += await stream.receive_some(65_536)
        head, rest = data.split(b"\r\n\r\n", 1)
        return head, rest


def _encoded(reply: Any) -> bytes:
    if isinstance(reply, bytes):
        return reply
    status, headers, body = reply if isinstance(reply, tuple) else (200, {}, json.dumps(reply).encode())
    fields = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close", **headers}
    lines = [f"HTTP/1.1 {status} Scripted", *(f"{name}: {value}" for name, value in fields.items())]
    return b"\r\n".join([*(line.encode() for line in lines), b"", bytes(body)])


def said(content: str | None = None, *calls: Any, ended: str = "stop", **message: Any) -> dict[str, Any]:
    """An answer of ``/chat/completions``: words, or calls of the memory tool with these arguments (raw if they are a map with an id)."""
    made = [call if isinstance(call, dict) and "function" in call else called(call) for call in calls]
    spoken = {"role": "assistant", "content": content, **({"tool_calls": made} if made else {}), **message}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 60}}
    return {"model": "tiny", "choices": [{"finish_reason": ended, "message": spoken}], "usage": usage}


def called(arguments: Any, name: str = "memory", **fields: Any) -> dict[str, Any]:
    """One call; arguments that are no text are encoded once."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": text}, **fields}
