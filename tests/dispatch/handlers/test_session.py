"""session.*: snapshots that stay, whoever writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio.testing

from memd.errors import IoFailure
from memd.profile.entries import parse
from memd.profile.values import Limits, Notice, usage_of

if TYPE_CHECKING:
    from support.fake_daemon import Client, World

BAR = "═" * 46


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()


async def test_open_gives_everything_a_host_needs(client: Client) -> None:
    """Snapshot, fence, tool, nothing pending."""
    client.ok("memory.add", target="memory", content="Server is Debian 12")
    opened = client.ok("session.open", key="host:42", style="anthropic")
    assert (
        f"{BAR}\nMEMORY (your personal notes) [0% — 19/2,200 chars]\n{BAR}\nServer is Debian 12"
        == opened["snapshot"]["text"]
    )
    assert (False, False, "") == (opened["resumed"], opened["stale"], opened["changes_text"])
    assert {"count": 0, "oldest_s": 0} == opened["pending"]
    assert "input_schema" in opened["tool"]
    assert [] == opened["notices"]
    assert opened["fence"]["open"] != opened["fence"]["close"]


async def test_it_is_answered_once_it_is_durable(client: Client, world: World) -> None:
    """Another that resumes it meanwhile waits as well."""
    world.journal.hold = True
    first, second = client.send("session.open", key="k"), world.client()
    other = second.send("session.open", key="k")
    assert (None, None) == (client.reply(first), second.reply(other))
    world.journal.commit()
    assert client.answer(first)["session"] == second.answer(other)["session"]


async def test_a_session_that_could_not_be_stored_is_an_error(client: Client, world: World) -> None:
    """And the key is free."""
    world.journal.hold = True
    msgid = client.send("session.open", key="k")
    world.journal.fail(IoFailure("disk"))
    assert "io_error" == client.error(msgid)["name"]
    world.journal.hold = False
    assert not client.ok("session.open", key="k")["resumed"]


async def test_the_snapshot_is_frozen_and_says_what_changed(client: Client, world: World) -> None:
    """Over reconnects, byte for byte, inside the same fence."""
    client.ok("memory.add", target="memory", content="Server is Debian 12")
    opened = client.ok("session.open", key="k")
    client.ok("memory.replace", target="memory", old_text="Debian", content="Server is Debian 13")
    shown = client.ok("session.snapshot", session=opened["session"])
    assert (opened["snapshot"], True) == (shown["snapshot"], shown["stale"])
    again = world.client().ok("session.open", key="k")
    assert (True, opened["snapshot"], opened["fence"]) == (again["resumed"], again["snapshot"], again["fence"])
    assert shown["changes_text"] == again["changes_text"]
    assert again["changes_text"].startswith(opened["fence"]["open"])
    assert "Debian 13" in again["changes_text"]


async def test_what_the_journal_kept_is_resumed_at_once(client: Client, world: World) -> None:
    """Nothing has to be stored for it."""
    session = client.ok("session.open", key="k")["session"]
    world.sessions.get("default", session).saved = None
    world.journal.hold = True
    assert session == client.ok("session.open", key="k")["session"]


async def test_refresh_gives_a_new_one_or_the_same_id(client: Client) -> None:
    """The same id: leave the prompt alone."""
    opened = client.ok("session.open")
    same = client.ok("session.refresh", session=opened["session"])
    assert opened["snapshot"]["id"] == same["snapshot"]["id"]
    client.ok("memory.add", target="memory", content="a")
    fresh = client.ok("session.refresh", session=opened["session"])
    assert fresh["snapshot"]["id"] != same["snapshot"]["id"]
    assert not client.ok("session.snapshot", session=opened["session"])["stale"]


async def test_opening_and_refreshing_see_what_others_wrote(client: Client, world: World) -> None:
    """A look that is due comes first."""
    world.profile.due = True
    world.profile.outside = {"memory": parse(b"by an editor")}
    msgid = client.send("session.open")
    await settle()
    opened = client.answer(msgid)
    assert "by an editor" in opened["snapshot"]["text"]
    world.profile.outside = {"memory": parse(b"by another")}
    msgid = client.send("session.refresh", session=opened["session"])
    await settle()
    assert "by another" in client.answer(msgid)["snapshot"]["text"]


async def test_without_access_the_snapshot_is_empty(client: Client, world: World) -> None:
    """The host's code is the same; a reader that resumes it gets one."""
    client.ok("memory.add", target="memory", content="a")
    job = world.client(context="job")
    blind = job.ok("session.open", key="k")
    assert ("", False, "", []) == (
        blind["snapshot"]["text"],
        blind["stale"],
        blind["changes_text"],
        blind["notices"],
    )
    job.fails("permission_denied", "session.snapshot", session=blind["session"])
    assert "" == client.ok("session.snapshot", session=blind["session"])["snapshot"]["text"]
    assert "a" in client.ok("session.open", key="k")["snapshot"]["text"]
    assert "" == job.ok("session.open", key="k")["snapshot"]["text"]


async def test_close_frees_the_key(client: Client) -> None:
    """The id is unknown then."""
    session = client.ok("session.open", key="k")["session"]
    assert {} == client.ok("session.close", session=session, reason="reset")
    for method in ("session.snapshot", "session.refresh"):
        client.fails("no_such_session", method, session=session)
    client.fails("no_such_session", "session.open", session=session)
    assert not client.ok("session.open", key="k")["resumed"]


@pytest.mark.parametrize("params", [{"session": "nope"}, {"key": ""}, {"key": "x" * 201}])
async def test_what_cannot_be_opened(client: Client, params: dict[str, str]) -> None:
    """Unknown ids, keys out of bounds."""
    name = "no_such_session" if "session" in params else "invalid_params"
    client.fails(name, "session.open", **params)


async def test_what_a_snapshot_does_not_show_is_told(client: Client, world: World) -> None:
    """Left out, undecodable, read-only; and settings that let more through than the defaults."""
    document = parse(b"x" * 2000 + b"\n\xc2\xa7\n" + b"y" * 500 + b"\n\xc2\xa7\ncaf\xe9")
    world.profile.put("memory", document=document, usage=usage_of(document.chars, Limits(2200)), condition="read_only")
    world.control.told = [Notice("config.changed", "settings let more through", {"keys": ["scan.off"]})]
    opened = client.ok("session.open")
    names = ["store_read_only", "undecodable", "config.changed", "left_out"]
    assert names == [notice["name"] for notice in opened["notices"]]
    assert [] == world.client(access="none").ok("session.open")["notices"]
    assert {"memory": 1, "user": 0} == opened["snapshot"]["left_out"]
