"""Events on their way from the profiles to the connections that asked for them.

What comes in: event records as profiles publish them. What goes out: encoded notifications, once per event whoever many
ask, and wake-ups for ``events.wait``. What must not be here: which events there are, queues and their bounds (the
connection's), the journal.

Events are handed on one step of the event loop after they were published: a commit publishes its events and answers its
callers in one step, and a connection is promised the reply before the event of its own change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import trio

from memd.dispatch import translate
from memd.protocol.encode import encode_event

if TYPE_CHECKING:
    from collections.abc import Callable

    from memd.dispatch.ports import Profile
    from memd.sessions import SessionRegistry
    from memd.store.records import EventRecord

CHANGING = frozenset({"memory.changed", "outside.adopted", "memory.withheld", "approval.settled"})
"""Topics after which a session's snapshot may be stale."""


class Subscription:
    """One connection's wish for events. ``topics`` empty means all.

    With ``hold``, events wait in it until ``release``.
    """

    __slots__ = ("_held", "_notify", "_replayed", "topics")

    def __init__(self, topics: frozenset[str], notify: Callable[[bytes], None], *, hold: bool = False) -> None:
        self.topics = topics
        self._notify = notify
        self._held: list[tuple[int, bytes]] | None = [] if hold else None
        self._replayed = 0

    def wants(self, topic: str) -> bool:
        """True if the topic was asked for."""
        return not self.topics or topic in self.topics

    def deliver(self, seq: int, message: bytes) -> None:
        """Hand one event to the connection, or keep it until ``release``. One that was replayed is not sent again."""
        if self._held is not None:
            self._held.append((seq, message))
        elif seq > self._replayed:
            self._notify(message)

    def release(self, replayed: list[EventRecord]) -> None:
        """Hand over what happened before the subscription, then what was held and is newer, and hold no more."""
        held, self._held = self._held or [], None
        for record in replayed:
            self._notify(encode_event(translate.event(record)))
            self._replayed = record.seq
        for seq, message in held:
            self.deliver(seq, message)


class EventHub:
    """All subscriptions, by profile. ``run`` in a nursery hands the events on.

    After a change it has ``snapshot.stale`` emitted for the sessions in use whose snapshot went stale by it.
    """

    def __init__(self, sessions: SessionRegistry) -> None:
        self.closed = False
        self._sessions = sessions
        self._attached: dict[str, tuple[Profile, Callable[[], None]]] = {}
        self._subscriptions: dict[str, dict[Subscription, None]] = {}
        self._waiters: dict[str, dict[Waiter, None]] = {}
        self._published: list[tuple[Profile, EventRecord]] = []
        self._wake = trio.Event()

    def __repr__(self) -> str:
        return f"<EventHub {sum(len(item) for item in self._subscriptions.values())} subscriptions>"

    def attach(self, profile: Profile) -> None:
        """Listen to a profile; once is enough."""
        known = self._attached.get(profile.name)
        if known is not None:
            if known[0] is profile:
                return
            known[1]()
        end = profile.events.subscribe(lambda record: self._publish(profile, record))
        self._attached[profile.name] = (profile, end)

    def subscribe(self, profile: str, subscription: Subscription) -> None:
        """Deliver this profile's events from now on."""
        self._subscriptions.setdefault(profile, {})[subscription] = None

    def unsubscribe(self, profile: str, subscription: Subscription) -> None:
        """Deliver none any more."""
        found = self._subscriptions.get(profile, {})
        found.pop(subscription, None)
        if not found:
            self._subscriptions.pop(profile, None)

    def waiter(self, profile: str, topics: frozenset[str]) -> Waiter:
        """Collect events for one ``events.wait``; use it as a context manager."""
        return Waiter(self._waiters, profile, topics, closed=self.closed)

    def close(self) -> None:
        """The daemon stops: whoever waits for events gets what there is."""
        self.closed = True
        for waiters in self._waiters.values():
            for waiter in waiters:
                waiter.wake()

    async def run(self) -> None:
        """Hand events on until cancelled."""
        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            await trio.lowlevel.checkpoint()
            published, self._published = self._published, []
            self._hand_on(published)

    async def wait_handed_on(self) -> None:
        """Until everything published so far is with the subscribers' channels."""
        while self._published:
            await trio.lowlevel.checkpoint()

    def _publish(self, profile: Profile, record: EventRecord) -> None:
        self._published.append((profile, record))
        self._wake.set()

    def _hand_on(self, published: list[tuple[Profile, EventRecord]]) -> None:
        changed: dict[str, Profile] = {}
        for profile, record in published:
            if record.topic in CHANGING:
                changed[profile.name] = profile
            self._deliver(profile.name, record)
        for profile in changed.values():
            for session in self._sessions.newly_stale(profile):
                profile.emit("snapshot.stale", session=session.id)

    def _deliver(self, profile: str, record: EventRecord) -> None:
        message = b""
        for subscription in list(self._subscriptions.get(profile, ())):
            if subscription.wants(record.topic):
                message = message or encode_event(translate.event(record))
                subscription.deliver(record.seq, message)
        for waiter in self._waiters.get(profile, ()):
            waiter.offer(record)


class Waiter:
    """Events that arrive while somebody waits for them."""

    def __init__(
        self, table: dict[str, dict[Waiter, None]], profile: str, topics: frozenset[str], *, closed: bool
    ) -> None:
        self.events: list[EventRecord] = []
        self._table = table
        self._profile = profile
        self._topics = topics
        self._arrived = trio.Event()
        if closed:
            self._arrived.set()

    def __enter__(self) -> Self:
        self._table.setdefault(self._profile, {})[self] = None
        return self

    def __exit__(self, *_: object) -> None:
        waiters = self._table[self._profile]
        del waiters[self]
        if not waiters:
            del self._table[self._profile]

    def offer(self, record: EventRecord) -> None:
        """Take the event if it was asked for."""
        if not self._topics or record.topic in self._topics:
            self.events.append(record)
            self.wake()

    def wake(self) -> None:
        """End the wait."""
        self._arrived.set()

    async def wait_arrived(self) -> None:
        """Until an event arrived or the daemon stops."""
        await self._arrived.wait()
