"""The stored records that layers above the store hand down or get handed up.

What comes in: nothing. What goes out: the record types of sessions and events, for layers that may not reach past
``profile``. What must not be here: anything else.
"""

from __future__ import annotations

from memd.store.records import EventRecord, RevisionRecord, SessionRecord, SnapshotRecord, TurnRecord

__all__ = ["EventRecord", "RevisionRecord", "SessionRecord", "SnapshotRecord", "TurnRecord"]
