"""The one tool that a reviewing model is offered, in the shape that every backend takes: an object, no combinators, no arrays of types.

What comes in: nothing. What goes out: its name, its words, its parameters. What must not be here: calling it (``desk``).
"""

from __future__ import annotations

from typing import Any

NAME = "memory"
TEXT = (
    "Change the long-term memory. add (content); replace (a whole entry becomes content); edit (old_text inside an entry becomes new_text); "
    "remove; read. Name an entry by its id. Several changes to one target go together as operations."
)

_FIELDS: dict[str, Any] = {
    "content": {"type": "string", "description": "The entry's text, for add and replace."},
    "old_text": {
        "type": "string",
        "description": "A part of the entry meant, instead of its id; for edit the text to exchange.",
    },
    "new_text": {"type": "string", "description": "For edit: what takes the place of old_text."},
    "id": {"type": "string", "description": "The id of the entry meant."},
}
_ACTIONS = ["add", "replace", "edit", "remove"]

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": [*_ACTIONS, "read"], "description": "What to do."},
        "target": {"type": "string", "enum": ["memory", "user"], "description": "Which store."},
        **_FIELDS,
        "operations": {
            "type": "array",
            "description": "Several changes to the target instead of the single one.",
            "items": {
                "type": "object",
                "properties": {"action": {"type": "string", "enum": _ACTIONS}, **_FIELDS},
                "required": ["action"],
            },
        },
    },
    "required": ["target"],
}
