"""Errors without the texts that are kept out of prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio.testing
from msgspec.structs import replace
from support.judged import ATTACK, SECRET

from memd.errors import Conflict
from memd.profile.entries import Document, make_entry

if TYPE_CHECKING:
    from support.fake_daemon import World

RULE = "override.earlier-orders"
TEXTS = (f"port is 80 {ATTACK}", "port is 81", "host is kiln")
HASH = "0" * 64


@pytest.fixture
def ids(world: World) -> list[str]:
    """The ids of three entries, the first of which is withheld."""
    entries = tuple(replace(make_entry(text), id=f"e{number}") for number, text in enumerate(TEXTS, 90))
    document = Document(entries=entries, gaps=("\n§\n",) * 2)
    world.profile.put("memory", document=document, withheld={entries[0].id: RULE}, revision=7)
    return [entry.id for entry in entries]


CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("ambiguous_match", "matches", {"old_text": "port"}),
    ("not_found", "nearest", {"old_text": "ports are 80"}),
    ("over_limit", "entries", {"old_text": "port is 81", "content": "x" * 3000}),
    ("conflict", "current", {"old_text": "port is 80", "if_hash": HASH}),
    ("conflict", "current", {"old_text": "port is 81", "if_revision": 3}),
]


@pytest.mark.parametrize(("name", "key", "params"), CASES)
@pytest.mark.parametrize("batch", [False, True])
async def test_an_agent_is_not_shown_them(
    world: World, ids: list[str], name: str, key: str, params: dict[str, Any], batch: bool
) -> None:
    """In no list, in no text of now, also of an operation in a batch; a person is."""
    method, wanted = "memory.replace", {"content": "new", **params}
    if batch:
        operation = {"action": "replace", **wanted}
        method, wanted = "memory.apply", {"operations": [operation]}
        if "if_revision" in operation:
            wanted["if_revision"] = operation.pop("if_revision")
    error = world.client().fails(name, method, target="memory", **wanted)
    marker = f"[BLOCKED: entry {ids[0]} withheld, rule {RULE}. Ask the user to review it.]"
    assert ATTACK not in repr(error)
    assert marker in repr(error["data"][key])
    error = world.client("operator").fails(name, method, target="memory", **wanted)
    assert ATTACK in repr(error["data"][key])


async def test_what_stays_is_said(world: World, ids: list[str]) -> None:
    """Beside the marker."""
    error = world.client().fails("ambiguous_match", "memory.remove", target="memory", old_text="port")
    assert [(ids[0], True), (ids[1], False)] == [
        (one["id"], one["text"].startswith("[BLOCKED")) for one in error["data"]["matches"]
    ]
    assert "port is 81" == error["data"]["matches"][1]["text"]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("history.undo", {"last": 1}),
        ("history.redo", {"last": 1}),
        ("history.restore", {"target": "memory", "revision": 1}),
    ],
)
async def test_undo_and_its_kin(world: World, ids: list[str], method: str, params: dict[str, Any]) -> None:
    """Which answer a stale ``if_revision`` with the store as it is."""
    world.profile.refuses = Conflict("no", reason="if_revision", current="\n§\n".join(TEXTS))
    client = world.client()
    msgid = client.send(method, **params, if_revision=3)
    await trio.testing.wait_all_tasks_blocked()
    error = client.error(msgid)
    assert ("conflict", False, True) == (
        error["name"],
        ATTACK in error["data"]["current"],
        error["data"]["current"].endswith("port is 81\n§\nhost is kiln"),
    )


@pytest.mark.parametrize("batch", [False, True])
async def test_a_secret_that_goes_is_not_told_once_more(world: World, batch: bool) -> None:
    """What a change took away is masked as the past is; the agent has named it by its id."""
    entry = replace(make_entry(SECRET), id="e9")
    world.profile.put("memory", document=Document(entries=(entry,), gaps=()))
    method = "memory.remove"
    wanted: dict[str, Any] = {"id": "e9"}
    if batch:
        method, wanted = "memory.apply", {"operations": [{"action": "remove", "id": "e9"}]}
    done = world.client().ok(method, target="memory", **wanted)
    assert ["the deploy token is [secret:secret.git-hosting]"] == [change["before"] for change in done["changes"]]
