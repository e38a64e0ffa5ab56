"""profile.*: listing, exporting, creating, importing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio.testing
from support.fake_daemon import World

if TYPE_CHECKING:
    from support.fake_daemon import Client


async def ask(client: Client, method: str, **params: Any) -> Any:
    msgid = client.send(method, **params)
    await trio.testing.wait_all_tasks_blocked()
    return client.answer(msgid)


def test_all_profiles_are_listed() -> None:
    """By name, with their directories and stores."""
    client = World("work", "home").client(profile="work")
    profiles = client.ok("profile.list")["profiles"]
    assert [("home", "/memory/home"), ("work", "/memory/work")] == [(item["name"], item["dir"]) for item in profiles]
    assert 0 == profiles[0]["stores"]["memory"]["usage"]["chars"]


async def test_an_export_has_everything(client: Client, world: World) -> None:
    """What stands, and how it came; what others wrote until now included."""
    for number in range(3):
        client.ok("memory.add", target="memory", content=f"entry {number}")
    data = await ask(client, "profile.export")
    assert (1, "default") == (data["version"], data["profile"])
    assert ["entry 0", "entry 1", "entry 2"] == [entry["text"] for entry in data["entries"]["memory"]]
    assert [3, 2, 1] == [row["revision"] for row in data["revisions"]]
    assert 1 == world.profile.looks


async def test_creating(operator: Client, world: World) -> None:
    """A name that is taken is refused."""
    assert {} == await ask(operator, "profile.create", name="new", dir="/somewhere")
    assert ["create new /somewhere"] == world.control.done
    msgid = operator.send("profile.create", name="default")
    await trio.testing.wait_all_tasks_blocked()
    error = operator.error(msgid)
    assert ("invalid_params", "name", "none") == (error["name"], error["data"]["field"], error["data"]["outcome"])


async def test_importing(operator: Client, world: World) -> None:
    """Recorded as an import, whoever does it."""
    done = await ask(operator, "profile.import", name="default", data={"version": 1, "entries": {}})
    assert ([], [], False) == (done["revisions"], done["changes"], done["replayed"])
    assert ["import"] == world.profile.entered


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"name": "nope", "data": {"version": 1}}, "no_such_profile"),
        ({"name": "default", "data": {}}, "invalid_params"),
        ({"name": "default", "data": {"version": 2}}, "invalid_params"),
    ],
)
async def test_imports_that_cannot_be(operator: Client, params: dict[str, Any], name: str) -> None:
    """Another version, another profile."""
    msgid = operator.send("profile.import", **params)
    await trio.testing.wait_all_tasks_blocked()
    assert name == operator.error(msgid)["name"]


async def test_a_preview_of_an_import(operator: Client, world: World) -> None:
    """The files are looked at first; the reply says what it was made for and what would be refused."""
    data = {"version": 1, "markdown": {"memory": "- a"}}
    done = await ask(operator, "profile.import", name="default", data=data, preview=True)
    assert ({"memory": 0}, ["over_limit"], 1) == (
        done["heads"],
        [n["name"] for n in done["notices"]],
        world.profile.looks,
    )
    assert ["preview import"] == world.profile.entered


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ({"if_revisions": {"memory": 3}}, " memory=3"),
        ({"if_revisions": {"memory": 3, "user": 4}}, " memory=3 user=4"),
        ({"if_revision": 5}, " user=5"),
    ],
)
async def test_an_import_into_a_known_state(operator: Client, world: World, given: dict[str, Any], known: str) -> None:
    """One store's revision by itself where only one store is named, or each store's."""
    data = {"version": 1, "foreign": ["user"]}
    done = await ask(operator, "profile.import", name="default", data=data, **given)
    assert "heads" not in done
    assert ["import" + known] == world.profile.entered


@pytest.mark.parametrize(
    ("data", "given"),
    [
        ({"foreign": ["memory", "user"]}, {"if_revision": 5}),
        ({"foreign": ["memory"]}, {"if_revision": 5, "if_revisions": {"memory": 5}}),
        ({"foreign": [["memory"]]}, {"if_revision": 5}),
        ({"markdown": {"notes": "- a"}}, {"if_revision": 5}),
        ({"entries": 7}, {"if_revision": 5}),
    ],
)
async def test_a_revision_of_no_certain_store(
    operator: Client, world: World, data: dict[str, Any], given: dict[str, Any]
) -> None:
    """Refused, whatever the data is like."""
    msgid = operator.send("profile.import", name="default", data={"version": 1, **data}, **given)
    await trio.testing.wait_all_tasks_blocked()
    assert ("invalid_params", []) == (operator.error(msgid)["name"], world.profile.entered)
