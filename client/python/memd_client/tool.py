"""What a model's tool call is answered; apart from the other types, which are nearly as many as one file may hold.

What comes in: the map of the reply. What goes out: a record. What must not be here: I/O.
"""

from __future__ import annotations

from memd_client.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memd_client.types import Failures


class Preview(Record):
    """An entry in short."""

    id: str
    text: str
    chars: int


class ToolAnswer(Record):
    """What to hand back to the model; ``done`` is false when it should repair its call, ``staged`` the proposal it became."""

    success: bool
    done: bool
    message: str
    error: str | None = None
    usage: str
    current_entries: list[Preview] | None = None
    matches: list[Preview] | None = None
    failures: Failures | None = None
    staged: str | None = None
