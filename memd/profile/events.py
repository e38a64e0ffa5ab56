"""Events of one profile: published in the order of the journal, to whoever listens.

What comes in: event records that are durable. What goes out: callbacks, in ``seq`` order, and replays from the journal.
What must not be here: topics' meaning, wire types, connections.

A record is expected when its group is durable and released when the state it tells of is published; a later record is
held back until the earlier ones are released, so that ``since_seq`` never skips one.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

import trio

from memd.store import queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from memd.store.committer import Committer
    from memd.store.records import EventRecord

TOPICS = (
    "memory.changed", "memory.refused", "memory.withheld", "memory.near_limit", "outside.adopted", "approval.staged",
    "approval.settled", "job.started", "job.finished", "snapshot.stale", "store.state", "config.changed", "events.lost",
    "daemon.closing",
)  # fmt: skip


class EventStream:
    """The published events of a profile. ``seq`` is the newest that was published."""

    def __init__(self, profile: str, committer: Committer, *, seq: int) -> None:
        self.profile = profile
        self.seq = seq
        self._committer = committer
        self._held: deque[tuple[EventRecord, list[bool]]] = deque()
        self._marks: dict[int, list[bool]] = {}
        self._subscribers: list[Callable[[EventRecord], None]] = []

    def __repr__(self) -> str:
        return (
            f"<EventStream {self.profile} seq {self.seq}, {len(self._subscribers)} subscribers, {len(self._held)} held>"
        )

    def expect(self, records: Iterable[EventRecord]) -> None:
        """These are durable now and will be released; call it in the order of their numbers."""
        for record in records:
            mark = [False]
            self._marks[record.seq] = mark
            self._held.append((record, mark))

    def release(self, records: Iterable[EventRecord]) -> None:
        """The state these tell of is published; pass on whatever is no longer held back."""
        for record in records:
            mark = self._marks.pop(record.seq, None)
            if mark is not None:
                mark[0] = True
        while self._held and self._held[0][1][0]:
            record, _ = self._held.popleft()
            self.seq = record.seq
            for callback in tuple(self._subscribers):
                callback(record)

    def subscribe(self, callback: Callable[[EventRecord], None]) -> Callable[[], None]:
        """Call ``callback`` with every event from now on; the returned function ends that."""
        self._subscribers.append(callback)

        def unsubscribe() -> None:
            if callback in self._subscribers:
                self._subscribers.remove(callback)

        return unsubscribe

    def published(self, topic: str) -> trio.Event:
        """Set once an event of this topic is published, for good."""
        published = trio.Event()

        def note(record: EventRecord) -> None:
            if record.topic == topic:
                published.set()

        self.subscribe(note)
        return published

    async def since(self, seq: int, topics: Sequence[str] = (), *, limit: int = 1000) -> tuple[list[EventRecord], bool]:
        """Published events after ``seq`` (oldest first, at most ``limit``), and whether some of them are gone.

        ``lost`` is True if events after ``seq`` have been pruned, belong to another journal or did not fit ``limit``.
        """
        return await self._committer.query(
            partial(
                queries.events_since,
                self._committer.journal,
                self.profile,
                seq,
                self.seq,
                topics=tuple(topics),
                limit=limit,
            )
        )
