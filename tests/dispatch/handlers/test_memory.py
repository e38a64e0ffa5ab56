"""memory.*: reads, changes, batches, wipes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio.testing
from support.judged import SECRET

from memd.profile.entries import parse
from memd.profile.history import Explanation

if TYPE_CHECKING:
    from support.fake_daemon import Client, World


async def test_the_four_verbs(client: Client) -> None:
    """Each says what it did; the id stays."""
    added = client.ok("memory.add", target="memory", content="  Project uses pytest -x  ")
    assert "Project uses pytest -x" == added["entry"]["text"]
    assert (True, 1, 22, False) == (added["changed"], added["revision"], added["usage"]["chars"], added["replayed"])
    entry = added["entry"]["id"]
    replaced = client.ok("memory.replace", target="memory", id=entry, old_text=None, content="Server is Debian 12")
    edited = client.ok("memory.edit", target="memory", id=entry, old_text="12", new_text="13")
    assert [entry, entry] == [replaced["entry"]["id"], edited["entry"]["id"]]
    assert [
        {
            "action": "edit",
            "target": "memory",
            "id": entry,
            "before": "Server is Debian 12",
            "after": "Server is Debian 13",
        }
    ] == edited["changes"]
    removed = client.ok("memory.remove", target="memory", old_text="Debian")
    assert "entry" not in removed
    assert 0 == removed["usage"]["chars"]


@pytest.mark.parametrize("operator", [False, True])
async def test_every_refusal_tells_the_real_usage(world: World, *, operator: bool) -> None:
    """A model that merely believes that the store is full throws away what it should keep; the last one tells it too."""
    client = world.client(role="operator" if operator else "agent")
    client.ok("memory.add", target="memory", content="Uses uv")
    names = ["not_found"] * 3 + ["not_found" if operator else "turn_budget_exhausted"]
    refused = [client.fails(name, "memory.remove", target="memory", old_text="no such") for name in names]
    usage = {"chars": 7, "limit": 2200, "free": 2193, "percent": 0, "near_limit": False}
    assert [usage] * 4 == [error["data"]["usage"] for error in refused]


async def test_aliases_and_absent_fields(client: Client) -> None:
    """The daemon's one normaliser."""
    client.ok("memory.add", target="memory", text="Uses uv")
    client.ok("memory.replace", target="memory", old_string="Uses uv", new_string="Uses uv for all")
    error = client.fails("invalid_params", "memory.add", target="memory", content="a", text="b")
    assert "content" == error["data"]["field"]
    assert "content" == client.fails("invalid_params", "memory.add", target="memory")["data"]["field"]


async def test_a_duplicate_changes_nothing_and_is_no_failure(client: Client) -> None:
    """The budget starts again."""
    client.ok("memory.add", target="memory", content="a")
    client.fails("not_found", "memory.remove", target="memory", old_text="zzz")
    again = client.ok("memory.add", target="memory", content="a")
    assert (False, 1) == (again["changed"], again["revision"])
    error = client.fails("not_found", "memory.remove", target="memory", old_text="zzz")
    assert {"count": 1, "limit": 3} == error["data"]["failures"]


async def test_optimistic_locks(client: Client) -> None:
    """A conflict is the caller's to solve, and is no failure."""
    first = client.ok("memory.add", target="memory", content="Port is 8080")
    client.ok("memory.replace", target="memory", id="e1", content="Port is 9090", if_hash=first["entry"]["hash"])
    error = client.fails(
        "conflict", "memory.replace", target="memory", id="e1", content="Port is 1", if_hash=first["entry"]["hash"]
    )
    assert ("if_hash", "Port is 9090") == (error["data"]["reason"], error["data"]["current"])
    assert "failures" not in error["data"]
    error = client.fails("conflict", "memory.add", target="memory", content="z", if_revision=first["revision"])
    assert "if_revision" == error["data"]["reason"]


