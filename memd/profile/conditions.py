"""Conditions: what is wrong with a store, told to readers and listeners once it changes.

What comes in: stores and the errors met. What goes out: published states and ``store.state`` events. What must not be
here: when to try again (``preparing``), the group commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memd.store.records import EventRecord, Part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memd.errors import StoreError
    from memd.profile.events import EventStream
    from memd.profile.memory_store import MemoryStore
    from memd.store.clock import Clock
    from memd.store.committer import Committer


class Conditions:
    """Publishes states and events of the stores of one writer."""

    def __init__(self, committer: Committer, clock: Clock, streams: Mapping[str, EventStream]) -> None:
        self._committer = committer
        self._clock = clock
        self._streams = streams

    def __repr__(self) -> str:
        return f"<Conditions over {len(self._streams)} profiles>"

    def expect(self, events: Sequence[EventRecord]) -> None:
        """Note events that have just become durable."""
        for event in events:
            self._streams[event.profile].expect((event,))

    def release(self, events: Sequence[EventRecord]) -> None:
        """Publish durable events whose state is visible."""
        for event in events:
            self._streams[event.profile].release((event,))

    def add(self, part: Part) -> None:
        """Let a part without waiters ride with the next group, and publish its events then."""

        def committed() -> None:
            self.expect(part.events)
            self.release(part.events)

        self._committer.add(part, committed)

    def emit(self, store: MemoryStore, topic: str, data: dict[str, Any]) -> None:
        """Journal an event about a store, for each profile that has it, with the next group; then publish it."""
        now_us = self._clock.now_us()
        events = [
            EventRecord(
                us=now_us, topic=topic, profile=profile, target=store.target, revision=store.revision, data=data
            )
            for profile in store.profiles
        ]
        self.add(Part(events=events))

    def publish(self, store: MemoryStore) -> None:
        """Publish the store's present state, and say so if its condition is another."""
        if store.publish():
            state = store.state
            self.emit(store, "store.state", {"state": state.condition, "detail": state.detail, "path": state.path})

    def publish_failure(self, store: MemoryStore, error: StoreError) -> None:
        """A write failed: a read-only store is shown as such until a write works again."""
        if error.wire_name == "read_only":
            store.read_only = error
            self.publish(store)
