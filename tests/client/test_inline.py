"""memd_client.inline: an exchange that leaves no trace."""

from __future__ import annotations

from typing import Any

import pytest

from memd_client.inline import strip

MARKER = "[memd flush 0123]"


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


BEFORE = [user("hello"), {"role": "assistant", "content": "hi"}]
EXCHANGE = [
    user(f"{MARKER}\nBefore that, use the memory tool."),
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]},
    {"role": "tool", "tool_call_id": "c1", "content": "Stored."},
    {"role": "assistant", "content": "done"},
]
AFTER = [user("and now?"), {"role": "assistant", "content": "this"}]


def test_the_exchange_goes_and_all_else_stays_the_same() -> None:
    found = strip([*BEFORE, *EXCHANGE, *AFTER], MARKER)
    assert [*BEFORE, *AFTER] == found
    assert all(one is other for one, other in zip(found, [*BEFORE, *AFTER], strict=True))


def test_at_the_end_in_parts_and_more_than_once() -> None:
    """A host may have sent the text as parts; a flush that was cut short has no answer."""
    parts = user([{"type": "text", "text": MARKER}, {"type": "image"}])
    assert BEFORE == strip([*BEFORE, parts], MARKER)
    assert [*BEFORE, *AFTER] == strip([*EXCHANGE, *BEFORE, *EXCHANGE, *AFTER, parts], MARKER)


def test_another_marker_or_the_models_own_words_are_left_alone() -> None:
    quoting = {"role": "assistant", "content": f"You sent {MARKER}."}
    assert [*BEFORE, quoting, *AFTER] == strip([*BEFORE, quoting, *AFTER], MARKER)
    assert EXCHANGE == strip(EXCHANGE, "[memd flush 4567]")
    assert [] == strip([], MARKER)
    with pytest.raises(ValueError, match="empty marker"):
        strip(BEFORE, "")
