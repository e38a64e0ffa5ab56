"""jobs.claim, jobs.renew, jobs.submit: a client's own model reviews."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.documents import store
from support.jobs import FakeProfile, review

from memd.store.work import JobRecord, MessageRecord

if TYPE_CHECKING:
    from pathlib import Path

    from support.fake_daemon import Client, World


@pytest.fixture
def world(world: World) -> World:
    """In which jobs know the profile."""
    world.job_profiles["default"] = FakeProfile("default")
    return world


def queued(world: World, session: str) -> JobRecord:
    """A review of a session, with a message."""
    job = review(profile="default", session=session)
    message = MessageRecord(owner="s-1", number=1, profile="default", us=1, role="user", text="I like tea")
    world.journal.jobs.jobs[job.id] = job
    world.journal.jobs.kept["s-1", 1] = message
    world.jobs.queue.accept(job)
    return job


async def test_a_claim_has_all_that_a_model_needs(world: World, client: Client) -> None:
    """The task, what is in memory, the conversation, the tool in the style of its interface; the lease is no guess."""
    session = client.ok("session.open")["session"]
    profile = FakeProfile("default")
    profile.documents["memory"] = store("the port is 8080")
    world.job_profiles["default"] = profile
    job = queued(world, session)
    claimed = await client.done("jobs.claim", job=job.id, session=session, style="anthropic")
    assert (32, 60, "input_schema") == (len(claimed["lease"]), claimed["lease_s"], list(claimed["tool"])[-1])
    memory, conversation = claimed["messages"]
    assert "the port is 8080" in memory["content"]
    assert "#1 user: I like tea" in conversation["content"]
    assert "long-term memory" in claimed["system"]
    assert {"lease_s": 60} == await client.done("jobs.renew", job=job.id, lease=claimed["lease"])
    listed = (await client.done("jobs.list"))["jobs"]
    assert [("running", "client")] == [(one["state"], one["reviewer"]) for one in listed]


async def test_what_is_not_ones_own(world: World, client: Client) -> None:
    """Another session's job, one that was never there, a lease that is none."""
    session, other = (client.ok("session.open")["session"] for _ in range(2))
    job = queued(world, session)
    await client.refused("conflict", "jobs.claim", job=job.id, session=other)
    await client.refused("no_such_job", "jobs.claim", job="j-none", session=session)
    await client.refused("no_such_session", "jobs.claim", job=job.id, session="none")
    await client.refused("conflict", "jobs.renew", job=job.id, lease="guess")
    await client.refused("conflict", "jobs.submit", job=job.id, lease="guess", operations=[])
    assert "queued" == (await client.done("jobs.show", job=job.id))["state"]


async def test_a_model_that_led_nowhere(world: World, client: Client) -> None:
    """The job is queued for the daemon; its reason has no secrets."""
    session = client.ok("session.open")["session"]
    job = queued(world, session)
    claimed = await client.done("jobs.claim", job=job.id, session=session)
    told = await client.done("jobs.submit", job=job.id, lease=claimed["lease"], error="no model")
    assert ("queued", 1, "its client gave it back: no model") == (
        told["state"],
        told["failures"]["count"],
        told["reason"],
    )


async def test_a_prompt_that_cannot_be_read(world: World, client: Client, tmp_path: Path) -> None:
    """The claim is refused with the reason, and the job is nobody's again."""
    world.job_profiles["default"] = FakeProfile("default", review={"prompt_file": str(tmp_path / "none")})
    session = client.ok("session.open")["session"]
    job = queued(world, session)
    error = await client.refused("invalid_params", "jobs.claim", job=job.id, session=session)
    assert "prompt_file" in error["message"]
    assert "queued" == (await client.done("jobs.show", job=job.id))["state"]
