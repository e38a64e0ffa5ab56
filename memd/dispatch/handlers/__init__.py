"""The handlers, grouped by area, and the table made of them.

What comes in: the rows of each area. What goes out: ``method_table``. What must not be here: handling.
"""

from __future__ import annotations

from memd.dispatch.handlers import (
    approval,
    certify,
    claim,
    compaction,
    daemon,
    event,
    hello,
    history,
    job,
    memory,
    profile,
    rpc,
    scan,
    session,
    tool,
    turn,
)
from memd.dispatch.table import MethodTable

AREAS = (
    hello,
    session,
    turn,
    compaction,
    job,
    claim,
    memory,
    tool,
    history,
    approval,
    scan,
    event,
    profile,
    daemon,
    rpc,
    certify,
)


def method_table() -> MethodTable:
    """Every method of this daemon."""
    return MethodTable(row for area in AREAS for row in area.METHODS)
