"""The stored records that layers above the store hand down or get handed up.

What comes in: nothing. What goes out: the record types of sessions, events and jobs, for layers that may not reach past
``profile``. What must not be here: anything else.
"""

from __future__ import annotations

from memd.store.records import EventRecord, Part, RevisionRecord, SessionRecord, SnapshotRecord, TurnRecord
from memd.store.work import (
    CompactionRecord,
    DeskRecord,
    JobRecord,
    MessageRecord,
    RangeRecord,
    RefusedRecord,
    SpendingRecord,
    TallyRecord,
    WorkPart,
)

__all__ = [
    "CompactionRecord",
    "DeskRecord",
    "EventRecord",
    "JobRecord",
    "MessageRecord",
    "Part",
    "RangeRecord",
    "RefusedRecord",
    "RevisionRecord",
    "SessionRecord",
    "SnapshotRecord",
    "SpendingRecord",
    "TallyRecord",
    "TurnRecord",
    "WorkPart",
]
