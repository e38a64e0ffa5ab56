"""The tool's definition, in the shape that every backend takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from memd.dispatch.tool_schema import DESCRIPTION, tool_schema
from memd.profile.aliases import ACTIONS

if TYPE_CHECKING:
    from memd.protocol.types import Style

STYLES: list[Style] = ["openai", "anthropic", "mcp"]
FORBIDDEN = {"oneOf", "anyOf", "allOf", "not", "if", "$ref", "$defs", "definitions", "const", "additionalProperties"}


def parameters(style: Style) -> dict[str, Any]:
    schema = tool_schema(style)
    found: dict[str, Any] = {
        "openai": lambda: schema["function"]["parameters"],
        "anthropic": lambda: schema["input_schema"],
        "mcp": lambda: schema["inputSchema"],
    }[style]()
    return found


def schemas(node: Any) -> list[dict[str, Any]]:
    """The schema and all schemas inside it."""
    if not isinstance(node, dict):
        return []
    inner = [*node.get("properties", {}).values(), *([node["items"]] if "items" in node else [])]
    return [node, *(found for child in inner for found in schemas(child))]


@pytest.mark.parametrize("style", STYLES)
def test_it_is_an_object_without_anything_a_backend_refuses(style: Style) -> None:
    """No combinators, no references, no arrays of types."""
    top = parameters(style)
    assert "object" == top["type"]
    for schema in schemas(top):
        assert isinstance(schema["type"], str)
        assert set() == FORBIDDEN & set(schema)
        assert set(schema.get("required", ())) <= set(schema.get("properties", {}))


def test_all_actions_and_the_batch_are_there() -> None:
    """Read is an action of its own and none of a batch."""
    properties = parameters("openai")["properties"]
    assert [*ACTIONS, "read"] == properties["action"]["enum"]
    assert list(ACTIONS) == properties["operations"]["items"]["properties"]["action"]["enum"]
    assert ["memory", "user"] == properties["target"]["enum"]


@pytest.mark.parametrize("style", STYLES)
def test_it_is_called_memory_and_teaches_what_to_save(style: Style) -> None:
    """What to keep, what to leave out, which store, one batch, when to stop."""
    text = str(tool_schema(style))
    assert "'name': 'memory'" in text
    for word in ("preferences", "Leave out", 'target "user"', "operations", "done: true"):
        assert word in DESCRIPTION
    assert len(DESCRIPTION) < 2000
