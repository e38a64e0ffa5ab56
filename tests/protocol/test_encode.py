"""What memd sends: plain, strict, and each error in both of its forms."""

from __future__ import annotations

from typing import Any

import msgpack
import msgspec
import pytest

from memd.errors import AmbiguousMatch, Busy, InternalError, NotFound, OverLimit, ReadOnly, WireError
from memd.protocol.encode import (
    encode_error,
    encode_event,
    encode_protocol_error,
    encode_result,
    error_map,
    error_pair,
)
from memd.protocol.results import Empty
from memd.protocol.types import EntryRef, Event, SomeStores, rfc3339


def unpack(message: bytes) -> Any:
    return msgpack.unpackb(message, strict_map_key=True)


def test_a_result() -> None:
    """Optional fields that are None are left out."""
    assert [1, 7, None, {"user": 3}] == unpack(encode_result(7, SomeStores(user=3)))
    assert [1, 2**64 - 1, None, {}] == unpack(encode_result(2**64 - 1, Empty()))


def test_a_result_that_was_encoded_before() -> None:
    """As a whole and in parts."""
    raw = msgspec.Raw(msgpack.packb({"a": 1}))
    assert [1, 7, None, {"a": 1}] == unpack(encode_result(7, raw))
    assert [1, 7, None, {"memory": {"a": 1}}] == unpack(encode_result(7, SomeStores(memory=raw)))


@pytest.mark.parametrize("number", [0, 127, 128, 2**16, 2**32, 2**63, -1, -33, -(2**31)])
def test_ints_are_as_short_as_they_can_be(number: int) -> None:
    assert msgpack.packb([1, 1, None, number]) == encode_result(1, number)


def test_the_map_form() -> None:
    """All five fields are there, whatever is known."""
    error = OverLimit("too much", excess=25)
    assert {
        "code": 22,
        "name": "over_limit",
        "message": "too much",
        "retryable": False,
        "data": {"excess": 25},
    } == error_map(error)
    assert [1, 3, error_map(error), None] == unpack(encode_error(3, error))


def test_what_is_known_about_the_outcome_is_data() -> None:
    assert {"outcome": "unknown", "path": "/x", "errno": 13} == error_map(
        ReadOnly("no", path="/x", errno=13, outcome="unknown")
    )["data"]
    assert error_map(Busy("later"))["retryable"]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (InternalError("a bug"), "internal: a bug"),
        (
            NotFound("nothing matches", nearest=[{"id": "m3f2", "chars": 1, "text": "x"}]),
            "not_found: nothing matches — m3f2",
        ),
        (NotFound("nothing matches", nearest=[]), "not_found: nothing matches"),
        (
            AmbiguousMatch("two match", matches=[EntryRef(id="a1", chars=1, text="x")]),
            "ambiguous_match: two match — a1",
        ),
        (OverLimit("too much", excess=25, entries=[]), "over_limit: too much — 25"),
    ],
)
def test_the_pair_form_ends_with_what_the_caller_needs(error: WireError, line: str) -> None:
    """Neovim shows this one line and nothing else."""
    assert (0, line) == error_pair(error)
    assert [1, 3, [0, line], None] == unpack(encode_error(3, error, "pair"))


def test_an_event() -> None:
    event = Event(seq=4, at=rfc3339(0), us=0, topic="memory.changed", profile="default", data={}, revision=7)
    assert [
        2,
        "event",
        [
            {
                "seq": 4,
                "at": "1970-01-01T00:00:00.000000Z",
                "us": 0,
                "topic": "memory.changed",
                "profile": "default",
                "data": {},
                "revision": 7,
            }
        ],
    ] == unpack(encode_event(event))


def test_a_protocol_error() -> None:
    error = InternalError("a bug")
    assert [2, "rpc.protocol_error", [error_map(error)]] == unpack(encode_protocol_error(error))


@pytest.mark.parametrize("msgid", [0, 1, 127, 128, 2**32 - 1])
def test_a_result_that_was_encoded_before_is_taken_as_it_is(msgid: int) -> None:
    """Byte for byte what encoding it now gives."""
    result = {"text": "x" * 5000, "stale": False}
    assert encode_result(msgid, result) == encode_result(msgid, msgspec.Raw(msgspec.msgpack.encode(result)))
