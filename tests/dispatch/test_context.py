"""What a connection is: settled once, by hello or by the first call."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from support.fake_daemon import World
from support.judged import SECRET

from memd.config import Access, ProfileSettings
from memd.errors import ProfileOwned
from memd.protocol.params import MemoryAdd


async def test_any_call_settles_the_defaults(world: World) -> None:
    """A hello after it comes too late."""
    client = world.client()
    client.ok("rpc.ping")
    assert "first" in client.fails("invalid_request", "hello")["message"]
    assert (True, "primary", "full") == (
        client.conversation.context.settled,
        client.conversation.context.context,
        client.conversation.context.access,
    )


async def test_a_reason_is_kept_without_its_secrets(world: World) -> None:
    """It goes into the journal and into events as it stands."""
    context = world.client(profile="default").conversation.context
    for reason, kept in (
        (f"since {SECRET}", "since the deploy token is [secret:secret.git-hosting]"),
        ("", ""),
        (None, None),
    ):
        assert kept == context.writing(MemoryAdd(target="memory", content="x", reason=reason)).caller.reason


async def test_a_hello_that_failed_settles_nothing(world: World) -> None:
    """It may be said again, better."""
    client = world.client()
    client.fails("no_such_profile", "hello", profile="nope")
    client.fails("unsupported_version", "hello", protocol=[2, 3])
    assert "default" == client.ok("hello")["profile"]


def test_with_several_profiles_one_has_to_be_named() -> None:
    """They are listed; what needs no profile works."""
    world = World("work", "home")
    client = world.client()
    assert ["home", "work"] == client.fails("no_such_profile", "hello")["data"]["profiles"]
    assert "work" == client.ok("hello", profile="work")["profile"]
    silent = world.client()
    silent.ok("rpc.ping")
    assert ["home", "work"] == silent.fails("no_such_profile", "memory.read")["data"]["profiles"]
    assert "full" == silent.conversation.context.access


def test_a_profile_that_is_gone_is_no_profile() -> None:
    """Its connections are told."""
    world = World("work", "home")
    client = world.client(profile="work")
    del world.profiles["work"]
    client.fails("no_such_profile", "memory.read")


def test_a_profile_that_cannot_be_served_says_why() -> None:
    """Others of the same daemon are; it counts as configured."""
    world = World("work")
    world.problems["home"] = ProfileOwned("owned by pid 7", pid=7)
    assert 7 == world.client().fails("profile_owned", "hello", profile="home")["data"]["pid"]
    assert ["home", "work"] == world.client().fails("no_such_profile", "hello")["data"]["profiles"]
    assert "work" == world.client().ok("hello", profile="work")["profile"]


def test_the_only_profile_that_cannot_be_served_is_told_on_each_call() -> None:
    """What needs no profile works; a change did nothing."""
    world = World()
    world.profiles.clear()
    world.problems["default"] = ProfileOwned("owned by pid 7")
    client = world.client()
    client.ok("rpc.ping")
    error = client.fails("profile_owned", "memory.add", target="memory", content="a")
    assert "none" == error["data"]["outcome"]
    assert "outcome" not in client.fails("profile_owned", "memory.read")["data"]


@pytest.mark.parametrize(
    ("hello", "access"),
    [
        ({}, "full"),
        ({"context": "subagent"}, "read"),
        ({"context": "cron"}, "read"),
        ({"context": "job"}, "none"),
        ({"access": "add"}, "add"),
        ({"context": "subagent", "access": "full"}, "read"),
        ({"context": "subagent", "access": "none"}, "none"),
    ],
)
async def test_access_follows_from_the_context_and_is_only_lowered(
    world: World, hello: dict[str, Any], access: str
) -> None:
    """By the settings' table."""
    assert access == world.client().ok("hello", **hello)["access"]


async def test_access_that_was_capped_is_told(world: World) -> None:
    """Who asked for more than it gets."""
    notices = world.client().ok("hello", context="subagent", access="full")["notices"]
    assert ["access_capped"] == [notice["name"] for notice in notices]
    assert [] == world.client().ok("hello", context="subagent", access="none")["notices"]


async def test_settings_that_are_reloaded_hold_for_open_connections(world: World) -> None:
    """A person who takes access away means now."""
    client = world.client()
    client.ok("memory.add", target="memory", content="a")
    world.profile.settings = ProfileSettings(name="default", dir="/x", access=Access(primary="read"))
    client.fails("permission_denied", "memory.add", target="memory", content="b")


async def test_a_turn_without_its_session_is_refused(world: World) -> None:
    """Turn ids are a session's own."""
    error = world.client().fails("invalid_params", "memory.add", target="memory", content="a", turn="t")
    assert "turn" == error["data"]["field"]


async def test_a_turn_that_is_not_open_is_refused(world: World) -> None:
    """Also one that was; without a turn, the open one is meant."""
    client = world.client()
    session = client.ok("session.open")["session"]
    client.fails("invalid_request", "memory.add", target="memory", content="a", session=session, turn="t")
    client.ok("memory.add", target="memory", content="a", session=session)
    client.ok("turn.begin", session=session, turn="t", user=True)
    client.ok("memory.add", target="memory", content="b", session=session)
    assert [None, "t"] == [row.record.turn for row in world.profile.rows]
    client.ok("turn.end", session=session, turn="t", status="completed")
    client.fails("invalid_request", "memory.add", target="memory", content="c", session=session, turn="t")


@pytest.mark.parametrize("request_id", ["", "x" * 65, "ü" * 33])
async def test_a_request_id_has_bounds(world: World, request_id: str) -> None:
    """1 to 64 bytes."""
    client = world.client()
    client.fails("invalid_params", "memory.add", target="memory", content="a", request_id=request_id)
    client.ok("memory.add", target="memory", content="a", request_id="ü" * 32)


async def test_who_writes_is_recorded(world: World) -> None:
    """The name from hello, the peer, session, turn and reason."""
    client = world.client(client={"name": "claude", "version": "1"})
    session = client.ok("session.open")["session"]
    client.ok("turn.begin", session=session, turn="t", user=True)
    client.ok("memory.add", target="memory", content="a", session=session, reason="because", origin="user")
    record = world.profile.rows[0].record
    assert ("claude", 1000, 4242) == (record.client, record.uid, record.pid)
    assert (session, "t", "because", "user") == (record.session, record.turn, record.reason, record.origin)


async def test_its_repr_shows_what_it_is(world: World) -> None:
    """For logs."""
    client = world.client(client={"name": "cli"}, context="cron")
    assert "<Context cli of default, cron, read as agent>" == repr(client.conversation.context)


async def test_params_of_hello_may_be_left_out(world: World) -> None:
    """Off-the-shelf clients send an empty array."""
    client = world.client()
    client.conversation.notification("hello", msgspec.Raw(b"\x90"))
    client.send_raw(5, "hello", [None])
    assert 1 == client.answer(5)["protocol"]
