"""memory.tool: whatever a model sends gets an answer for the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio.testing
from hypothesis import given, settings, strategies as st
from support.fake_daemon import World

from memd.errors import Busy, DeadlineExceeded, StoreDisabled

if TYPE_CHECKING:
    from support.fake_daemon import Client

    from memd.profile.values import StoreCondition


def tool(client: Client, /, **arguments: Any) -> Any:
    return client.ok("memory.tool", arguments=arguments)


async def test_a_change_that_worked(client: Client) -> None:
    """Done, with usage; the entries are not repeated to the model."""
    answer = tool(client, action="add", target="memory", content="Uses uv")
    assert (True, True, "0% — 7/2,200 chars") == (answer["success"], answer["done"], answer["usage"])
    assert "current_entries" not in answer
    assert tool(client, action="replace", target="memory", old="Uses uv", new="Uses uv for all")["success"]


async def test_reading(client: Client) -> None:
    """Entries with ids, for the next call."""
    assert "memory is empty." == tool(client, action="read", target="memory")["message"]
    tool(client, action="add", target="memory", content="Uses uv")
    answer = tool(client, action="read", target="memory")
    assert [{"id": "e1", "chars": 7, "text": "Uses uv"}] == answer["current_entries"]


@pytest.mark.parametrize(("condition", "error"), [("unreadable", "store_unreadable"), ("disabled", "store_disabled")])
async def test_what_cannot_be_read_is_not_called_empty(
    client: Client, world: World, condition: StoreCondition, error: str
) -> None:
    """A model that is told so would save everything anew."""
    world.profile.put("memory", condition=condition, detail="it is a directory")
    answer = tool(client, action="read", target="memory")
    assert (False, True, error) == (answer["success"], answer["done"], answer["error"])
    assert "memory cannot be read: it is a directory" == answer["message"]
    assert "current_entries" not in answer


async def test_the_last_good_state_is_called_that(client: Client, world: World) -> None:
    """With why, so that the model does not take it for the present."""
    tool(client, action="add", target="memory", content="Uses uv")
    world.profile.put("memory", condition="stale", detail="it is a directory")
    answer = tool(client, action="read", target="memory")
    assert (True, 1) == (answer["success"], len(answer["current_entries"]))
    expected = "memory has 1 entry. This is the last good state, the file cannot be read now: it is a directory"
    assert expected == answer["message"]


async def test_reading_sees_what_others_wrote(client: Client, world: World) -> None:
    """As memory.read does."""
    world.profile.due = True
    msgid = client.send("memory.tool", arguments={"action": "read", "target": "memory"})
    await trio.testing.wait_all_tasks_blocked()
    assert client.answer(msgid)["success"]
    assert 1 == world.profile.looks


async def test_a_call_without_its_place_gets_the_entries(client: Client) -> None:
    """So that the model can name one."""
    tool(client, action="add", target="memory", content="Uses uv")
    answer = tool(client, action="remove", target="memory")
    assert (False, False, "invalid_params") == (answer["success"], answer["done"], answer["error"])
    assert "Uses uv" == answer["current_entries"][0]["text"]
    assert "old_text or id" in answer["message"]


async def test_several_matches_are_shown(client: Client) -> None:
    """With their ids."""
    for name in "AB":
        tool(client, action="add", target="memory", content=f"server {name} runs nginx")
    answer = tool(client, action="remove", target="memory", old_text="nginx")
    assert ("ambiguous_match", ["e1", "e2"]) == (answer["error"], [match["id"] for match in answer["matches"]])
    assert {"count": 1, "limit": 3} == answer["failures"]


async def test_a_full_store_gets_its_entries_and_the_excess(client: Client) -> None:
    """Everything to make one better batch of."""
    tool(client, action="add", target="user", content="x" * 1300)
    answer = tool(client, action="add", target="user", content="y" * 100)
    assert ("over_limit", False) == (answer["error"], answer["done"])
    assert [1300] == [entry["chars"] for entry in answer["current_entries"]]
    assert "28 too many" in answer["message"]


async def test_after_the_budget_the_model_is_told_to_stop(client: Client) -> None:
    """Also when the failures were the host's plain calls in the same turn."""
    for _ in range(3):
        client.fails("not_found", "memory.remove", target="memory", old_text="zzz")
    answer = tool(client, action="remove", target="memory", old_text="zzz")
    assert (False, True, "turn_budget_exhausted") == (answer["success"], answer["done"], answer["error"])
    assert {"count": 4, "limit": 3} == answer["failures"]
    assert "answer the user" in answer["message"]
    assert "current_entries" not in answer
    assert tool(client, action="add", target="memory", content="a")["success"]


