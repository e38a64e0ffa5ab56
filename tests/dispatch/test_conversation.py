"""One connection: its hello, its events after its replies, its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import trio
import trio.testing

from memd.protocol.types import TOPICS

if TYPE_CHECKING:
    from support.fake_daemon import Client, World


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()


def order(client: Client) -> list[Any]:
    """Replies by their msgid, events by their topic, as they were sent."""
    return [message[1] if message[0] == 1 else message[2][0]["topic"] for message in client.channel.sent]


async def test_its_own_change_is_answered_before_its_event(world: World) -> None:
    """Also when the profile publishes before it answers, and for each change of a group."""
    client = world.client()
    client.ok("events.subscribe", topics=["memory.changed"])
    client.channel.sent.clear()
    world.profile.hold = True
    ids = [client.send("memory.add", target="memory", content=text) for text in "abc"]
    world.profile.commit()
    await settle()
    assert [*ids, *["memory.changed"] * 3] == order(client)


async def test_it_waits_while_a_request_is_not_answered(world: World) -> None:
    """That is what keeps a connection whose peer has said all it had to say."""
    client = world.client()
    world.profile.hold = True
    found = [client.conversation.waiting]
    client.send("memory.add", target="memory", content="a")
    found.append(client.conversation.waiting)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.conversation.wait_answered)
        await settle()
        world.profile.commit()
    found.append(client.conversation.waiting)
    assert [False, True, False] == found


async def test_it_does_not_wait_for_a_poll(world: World) -> None:
    """A peer that has said its last word and then goes must not keep its connection for ten minutes."""
    client = world.client()
    client.send("events.wait", topics=[], timeout_ms=600_000)
    await settle()
    assert not client.conversation.waiting


async def test_an_undo_is_answered_before_its_event(world: World) -> None:
    """It runs as a task: what is published meanwhile waits for its reply."""
    client, other = world.client(), world.client()
    client.ok("memory.add", target="memory", content="a")
    await settle()
    for item in (client, other):
        item.ok("events.subscribe", topics=[])
        item.channel.sent.clear()
    msgid = client.send("history.undo", last=1)
    await settle()
    assert [msgid, "memory.changed"] == order(client)
    assert ["memory.changed"] == order(other)


async def test_another_connections_change_is_heard_of(world: World) -> None:
    """With everything an event has."""
    client = world.client()
    client.ok("events.subscribe")
    world.client().ok("memory.add", target="user", content="seen by others")
    await settle()
    (event,) = client.events
    assert ("memory.changed", "default", "user", 1) == (
        event["topic"],
        event["profile"],
        event["target"],
        event["revision"],
    )
    assert event["at"].endswith("Z")


async def test_when_it_is_gone_nothing_is_sent(world: World) -> None:
    """It hears of no event and counts nowhere."""
    client = world.client()
    client.ok("events.subscribe")
    session = client.ok("session.open")["session"]
    assert 1 == world.profile.attached
    client.channel.sent.clear()
    client.conversation.disconnected()
    world.client().ok("memory.add", target="memory", content="a")
    await settle()
    assert [] == client.channel.sent
    assert 1 == world.profile.attached
    assert not world.sessions.get("default", session).told_stale


async def test_events_dropped_by_a_slow_reader_become_one(world: World) -> None:
    """It has to read again, from this number on."""
    client = world.client()
    client.ok("memory.add", target="memory", content="a")
    assert client.channel.on_lost is not None
    kind, name, (event,) = msgspec.msgpack.decode(client.channel.on_lost())
    assert (2, "event", "events.lost", 1) == (kind, name, event["topic"], event["seq"])
    assert event["topic"] in TOPICS


async def test_errors_take_the_form_that_hello_asked_for(world: World) -> None:
    """From hello's own error on; a second hello changes nothing."""
    client = world.client()
    error = client.error(client.send("hello", errors="pair", profile="nope"))
    assert 0 == error[0]
    assert error[1].startswith("no_such_profile: no profile 'nope'")
    client.ok("hello", errors="pair")
    client.error(client.send("hello", errors="map"))
    error = client.error(client.send("memory.remove", target="memory", old_text="nowhere"))
    assert error[1].startswith("not_found: ")
