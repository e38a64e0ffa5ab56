"""Field cases about what people and hosts get to see: each is one kind of trouble, put right.

FR-143 what changed in a long session; FR-144 a stored prompt that is out of date; FR-151 a session without memory; FR-163 a second
client. Others of the kind: FR-139 and FR-140 in ``test_approval``, FR-19, FR-146, FR-147, FR-150 and FR-154 in ``test_history_cases``.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest
from support.rpc import RpcError

from memd_client import Client
from memd_client.scrub import Scrubber

if TYPE_CHECKING:
    from support.daemon import DaemonProcess

pytestmark = pytest.mark.slow


def test_a_long_session_hears_what_others_change(memd: DaemonProcess) -> None:
    """FR-143: an event with the revision, the live state at any time, and a text for the next turn; the prompt stays as it is."""
    with memd.connect() as ours, memd.connect() as theirs:
        ours.call("memory.add", target="memory", content="port is 80")
        opened = ours.call("session.open", key="days")
        seq = ours.call("events.subscribe", topics=["memory.changed", "snapshot.stale"])["seq"]
        done = theirs.call("memory.replace", target="memory", old_text="port", content="port is 443")
        told = ours.call("events.wait", topics=["memory.changed"], since_seq=seq, timeout_ms=5000)["events"]
        assert [done["revision"]] == [event["revision"] for event in told]
        (live,) = ours.call("memory.read")["stores"]["memory"]["entries"]
        assert "port is 443" == live["text"]
        again = ours.call("session.snapshot", session=opened["session"])
        assert (opened["snapshot"], True) == (again["snapshot"], again["stale"])
        assert [opened["fence"]["open"], "~ memory: port is 443", opened["fence"]["close"]] == [
            line for at, line in enumerate(again["changes_text"].split("\n")) if at != 1
        ]
        stale = ours.call("events.wait", topics=["snapshot.stale"], since_seq=seq, timeout_ms=5000)["events"]
        assert [opened["session"]] == [event["session"] for event in stale]
        fresh = ours.call("session.refresh", session=opened["session"])["snapshot"]
        assert "port is 443" in fresh["text"]
        assert "" == ours.call("session.snapshot", session=opened["session"])["changes_text"]


def test_a_stored_prompt_is_known_to_be_out_of_date(memd: DaemonProcess) -> None:
    """FR-144: frozen while the store was empty, entries since; the id follows from the text, so that a host can compare by itself."""
    opened = memd.call("session.open", key="kept")
    assert ("", hashlib.sha256(b"").hexdigest()) == (opened["snapshot"]["text"], opened["snapshot"]["id"])
    assert {"memory": 0, "user": 0} == opened["snapshot"]["revisions"]
    memd.call("memory.add", target="user", content="Prefers short answers")
    memd.restart()
    resumed = memd.call("session.open", key="kept")
    assert (True, True, opened["snapshot"]["id"]) == (resumed["resumed"], resumed["stale"], resumed["snapshot"]["id"])
    fresh = memd.call("session.refresh", session=resumed["session"])["snapshot"]
    assert hashlib.sha256(fresh["text"].encode()).hexdigest() == fresh["id"]
    assert fresh["revisions"]["user"] > 0
    assert fresh == memd.call("session.refresh", session=resumed["session"])["snapshot"]


def test_a_session_that_neither_reads_nor_writes(memd: DaemonProcess) -> None:
    """FR-151: the daemon sees to it, whatever the client asks for; nothing of it is kept in memory."""
    memd.call("memory.add", target="memory", content="port is 80")
    with memd.connect(access="none") as peer:
        opened = peer.call("session.open", key="incognito")
        assert ("", "", False) == (opened["snapshot"]["text"], opened["changes_text"], opened["stale"])
        calls: list[tuple[str, dict[str, Any]]] = [
            ("memory.add", {"target": "memory", "content": "x"}),
            ("memory.tool", {"arguments": {"action": "read", "target": "memory"}}),
            ("memory.read", {}),
            ("session.snapshot", {"session": opened["session"]}),
            ("session.close", {"session": opened["session"], "reason": "end"}),
            ("turn.begin", {"session": opened["session"], "turn": "t", "user": True}),
            ("history.list", {}),
            ("events.subscribe", {"topics": []}),
            ("approval.list", {}),
            ("hello", {"access": "full"}),
        ]
        for method, params in calls:
            with pytest.raises(RpcError) as caught:
                peer.call(method, **params)
            name = "invalid_request" if method == "hello" else "permission_denied"  # it is settled for the connection
            assert (method, name) == (method, caught.value.error["name"])
    assert ["port is 80"] == [e["text"] for e in memd.call("memory.read")["stores"]["memory"]["entries"]]


def test_a_second_client_just_works(memd: DaemonProcess) -> None:
    """FR-163: while the first is connected and writes; each sees the other's, and so does a third by the command."""
    with Client(memd.socket, autostart=False) as first, Client(memd.socket, autostart=False) as second:
        fence = first.session_open(key="one").fence
        for number in range(5):
            first.memory_add("memory", f"first {number}")
            second.memory_add("memory", f"second {number}")
        expected = [f"{who} {number}" for number in range(5) for who in ("first", "second")]
        for client in (first, second):
            assert expected == [entry.text for entry in client.memory_read("memory").stores["memory"].entries]
        assert 0 == memd.memd("add", "third").returncode
        told = first.session_open(key="one").changes_text
        assert all(f"+ memory: {text}" in told for text in (*expected, "third"))
        scrubber = Scrubber(fence)
        assert "So: " == scrubber.feed(f"So: {told}") + scrubber.close()
