"""approval.*: what waits, who may decide, and what becomes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import trio.testing
from msgspec.structs import replace as replaced_fields
from support.judged import DOUBTFUL, SECRET, TOKEN, TOOL, add, change, found

from memd.errors import BlockedContent, OverLimit
from memd.profile.entries import parse
from memd.profile.proposals import Trial, staged
from memd.protocol.params import MemoryAdd
from memd.transport.ancestry import Lineage

if TYPE_CHECKING:
    from support.fake_daemon import Client, World

    from memd.profile.proposals import Proposal


def proposal(**fields: Any) -> Proposal:
    given = {"target": "memory", "us": 0, "base": 3, "operations": (add("x"),), "findings": (found(),), **fields}
    return staged("p-1", store=1, profile="default", caller=TOOL, **given)


class TestList:
    async def test_every_field(self, world: World, client: Client) -> None:
        """As the protocol has it, tried out on the store as it is."""
        world.profile.approvals.waiting = [proposal(us=world.clock.now_us - 90_000_000, operations=(change("a", "b"),))]
        world.profile.approvals.trial = Trial(parse(b"a\n"), parse(b"b\n"))
        told = await client.done("approval.list")
        (only,) = told["proposals"]
        assert (1, 90) == (told["count"], told["oldest_s"])
        assert {
            "id": "p-1",
            "state": "pending",
            "target": "memory",
            "operations": [{"action": "replace", "content": "b", "old_text": "a"}],
            "diff": "--- before\n+++ after\n@@ -1 +1 @@\n-a\n+b",
            "findings": [
                {
                    "rule": "a.rule",
                    "class": "override",
                    "severity": "stage",
                    "start": 0,
                    "end": 3,
                    "reason": "reads oddly",
                }
            ],
            "origin": "tool",
            "base": 3,
            "age_s": 90,
            "client": "reader",
            "proposed": "said in a document",
        } == {key: value for key, value in only.items() if key not in ("at", "us")}

    async def test_one_that_cannot_be_applied_says_why(self, world: World, client: Client) -> None:
        """Whatever it was before."""
        world.profile.approvals.waiting = [proposal()]
        world.profile.approvals.trial = Trial(parse(b""), None, "it is full")
        (only,) = (await client.done("approval.list"))["proposals"]
        assert ("needs_review", "it is full", "") == (only["state"], only["reason"], only["diff"])

    async def test_an_agent_sees_no_secrets(self, world: World, client: Client, operator: Client) -> None:
        """The person who decides does."""
        world.profile.approvals.waiting = [
            replaced_fields(proposal(operations=(add(SECRET),)), reason=f"since {SECRET}")
        ]
        world.profile.approvals.trial = Trial(parse(b""), parse(SECRET.encode()))
        assert TOKEN not in repr(await client.done("approval.list"))
        (only,) = (await operator.done("approval.list"))["proposals"]
        assert (SECRET, f"since {SECRET}") == (only["operations"][0]["content"], only["proposed"])
        assert TOKEN in only["diff"]

    async def test_counts_are_everywhere(self, world: World, client: Client) -> None:
        """In each session.open, and in the status (FR-139)."""
        world.profile.approvals.waiting = [proposal(us=world.clock.now_us - 7_000_000)] * 77
        assert {"count": 77, "oldest_s": 7} == client.ok("session.open")["pending"]
        assert {"count": 77, "oldest_s": 7} == client.ok("daemon.status")["pending"]
        none = world.client(access="none")
        assert {"count": 0, "oldest_s": 0} == none.ok("session.open")["pending"]


class TestDecisions:
    async def test_approve(self, world: World, operator: Client) -> None:
        """As a mutation; who decides goes with it."""
        told = operator.ok("approval.approve", id="p-1", content="other", reason="seen it")
        assert (True, "Approved p-1.") == (told["changed"], told["message"])
        ((what, wanted, by, content),) = world.profile.approvals.decided
        assert ("approve", "p-1", "other", "fake", "") == (what, wanted, content, by.command, by.terminal)
        assert ("user", True, "seen it", 4242) == (by.caller.origin, by.caller.person, by.caller.reason, by.caller.pid)

    async def test_reject(self, world: World, operator: Client) -> None:
        """As the proposal that it was."""
        world.profile.approvals.waiting = [proposal()]
        told = await operator.done("approval.reject", id="p-1", reason="no")
        assert ("rejected", "no", "") == (told["state"], told["reason"], told["diff"])

    @pytest.mark.parametrize("method", ["approval.approve", "approval.reject"])
    async def test_only_operators_decide(self, client: Client, method: str) -> None:
        """The agent socket is told so."""
        client.fails("permission_denied", method, id="p-1")

    @pytest.mark.parametrize("method", ["approval.approve", "approval.reject"])
    async def test_not_for_a_process_that_an_agent_started(self, world: World, nursery: Any, method: str) -> None:
        """As long as that agent is connected."""
        asked: list[int] = []

        def lineage(pid: int) -> Lineage:
            asked.append(pid)
            return Lineage((4000, 77, 1), "/dev/pts/3")

        world.services = replaced(world, lineage)
        operator = world.client("operator")
        world.profile.approvals.waiting = [proposal(), proposal()]
        await operator.done(method, id="p-1")
        world.services.agents[77] += 1
        error = await operator.refused("permission_denied", method, id="p-1")
        assert (77, "none") == (error["data"]["agent"], error["data"]["outcome"])
        assert "in a terminal of their own" in error["message"]
        del world.services.agents[77]
        await operator.done(method, id="p-1")
        assert "/dev/pts/3" == world.profile.approvals.decided[-1][2].terminal
        assert {4242} == set(asked)

    async def test_agents_are_counted_while_they_are_connected(self, world: World) -> None:
        """By process; operators are none."""
        agents = [world.client() for _ in range(2)]
        world.client("operator")
        assert {4242: 2} == dict(world.services.agents)
        for agent in agents:
            agent.conversation.disconnected()
        assert {} == dict(world.services.agents)

    @pytest.mark.parametrize(
        ("error", "name"),
        [(OverLimit("full", excess=3), "over_limit"), (BlockedContent("no", findings=[]), "blocked_content")],
    )
    async def test_why_it_could_not_be_applied(self, world: World, operator: Client, error: Any, name: str) -> None:
        """Typed, and nothing was changed."""
        world.profile.approvals.error = error
        assert "none" == operator.fails(name, "approval.approve", id="p-1")["data"]["outcome"]

    async def test_a_revision_is_not_asked_for(self, operator: Client) -> None:
        """A proposal is tried out on what is there."""
        error = operator.fails("invalid_params", "approval.approve", id="p-1", if_revision=3)
        assert "if_revision" == error["data"]["field"]


async def test_what_is_kept_out_of_prompts_is_told_everywhere(world: World, client: Client) -> None:
    """hello, session.open, status; memory.read has the live text and the findings, the snapshot and the model do not (FR-53)."""
    client.ok("memory.add", target="memory", content=DOUBTFUL)
    (entry,) = world.profile.state("memory").document.entries
    finding = found("invisible.zero-width", start=8, end=9)
    world.profile.put("memory", findings={entry.id: (finding,)}, withheld={entry.id: finding.rule})
    opened = client.ok("session.open")
    marker = f"[BLOCKED: entry {entry.id} withheld, rule invisible.zero-width. Ask the user to review it.]"
    assert marker in opened["snapshot"]["text"]
    assert [{"target": "memory", "id": entry.id, "rule": finding.rule}] == opened["snapshot"]["withheld"]
    other = world.client()
    for told in (opened, client.ok("daemon.status"), other.ok("hello")):
        (notice,) = [one for one in told["notices"] if one["name"] == "withheld"]
        assert [(entry.id, finding.rule, True)] == [
            (row["id"], row["rule"], row["approvable"]) for row in notice["data"]["entries"]
        ]
        assert "memd approve" in notice["message"]
    (shown,) = client.ok("memory.read")["stores"]["memory"]["entries"]
    assert (DOUBTFUL, ["invisible.zero-width"]) == (shown["text"], [one["rule"] for one in shown["findings"]])
    read = client.ok("memory.tool", arguments={"action": "read", "target": "memory"})
    assert [marker] == [one["text"] for one in read["current_entries"]]
    refused = client.ok("memory.tool", arguments={"action": "remove", "target": "memory", "old_text": "nope"})
    assert [marker] == [one["text"] for one in refused["current_entries"]]


@pytest.mark.parametrize("topic", ["memory.withheld", "approval.settled"])
async def test_a_session_in_use_hears_that_an_entry_is_kept_out(world: World, client: Client, topic: str) -> None:
    """Its snapshot stays, and is stale."""
    client.ok("memory.add", target="memory", content="x")
    await trio.testing.wait_all_tasks_blocked()  # the event of that is handed on
    opened = client.ok("session.open")
    (entry,) = world.profile.state("memory").document.entries
    world.profile.put("memory", withheld={entry.id: "a.rule"}, revision=2)
    shown = client.ok("session.snapshot", session=opened["session"])
    assert (opened["snapshot"], True) == (shown["snapshot"], shown["stale"])
    assert "[BLOCKED" in shown["changes_text"]
    await client.done("events.subscribe", topics=["snapshot.stale"])
    world.profile.emit(topic, target="memory")
    await trio.testing.wait_all_tasks_blocked()
    assert [opened["session"]] == [event["session"] for event in client.events]


async def test_a_model_is_not_shown_what_is_kept_out_where_several_match(world: World, client: Client) -> None:
    """The one that may be shown is."""
    for content in ("port a is 80", "port b is 81"):
        client.ok("memory.add", target="memory", content=content)
    first = world.profile.state("memory").document.entries[0]
    world.profile.put("memory", withheld={first.id: "a.rule"})
    told = client.ok("memory.tool", arguments={"action": "remove", "target": "memory", "old_text": "port"})
    assert ["ambiguous_match", 2] == [told["error"], len(told["matches"])]
    assert "port a is 80" not in repr(told["matches"]) + repr(told["current_entries"])
    assert "port b is 81" in repr(told["matches"])


@pytest.mark.parametrize(
    ("role", "through_tool", "person"), [("operator", False, True), ("operator", True, False), ("agent", False, False)]
)
async def test_who_counts_as_a_person(world: World, role: Any, through_tool: bool, person: bool) -> None:
    """Whoever writes over the operator socket, but for what a model wrote."""
    context = world.client(role, profile="default").conversation.context
    writing = context.writing(MemoryAdd(target="memory", content="x"), through_tool=through_tool)
    assert person is writing.caller.person


@pytest.mark.parametrize(
    ("claim", "through_tool", "origin", "told"),
    [
        (None, False, "agent", True),
        ("user", False, "agent", True),
        ("tool", False, "tool", False),
        (None, True, "agent", False),
    ],
)
async def test_what_an_agent_started_writes_is_not_a_persons(
    world: World, claim: str | None, through_tool: bool, origin: str, told: bool
) -> None:
    """Over the operator socket too: nothing is approved by it, its origin is lowered, and it is told so; until the agent is gone."""
    world.services = replaced(world, lambda _: Lineage((4000, 77, 1)))
    context = world.client("operator", profile="default").conversation.context
    params = MemoryAdd(target="memory", content="x", origin=claim)  # type: ignore[arg-type]  # as the case has it
    world.services.agents[77] += 1
    writing = context.writing(params, through_tool=through_tool)
    assert (False, origin) == (writing.caller.person, writing.caller.origin)
    assert (["origin_lowered"] if told else []) == [notice.name for notice in writing.notices]
    assert all("process 77" in notice.message for notice in writing.notices)
    world.services.agents[77] -= 1
    assert through_tool != context.writing(params, through_tool=through_tool).caller.person


async def test_the_process_itself_may_be_an_agent_too(world: World) -> None:
    """A host's own code has asked the person: what a model can start are its children."""
    world.services = replaced(world, lambda _: Lineage((77, 1)))
    operator = world.client("operator", profile="default")
    world.services.agents[operator.conversation.context.peer.pid] += 1
    writing = operator.conversation.context.writing(MemoryAdd(target="memory", content="x"))
    assert (True, "user") == (writing.caller.person, writing.caller.origin)


def replaced(world: World, lineage: Any) -> Any:
    """The world's services with another view of processes."""
    services = replace(world.services, lineage=lineage)
    world.dispatcher.services = services
    return services
