"""Load for a Unix socket: closed loops over raw sockets, light enough to leave the processor to the daemon.

What comes in: connected sockets and a way to make the next request. What goes out: latencies in microseconds. What must not
be here: the meaning of a reply beyond whether it is an error.
"""

from __future__ import annotations

import selectors
import time
from typing import TYPE_CHECKING, Any

import msgpack
from bench.baseline import SLOTS, entry

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

_MARK = "0123456789"  # stands for the counter in a request that is packed once


class Replacing:
    """Requests of one client: each replaces the client's entry. Packed once; only number and counter are put in."""

    def __init__(self, client: int) -> None:
        self._counter = client * 10_000_000
        slot = client % SLOTS
        content = entry(slot, 0).replace("0" * 10, _MARK)
        packed = packed_call("memory.replace", {"target": "memory", "old_text": f"slot {slot:02}:", "content": content})
        self._head, self._tail = packed.split(_MARK.encode())

    def __call__(self) -> bytes:
        self._counter += 1
        return self._head + b"%010d" % self._counter + self._tail


def packed_call(method: str, params: dict[str, Any], msgid: int = 1) -> bytes:
    """A request."""
    packed = msgpack.packb([0, msgid, method, [params]])
    assert isinstance(packed, bytes)
    return packed


def closed_loops(sockets: list[socket.socket], requests: list[Callable[[], bytes]], seconds: float) -> list[int]:
    """Each connection sends its next request as soon as the last is answered, for so many seconds.

    Raises:
        AssertionError: A reply is an error, or a connection was closed.
    """
    latencies: list[int] = []
    with selectors.DefaultSelector() as selector:
        now = time.perf_counter_ns()
        end = now + int(seconds * 1e9)
        sent = [now] * len(sockets)
        unpackers = [msgpack.Unpacker() for _ in sockets]
        for index, sock in enumerate(sockets):
            selector.register(sock, selectors.EVENT_READ, index)
            sock.sendall(requests[index]())
        waiting = len(sockets)
        while waiting:
            for key, _ in selector.select():
                index = key.data
                sock = sockets[index]
                if not answered(sock, unpackers[index]):
                    continue
                now = time.perf_counter_ns()
                latencies.append((now - sent[index]) // 1000)
                if now < end:
                    sent[index] = now
                    sock.sendall(requests[index]())
                else:
                    waiting -= 1
    return latencies


def answered(sock: socket.socket, unpacker: msgpack.Unpacker) -> bool:
    """Read what is there; whether it completed the reply that is waited for."""
    data = sock.recv(65536)
    assert data, "the daemon closed the connection"
    unpacker.feed(data)
    try:
        assert unpacker.read_array_header() == 4
    except msgpack.OutOfData:
        return False
    kind, _, error = unpacker.unpack(), unpacker.unpack(), unpacker.unpack()
    assert (kind, error) == (1, None), error
    unpacker.skip()
    return True


def round_trips(sock: socket.socket, request: bytes, size: int, count: int) -> list[int]:
    """Nanoseconds of each of ``count`` requests, one after the other, whose replies have ``size`` bytes each."""
    latencies = []
    buffer = bytearray(size)
    for _ in range(count):
        start = time.perf_counter_ns()
        sock.sendall(request)
        received = 0
        while received < size:
            received += sock.recv_into(memoryview(buffer)[received:])
        latencies.append(time.perf_counter_ns() - start)
    return latencies


def reply_size(sock: socket.socket, request: bytes) -> int:
    """How long the reply to this request is."""
    unpacker = msgpack.Unpacker()
    sock.sendall(request)
    size = 0
    while True:
        data = sock.recv(65536)
        size += len(data)
        unpacker.feed(data)
        try:
            unpacker.skip()
        except msgpack.OutOfData:
            continue
        return size
