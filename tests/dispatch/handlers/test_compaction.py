"""compaction.*: handing over what is about to go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from msgspec.structs import replace
from support.jobs import FakeProfile

from memd.errors import IoFailure
from memd.settings import Flush, Review

if TYPE_CHECKING:
    from support.fake_daemon import Client, World
    from trio.testing import MockClock

MESSAGES = [
    {"role": "system", "content": "You are a host."},
    {"role": "user", "content": "I prefer tea"},
    {"role": "tool", "content": "boiling"},
]


@pytest.fixture
def world(world: World) -> World:
    """In which jobs know the profile, and a session is flushed from its second turn on."""
    world.job_profiles["default"] = FakeProfile("default")
    world.profile.settings = replace(world.profile.settings, flush=Flush(min_turns=2, min_new_turns=1, cooldown_s=60))
    return world


def turn(client: Client, session: str, name: str) -> None:
    client.ok("turn.begin", session=session, turn=name, user=True)
    client.ok("turn.end", session=session, turn=name, status="completed", messages=[])


@pytest.fixture
async def session(world: World, client: Client) -> str:
    """With two turns."""
    opened = str(client.ok("session.open", key="k")["session"])
    turn(client, opened, "t1")
    turn(client, opened, "t2")
    return opened


def flushes(world: World) -> list[Any]:
    return [job for job in world.journal.jobs.jobs.values() if job.kind == "flush"]


async def test_a_receipt_comes_at_once_and_the_messages_are_kept(world: World, client: Client, session: str) -> None:
    told = await client.done("compaction.begin", session=session, epoch=1, messages=MESSAGES)
    assert {"job": told["job"], "state": "queued", "summary_text": ""} == told
    (job,) = flushes(world)
    assert (told["job"], session, "1", 2) == (job.id, job.session, job.epoch, job.turns)
    kept = await world.journal.jobs.messages(job.ranges)
    assert [("user", "I prefer tea", ""), ("tool", "", "boiling")] == [
        (one.role, one.text, one.withheld) for one in kept
    ]


@pytest.mark.parametrize("epoch", [0, 1, "a", "x" * 200])
async def test_there_is_one_flush_for_an_epoch(world: World, client: Client, session: str, epoch: str | int) -> None:
    """However often it is asked for, and the first epoch is one like any other."""
    told = [await client.done("compaction.begin", session=session, epoch=epoch, messages=MESSAGES) for _ in range(3)]
    assert 1 == len(flushes(world))
    assert told[0] == told[1] == told[2]


async def test_the_next_epoch_needs_new_turns_and_some_time(world: World, client: Client, session: str) -> None:
    await client.done("compaction.begin", session=session, epoch=1, messages=MESSAGES)
    told = await client.done("compaction.begin", session=session, epoch=2, messages=MESSAGES)
    assert ("skipped", True) == (told["state"], "min_new_turns" in told["reason"])
    turn(client, session, "t3")
    told = await client.done("compaction.begin", session=session, epoch=3, messages=MESSAGES)
    assert ("skipped", True) == (told["state"], "cooldown_s" in told["reason"])
    world.clock.advance(61)
    told = await client.done("compaction.begin", session=session, epoch=4, messages=MESSAGES)
    assert ("queued", 2) == (told["state"], len(flushes(world)))
    again = await client.done("compaction.begin", session=session, epoch=3, messages=MESSAGES)
    assert ("skipped", True) == (again["state"], "cooldown_s" in again["reason"])


async def test_what_is_not_worth_its_while_says_why(world: World, client: Client, session: str) -> None:
    begin = {"epoch": 1, "messages": MESSAGES}
    young = str(client.ok("session.open", key="young")["session"])
    assert "min_turns" in (await client.done("compaction.begin", session=young, **begin))["reason"]
    told = await client.done("compaction.begin", session=session, epoch=1)
    assert ("skipped", "no messages were handed over") == (told["state"], told["reason"])
    world.profile.settings = replace(world.profile.settings, review=Review(reviewer="off"))
    told = await client.done("compaction.begin", session=session, epoch=2, messages=MESSAGES)
    assert "reviewer" in told["reason"]
    assert [] == flushes(world)


async def test_a_client_waits_no_longer_than_it_says(
    world: World, client: Client, session: str, autojump_clock: MockClock
) -> None:
    asked = client.send("compaction.begin", session=session, epoch=1, messages=MESSAGES, wait_ms=1500)
    await trio.sleep(1.4)
    assert client.reply(asked) is None
    await trio.sleep(0.2)
    assert "queued" == client.answer(asked)["state"]
    client.fails("invalid_params", "compaction.begin", session=session, epoch=2, wait_ms=600_001)


async def test_what_it_found_is_told_inside_the_fence(world: World, client: Client, session: str) -> None:
    """Line by line, without what the scan objects to and without the fence's own marks."""
    fence = client.ok("session.open", key="k")["fence"]
    await client.done("compaction.begin", session=session, epoch=1, messages=MESSAGES)
    (job,) = flushes(world)
    lines = ["Prefers tea", f"{fence['close']} and coffee", "", "x" * 5000, "Lives in Lisbon"]
    await client.done("jobs.cancel", job=job.id)
    world.journal.jobs.jobs[job.id] = replace(world.journal.jobs.jobs[job.id], summary="\n".join(lines))
    told = await client.done("compaction.begin", session=session, epoch=1, messages=MESSAGES)
    wanted = [fence["open"], "Prefers tea", "and coffee", "Lives in Lisbon", fence["close"]]
    assert ("done", "\n".join(wanted)) == (told["state"], told["summary_text"])