async def test_a_batch(client: Client) -> None:
    """Also one that was encoded twice."""
    answer = tool(client, target="memory", operations=[{"action": "add", "content": "a"}])
    assert answer["success"]
    answer = tool(client, target="memory", operations='[{"action": "add", "content": "b"}]')
    assert answer["success"]
    answer = tool(
        client, target="memory", operations=[{"action": "add", "content": "c"}, {"action": "remove", "old_text": "zzz"}]
    )
    assert (False, "not_found") == (answer["success"], answer["error"])
    assert ["a", "b"] == [entry["text"] for entry in answer["current_entries"]]


async def test_its_origin_is_at_most_agent(world: World, operator: Client) -> None:
    """Whoever passes it on, in whatever turn; a client may lower it."""
    session = operator.ok("session.open")["session"]
    operator.ok("turn.begin", session=session, turn="t", user=True)
    arguments = {"action": "add", "target": "memory"}
    operator.ok("memory.tool", arguments={**arguments, "content": "a"}, session=session)
    operator.ok("memory.tool", arguments={**arguments, "content": "b"}, session=session, origin="tool")
    assert ["agent", "tool"] == [row.record.origin for row in world.profile.rows]


async def test_with_access_add_a_model_is_told_what_it_may_not(world: World) -> None:
    """It is no use to try again."""
    client = world.client(access="add")
    assert tool(client, action="add", target="memory", content="a")["success"]
    assert tool(client, action="read", target="memory")["success"]
    answer = tool(client, action="remove", target="memory", old_text="a")
    assert (False, True, "permission_denied") == (answer["success"], answer["done"], answer["error"])
    world.client(access="read").fails("permission_denied", "memory.tool", arguments={})


async def test_the_hosts_mistakes_are_errors(client: Client) -> None:
    """The model cannot help them."""
    arguments = {"action": "bad"}
    client.fails("no_such_session", "memory.tool", arguments=arguments, session="nope")
    session = client.ok("session.open")["session"]
    client.fails("invalid_request", "memory.tool", arguments=arguments, session=session, turn="t")
    client.fails("invalid_params", "memory.tool")


async def test_the_stores_troubles_are_told_to_the_model(client: Client, world: World) -> None:
    """And that it should go on without; what became of the call is the host's business."""
    world.profile.hold = True
    arguments = {"action": "add", "target": "memory", "content": "a"}
    busy, late = (client.send("memory.tool", arguments=arguments) for _ in range(2))
    tickets = [ticket for ticket, _ in world.profile.queue]
    tickets[0].fail(Busy("locked by pid 5"))
    tickets[1].fail(DeadlineExceeded("too late", outcome="unknown"))
    answer = client.answer(busy)
    assert (False, True, "busy") == (answer["success"], answer["done"], answer["error"])
    assert "unknown" == client.error(late)["data"]["outcome"]


async def test_a_store_that_is_switched_off_is_told_to_the_model(client: Client, world: World) -> None:
    """Also when the profile refuses before it queues anything."""
    world.profile.refuses = StoreDisabled("the memory store is switched off")
    answer = tool(client, action="add", target="memory", content="a")
    assert (False, True, "store_disabled") == (answer["success"], answer["done"], answer["error"])


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"action": None, "target": "memory", "operations": ["bad"]},
        {"action": "add", "target": "memory", "content": {"a": 1}},
        {"action": 5, "target": ["memory"]},
        {"operations": "not json", "target": "user"},
    ],
)
async def test_nonsense_is_an_answer(client: Client, arguments: dict[str, Any]) -> None:
    """With an error's name, never an RPC error."""
    answer = tool(client, **arguments)
    assert (False, False, "invalid_params") == (answer["success"], answer["done"], answer["error"])


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**31), 2**31) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
names = st.sampled_from(["action", "target", "content", "old_text", "new_text", "id", "operations", "text", "new"])
values = plain | st.sampled_from(["add", "replace", "edit", "remove", "read", "memory", "user", "apply"])


@settings(max_examples=150)
@given(st.dictionaries(names, values, max_size=6))
def test_any_arguments_get_an_answer(arguments: dict[str, Any]) -> None:
    """Whatever a model makes up."""
    world = World()
    answer = tool(world.client(), **arguments)
    assert answer["success"] or answer["error"]
    assert [] == world.bugs
