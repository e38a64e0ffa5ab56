"""Saying what no client library would let one say, and taking the answers apart.

What comes in: bytes for a daemon. What goes out: the answers, checked to have the contract's shape. What must not be here:
what an answer should be.
"""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, Any

import msgpack
import pytest
from support.rpc import RpcError

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.daemon import DaemonProcess
    from support.rpc import Peer

MESSAGE_BYTES = 512 * 1024
CONNECTIONS = 24
SETTINGS = f"""
[wire]
message_bytes = {MESSAGE_BYTES}
connections = {CONNECTIONS}
[limits]
memory = 1000000
user = 1000000
"""
"""Limits low enough to be reached in no time, and stores that are never full."""

MSGID = 7_000_000
"""Of messages made by hand; a ``Peer`` counts its own from 1."""


def raw_request(method: bytes, params: bytes) -> bytes:
    """A request whose method and parameters are encoded already."""
    return bytes(b"\x94\x00" + msgpack.packb(MSGID) + method + params)


def ask(peer: Peer, params: bytes, method: str = "memory.add") -> Any:
    """Send a request with parameters that are encoded already, and wait for the result."""
    peer.socket.sendall(raw_request(msgpack.packb(method), params))
    return peer.wait(MSGID)


def refusal(call: Callable[..., Any], *args: Any, **params: Any) -> dict[str, Any]:
    """The error that a call is answered with, which has everything that an error has."""
    with pytest.raises(RpcError) as refused:
        call(*args, **params)
    error: dict[str, Any] = refused.value.error
    assert {"code", "name", "message", "retryable", "data"} == set(error)
    assert error["message"]
    return error


def farewell(peer: Peer) -> dict[str, Any]:
    """The error that comes unasked; after it the daemon hangs up."""
    error = complaint(peer)
    with pytest.raises(ConnectionError):
        peer.wait_notification("never sent")
    return error


def complaint(peer: Peer) -> dict[str, Any]:
    """The error that comes unasked."""
    (error,) = peer.wait_notification("rpc.protocol_error")
    assert isinstance(error, dict)
    return error


def shout(daemon: DaemonProcess, data: bytes) -> list[Any]:
    """Send this and no more; all that is said until the daemon hangs up."""
    unpacker = msgpack.Unpacker(raw=False, strict_map_key=False)
    with daemon.connect() as peer:
        with contextlib.suppress(ConnectionError):  # it may have hung up already
            peer.socket.sendall(data)
            peer.socket.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):  # it had not read everything
            while answer := peer.socket.recv(65536):
                unpacker.feed(answer)
    return list(unpacker)
