"""The wire structs: what is left out, what is renamed, and both forms of a time."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from support.structs import lossless, structs

from memd.protocol import types
from memd.protocol.types import Change, Finding, PerStore, WireStruct, rfc3339


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "1970-01-01T00:00:00.000000Z"),
        (1_700_000_000_000_001, "2023-11-14T22:13:20.000001Z"),
        (-5, "1970-01-01T00:00:00.000000Z"),
        (2**63, "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_rfc3339(us: int, text: str) -> None:
    """All six digits, UTC, and nothing that cannot be written."""
    assert text == rfc3339(us)


def test_optional_fields_are_left_out() -> None:
    change = Change(action="add", target="user", id="a", after="x")
    assert {"action": "add", "target": "user", "id": "a", "after": "x"} == msgspec.to_builtins(change)


def test_a_reserved_word_has_its_own_name_on_the_wire() -> None:
    finding = Finding(rule="r", class_="c", severity="warn", start=0, end=1, reason="")
    assert "c" == msgspec.to_builtins(finding)["class"]


@pytest.mark.parametrize("struct", structs(types), ids=lambda struct: struct.__name__)
def test_no_field_that_a_reply_promises_can_be_left_out(struct: type[msgspec.Struct]) -> None:
    """Leaving out defaults may drop None only: a default of any other value would vanish from the wire."""
    if issubclass(struct, WireStruct):
        assert lossless(struct)


def test_generic_shapes_are_described() -> None:
    schema: dict[str, Any] = msgspec.json.schema(PerStore[int])
    assert {"memory", "user"} == set(next(iter(schema["$defs"].values()))["properties"])
