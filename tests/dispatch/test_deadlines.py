"""Deadlines and cancelling: what can still be taken out is, the rest runs to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
import trio
import trio.testing
from support.fake_daemon import World
from support.odd_methods import Odd

from memd.deferred import Ticket
from memd.errors import Busy

if TYPE_CHECKING:
    from support.fake_daemon import Client


@pytest.fixture
def odd() -> Odd:
    return Odd()


@pytest.fixture
async def world(odd: Odd, nursery: trio.Nursery) -> World:
    world = World(table=odd.table())
    await nursery.start(world.dispatcher.run)
    return world


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()


async def answered_after(client: Client, msgid: int, *, most: float) -> float:
    """Seconds until the call is answered."""
    start = trio.current_time()
    for _ in range(int(most / 0.01)):
        if client.reply(msgid) is not None:
            break
        await trio.sleep(0.01)
    return trio.current_time() - start


async def test_a_change_that_waits_too_long_is_taken_out(
    world: World, odd: Odd, autojump_clock: trio.testing.MockClock
) -> None:
    """Nothing changed, and it never will."""
    client = world.client()
    msgid = client.send("x.write", deadline_ms=300)
    assert 0.3 <= await answered_after(client, msgid, most=1) <= 0.45
    error = client.error(msgid)
    assert ("deadline_exceeded", "none", True) == (error["name"], error["data"]["outcome"], error["retryable"])
    assert odd.ticket.withdrawn
    assert 0 == world.dispatcher.flight.count


async def test_a_change_under_way_is_told_as_unknown(
    world: World, odd: Odd, autojump_clock: trio.testing.MockClock
) -> None:
    """Its late result is dropped."""
    client = world.client()
    msgid = client.send("x.write", deadline_ms=100)
    odd.ticket.drained = True
    await trio.sleep(0.3)
    assert "unknown" == client.error(msgid)["data"]["outcome"]
    odd.ticket.finish({"late": True})
    assert "deadline_exceeded" == client.error(msgid)["name"]


async def test_a_deadline_says_what_it_waited_for(
    world: World, odd: Odd, autojump_clock: trio.testing.MockClock
) -> None:
    """Busy names the holder of the lock."""
    client = world.client()
    msgid = client.send("x.write", deadline_ms=100)
    odd.ticket.blocked_by = Busy("locked by pid 5", holder="pid 5")
    await trio.sleep(0.3)
    error = client.error(msgid)
    assert ("busy", "none", "pid 5") == (error["name"], error["data"]["outcome"], error["data"]["holder"])


async def test_the_deadline_is_the_settings_unless_given(world: World, autojump_clock: trio.testing.MockClock) -> None:
    """Ten seconds."""
    client = world.client()
    msgid = client.send("x.write")
    assert 10 <= await answered_after(client, msgid, most=20) <= 10.2


async def test_a_shared_ticket_outlives_the_one_who_gave_up(
    world: World, odd: Odd, autojump_clock: trio.testing.MockClock
) -> None:
    """Others wait for it too."""
    client = world.client()
    msgid = client.send("x.shared", deadline_ms=100)
    await trio.sleep(0.3)
    assert "deadline_exceeded" == client.error(msgid)["name"]
    assert not odd.ticket.withdrawn


async def test_a_read_that_runs_too_long_is_cancelled(
    world: World, odd: Odd, autojump_clock: trio.testing.MockClock
) -> None:
    """Nobody waits for it any more."""
    client = world.client()
    msgid = client.send("x.task", deadline_ms=100)
    await trio.sleep(0.3)
    error = client.error(msgid)
    assert "deadline_exceeded" == error["name"]
    assert "outcome" not in error["data"]
    assert ["task"] == odd.cancelled


async def test_a_change_in_a_task_is_not_cancelled_by_its_deadline(
    world: World, odd: Odd, autojump_clock: trio.testing.MockClock
) -> None:
    """It runs to its end; the client asks again."""
    client = world.client()
    msgid = client.send("x.task_write", deadline_ms=100)
    await trio.sleep(0.3)
    assert "unknown" == client.error(msgid)["data"]["outcome"]
    assert [] == odd.cancelled
    odd.go.set()
    await settle()
    assert {} == client.ok("rpc.ping")


async def test_a_wait_has_its_own_time_on_top(world: World, autojump_clock: trio.testing.MockClock) -> None:
    """A long poll is not cut by the deadline of ordinary calls."""
    client = world.client()
    msgid = client.send("x.wait", timeout_ms=60_000, deadline_ms=1_000)
    await trio.sleep(60.9)
    assert client.reply(msgid) is None
    await trio.sleep(0.3)
    assert "deadline_exceeded" == client.error(msgid)["name"]


# -- cancelling


async def test_a_change_that_waits_can_be_cancelled(world: World, odd: Odd) -> None:
    """By request or by notification; nothing changed."""
    client = world.client()
    msgid = client.send("x.write")
    assert {"cancelled": True} == client.ok("rpc.cancel", msgid=msgid)
    error = client.error(msgid)
    assert ("cancelled", "none") == (error["name"], error["data"]["outcome"])
    assert {"cancelled": False} == client.ok("rpc.cancel", msgid=msgid)
    odd.ticket = Ticket()
    msgid = client.send("x.write")
    client.conversation.notification("rpc.cancel", msgspec.Raw(msgspec.msgpack.encode([{"msgid": msgid}])))
    assert "cancelled" == client.error(msgid)["name"]


@pytest.mark.parametrize("method", ["x.write", "x.shared", "x.task_write"])
async def test_what_is_under_way_cannot_be_cancelled(world: World, odd: Odd, method: str) -> None:
    """It runs to its end and is answered."""
    client = world.client()
    msgid = client.send(method)
    odd.ticket.drained = True
    await settle()
    assert {"cancelled": False} == client.ok("rpc.cancel", msgid=msgid)
    odd.go.set()
    odd.ticket.finish({})
    await settle()
    assert {} == client.answer(msgid)


async def test_a_read_can_be_cancelled(world: World, odd: Odd) -> None:
    """Before its task began, and while it runs."""
    client = world.client()
    for started in (False, True):
        msgid = client.send("x.task")
        if started:
            await settle()
        assert {"cancelled": True} == client.ok("rpc.cancel", msgid=msgid)
        assert "cancelled" == client.error(msgid)["name"]
    await settle()
    assert ["task", "task"] == odd.cancelled


async def test_other_connections_cannot_be_cancelled(world: World) -> None:
    """Message ids are a connection's own."""
    client = world.client()
    msgid = client.send("x.write")
    assert {"cancelled": False} == world.client().ok("rpc.cancel", msgid=msgid)
    assert client.reply(msgid) is None


@pytest.mark.parametrize("params", [[], [{"msgid": "x"}], [{"msgid": 999}], None])
async def test_a_cancel_that_means_nothing_is_ignored(world: World, params: object) -> None:
    """There is nobody to tell; so are unknown notifications."""
    client = world.client()
    client.conversation.notification("rpc.cancel", msgspec.Raw(msgspec.msgpack.encode(params)))
    client.conversation.notification("x.y", msgspec.Raw(msgspec.msgpack.encode(params)))
    assert [] == client.channel.sent


async def test_when_the_connection_ends_its_reads_end_and_its_changes_go_on(world: World, odd: Odd) -> None:
    """A change was perhaps the last thing the client asked for."""
    client = world.client()
    client.send("x.task")
    client.send("x.task_write")
    client.send("x.write")
    await settle()
    client.conversation.disconnected()
    await settle()
    assert ["task"] == odd.cancelled
    assert not odd.ticket.withdrawn
    odd.ticket.finish({})
    odd.go.set()
    await settle()
    assert [] == client.channel.sent
    assert (0, 0) == (world.dispatcher.flight.count, world.dispatcher.statistics().conversations)
