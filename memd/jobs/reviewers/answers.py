"""What a model answers in words: the operations in it, wherever they are.

What comes in: text. What goes out: operations as plain maps. What must not be here: trying them (``desk``).
"""

from __future__ import annotations

import json
from typing import Any

from memd.errors import ReviewFailed

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "operations": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "action": {"type": "string", "enum": ["add", "replace", "edit", "remove"]},
                    "target": {"type": "string", "enum": ["memory", "user"]},
                    "content": {"type": "string"},
                    "old_text": {"type": "string"},
                    "new_text": {"type": "string"},
                    "id": {"type": "string"},
                },
                "required": ["action", "target", "content"],
            },
        },
        "summary": {"type": "string"},
    },
    "required": ["operations"],
}
"""For models that are asked for JSON instead of being given a tool."""

INSTRUCTION = (
    'Answer with one JSON object: {"operations": [...], "summary": "one sentence"}. An operation has "action" (add, replace, edit, remove), '
    '"target" (memory, user), and "content" for add and replace, "id" or "old_text" to say which entry is meant, "new_text" for edit. '
    'With nothing to save, "operations" is [].'
)


def operations_in(text: str) -> tuple[list[Any], str]:
    """The operations of the first JSON object that has some, prose and fences around it ignored; and its summary.

    Raises:
        ReviewFailed: There is no such object.
    """
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at >= 0:
        try:
            found, _ = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict) and isinstance(found.get("operations"), list):
            summary = found.get("summary")
            return found["operations"], summary if isinstance(summary, str) else ""
        at = text.find("{", at + 1)
    msg = 'the answer has no JSON object with "operations"'
    raise ReviewFailed(msg)
