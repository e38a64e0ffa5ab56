"""rpc.certify.*: a client proves itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memd.protocol.certify import STEPS

if TYPE_CHECKING:
    from support.fake_daemon import Client


def _run(client: Client, *, last: str = "rpc.certify.end") -> dict[str, Any]:
    """Hand every reply on, up to this step."""
    reply = client.ok("rpc.certify.start")
    for step in STEPS:
        if step.fails:
            error = client.fails("conflict", step.name, **reply)
            reply = {"id": reply["id"], "value": error["data"]["value"]}
        else:
            reply = client.ok(step.name, **reply)
        if step.name == last:
            break
    return dict(reply)


async def test_a_client_that_hands_everything_on_is_certified(client: Client) -> None:
    """And nothing is left behind: it may do so again."""
    assert "certified" == _run(client)["value"]
    assert "certified" == _run(client)["value"]


async def test_a_changed_value_is_told(client: Client) -> None:
    """With its place; the right one is taken afterwards."""
    reply = _run(client, last="rpc.certify.flag")
    error = client.fails("invalid_params", "rpc.certify.ints", id=reply["id"], value=[0.5, *reply["value"][1:]])
    assert "value" == error["data"]["field"]
    assert "value[0]: 0 expected, got 0.5" in error["message"]
    client.ok("rpc.certify.ints", **reply)


async def test_steps_come_in_order(client: Client) -> None:
    """One out of order is refused and says what is next."""
    reply = client.ok("rpc.certify.start")
    error = client.fails("invalid_request", "rpc.certify.maps", **reply)
    assert "rpc.certify.flag is" in error["message"]


async def test_a_run_belongs_to_its_connection(client: Client) -> None:
    """Another id is nobody's."""
    assert "id" == client.fails("invalid_params", "rpc.certify.flag", id="other", value=True)["data"]["field"]
    reply = client.ok("rpc.certify.start")
    assert "id" == client.fails("invalid_params", "rpc.certify.flag", id="other", value=True)["data"]["field"]
    client.ok("rpc.certify.flag", **reply)
