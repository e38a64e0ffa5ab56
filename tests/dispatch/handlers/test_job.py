"""jobs.*: reviews and flushes as clients and people see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from support.jobs import FakeProfile

from memd.store.work import DeskRecord, JobRecord, RefusedRecord

if TYPE_CHECKING:
    from support.fake_daemon import Client, World
    from trio.testing import MockClock


@pytest.fixture
def world(world: World) -> World:
    """In which jobs know the profile."""
    world.job_profiles["default"] = FakeProfile("default")
    return world


async def put(world: World, number: int = 1, **fields: Any) -> JobRecord:
    given = {"kind": "review", "session": "s", "key": f"k{number}", "us": number, **fields}
    job = JobRecord(id=f"j-{number}", profile="default", **given)
    world.journal.jobs.jobs[job.id] = job
    if job.state != "done":
        world.jobs.queue.reserve(job)
        world.jobs.queue.accept(job)
    return job


async def test_every_field(world: World, client: Client) -> None:
    """As the protocol has it; secrets of what was refused are masked."""
    wanted = DeskRecord("memory", "add", "token SECRET")
    await put(
        world, state="done", outcome="partial", reviewer="rules", model="tiny", attempts=2, steps=3, failures=1,
        input=10, cached=4, output=5, committed=[7], staged=["p-1"], refused=[RefusedRecord(wanted, "blocked_content")],
        conflicts=[RefusedRecord(DeskRecord("user", "remove", id="ab12"), "conflict")], reason="why", turns=10,
        started_us=2, done_us=3, summary="found",
    )  # fmt: skip
    told = await client.done("jobs.show", job="j-1")
    assert {
        "id": "j-1", "kind": "review", "session": "s", "state": "done", "outcome": "partial", "reviewer": "rules",
        "model": "tiny", "attempts": 2, "steps": 3, "failures": {"count": 1, "limit": 3},
        "tokens": {"input": 10, "cached": 4, "output": 5}, "committed": [7], "staged": ["p-1"],
        "refused": [{"op": {"action": "add", "content": world.profile.mask("token SECRET")}, "name": "blocked_content"}],
        "conflicts": [{"op": {"action": "remove", "id": "ab12"}, "name": "conflict"}], "reason": "why", "turns": 10,
        "at": "1970-01-01T00:00:00.000001Z", "us": 1, "started_at": "1970-01-01T00:00:00.000002Z", "started_us": 2,
        "done_at": "1970-01-01T00:00:00.000003Z", "done_us": 3, "summary": "found",
    } == told  # fmt: skip


async def test_they_are_listed_newest_first(world: World, client: Client) -> None:
    for number in (1, 2, 3):
        await put(world, number, session=f"s{number % 2}")
    assert ["j-3", "j-2", "j-1"] == [job["id"] for job in (await client.done("jobs.list"))["jobs"]]
    assert ["j-3"] == [job["id"] for job in (await client.done("jobs.list", limit=1))["jobs"]]
    assert ["j-2"] == [job["id"] for job in (await client.done("jobs.list", session="s0"))["jobs"]]
    client.fails("invalid_params", "jobs.list", limit=0)


async def test_an_unknown_one(world: World, client: Client) -> None:
    for method in ("jobs.show", "jobs.wait", "jobs.cancel", "jobs.run"):
        await client.refused("no_such_job", method, job="j-9")
    await client.refused("no_such_job", "jobs.run")
    await client.refused("invalid_params", "jobs.run", job="j-9", session="s")
    await client.refused("no_such_session", "jobs.run", session="nope")


async def test_waiting_ends_with_the_job_or_the_time(world: World, client: Client, autojump_clock: MockClock) -> None:
    await put(world)
    asked = client.send("jobs.wait", job="j-1", timeout_ms=60_000)
    await trio.sleep(59.9)
    assert client.reply(asked) is None
    await trio.sleep(0.2)
    assert "queued" == client.answer(asked)["state"]
    assert "done" == (await client.done("jobs.cancel", job="j-1"))["state"]
    told = await client.done("jobs.wait", job="j-1", timeout_ms=600_000)
    assert ("done", "cancelled", "cancelled by a client") == (told["state"], told["outcome"], told["reason"])


async def test_a_cancelled_one_says_why(world: World, client: Client) -> None:
    await put(world)
    told = await client.done("jobs.cancel", job="j-1", reason="not now")
    assert ("cancelled", "not now") == (told["outcome"], told["reason"])
    assert told == await client.done("jobs.cancel", job="j-1")


async def test_one_that_waits_is_hurried(world: World, client: Client) -> None:
    await put(world, state="waiting", until_us=10**15)
    assert "queued" == (await client.done("jobs.run", job="j-1"))["state"]


async def test_who_may(world: World) -> None:
    """Looking needs to read, doing to add."""
    await put(world)
    reader = world.client(access="read")
    assert "j-1" == (await reader.done("jobs.show", job="j-1"))["id"]
    reader.fails("permission_denied", "jobs.cancel", job="j-1")
    reader.fails("permission_denied", "jobs.run")
    world.client(access="none").fails("permission_denied", "jobs.list")
    assert "cancelled" == (await world.client(access="add").done("jobs.cancel", job="j-1"))["outcome"]
