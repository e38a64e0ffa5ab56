"""Mismatches in words, and what is put right instead."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, inspect

from memd.protocol.explain import describe, explain_mismatch, reshape, shape_of, show


class Inner(msgspec.Struct):
    count: int = 0


class Outer(msgspec.Struct):
    inner: Inner | None = None
    table: dict[str, Inner] = {}
    items: list[Inner] = []
    either: str | list[int] = ""
    number: float = 0
    anything: Any = None


class TestReshape:
    @pytest.mark.parametrize(
        ("value", "reshaped"),
        [
            ({"inner": []}, {"inner": {}}),
            ({"inner": {"count": 2.0}}, {"inner": {"count": 2}}),
            ({"table": []}, {"table": {}}),
            ({"table": {"a": [], "b": {"count": 1.0}}}, {"table": {"a": {}, "b": {"count": 1}}}),
            ({"items": [[], {"count": 1.0}]}, {"items": [{}, {"count": 1}]}),
            ({"either": [1.0]}, {"either": [1]}),
            ({"inner": [1]}, {"inner": [1]}),
            ({"inner": 5}, {"inner": 5}),
            ({"inner": {"count": 2.5}}, {"inner": {"count": 2.5}}),
            ({"number": 2.0, "anything": 2.0, "unknown": [2.0]}, {"number": 2.0, "anything": 2.0, "unknown": [2.0]}),
            ({"anything": []}, {"anything": []}),
            ({"either": {"a": 1.0}}, {"either": {"a": 1.0}}),
        ],
    )
    def test_only_where_the_struct_expects_it(self, value: Any, reshaped: Any) -> None:
        assert repr(reshaped) == repr(reshape(value, Outer))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (str, "a string"),
        (bool, "a boolean"),
        (int, "an integer"),
        (float, "a number"),
        (dict[str, int], "a map"),
        (Inner, "a map"),
        (Any, "any value"),
        (Inner | None, "a map"),
        (str | list[Inner], "a string or an array, each a map"),
        (Literal["a"], '"a"'),
        (Literal["a", "b"], '"a" or "b"'),
        (Literal["a", "b", "c"], '"a", "b" or "c"'),
        (Annotated[int, Meta(ge=1)], "an integer of at least 1"),
        (Annotated[int, Meta(le=9)], "an integer of at most 9"),
        (Annotated[int, Meta(ge=1, le=9)], "an integer from 1 to 9"),
        (Annotated[list[int], Meta(min_length=2, max_length=2)], "an array of 2, each an integer"),
    ],
)
def test_describe(kind: Any, words: str) -> None:
    assert words == describe(inspect.type_info(kind))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "nil"),
        ("ü", '"ü"'),
        ("x" * 41, '"' + "x" * 39 + '…"'),
        (True, "true"),
        (1.5, "1.5"),
        ([1], "an array"),
        ({}, "a map"),
    ],
)
def test_show(value: Any, text: str) -> None:
    """Short, whatever it is."""
    assert text == show(value)


@pytest.mark.parametrize(
    ("complaint", "value", "line"),
    [
        ("Expected `object`, got `int`", 5, "params: expected a map, got 5"),
        (
            "Expected `int`, got `str` - at `$.inner.count`",
            {"inner": {"count": "x"}},
            'inner.count: expected an integer, got "x"',
        ),
        (
            "Expected `int`, got `str` - at `$.items[1].count`",
            {"items": [{}, {"count": "x"}]},
            'items[1].count: expected an integer, got "x"',
        ),
        (
            "Expected `int`, got `str` - at `$.table[...].count`",
            {"table": {"a": {}}},
            "table[...].count: expected any value, got nil",
        ),
        ("Object missing required field `x` - at `$.inner`", {"inner": {}}, "inner.x: missing; it takes any value"),
    ],
)
def test_explain_mismatch(complaint: str, value: Any, line: str) -> None:
    """Field first, then what it takes and what came."""
    message, field = explain_mismatch(complaint, value, Outer)
    assert line == message
    assert field == line.partition(":")[0]


def test_shapes_are_asked_for_once() -> None:
    """Asking costs more than a request does."""
    assert shape_of(Outer) is shape_of(Outer)