async def test_a_batch_says_what_became_of_each_operation(client: Client) -> None:
    """The limit holds for the final state."""
    client.ok("memory.add", target="user", content="x" * 1300)
    operations: list[dict[str, Any]] = [
        {"action": "add", "content": "y" * 200},
        {"action": "remove", "old_text": "xxx"},
        {"action": "add", "content": "y" * 200},
    ]
    done = client.ok("memory.apply", target="user", operations=operations)
    assert 2 == done["applied"]
    assert ["applied", "applied", "unchanged"] == [row["status"] for row in done["results"]]
    assert [0, 1, 2] == [row["index"] for row in done["results"]]
    assert "entry" not in done


async def test_an_aborted_batch_did_nothing_and_says_where_it_failed(client: Client) -> None:
    """The failing operation has its own error in its row."""
    operations = [{"action": "add", "content": "z"}, {"action": "remove", "old_text": "nowhere"}]
    error = client.fails("not_found", "memory.apply", target="memory", operations=operations)
    data = error["data"]
    assert (0, 1, "none") == (data["applied"], data["index"], data["outcome"])
    assert ["not_tried", "refused"] == [row["status"] for row in data["results"]]
    assert "not_found" == data["results"][1]["error"]["name"]
    assert {"count": 1, "limit": 3} == data["failures"]
    assert [] == client.ok("memory.read")["stores"]["memory"]["entries"]


async def test_an_aborted_batch_over_the_budget_still_says_where(client: Client) -> None:
    """A host shows it."""
    operations = [{"action": "remove", "old_text": "nowhere"}]
    for _ in range(3):
        client.fails("not_found", "memory.apply", target="memory", operations=operations)
    error = client.fails("turn_budget_exhausted", "memory.apply", target="memory", operations=operations)
    assert (0, 0, "not_found") == (error["data"]["applied"], error["data"]["index"], error["data"]["cause"])


async def test_a_batch_that_cannot_be_understood_is_aborted_too(client: Client) -> None:
    """The message names the operation and the field; empty is no batch."""
    operations = [{"action": "add", "content": "a"}, {"action": "shout"}]
    error = client.fails("invalid_params", "memory.apply", target="memory", operations=operations)
    assert "operations[1]: action" in error["message"]
    assert (1, 0, "operations[1].action") == (error["data"]["index"], error["data"]["applied"], error["data"]["field"])
    assert (
        "operations" == client.fails("invalid_params", "memory.apply", target="memory", operations=[])["data"]["field"]
    )


async def test_with_access_add_only_adds_are_done(world: World) -> None:
    """In a batch too, all or nothing."""
    client = world.client(access="add")
    client.ok("memory.add", target="memory", content="a")
    client.ok("memory.apply", target="memory", operations=[{"action": "add", "content": "b"}])
    operations = [{"action": "add", "content": "c"}, {"action": "remove", "old_text": "a"}]
    error = client.fails("permission_denied", "memory.apply", target="memory", operations=operations)
    assert "memory.apply with anything but adds" in error["message"]
    client.fails("permission_denied", "memory.edit", target="memory", old_text="a", new_text="b")
    assert 2 == len(client.ok("memory.read")["stores"]["memory"]["entries"])


async def test_a_lowered_origin_is_told_with_the_change(client: Client) -> None:
    """And the entry has the lowered one."""
    done = client.ok("memory.add", target="memory", content="claims to be the user", origin="user")
    assert "agent" == done["entry"]["origin"]
    assert ["origin_lowered"] == [notice["name"] for notice in done["notices"]]


async def test_an_operator_writes_as_the_user_and_has_no_budget(operator: Client) -> None:
    """A person may fail as often as it takes."""
    assert "user" == operator.ok("memory.add", target="memory", content="a")["entry"]["origin"]
    for _ in range(5):
        error = operator.fails("not_found", "memory.remove", target="memory", old_text="zzz")
        assert "failures" not in error["data"]


