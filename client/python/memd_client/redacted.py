"""What a redaction answers; apart from the other types, as hardly any call needs it.

What comes in: the map of the reply. What goes out: a record. What must not be here: I/O.
"""

from __future__ import annotations

from memd_client.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memd_client.types import Notice


class Redacted(Record):
    """What a redaction did: changed rows by table, and the revisions that masked live entries."""

    tables: dict[str, int]
    revisions: list[int]
    notices: list[Notice]
