"""history.*: revisions with their provenance, and taking them back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio.testing
from support.judged import SECRET

from memd.profile.values import Notice

if TYPE_CHECKING:
    from support.fake_daemon import Client, World


async def ask(client: Client, method: str, **params: Any) -> Any:
    msgid = client.send(method, **params)
    await trio.testing.wait_all_tasks_blocked()
    return client.answer(msgid)


async def refused(client: Client, name: str, method: str, **params: Any) -> Any:
    msgid = client.send(method, **params)
    await trio.testing.wait_all_tasks_blocked()
    error = client.error(msgid)
    assert name == error["name"]
    return error


@pytest.fixture
async def written(client: Client) -> Client:
    """Three revisions."""
    client.ok("memory.add", target="memory", content="one", reason="because")
    client.ok("memory.add", target="memory", content="two")
    client.ok("memory.add", target="user", content="three")
    return client


async def test_revisions_newest_first_with_pages(written: Client) -> None:
    """``next`` is the ``before`` of the next page."""
    first = await ask(written, "history.list", limit=2)
    assert [3, 2] == [row["revision"] for row in first["revisions"]]
    second = await ask(written, "history.list", limit=2, before=first["next"])
    assert [1] == [row["revision"] for row in second["revisions"]]
    assert "next" not in second
    (row,) = second["revisions"]
    assert ("memory", "agent", "because", 1000, "") == (
        row["target"],
        row["origin"],
        row["reason"],
        row["uid"],
        row["client"],
    )
    assert [{"action": "add", "target": "memory", "id": "e1", "after": "one"}] == row["changes"]
    assert [2, 1] == [row["revision"] for row in (await ask(written, "history.list", target="memory"))["revisions"]]


async def test_one_revision_with_what_stood_after_it(written: Client) -> None:
    """Both stores."""
    shown = await ask(written, "history.show", revision=2)
    assert 2 == shown["revision"]
    assert ["one", "two"] == [entry["text"] for entry in shown["entries"]["memory"]]
    assert [] == shown["entries"]["user"]
    await refused(written, "no_such_revision", "history.show", revision=10**15)


async def test_a_secret_in_a_reason_is_masked(client: Client) -> None:
    """In the list, in what is shown of one; the same as in texts."""
    client.ok("memory.add", target="memory", content="one", reason=f"because {SECRET}")
    (row,) = (await ask(client, "history.list"))["revisions"]
    shown = await ask(client, "history.show", revision=1)
    assert ["because the deploy token is [secret:secret.git-hosting]"] * 2 == [row["reason"], shown["reason"]]


async def test_the_difference_between_two_revisions(written: Client) -> None:
    """For people and for programs."""
    diff = await ask(written, "history.diff", target="memory", **{"from": 1})
    assert "two" in diff["text"]
    assert [{"action": "add", "target": "memory", "id": "e2", "after": "two"}] == diff["changes"]


async def test_undo_and_redo(written: Client, world: World) -> None:
    """What was done, as one revision a store."""
    undone = await ask(written, "history.undo", revision=2)
    assert (4, [4], []) == (undone["revision"], undone["revisions"], undone["conflicts"])
    assert ["remove"] == [change["action"] for change in undone["changes"]]
    assert {"memory"} == set(undone["usage"])
    await ask(written, "history.redo", last=1)
    assert ["undo", "redo"] == world.profile.entered


async def test_an_undo_that_conflicts_is_a_result(written: Client, world: World) -> None:
    """Nothing was done; it is no error."""
    world.profile.conflicts = (("e1", "changed since"),)
    undone = await ask(written, "history.undo", revision=1)
    assert "revision" not in undone
    assert [{"id": "e1", "reason": "changed since"}] == undone["conflicts"]


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({}, "revision"),
        ({"revision": 1, "last": 1}, "last"),
        ({"last": 0}, "last"),
    ],
)
async def test_selectors_that_cannot_be(written: Client, params: dict[str, int], field: str) -> None:
    """Exactly one of them says which changes are meant."""
    error = await refused(written, "invalid_params", "history.undo", **params)
    assert (field, "none") == (error["data"]["field"], error["data"]["outcome"])


async def test_a_session_selects_where_nothing_else_does(written: Client, world: World) -> None:
    """It may be closed long since; beside a selector it says who asks, and has to be open."""
    await ask(written, "history.undo", session="closed-long-since")
    assert world.profile.rows[-1].record.session is None
    await refused(written, "no_such_session", "history.undo", session="closed-long-since", last=1)
    session = written.ok("session.open")["session"]
    await ask(written, "history.undo", session=session, last=1)
    assert session == world.profile.rows[-1].record.session


async def test_restore(written: Client) -> None:
    """The store as it was, as a new revision."""
    restored = await ask(written, "history.restore", target="memory", revision=1)
    assert (4, [4]) == (restored["revision"], restored["revisions"])
    entries = written.ok("memory.read")["stores"]["memory"]["entries"]
    assert ["one"] == [entry["text"] for entry in entries]
    error = await refused(written, "no_such_revision", "history.restore", target="memory", revision=99)
    assert "none" == error["data"]["outcome"]


async def test_a_preview_does_nothing(written: Client, world: World) -> None:
    """Of undo, redo and restore."""
    for method, params in (
        ("history.undo", {"last": 1}),
        ("history.redo", {"last": 1}),
        ("history.restore", {"target": "memory", "revision": 1}),
    ):
        assert "revision" not in await ask(written, method, preview=True, **params)
    assert ["preview undo", "preview redo", "preview restore memory 1"] == world.profile.entered
    assert 3 == len(world.profile.rows)


async def test_revisions_by_origin(written: Client) -> None:
    """Any of those there are, also those that nobody may claim."""
    assert 3 == len((await ask(written, "history.list", origin="agent"))["revisions"])
    assert [] == (await ask(written, "history.list", origin="outside"))["revisions"]
    await refused(written, "invalid_params", "history.list", origin="root")


async def test_a_redaction_is_an_operators(world: World) -> None:
    """By text or by revision; what could not be looked at is told."""
    world.control.told = [Notice("not_redacted", "x is off")]
    operator = world.client("operator")
    done = await ask(operator, "history.redact", text="hunter2")
    assert ({"revision": 2}, [7], ["not_redacted"]) == (
        done["tables"],
        done["revisions"],
        [notice["name"] for notice in done["notices"]],
    )
    await ask(operator, "history.redact", revision=3, origin="agent")
    assert ["redact default user hunter2 None", "redact default agent None 3"] == world.control.done
    await refused(world.client(), "permission_denied", "history.redact", text="hunter2")


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({}, "text"),
        ({"text": "hunter2", "revision": 1}, "text"),
        ({"text": "hunter2", "if_revision": 1}, "if_revision"),
        ({"text": "hunter2", "reason": "x" * 1001}, "reason"),
        ({"text": "hunter2", "origin": "review"}, "origin"),
        ({"text": "hunter2", "deadline_ms": 0}, "deadline_ms"),
    ],
)
async def test_redactions_that_cannot_be(world: World, params: dict[str, Any], field: str) -> None:
    """Nothing is done."""
    error = await refused(world.client("operator"), "invalid_params", "history.redact", **params)
    assert (field, "none") == (error["data"]["field"], error["data"]["outcome"])
    assert [] == world.control.done
