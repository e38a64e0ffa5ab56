"""The dispatcher: every request gets one reply, whatever its handler does."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from support.fake_daemon import Client, World
from support.odd_methods import Odd

from memd.config import Settings, Wire
from memd.dispatch import Flight
from memd.errors import IoFailure


@pytest.fixture
def odd() -> Odd:
    return Odd()


@pytest.fixture
async def world(odd: Odd, nursery: trio.Nursery) -> World:
    world = World(table=odd.table(), flight=Flight(max_bytes=1000))
    await nursery.start(world.dispatcher.run)
    return world


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()


# -- bugs


@pytest.mark.parametrize("method", ["x.bug", "x.unencodable", "x.bad_error", "x.task_bug"])
async def test_a_bug_is_an_internal_reply_and_is_told(world: World, method: str) -> None:
    """The daemon goes on: the next call works."""
    client = world.client()
    msgid = client.send(method)
    await settle()
    error = client.error(msgid)
    assert ("internal", False) == (error["name"], error["retryable"])
    assert "outcome" not in error["data"]
    assert [method] == [name for name, _ in world.bugs]
    assert {} == client.ok("rpc.ping")


async def test_a_bug_in_a_change_leaves_open_what_happened(world: World) -> None:
    """Before or after the change: only the journal knows."""
    assert "unknown" == world.client().fails("internal", "x.bug_write")["data"]["outcome"]


async def test_a_bug_while_settling_does_not_reach_the_writer(world: World, odd: Odd) -> None:
    """The callback runs in the writer's task."""
    client = world.client()
    msgid = client.send("x.write")
    odd.ticket.finish("bug")
    assert "internal" == client.error(msgid)["name"]
    assert 1 == world.dispatcher.statistics().bugs


# -- who may call what


@pytest.mark.parametrize(
    ("role", "method", "name"),
    [
        ("agent", "memory.explode", "method_not_found"),
        ("agent", "approval.reject", "permission_denied"),
        ("agent", "approval.approve", "permission_denied"),
        ("agent", "daemon.stop", "permission_denied"),
        ("agent", "jobs.runs", "method_not_found"),
    ],
)
async def test_names_that_are_not_there(world: World, role: Any, method: str, name: str) -> None:
    """What an agent may never call is refused before it is looked for."""
    error = world.client(role).fails(name, method)
    assert ("none" if method.startswith("approval.") else None) == error["data"].get("outcome")


async def test_a_mutation_that_is_refused_before_it_began_changed_nothing(world: World) -> None:
    """Whoever refuses it."""
    error = world.client(context="subagent").fails("permission_denied", "memory.add", target="memory", content="z")
    assert "none" == error["data"]["outcome"]
    error = world.client().fails("invalid_params", "memory.add", target="nowhere", content="z")
    assert "none" == error["data"]["outcome"]


# -- limits


async def test_too_many_requests_in_flight_are_refused(world: World) -> None:
    """The setting's number is still taken; what is answered at once goes on."""
    world.settings = Settings(profiles=world.settings.profiles, wire=Wire(in_flight=3))
    client = world.client()
    ids = [client.send("x.write") for _ in range(4)]
    assert [None] * 3 == [client.reply(msgid) for msgid in ids[:3]]
    error = client.error(ids[3])
    assert ("too_many_requests", "none", 3) == (error["name"], error["data"]["outcome"], error["data"]["limit"])
    assert {} == client.ok("rpc.ping")
    assert {"cancelled": True} == client.ok("rpc.cancel", msgid=ids[0])


async def test_a_msgid_that_is_in_flight_is_not_taken_again(world: World, odd: Odd) -> None:
    """Its reply could not be told from the other's."""
    client = world.client()
    client.send_raw(9, "x.write", [])
    client.send_raw(9, "x.write", [])
    assert "invalid_request" == client.error(9)["name"]
    client.channel.sent.clear()
    odd.ticket.finish({})
    assert {} == client.answer(9)


async def test_many_bytes_in_flight_stop_reading_everywhere(world: World, odd: Odd) -> None:
    """Until there is room again."""
    one, other = world.client(), world.client()
    one.send("x.write", padding="x" * 2000)
    assert other.conversation.congested
    with trio.move_on_after(0.05) as scope:
        await other.conversation.wait_clear()
    assert scope.cancelled_caught
    odd.ticket.finish({})
    await other.conversation.wait_clear()
    assert not other.conversation.congested


# -- stopping


async def test_while_draining_nothing_new_is_taken(world: World, odd: Odd) -> None:
    """What is in flight is answered; pings still are."""
    client = world.client()
    msgid = client.send("x.write")
    world.dispatcher.drain()
    assert "none" == client.fails("shutting_down", "memory.add", target="memory", content="a")["data"]["outcome"]
    assert {} == client.ok("rpc.ping")
    idle = trio.Event()

    async def wait() -> None:
        await world.dispatcher.wait_idle()
        idle.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await settle()
        assert not idle.is_set()
        odd.ticket.finish({})
    assert {} == client.answer(msgid)


@pytest.mark.parametrize(("drained", "outcome"), [(False, "none"), (True, "unknown")])
async def test_at_the_end_everything_in_flight_is_answered(
    world: World, odd: Odd, *, drained: bool, outcome: str
) -> None:
    """What the writer has not begun is taken out; of the rest nobody knows."""
    client = world.client()
    msgid, other = client.send("x.write"), client.send("x.task")
    odd.ticket.drained = drained
    await settle()
    world.dispatcher.abandon()
    assert ("shutting_down", outcome) == (client.error(msgid)["name"], client.error(msgid)["data"]["outcome"])
    assert "shutting_down" == client.error(other)["name"]
    assert odd.ticket.withdrawn is not drained
    await world.dispatcher.wait_idle()


async def test_draining_ends_long_polls(world: World) -> None:
    """With what there is."""
    client = world.client()
    msgid = client.send("events.wait", timeout_ms=600_000)
    await settle()
    world.dispatcher.drain()
    await settle()
    assert [] == client.answer(msgid)["events"]


async def test_before_it_runs_there_are_no_tasks() -> None:
    """A daemon that starts says so."""
    world = World(table=Odd().table())
    world.client().fails("shutting_down", "x.task")


async def test_statistics_and_repr(world: World) -> None:
    """What status and metrics are built from."""
    client = world.client()
    client.ok("rpc.ping")
    client.fails("method_not_found", "nope")
    client.send("x.write")
    figures = world.dispatcher.statistics()
    assert (3, 1, 0, 1, 1) == (
        figures.requests,
        figures.errors,
        figures.bugs,
        figures.in_flight,
        figures.conversations,
    )
    assert "1 conversations" in repr(world.dispatcher)
    assert "1 calls" in repr(client.conversation)


async def test_a_store_that_failed_keeps_its_own_outcome(world: World, odd: Odd) -> None:
    """Unknown stays unknown."""
    client = world.client()
    msgid = client.send("x.write")
    odd.ticket.fail(IoFailure("disk", outcome="unknown"))
    assert "unknown" == client.error(msgid)["data"]["outcome"]


async def test_two_connections_are_two_conversations(world: World) -> None:
    """Each with its own hello."""
    first = Client(world.dispatcher)
    first.ok("hello", context="job")
    assert "primary" == Client(world.dispatcher).ok("hello")["context"]
