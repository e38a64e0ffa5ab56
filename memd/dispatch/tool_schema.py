"""The tool definition that a host offers to its model.

What comes in: the style of the host's API. What goes out: a plain map to pass on as it is. What must not be here: calling
the tool (``handlers/tool.py``), prompts of jobs.

Every backend has to take the schema: an object at the top, no combinators, no arrays of types, no references.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memd.protocol.types import Style

NAME = "memory"

DESCRIPTION = """\
Long-term memory that is part of every later conversation. It is small, so keep what will save the user from saying it \
again, in short statements of one fact each.

Worth saving: preferences and how the user likes to work; corrections you were given; lasting facts about the user, the \
environment and its conventions; quirks of tools that cost time once.
Leave out: small talk, what the project's own files already say, progress of the present task, raw output or long \
quotes, errors that happened once.

target "user" is for what would still be useful in another project: who the user is, what they prefer. target "memory" \
is for everything else: this environment, its conventions, lessons.

Actions: add (content); replace (a whole entry becomes content); edit (old_text inside an entry becomes new_text); \
remove; read. Name an entry by its id, or by old_text, a part of it that occurs in no other entry. Send several changes \
to one target together as operations: they are applied all or none, and only the final size counts.
When the store is full, remove, shorten or merge entries in the same batch as the new one. When an answer has done: true, \
do not call the tool again for this."""

_ACTIONS = ["add", "replace", "edit", "remove"]

_FIELDS: dict[str, Any] = {
    "content": {"type": "string", "description": "The entry's text, for add and replace."},
    "old_text": {
        "type": "string",
        "description": "For replace and remove: a part of the entry meant. For edit: the exact text to exchange.",
    },
    "new_text": {"type": "string", "description": "For edit: what takes the place of old_text; empty deletes it."},
    "id": {"type": "string", "description": "The id of the entry meant, as answers show it, instead of old_text."},
}


@cache
def _parameters() -> dict[str, Any]:
    operation = {
        "type": "object",
        "properties": {"action": {"type": "string", "enum": _ACTIONS, "description": "What to do."}, **_FIELDS},
        "required": ["action"],
    }
    return {
        "type": "object",
        "properties": {
            "action": {
                "type": "string",
                "enum": [*_ACTIONS, "read"],
                "description": "What to do; leave it out when operations are sent.",
            },
            "target": {"type": "string", "enum": ["memory", "user"], "description": "Which store."},
            **_FIELDS,
            "operations": {
                "type": "array",
                "items": operation,
                "description": "Several changes to the target, applied together instead of the single one.",
            },
        },
        "required": ["target"],
    }


def tool_schema(style: Style) -> dict[str, Any]:
    """The definition in the shape that this kind of API takes."""
    if style == "anthropic":
        return {"name": NAME, "description": DESCRIPTION, "input_schema": _parameters()}
    if style == "mcp":
        return {"name": NAME, "description": DESCRIPTION, "inputSchema": _parameters()}
    return {"type": "function", "function": {"name": NAME, "description": DESCRIPTION, "parameters": _parameters()}}
