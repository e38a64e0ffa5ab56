"""Every error of the shared vectors, against the classes that make them."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from support.vectors import by_name, load

from memd.errors import WireError, wire_errors
from memd.protocol.encode import encode_error

ERRORS = load("errors")
CLASSES = {cls.wire_name: cls for cls in wire_errors()}


def rebuilt(item: dict[str, Any]) -> WireError:
    """The error with the vector's message and data, whatever its class would compose."""
    body = item["map"]["value"][2]
    error = CLASSES[item["name"]].__new__(CLASSES[item["name"]])
    WireError.__init__(error, body["message"], **body["data"])
    return error


def test_the_vectors_are_complete() -> None:
    """A new error without a vector fails here, and so does a vector without an error."""
    assert sorted(CLASSES) == sorted(item["name"] for item in ERRORS)


@pytest.mark.parametrize("item", ERRORS, ids=by_name)
def test_name_code_and_retryable(item: dict[str, Any]) -> None:
    cls = CLASSES[item["name"]]
    assert (item["code"], item["retryable"]) == (cls.code, cls.retryable)


@pytest.mark.parametrize("item", ERRORS, ids=by_name)
@pytest.mark.parametrize("form", ["map", "pair"])
def test_both_forms_byte_for_byte(item: dict[str, Any], form: Any) -> None:
    """The map's fields stand in one order, so that clients can be compared; they must not depend on it."""
    sent = encode_error(5, rebuilt(item), form)
    assert item[form]["value"] == msgpack.unpackb(sent)
    assert bytes.fromhex(item[form]["hex"]) == sent
