"""hello: what a connection is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from memd.dispatch.handlers.hello import FEATURES
from memd.profile.values import Notice

if TYPE_CHECKING:
    from support.fake_daemon import Client, World


async def test_everything_is_told(client: Client) -> None:
    """Who answers, what holds, where the stores are."""
    told = client.ok("hello", client={"name": "c", "version": "1"}, protocol=[1, 1], profile="default")
    assert 1 == told["protocol"]
    assert {"name": "memd", "version": "0.0.test", "pid": 77, "instance": "i-1"} == told["server"]
    assert ("default", "agent", "primary", "full") == tuple(
        told[key] for key in ("profile", "role", "context", "access")
    )
    assert {"message_bytes": 8_388_608, "in_flight": 64, "connections": 1024, "deadline_ms": 10_000} == told["limits"]
    assert {"path", "state", "usage", "revision"} == set(told["stores"]["memory"])
    assert list(FEATURES) == told["features"]
    assert [] == told["notices"]


async def test_the_role_follows_from_the_socket(operator: Client) -> None:
    """Not from anything said."""
    assert "operator" == operator.ok("hello")["role"]


@pytest.mark.parametrize("span", [[1, 1], [0, 1], [1, 7]])
async def test_versions_that_include_ours(client: Client, span: list[int]) -> None:
    """The client may know more."""
    assert 1 == client.ok("hello", protocol=span)["protocol"]


@pytest.mark.parametrize(
    ("span", "name"),
    [
        ([2, 3], "unsupported_version"),
        ([0, 0], "unsupported_version"),
        ([2, 1], "invalid_params"),
        ([1], "invalid_params"),
    ],
)
async def test_versions_that_do_not(client: Client, span: list[int], name: str) -> None:
    """And spans that are none."""
    client.fails(name, "hello", protocol=span)


async def test_a_name_is_no_text(world: World) -> None:
    """It stands in every revision."""
    world.client().ok("hello", client={"name": "x" * 200})
    error = world.client().fails("invalid_params", "hello", client={"name": "x" * 201})
    assert error["message"].startswith("client.name: expected a string of at most 200 characters, got ")


async def test_features_are_sorted_and_say_nothing_that_is_not_there() -> None:
    """A client asks features rather than versions."""
    assert sorted(FEATURES) == list(FEATURES)
    assert set() == {"jobs", "compaction", "reviews"} & set(FEATURES)


async def test_what_is_wrong_with_the_stores_is_told(world: World, client: Client) -> None:
    """And what the daemon wants to say."""
    world.profile.put("memory", condition="read_only", detail="mode 0444")
    world.control.told = [Notice("clock_jumped", "the clock jumped")]
    told = client.ok("hello")
    assert "read_only" == told["stores"]["memory"]["state"]
    assert "mode 0444" == told["stores"]["memory"]["detail"]
    assert ["store_read_only", "clock_jumped"] == [notice["name"] for notice in told["notices"]]