async def test_reading_one_store_or_both(client: Client, world: World) -> None:
    """Live, with ids, times and where the file is."""
    client.ok("memory.add", target="user", content="Grüße")
    stores = client.ok("memory.read")["stores"]
    assert {"memory", "user"} == set(stores)
    (entry,) = stores["user"]["entries"]
    assert ("Grüße", 5, "agent", []) == (entry["text"], entry["chars"], entry["origin"], entry["findings"])
    assert "2023-11-14T22:13:20.000000Z" == entry["created_at"]
    assert ("ok", world.profile.state("user").path) == (stores["user"]["state"], stores["user"]["path"])
    assert {"user"} == set(client.ok("memory.read", target="user")["stores"])


async def test_a_read_sees_what_others_wrote_until_now(client: Client, world: World) -> None:
    """It looks when a look is due, and only then."""
    client.ok("memory.read")
    assert 0 == world.profile.looks
    world.profile.outside = {"memory": parse(b"by an editor\n")}
    world.profile.due = True
    msgid = client.send("memory.read")
    await trio.testing.wait_all_tasks_blocked()
    assert ["by an editor"] == [entry["text"] for entry in client.answer(msgid)["stores"]["memory"]["entries"]]
    assert 1 == world.profile.looks


async def test_bytes_that_are_not_utf8_are_shown_as_replacement_characters(client: Client, world: World) -> None:
    """And marked."""
    world.profile.put("memory", document=parse(b"caf\xe9"))
    (entry,) = client.ok("memory.read")["stores"]["memory"]["entries"]
    assert ("caf\ufffd", True) == (entry["text"], entry["undecodable"])


async def test_explain_says_what_became_of_a_text(client: Client, world: World) -> None:
    """With times twice."""
    world.profile.explanations = [Explanation("refused", "memory", 1_700_000_000_000_000, "over_limit")]
    secret = Explanation("removed", "memory", 1_700_000_000_000_000, f"remove by agent: {SECRET}")
    msgid = client.send("memory.explain", text="x")
    await trio.testing.wait_all_tasks_blocked()
    (match,) = client.answer(msgid)["matches"]
    assert ("refused", "memory", "over_limit") == (match["state"], match["target"], match["reason"])
    assert "2023-11-14T22:13:20.000000Z" == match["at"]
    world.profile.explanations = [secret]
    msgid = client.send("memory.explain", text="x")
    await trio.testing.wait_all_tasks_blocked()
    (match,) = client.answer(msgid)["matches"]
    assert "remove by agent: the deploy token is [secret:secret.git-hosting]" == match["reason"]


async def test_a_wipe_is_confirmed_with_the_profiles_name(operator: Client) -> None:
    """Anything else is a mistake."""
    operator.ok("memory.add", target="memory", content="a")
    error = operator.fails("invalid_params", "memory.wipe", target="memory", confirm="yes")
    assert ("confirm", "none") == (error["data"]["field"], error["data"]["outcome"])
    done = operator.ok("memory.wipe", target="memory", confirm="default")
    assert (True, 0) == (done["changed"], done["usage"]["chars"])
    assert ["remove"] == [change["action"] for change in done["changes"]]


async def test_a_wipe_that_waits_can_be_cancelled(operator: Client, world: World) -> None:
    """Nothing was wiped."""
    world.profile.hold = True
    msgid = operator.send("memory.wipe", target="memory", confirm="default")
    assert {"cancelled": True} == operator.ok("rpc.cancel", msgid=msgid)
    assert "none" == operator.error(msgid)["data"]["outcome"]


async def test_a_batch_that_others_made_impossible_has_its_own_error(client: Client) -> None:
    """A conflict is no refusal of one operation: no row has an error of its own."""
    operations = [{"action": "add", "content": "a"}]
    error = client.fails("conflict", "memory.apply", target="memory", operations=operations, if_revision=9)
    assert "results" not in error["data"]


@pytest.mark.parametrize("style", ["openai", "anthropic", "mcp"])
async def test_the_tools_definition(world: World, style: str) -> None:
    """Also without any access: a host need not know that memory is off."""
    assert "memory" in str(world.client(context="job").ok("memory.tool_schema", style=style))
