"""Copies of messages: from the wire's form to what jobs keep.

What comes in: messages as clients send them. What goes out: texts and bodies. What must not be here: masking, keeping.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memd.jobs import Said

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memd.protocol.types import Message


def said(messages: Sequence[Message]) -> list[Said]:
    """What was said. Whatever is not plain text of a person or a model (a tool's result, a part of another type) is a body."""
    return [_said(message) for message in messages]


def _said(message: Message) -> Said:
    content = message.content
    parts = [("text", content)] if isinstance(content, str) else [(one.type, one.text or "") for one in content]
    texts = [text for kind, text in parts if kind == "text" and text]
    bodies = [text for kind, text in parts if kind != "text" and text]
    if message.role == "tool":
        texts, bodies = [], [*texts, *bodies]
    return Said(message.role, "\n".join(texts), "\n".join(bodies), bool(message.synthetic))
