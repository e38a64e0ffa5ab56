"""turn.*: the failure budget of a turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.fake_daemon import Client, World


@pytest.fixture
async def session(client: Client) -> str:
    """An open session."""
    return str(client.ok("session.open")["session"])


def miss(client: Client, name: str = "not_found", text: str = "nowhere", **where: str) -> dict[str, object]:
    data: dict[str, object] = client.fails(name, "memory.remove", target="memory", old_text=text, **where)["data"]
    return data


async def test_the_budget_of_a_turn(client: Client, session: str) -> None:
    """Three repairable refusals, then terminal ones with their cause; a valid write goes through and resets."""
    where = {"session": session, "turn": "t1"}
    begun = client.ok("turn.begin", user=True, **where)
    assert {"turn": "t1", "failures": {"count": 0, "limit": 3}, "changes_text": ""} == begun
    counts = [miss(client, text=str(number), **where)["failures"] for number in range(3)]
    assert [{"count": number, "limit": 3} for number in (1, 2, 3)] == counts
    assert "not_found" == miss(client, "turn_budget_exhausted", **where)["cause"]
    client.ok("memory.add", target="memory", content="a valid write goes through", **where)
    assert {"count": 1, "limit": 3} == miss(client, **where)["failures"]


async def test_a_new_turn_starts_at_zero(client: Client, session: str) -> None:
    """Whatever the last one left; begun again, a turn keeps its count."""
    client.ok("turn.begin", session=session, turn="t1", user=True)
    miss(client, session=session)
    again = client.ok("turn.begin", session=session, turn="t1", user=True)
    assert 1 == again["failures"]["count"]
    assert {} == client.ok("turn.end", session=session, turn="t1", status="completed", messages=[])
    assert 0 == client.ok("turn.begin", session=session, turn="t2", user=True)["failures"]["count"]


async def test_budgets_are_apart(client: Client, world: World, session: str) -> None:
    """One for each turn, one for each connection that declares none."""
    client.ok("turn.begin", session=session, turn="t1", user=True)
    for _ in range(3):
        miss(client, session=session)
    assert {"count": 1, "limit": 3} == miss(client)["failures"]
    assert {"count": 1, "limit": 3} == miss(world.client())["failures"]
    assert "cause" in miss(client, "turn_budget_exhausted", session=session)


async def test_without_turns_the_budget_expires(client: Client, world: World) -> None:
    """After five minutes without a failure."""
    for _ in range(3):
        miss(client)
    world.clock.advance(299)
    miss(client, "turn_budget_exhausted")
    world.clock.advance(301)
    assert {"count": 1, "limit": 3} == miss(client)["failures"]


async def test_a_repeated_call_is_told_that_it_will_fail_the_same_way(client: Client, session: str) -> None:
    """The count is said in words too, and a turn is spoken of only where there is one."""
    client.ok("turn.begin", session=session, turn="t1", user=True)
    in_turn = client.fails("not_found", "memory.remove", target="memory", old_text="nowhere", session=session)
    assert in_turn["message"].endswith("(refusal 1 of 3 in this turn)")
    first = client.fails("not_found", "memory.remove", target="memory", old_text="nowhere")["message"]
    second = client.fails("not_found", "memory.remove", target="memory", old_text="nowhere")["message"]
    third = client.fails("not_found", "memory.remove", target="memory", old_text="elsewhere")["message"]
    assert ["same way" in message for message in (first, second, third)] == [False, True, False]
    assert "refusal" not in first
    assert third.endswith("(refusal 3 of 3 in a row)")


async def test_turns_are_counted_for_those_who_may_write(client: Client, world: World, session: str) -> None:
    """With access read a turn has no weight."""
    reader = world.client(access="read")
    for connection, turn in ((client, "t1"), (reader, "t2")):
        connection.ok("turn.begin", session=session, turn=turn, user=True)
        connection.ok("turn.end", session=session, turn=turn, status="completed")
    assert 1 == world.sessions.get("default", session).completed


async def test_a_turn_says_what_changed_meanwhile(client: Client, session: str) -> None:
    """For the prompt of this turn, inside the fence."""
    client.ok("memory.add", target="user", content="Prefers tea")
    assert "Prefers tea" in client.ok("turn.begin", session=session, turn="t1", user=True)["changes_text"]


async def test_turn_calls_that_cannot_be(client: Client, session: str) -> None:
    """Never begun, without a name, of an unknown session."""
    client.fails("invalid_request", "turn.end", session=session, turn="t9", status="completed")
    client.fails("invalid_params", "turn.begin", session=session, turn="", user=True)
    client.fails("invalid_params", "turn.begin", session=session, turn="t")
    client.fails("no_such_session", "turn.begin", session="nope", turn="t", user=True)


async def test_it_is_answered_once_it_is_durable(client: Client, world: World, session: str) -> None:
    """And holds at once for what is pipelined behind it."""
    world.journal.hold = True
    msgid = client.send("turn.begin", session=session, turn="t", user=True)
    assert client.reply(msgid) is None
    added = client.ok("memory.add", target="memory", content="a", origin="user", session=session, turn="t")
    assert "user" == added["entry"]["origin"]
    world.journal.commit()
    assert "t" == client.answer(msgid)["turn"]
