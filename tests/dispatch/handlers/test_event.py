"""events.*: subscriptions, replays, long polls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from memd.dispatch.handlers.event import REPLAYED
from memd.errors import IoFailure

if TYPE_CHECKING:
    from support.fake_daemon import Client, World


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()


def topics(client: Client) -> list[str]:
    return [event["topic"] for event in client.events]


async def test_a_subscription_starts_now(client: Client, world: World) -> None:
    """Its number is the newest event's."""
    world.profile.emit("store.state")
    assert {"seq": 1, "lost": False} == client.ok("events.subscribe", topics=["memory.changed"])
    world.profile.emit("store.state")
    world.profile.emit("memory.changed")
    await settle()
    assert ["memory.changed"] == topics(client)


async def test_no_topics_are_all_topics(client: Client, world: World) -> None:
    """Also when the field is left out; a topic that is none is refused."""
    client.ok("events.subscribe")
    world.profile.emit("store.state")
    await settle()
    assert ["store.state"] == topics(client)
    error = client.fails("invalid_params", "events.subscribe", topics=["memory.*"])
    assert "memory.changed" in error["message"]
    assert "topics" == error["data"]["field"]


async def test_a_second_subscription_replaces_the_first(client: Client, world: World) -> None:
    """And unsubscribing ends it; again is harmless."""
    client.ok("events.subscribe", topics=["memory.changed"])
    client.ok("events.subscribe", topics=["store.state"])
    world.profile.emit("memory.changed")
    world.profile.emit("store.state")
    await settle()
    assert ["store.state"] == topics(client)
    assert {} == client.ok("events.unsubscribe")
    assert {} == client.ok("events.unsubscribe")
    world.profile.emit("store.state")
    await settle()
    assert ["store.state"] == topics(client)


async def test_a_replay_comes_after_the_reply_and_before_what_is_new(client: Client, world: World) -> None:
    """Nothing twice, nothing missed."""
    for topic in ("memory.changed", "store.state", "memory.changed"):
        world.profile.emit(topic)
    msgid = client.send("events.subscribe", topics=["memory.changed"], since_seq=1)
    world.profile.emit("memory.changed")
    await settle()
    assert {"seq": 3, "lost": False} == client.answer(msgid)
    assert [1, 2, 2] == [message[0] for message in client.channel.sent]
    assert [3, 4] == [event["seq"] for event in client.events]


async def test_what_is_gone_is_said(client: Client, world: World) -> None:
    """Pruned, or too much to send at once."""
    world.profile.emit("memory.changed")
    world.profile.events.lost_before = 5
    msgid = client.send("events.subscribe", topics=[], since_seq=1)
    await settle()
    assert client.answer(msgid)["lost"]
    world.profile.events.lost_before = 0
    for _ in range(REPLAYED + 1):
        world.profile.emit("memory.changed")
    msgid = client.send("events.subscribe", topics=[], since_seq=0)
    await settle()
    assert client.answer(msgid)["lost"]


async def test_a_replay_that_fails_leaves_no_subscription(client: Client, world: World) -> None:
    """Events would pile up for it."""
    world.profile.events.error = IoFailure("disk")
    msgid = client.send("events.subscribe", topics=[], since_seq=0)
    await settle()
    assert "io_error" == client.error(msgid)["name"]
    assert "<EventHub 0 subscriptions>" == repr(world.hub)


async def test_a_long_poll_returns_what_is_there(client: Client, world: World) -> None:
    """At once, and the number to go on from."""
    world.profile.emit("memory.changed")
    world.profile.emit("store.state")
    msgid = client.send("events.wait", topics=["memory.changed"], since_seq=0, timeout_ms=600_000)
    await settle()
    found = client.answer(msgid)
    assert (["memory.changed"], 2, False) == (
        [event["topic"] for event in found["events"]],
        found["seq"],
        found["lost"],
    )


async def test_a_long_poll_waits_for_the_next(client: Client, world: World) -> None:
    """Of its topics only."""
    msgid = client.send("events.wait", topics=["memory.changed"], timeout_ms=600_000)
    await settle()
    world.profile.emit("store.state")
    await settle()
    assert client.reply(msgid) is None
    world.profile.emit("memory.changed")
    await settle()
    found = client.answer(msgid)
    assert ([2], 2) == ([event["seq"] for event in found["events"]], found["seq"])


async def test_a_long_poll_ends(client: Client, world: World, autojump_clock: trio.testing.MockClock) -> None:
    """With nothing, after its time; what others asked for moves its number on."""
    world.profile.emit("store.state")
    msgid = client.send("events.wait", topics=["memory.changed"], since_seq=0, timeout_ms=2_000)
    await trio.sleep(1.9)
    assert client.reply(msgid) is None
    await trio.sleep(0.2)
    assert {"events": [], "seq": 1, "lost": False} == client.answer(msgid)


async def test_a_long_poll_without_a_timeout_is_a_look(client: Client, world: World) -> None:
    """From now on, so there is nothing."""
    world.profile.emit("memory.changed")
    msgid = client.send("events.wait")
    await settle()
    assert {"events": [], "seq": 1, "lost": False} == client.answer(msgid)


async def test_a_long_poll_says_what_is_gone(client: Client, world: World) -> None:
    """At once: there is nothing to wait for."""
    world.profile.emit("memory.changed")
    world.profile.events.lost_before = 5
    msgid = client.send("events.wait", since_seq=0, timeout_ms=600_000)
    await settle()
    assert {"events": [], "seq": 1, "lost": True} == client.answer(msgid)


@pytest.mark.parametrize("wait_ms", [-1, 600_001])
async def test_a_wait_has_bounds(client: Client, wait_ms: int) -> None:
    """Ten minutes."""
    client.fails("invalid_params", "events.wait", timeout_ms=wait_ms)