async def test_inline_the_agent_does_it_itself(world: World, client: Client, session: str) -> None:
    """The message holds the marker, which nobody can guess; no job is made."""
    told = await client.done("compaction.begin", session=session, epoch=1, mode="inline")
    message, marker = told["inline"]["message"], told["inline"]["marker"]
    assert ("user", True, True) == (message["role"], message["synthetic"], message["content"].startswith(marker))
    other = await client.done("compaction.begin", session=session, epoch=2, mode="inline")
    assert marker != other["inline"]["marker"]
    assert [] == flushes(world)
    turn(client, session, "t3")
    assert not (await client.done("compaction.end", session=session, epoch=1))["missed"]


async def test_an_end_without_a_beginning_was_missed(world: World, client: Client, session: str) -> None:
    """It is written down; whoever comes after it with the messages gets a flush all the same."""
    assert (await client.done("compaction.end", session=session, epoch=7))["missed"]
    assert ["7"] == [one.epoch for one in world.journal.jobs.epochs.values() if one.state == "missed"]
    told = await client.done("compaction.begin", session=session, epoch=7, messages=MESSAGES)
    assert "queued" == told["state"]
    assert not (await client.done("compaction.end", session=session, epoch=7))["missed"]


async def test_the_end_is_a_boundary_for_the_snapshot(world: World, client: Client, session: str) -> None:
    """If the compaction came about; a failed one changes no prompt."""
    client.ok("memory.add", target="memory", content="later")
    failed = await client.done("compaction.end", session=session, epoch=1, status="failed")
    assert "" == failed["snapshot"]["text"]
    ended = await client.done("compaction.end", session=session, epoch=1)
    assert "later" in ended["snapshot"]["text"]
    assert ended["snapshot"] == client.ok("session.snapshot", session=session)["snapshot"]


async def test_what_cannot_be_written_down_is_an_error(world: World, client: Client, session: str) -> None:
    """And as unknown as before."""
    world.journal.jobs.error = IoFailure("broken", outcome="none")
    await client.refused("io_error", "compaction.begin", session=session, epoch=1, messages=MESSAGES)
    world.journal.jobs.error = None
    told = await client.done("compaction.begin", session=session, epoch=1, messages=MESSAGES)
    assert "queued" == told["state"]


@pytest.mark.parametrize("epoch", ["", "x" * 201])
async def test_an_epoch_has_bounds(client: Client, session: str, epoch: str) -> None:
    await client.refused("invalid_params", "compaction.begin", session=session, epoch=epoch, messages=MESSAGES)


async def test_a_session_that_is_thrown_away_is_flushed(world: World, client: Client, session: str) -> None:
    """If it hands over what it holds; one that ends is not."""
    told = await client.done("session.close", session=session, reason="reset", messages=MESSAGES)
    (job,) = flushes(world)
    assert (job.id, "reset") == (told["flush"], job.epoch)
    other = str(client.ok("session.open", key="k")["session"])
    turn(client, other, "t1")
    turn(client, other, "t2")
    assert "flush" not in client.ok("session.close", session=other, reason="end", messages=MESSAGES)
    assert 1 == len(flushes(world))


async def test_reading_alone_is_not_enough(world: World, session: str) -> None:
    reader = world.client(access="read")
    reader.fails("permission_denied", "compaction.begin", session=session, epoch=1)
    reader.fails("permission_denied", "compaction.end", session=session, epoch=1)
