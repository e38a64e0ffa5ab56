"""Taking an inline flush out of a conversation, so that it leaves no trace.

What comes in: messages, the marker of ``compaction.begin``. What goes out: the messages without the exchange. What must not be here:
I/O. The exchange begins with the message that holds the marker and ends before the next message of the user.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any


def strip(messages: Iterable[Mapping[str, Any]], marker: str) -> list[Mapping[str, Any]]:
    """The messages without every exchange that this marker began; those that stay are the very same.

    Raises:
        ValueError: The marker is empty, and would be in every message.
    """
    if not marker:
        msg = "an empty marker is in every message"
        raise ValueError(msg)
    kept: list[Mapping[str, Any]] = []
    inside = False
    for message in messages:
        if message.get("role") == "user":
            inside = marker in _text(message.get("content"))
        if not inside:
            kept.append(message)
    return kept


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, (list, tuple)) else ()
    return "\n".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))
