"""rpc.*: about calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.fake_daemon import Client


async def test_ping(client: Client) -> None:
    """Nothing, and soon."""
    assert {} == client.ok("rpc.ping")


async def test_cancelling_what_is_unknown(client: Client) -> None:
    """Nothing was cancelled; it is no error."""
    assert {"cancelled": False} == client.ok("rpc.cancel", msgid=12345)


async def test_discover_is_what_the_daemon_describes(client: Client) -> None:
    """Given to dispatch as a function."""
    assert {"methods": [], "errors": [], "events": []} == client.ok("rpc.discover")
