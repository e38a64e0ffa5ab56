"""Telling the kinds of message apart, and naming what is none of them."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import given, strategies as st

from memd.protocol.messages import Notification, Reply, Request, Unusable, classify


def pack(*parts: Any) -> bytes:
    return bytes(msgpack.packb(list(parts)))


class TestRequests:
    def test_a_request(self) -> None:
        """Its parameters stay undecoded."""
        request = classify(pack(0, 7, "memory.read", [{"target": "user"}]))
        assert isinstance(request, Request)
        assert (7, "memory.read") == (request.msgid, request.method)
        assert msgpack.packb([{"target": "user"}]) == bytes(request.params)
        assert len(bytes(request.params)) == request.size

    @pytest.mark.parametrize("msgid", [0, 2**32 - 1, 2**64 - 1, -1, 5.0])
    def test_any_integer_is_a_msgid(self, msgid: float) -> None:
        """Also wider ones than the specification has, and integral floats of languages without ints."""
        request = classify(pack(0, msgid, "rpc.ping", []))
        assert isinstance(request, Request)
        assert int(msgid) == request.msgid
        assert type(request.msgid) is int

    def test_a_method_sent_as_bin(self) -> None:
        request = classify(pack(0, 1, b"rpc.ping", []))
        assert isinstance(request, Request)
        assert "rpc.ping" == request.method

    def test_parameters_nested_too_deep_to_skip(self) -> None:
        """The request is still answered, so it keeps its msgid."""
        request = classify(b"\x94\x00\x05\xa1x" + b"\x91" * 5000 + b"\xc0")
        assert isinstance(request, Request)
        assert 5 == request.msgid
        assert 5001 == request.size

    @pytest.mark.parametrize("params", [None, {"a": 1}, "x"])
    def test_parameters_of_the_wrong_kind_are_left_to_the_decoder(self, params: Any) -> None:
        assert isinstance(classify(pack(0, 1, "x", params)), Request)


class TestOthers:
    def test_a_notification(self) -> None:
        notification = classify(pack(2, "rpc.cancel", [{"msgid": 1}]))
        assert isinstance(notification, Notification)
        assert "rpc.cancel" == notification.method

    def test_a_notification_with_its_method_as_bin(self) -> None:
        assert isinstance(classify(pack(2, b"rpc.cancel", [])), Notification)

    def test_a_stray_reply(self) -> None:
        assert isinstance(classify(pack(1, 3, None, {})), Reply)
        assert isinstance(classify(pack(1, 3.0, None, {})), Reply)
        assert isinstance(classify(pack(1, 3.0, {"code": 1}, {})), Reply)


class TestUnusable:
    @pytest.mark.parametrize(
        ("message", "msgid"),
        [
            (pack(0, 7, "x"), 7),
            (pack(0, 7, "x", [], 0), 7),
            (pack(0, 7), 7),
            (pack(0, 7, 5, []), 7),
            (pack(0, 7, {"x": 1}, []), 7),
            (pack({}, 7, "x", []), None),
            (pack(0, [7], "x", []), None),
            (pack(0, 7, [], [], []), 7),
            (pack(0, 7, ["x"], []), 7),
            (pack(0, 7, b"\xff", []), 7),
            (b"\x94\x00\x07\xa1\xff\x90", 7),
            (pack(0, 7, msgpack.ExtType(1, b"x"), []), 7),
            (pack(9, 7, "x", []), 7),
            (pack("0", 7, "x", []), 7),
            (pack(0, "7", "x", []), None),
            (pack(0, True, "x", []), None),
            (pack(0, 7.5, "x", []), None),
            (pack(0, None, "x", []), None),
            (pack(0, 1e300, "x", []), None),
            (pack(1, 7), None),
            (pack(2, 7), None),
            (pack(2, 7, "x", []), None),
            (pack(2, 5, []), None),
            (pack(), None),
            (pack(0), None),
            (msgpack.packb({"jsonrpc": "2.0"}), None),
            (msgpack.packb(71), None),
            (msgpack.packb("GET / HTTP/1.1"), None),
            (msgpack.packb([0, 7, *["x"] * 70_000]), 7),
            (msgpack.packb([0, 7, *["x"] * 20]), 7),
        ],
    )
    def test_none_of_the_three_kinds(self, message: bytes, msgid: int | None) -> None:
        """It is answered if there is a msgid to answer to."""
        found = classify(message)
        assert isinstance(found, Unusable)
        assert msgid == found.msgid
        assert "invalid_request" == found.error.wire_name

    def test_the_error_names_the_right_shapes(self) -> None:
        found = classify(pack(0, 7, "x"))
        assert isinstance(found, Unusable)
        assert (
            "a message is [0, msgid, method, params] or [2, method, params]; got an array of 3 with kind 0"
            == found.error.message
        )


@given(st.binary(min_size=1, max_size=100))
def test_whole_objects_never_fail(data: bytes) -> None:
    """Whatever object it is, it is one of the four."""
    unpacker = msgpack.Unpacker()
    unpacker.feed(data)
    try:
        unpacker.skip()
    except (msgpack.OutOfData, ValueError):
        return
    assert isinstance(classify(data[: unpacker.tell()]), Request | Reply | Notification | Unusable)
