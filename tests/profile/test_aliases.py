"""The normaliser."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from memd.errors import InvalidParams
from memd.profile.aliases import ALIASES, normalise, operation, tool_operations
from memd.profile.values import Operation

EVERY_ALIAS = [
    (action, name, other) for action, table in ALIASES.items() for name, others in table.items() for other in others
]
WHOLE: dict[str, dict[str, object]] = {
    "add": {"content": "C"},
    "replace": {"content": "C", "old_text": "O"},
    "edit": {"old_text": "O", "new_text": "N"},
    "remove": {"old_text": "O"},
}


@pytest.mark.parametrize(("action", "name", "other"), EVERY_ALIAS)
def test_each_alias_stands_for_its_name(action: str, name: str, other: str) -> None:
    """Alone, beside an equal value, and beside null."""
    plain = {"action": action, **WHOLE[action]}
    value = plain[name]
    expected = operation(plain)
    aliased = {key: item for key, item in plain.items() if key != name} | {other: value}
    assert expected == operation(aliased) == operation({**plain, other: value}) == operation({**aliased, name: None})


@pytest.mark.parametrize(("action", "name", "other"), EVERY_ALIAS)
def test_alias_and_name_that_differ_are_an_error(action: str, name: str, other: str) -> None:
    """Which one is meant cannot be known; the field is named."""
    with pytest.raises(InvalidParams, match=f"{name} and {other} mean the same") as caught:
        operation({"action": action, **WHOLE[action], other: "something else"})
    assert name == caught.value.extra["field"]


def test_two_aliases_that_differ_are_an_error() -> None:
    """Even if the name itself is absent."""
    with pytest.raises(InvalidParams):
        operation({"action": "replace", "old": "a", "new": "b", "new_text": "c"})


def test_what_the_action_does_not_use_is_ignored() -> None:
    """Senders that fill in every field are understood."""
    expected = Operation("add", content="x")
    assert expected == operation({"action": "add", "content": "x", "old_text": "", "id": "", "if_hash": "", "more": 1})
    assert Operation("remove", id="e1") == operation({"action": "remove", "id": "e1", "content": "x"})


def test_null_is_absent() -> None:
    """In every field."""
    assert {"action": "add", "content": "x"} == normalise(
        {"action": "add", "content": "x", "old_text": None, "if_hash": None}, action="add"
    )
    with pytest.raises(InvalidParams, match="content is needed for add"):
        operation({"action": "add", "content": None})


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "action"),
        ({"action": None}, "action"),
        ({"action": "explode"}, "action"),
        ({"action": ["add"]}, "action"),
        ({"action": {"add": 1}}, "action"),
        ({"action": "add"}, "content"),
        ({"action": "add", "content": 5}, "content"),
        ({"action": "add", "text": ["x"]}, "text"),
        ({"action": "replace", "content": "x"}, "old_text"),
        ({"action": "replace", "content": "x", "old_text": " \n"}, "old_text"),
        ({"action": "replace", "old_text": "x"}, "content"),
        ({"action": "replace", "content": "x", "id": 7}, "id"),
        ({"action": "edit", "old_text": "x"}, "new_text"),
        ({"action": "edit", "new_text": "x", "id": "e1"}, "old_text"),
        ({"action": "edit", "new_text": "x", "old_text": ""}, "old_text"),
        ({"action": "remove"}, "old_text"),
        ({"action": "remove", "id": ""}, "old_text"),
        ({"action": "remove", "old_text": "\ud800"}, "old_text"),
    ],
)
def test_errors_name_the_field(arguments: dict[str, object], field: str) -> None:
    """And for an action, the valid values."""
    with pytest.raises(InvalidParams) as caught:
        operation(arguments)
    assert field == caught.value.extra["field"]
    assert field != "action" or caught.value.extra["valid"] == ["add", "replace", "edit", "remove"]


def test_an_edit_takes_its_texts_as_they_are() -> None:
    """A blank is text to look for, and nothing is text to put there."""
    assert Operation("edit", old_text=" ", new_text="") == operation(
        {"action": "edit", "old_text": " ", "new_text": ""}
    )


ONE = {"action": "add", "content": "x"}
ADD = Operation("add", content="x")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"target": "memory", **ONE}, ("memory", [ADD], False)),
        ({"target": "user", "action": "read"}, ("user", [], False)),
        ({"target": "memory", **ONE, "operations": []}, ("memory", [ADD], False)),
        ({"target": "memory", **ONE, "operations": None}, ("memory", [ADD], False)),
        ({"target": "memory", **ONE, "operations": ""}, ("memory", [ADD], False)),
        ({"target": "memory", "operations": [ONE]}, ("memory", [ADD], True)),
        ({"target": "memory", "action": "apply", "operations": [ONE, ONE]}, ("memory", [ADD, ADD], True)),
        ({"target": "memory", "action": "", "content": "", "operations": [ONE]}, ("memory", [ADD], True)),
        ({"target": "memory", "operations": ONE}, ("memory", [ADD], True)),
        ({"target": "memory", "operations": json.dumps([ONE])}, ("memory", [ADD], True)),
        ({"target": "memory", "operations": [json.dumps(ONE)]}, ("memory", [ADD], True)),
        ({"target": "memory", "action": "add", "operations": [{"content": "x"}]}, ("memory", [ADD], True)),
        ({"operations": [{**ONE, "target": "user"}]}, ("user", [ADD], True)),
        (json.dumps({"target": "memory", **ONE}), ("memory", [ADD], False)),
    ],
)
def test_what_models_send_is_understood(arguments: object, expected: tuple[str, list[Operation], bool]) -> None:
    """One operation or many, encoded once or twice."""
    assert expected == tool_operations(arguments)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (None, "arguments"),
        ("nonsense", "arguments"),
        ("{broken", "arguments"),
        ([ONE], "arguments"),
        ({}, "target"),
        ({"target": "nowhere", **ONE}, "target"),
        ({"target": ["memory"], **ONE}, "target"),
        ({"target": "memory"}, "action"),
        ({"target": "memory", "action": "batch", "operations": []}, "operations"),
        ({"target": "memory", "action": None, "operations": []}, "operations"),
        ({"target": "memory", "action": None, "operations": ["bad"]}, "operations[0]"),
        ({"target": "memory", "operations": 5}, "operations"),
        ({"target": "memory", "operations": "[broken"}, "operations"),
        ({"target": "memory", "operations": "text"}, "operations"),
        ({"target": "memory", "operations": [ONE, {"action": "add"}]}, "operations[1].content"),
        ({"target": "memory", "operations": [{}]}, "operations[0].action"),
        ({"target": "memory", "content": "y", "operations": [ONE]}, "content"),
        ({"target": "memory", "action": "explode", "operations": [ONE]}, "action"),
        ({"target": "memory", "action": {"a": 1}, "operations": [ONE]}, "action"),
        ({"target": "memory", "operations": [{**ONE, "target": "user"}]}, "operations[0].target"),
        ({"operations": [{**ONE, "target": "user"}, {**ONE, "target": "memory"}]}, "operations[1].target"),
        ({"target": "memory", "operations": "[" * 100_000}, "operations"),
    ],
)
def test_nonsense_is_an_error_with_a_field(arguments: object, field: str) -> None:
    """Never anything but invalid parameters."""
    with pytest.raises(InvalidParams) as caught:
        tool_operations(arguments)
    assert field == caught.value.extra["field"]
    caught.value.message.encode()


def _values() -> st.SearchStrategy[Any]:
    names = st.sampled_from(["action", "target", "operations", "content", "old_text", "new_text", "id", "new", "x"])
    words = st.sampled_from(["add", "replace", "edit", "remove", "read", "memory", "user", "", "[1]", "{}", "\ud800"])
    leaf = st.none() | st.booleans() | st.integers() | st.floats() | words | st.text(max_size=4)
    return st.recursive(leaf, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=5))


@given(_values())
def test_any_arguments_give_operations_or_an_error(arguments: object) -> None:
    """Whatever a model thinks of."""
    try:
        target, operations, batch = tool_operations(arguments)
    except InvalidParams as error:
        error.message.encode()
    else:
        assert target in {"memory", "user"}
        assert batch or len(operations) <= 1
