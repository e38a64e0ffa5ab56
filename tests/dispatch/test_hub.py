"""Events on their way: to whom, in which order, after what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
import trio
import trio.testing
from support.fake_profile import MemoryProfile, mutation

from memd.dispatch.hub import EventHub, Subscription
from memd.profile.values import Operation
from memd.sessions import OpenRequest

if TYPE_CHECKING:
    from support.fake_daemon import World


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()


class Reader:
    """Takes notifications."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, str]] = []

    def __call__(self, message: bytes) -> None:
        kind, name, (event,) = msgspec.msgpack.decode(message)
        assert (2, "event") == (kind, name)
        self.seen.append((event["seq"], event["topic"]))


@pytest.fixture
def hub(world: World) -> EventHub:
    world.hub.attach(world.profile)
    return world.hub


async def test_events_reach_those_who_asked_for_the_topic(world: World, hub: EventHub) -> None:
    """No topics means all of them."""
    everything, some = Reader(), Reader()
    hub.subscribe("default", Subscription(frozenset(), everything))
    hub.subscribe("default", Subscription(frozenset({"b"}), some))
    world.profile.emit("a")
    world.profile.emit("b")
    await settle()
    assert [(1, "a"), (2, "b")] == everything.seen
    assert [(2, "b")] == some.seen


async def test_what_was_published_can_be_waited_for(world: World, hub: EventHub) -> None:
    """Whoever is about to close the connections knows then that the last event is on its way."""
    reader = Reader()
    hub.subscribe("default", Subscription(frozenset(), reader))
    world.profile.emit("a")
    assert [] == reader.seen
    with trio.fail_after(1):
        await hub.wait_handed_on()
    assert [(1, "a")] == reader.seen


async def test_events_of_another_profile_do_not(hub: EventHub, world: World) -> None:
    """A connection has one profile."""
    reader, other = Reader(), MemoryProfile("work")
    hub.attach(other)
    hub.subscribe("default", Subscription(frozenset(), reader))
    other.emit("a")
    await settle()
    assert [] == reader.seen


async def test_they_come_a_step_later(hub: EventHub, world: World) -> None:
    """Whoever publishes in one step with answering has answered by then."""
    reader = Reader()
    hub.subscribe("default", Subscription(frozenset(), reader))
    world.profile.emit("a")
    assert [] == reader.seen
    await settle()
    assert [(1, "a")] == reader.seen


async def test_unsubscribed_hears_nothing(hub: EventHub, world: World) -> None:
    """And again is harmless."""
    reader = Reader()
    subscription = Subscription(frozenset(), reader)
    hub.subscribe("default", subscription)
    hub.unsubscribe("default", subscription)
    hub.unsubscribe("default", subscription)
    world.profile.emit("a")
    await settle()
    assert [] == reader.seen
    assert "<EventHub 0 subscriptions>" == repr(hub)


async def test_attaching_twice_delivers_once_and_a_new_profile_replaces_the_old(hub: EventHub, world: World) -> None:
    """A profile that was loaded anew has the same name."""
    reader = Reader()
    hub.subscribe("default", Subscription(frozenset(), reader))
    hub.attach(world.profile)
    anew = MemoryProfile()
    hub.attach(anew)
    world.profile.emit("old")
    anew.emit("new")
    await settle()
    assert [(1, "new")] == reader.seen


def test_what_is_held_comes_after_what_is_replayed_and_not_twice() -> None:
    """Events that happened while the journal was read."""
    profile, reader = MemoryProfile(), Reader()
    subscription = Subscription(frozenset(), reader, hold=True)
    for topic in ("a", "b", "c"):
        profile.emit(topic)
    for record in profile.events.records[1:]:
        subscription.deliver(
            record.seq, msgspec.msgpack.encode((2, "event", ({"seq": record.seq, "topic": record.topic},)))
        )
    assert [] == reader.seen
    subscription.release(profile.events.records[:2])
    assert [(1, "a"), (2, "b"), (3, "c")] == reader.seen


async def test_a_waiter_takes_what_arrives_while_it_waits(hub: EventHub, world: World) -> None:
    """Only its topics wake it."""
    with hub.waiter("default", frozenset({"b"})) as waiter:
        world.profile.emit("a")
        await settle()
        assert [] == waiter.events
        world.profile.emit("b")
        with trio.fail_after(1):
            await waiter.wait_arrived()
        assert ["b"] == [record.topic for record in waiter.events]
    world.profile.emit("b")
    await settle()
    assert 1 == len(waiter.events)


async def test_closing_wakes_waiters_now_and_later(hub: EventHub) -> None:
    """Nobody waits for a daemon that stops."""
    with hub.waiter("default", frozenset()) as waiter:
        hub.close()
        with trio.fail_after(1):
            await waiter.wait_arrived()
    with hub.waiter("default", frozenset()) as waiter, trio.fail_after(1):
        await waiter.wait_arrived()


async def test_a_snapshot_that_went_stale_is_told_once(hub: EventHub, world: World) -> None:
    """After the change's own event, with the session's id."""
    session = world.sessions.open(world.profile, OpenRequest(), may_read=True).session
    world.sessions.watch(session)
    reader = Reader()
    hub.subscribe("default", Subscription(frozenset(), reader))
    for text in ("a", "b"):
        world.profile.submit(mutation(Operation("add", content=text)))
        await settle()
    assert ["memory.changed", "snapshot.stale", "memory.changed"] == [topic for _, topic in reader.seen]
    assert session.id == world.profile.events.records[1].session
