"""turn.* and session.close: what they hand to jobs, and what they answer of reviews."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from trio.testing import wait_all_tasks_blocked

from memd.config import Settings
from memd.dispatch.copies import said
from memd.errors import IoFailure
from memd.protocol.types import Message, Part

if TYPE_CHECKING:
    from support.fake_daemon import Client, World

US = 1_000_000


@pytest.fixture
def world(world: World) -> World:
    """A daemon that reviews every second turn."""
    world.profile.settings = msgspec.structs.replace(
        world.profile.settings, review=msgspec.structs.replace(world.profile.settings.review, interval=2)
    )
    world.settings = Settings(profiles={"default": world.profile.settings})
    return world


@pytest.fixture
async def session(client: Client) -> str:
    """An open session."""
    return str(client.ok("session.open")["session"])


def turn(client: Client, session: str, number: int, text: str = "hello", **end: Any) -> dict[str, Any]:
    client.ok("turn.begin", session=session, turn=f"t{number}", user=True)
    messages = [{"role": "user", "content": text}]
    found: dict[str, Any] = client.ok(
        "turn.end", session=session, turn=f"t{number}", **{"status": "completed", "messages": messages, **end}
    )
    return found


def kept(world: World) -> list[str]:
    return [one.text or one.withheld for one in world.journal.jobs.kept.values()]


async def test_the_second_turn_brings_a_review(client: Client, world: World, session: str) -> None:
    """Told once it is durable; told again when the call is repeated; in the queue."""
    assert {} == turn(client, session, 1)
    answer = turn(client, session, 2)
    (job,) = world.jobs.queue.live()
    assert {"review": {"job": job.id, "placement": "daemon"}} == answer
    again = client.ok("turn.end", session=session, turn="t2", status="completed", messages=[])
    assert answer == again
    assert ["hello", "hello"] == kept(world)
    assert (2, "t2", "default") == (job.turns, job.turn, job.profile)


async def test_what_becomes_durable_together(client: Client, world: World, session: str) -> None:
    """The turn, its messages, the count, the job: if they cannot be written there is neither of them, and a repeat writes them."""
    turn(client, session, 1)
    client.ok("turn.begin", session=session, turn="t2", user=True)
    world.journal.error = IoFailure("disk", outcome="none")
    ending = {"session": session, "turn": "t2", "status": "completed", "messages": [{"role": "user", "content": "two"}]}
    client.fails("io_error", "turn.end", **ending)
    assert ([], ["hello"], 2) == (world.jobs.queue.live(), kept(world), world.jobs.counting.unseen("default", session))
    world.journal.error = None
    answer = client.ok("turn.end", **ending)
    (job,) = world.jobs.queue.live()
    assert job.id == answer["review"]["job"]
    assert ["hello", "two"] == kept(world)


async def test_secrets_are_masked_before_they_are_kept(client: Client, world: World, session: str) -> None:
    """Long messages in a thread; the turn has ended all the same, so that the next may begin and end behind it."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    client.ok("turn.begin", session=session, turn="t1", user=True)
    long = client.send(
        "turn.end",
        session=session,
        turn="t1",
        status="completed",
        messages=[{"role": "user", "content": f"{secret} " + "word " * 1000}],
    )
    assert {} == turn(client, session, 2, f"and {secret}")
    await wait_all_tasks_blocked()
    assert "review" in client.answer(long)
    assert secret not in "".join(kept(world))
    assert all("[secret:" in text for text in kept(world))
    assert 2 == len(kept(world))


async def test_who_may_not_add_leaves_nothing(world: World) -> None:
    """A subagent's turns count nothing, and its messages are not kept."""
    client = world.client(context="subagent")
    session = client.ok("session.open")["session"]
    for number in (1, 2, 3):
        assert {} == turn(client, session, number)
    assert ([], []) == (kept(world), world.jobs.queue.live())


async def test_reviews_that_are_off(client: Client, world: World, session: str) -> None:
    """Then nothing is kept either."""
    review = msgspec.structs.replace(world.profile.settings.review, interval=0)
    world.profile.settings = msgspec.structs.replace(world.profile.settings, review=review)
    for number in (1, 2, 3):
        assert {} == turn(client, session, number)
    assert [] == kept(world)


async def test_a_close_leaves_the_rest_to_the_profile(client: Client, world: World) -> None:
    """The second short session makes a review due."""
    answers = []
    for number in (1, 2):
        session = client.ok("session.open")["session"]
        turn(client, session, number)
        answers.append(client.ok("session.close", session=session, reason="end"))
    (job,) = world.jobs.queue.live()
    assert [{}, {"review": {"job": job.id, "placement": "daemon"}}] == answers
    assert 2 == len(job.ranges)


async def test_offered_to_the_client_that_is_warm(client: Client, world: World, session: str) -> None:
    """Where the settings say so."""
    review = msgspec.structs.replace(world.profile.settings.review, reviewer="client", lease_s=30)
    world.profile.settings = msgspec.structs.replace(world.profile.settings, review=review)
    turn(client, session, 1)
    assert "client" == turn(client, session, 2)["review"]["placement"]
    world.clock.advance(31)
    again = client.ok("turn.end", session=session, turn="t2", status="completed", messages=[])
    assert "daemon" == again["review"]["placement"]


def test_what_is_a_body() -> None:
    """Whatever a tool says, and parts that are no text of the speaker."""
    parts = [Part(type="text", text="look"), Part(type="document", text="a book"), Part(type="image")]
    found = said(
        [
            Message(role="user", content="plain"),
            Message(role="user", content=parts, synthetic=True),
            Message(role="tool", content=[Part(type="text", text="rows")]),
            Message(role="assistant", tool_calls=[{}]),
        ]
    )
    assert [("plain", ""), ("look", "a book"), ("", "rows"), ("", "")] == [(one.text, one.body) for one in found]
    assert [False, True, False, False] == [one.synthetic for one in found]
