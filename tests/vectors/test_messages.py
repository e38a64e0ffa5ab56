"""Every message of the shared vectors, whole, byte by byte, and with trailing bytes, in both directions."""

from __future__ import annotations

from typing import Any

import msgpack
import msgspec
import pytest
from support.vectors import by_name, load

from memd.errors import InvalidParams, RemoteProtocolError
from memd.protocol.connection import NEED_DATA, Event, ServerConnection
from memd.protocol.decode import decode_params
from memd.protocol.messages import Notification, Request, Unusable
from memd.protocol.params import MemoryAdd, MemoryApply, MemoryExplain, MemoryRead, Params, RpcPing

MESSAGES = load("messages")
FROM_CLIENT = [item for item in MESSAGES if item["from"] == "client"]
FROM_SERVER = [item for item in MESSAGES if item["from"] == "server"]
REQUESTS = [item for item in FROM_CLIENT if item["gives"] == "request"]
REFUSED = [item for item in FROM_CLIENT if item["gives"] == "invalid_params"]
BROKEN = [item for item in FROM_CLIENT if item["gives"] == "broken"]
WHOLE = [item for item in FROM_CLIENT if item["gives"] != "broken"]

METHODS: dict[str, type[Params]] = {
    "rpc.ping": RpcPing,
    "memory.add": MemoryAdd,
    "memory.apply": MemoryApply,
    "memory.explain": MemoryExplain,
    "memory.read": MemoryRead,
}
KINDS = {"request": Request, "notification": Notification, "invalid_params": Request, "invalid_request": Unusable}
NEXT = bytes(msgpack.packb([0, 99, "rpc.ping", []]))


def read(*pieces: bytes) -> list[Event]:
    """The events of these pieces."""
    core = ServerConnection()
    found: list[Event] = []
    for piece in pieces:
        core.receive_data(piece)
        while (event := core.next_event()) is not NEED_DATA:
            found.append(event)
    return found


def message(item: dict[str, Any]) -> bytes:
    return bytes.fromhex(item["hex"])


def single(data: bytes) -> list[bytes]:
    return [bytes([byte]) for byte in data]


@pytest.mark.parametrize("item", WHOLE, ids=by_name)
@pytest.mark.parametrize("cut", ["whole", "byte by byte", "with trailing bytes"])
def test_what_a_client_sends(item: dict[str, Any], cut: str) -> None:
    """It is what the vector says, however it arrives, and the message behind it is read too."""
    pieces = {
        "whole": [message(item), NEXT],
        "byte by byte": single(message(item) + NEXT),
        "with trailing bytes": [message(item) + NEXT[:4], NEXT[4:]],
    }[cut]
    *events, after = read(*pieces)
    assert isinstance(after, Request)
    assert 99 == after.msgid
    if item["gives"] == "nothing":
        assert [] == events
        return
    (event,) = events
    assert isinstance(event, KINDS[item["gives"]])


@pytest.mark.parametrize("item", REQUESTS, ids=by_name)
def test_requests_are_understood(item: dict[str, Any]) -> None:
    """Method and parameters are those that the vector names."""
    (event,) = read(message(item))
    assert isinstance(event, Request)
    decoded = decode_params(event.params, METHODS[event.method])
    sent = item["value"][3] if "value" in item else []
    wanted = item.get("params", sent[0] if sent else {})
    assert msgspec.convert(wanted, METHODS[event.method]) == decoded
    if "value" in item:
        assert item["value"][1:3] == [event.msgid, event.method]


@pytest.mark.parametrize("item", REFUSED, ids=by_name)
def test_parameters_that_are_refused(item: dict[str, Any]) -> None:
    """The reply has the msgid, the error names the field."""
    (event,) = read(message(item))
    assert isinstance(event, Request)
    assert item["msgid"] == event.msgid
    with pytest.raises(InvalidParams) as caught:
        decode_params(event.params, METHODS[event.method])
    assert item.get("field") == caught.value.data().get("field")


@pytest.mark.parametrize("item", [item for item in FROM_CLIENT if item["gives"] == "invalid_request"], ids=by_name)
def test_messages_that_are_none(item: dict[str, Any]) -> None:
    """There is a reply if there is a msgid to reply to."""
    (event,) = read(message(item))
    assert isinstance(event, Unusable)
    assert item.get("msgid") == event.msgid


@pytest.mark.parametrize("item", BROKEN, ids=by_name)
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "byte by byte"])
def test_broken_framing(item: dict[str, Any], *, whole: bool) -> None:
    """As soon as the header stands there."""
    with pytest.raises(RemoteProtocolError) as caught:
        read(*([message(item)] if whole else single(message(item))))
    assert item["error"] == caught.value.wire.wire_name


@pytest.mark.parametrize("item", FROM_SERVER, ids=by_name)
def test_what_memd_sends(item: dict[str, Any]) -> None:
    """The bytes are those that memd's encoder makes of the value: shortest headers, str, no ext."""
    assert message(item) == msgspec.msgpack.encode(item["value"])
    assert item["value"] == msgpack.unpackb(message(item))
