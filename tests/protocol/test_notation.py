"""Types in short notation."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from msgspec import inspect

from memd.protocol.notation import escaped, fields_of, inline, notation, structs_in
from memd.protocol.results import DiffResult, ReadResult, StoreContent
from memd.protocol.types import Change, PerStore, SomeStores, Target, Usage


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (str, "str"),
        (bool, "bool"),
        (int, "int"),
        (float, "float"),
        (dict[str, Any], "map"),
        (Any, "any"),
        (str | None, "str"),
        (str | list[int], "str|[int]"),
        (list[Change], "[Change]"),
        (Target, '"memory"|"user"'),
        (Literal["none", "read", "add", "full"], '"none"|"read"|"add"|"full"'),
        (Literal["b", "a"], '"a"|"b"'),
        (PerStore[int], "{memory, user: int}"),
        (SomeStores[Usage], "{memory?, user?: Usage}"),
    ],
)
def test_notation(kind: Any, text: str) -> None:
    """Alternatives stand in the order in which the protocol has them."""
    assert text == notation(inspect.type_info(kind))


def test_neighbours_of_one_type_share_its_name() -> None:
    shape = inspect.type_info(Change)
    assert isinstance(shape, inspect.StructType)
    assert '{action: "add"|"replace"|"edit"|"remove", target: "memory"|"user", id, before?, after?: str}' == inline(
        shape
    )


def test_fields_by_their_names_on_the_wire() -> None:
    assert ["text", "changes"] == list(fields_of(inspect.type_info(DiffResult)))
    assert {} == fields_of(inspect.type_info(int))


def test_structs_in_a_type() -> None:
    """All of them, however deep, but for those that only pair the stores."""
    assert {"ReadResult", "StoreContent", "Entry", "Finding", "Usage"} == set(structs_in(inspect.type_info(ReadResult)))
    assert {"StoreContent", "Entry", "Finding", "Usage"} == set(
        structs_in(inspect.type_info(list[StoreContent] | None))
    )


def test_escaped() -> None:
    assert "a\\|b" == escaped("a|b")
