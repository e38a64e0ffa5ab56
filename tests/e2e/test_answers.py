"""What a client is told about what has just happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.rpc import RpcError

if TYPE_CHECKING:
    from support.daemon import DaemonProcess

pytestmark = pytest.mark.slow


def test_a_refusal_is_explained_at_once(daemon: DaemonProcess) -> None:
    """Although it rides with a group that nobody waits for."""
    daemon.start()
    text = "far too long " * 300
    with daemon.connect() as peer:
        with pytest.raises(RpcError) as caught:
            peer.call("memory.add", target="memory", content=text)
        assert "over_limit" == caught.value.name
        (match,) = peer.call("memory.explain", text=text)["matches"]
    assert ("refused", "memory") == (match["state"], match["target"])


def test_a_reused_request_id_is_told_what_the_store_holds(daemon: DaemonProcess) -> None:
    daemon.start()
    with daemon.connect() as peer:
        peer.call("memory.add", target="memory", content="first", request_id="r")
        with pytest.raises(RpcError) as caught:
            peer.call("memory.add", target="memory", content="second", request_id="r")
    data = caught.value.error["data"]
    assert ("request_id_reused", "first", "none") == (data["reason"], data["current"], data["outcome"])
