"""Flushes through a whole daemon: from what a session is about to lose to the file, once, whatever ends in between."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from memd_client import Client
from memd_client.inline import strip

if TYPE_CHECKING:
    from support.daemon import DaemonProcess
    from support.rpc import Peer

pytestmark = pytest.mark.slow

SETTINGS = "[flush]\nmin_turns = 1\n[limits]\nmemory = 20000\n"
SESSIONS = 100
PATIENCE_MS = 60_000


@pytest.fixture
def memd(daemon: DaemonProcess) -> DaemonProcess:
    """A daemon that flushes from a session's first turn on."""
    daemon.configure(SETTINGS)
    daemon.start()
    return daemon


def session_of(peer: Peer, key: str) -> str:
    """A session with one turn."""
    session = str(peer.call("session.open", key=key)["session"])
    peer.call("turn.begin", session=session, turn="t1", user=True)
    peer.call("turn.end", session=session, turn="t1", status="completed", messages=[])
    return session


def said(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}, {"role": "assistant", "content": "Noted."}]


def texts(memd: DaemonProcess) -> list[str]:
    return [entry["text"] for entry in memd.call("memory.read")["stores"]["memory"]["entries"]]


def test_a_flush_outlives_its_client_and_the_daemon(memd: DaemonProcess) -> None:
    """The receipt is for messages on disk: killed right after it, the daemon goes on where it was, and commits once."""
    call = {"epoch": 0, "messages": said("Remember that staging listens on port 8081.")}
    with memd.connect() as peer:
        session = session_of(peer, "k")
        receipt = peer.call("compaction.begin", session=session, **call)
        assert "skipped" != receipt["state"]
    memd.restart(kill=True)
    with memd.connect() as peer:
        again = peer.call("compaction.begin", session=session, wait_ms=PATIENCE_MS, **call)
        assert (receipt["job"], "done") == (again["job"], again["state"])
        fence = peer.call("session.open", key="k")["fence"]
        summary = "\n".join([fence["open"], "Staging listens on port 8081", fence["close"]])
        assert summary == again["summary_text"]
        ended = peer.call("compaction.end", session=session, epoch=0)
        assert "Staging listens on port 8081" in ended["snapshot"]["text"]
        assert not ended["missed"]
    assert ["Staging listens on port 8081"] == texts(memd)
    assert "Staging listens on port 8081\n" == memd.memory.read_text()
    (job,) = json.loads(memd.memd("jobs", "--json").stdout)["jobs"]
    assert ("flush", "ok", "rules") == (job["kind"], job["outcome"], job["reviewer"])
    memd.call("history.undo", job=job["id"])
    assert [] == texts(memd)


def test_many_sessions_at_once(memd: DaemonProcess) -> None:
    """A hundred receipts, each at once; every fact is kept, and none twice, over a crash in the middle."""
    with memd.connect() as peer:
        sessions = [session_of(peer, f"k{number}") for number in range(SESSIONS)]
        asked = [
            peer.send(
                "compaction.begin", session=session, epoch=1, messages=said(f"Remember that host{n}x is box{n}y.")
            )
            for n, session in enumerate(sessions[: SESSIONS // 2])
        ]
        jobs = [peer.wait(number)["job"] for number in asked]
    memd.restart(kill=True)
    with memd.connect() as peer:
        for n, session in list(enumerate(sessions))[SESSIONS // 2 :]:
            messages = said(f"Remember that host{n}x is box{n}y.")
            jobs.append(peer.call("compaction.begin", session=session, epoch=1, messages=messages)["job"])
        assert SESSIONS == len(set(jobs))
        ended = [peer.call("jobs.wait", job=job, timeout_ms=PATIENCE_MS) for job in jobs]
    assert {("done", "ok")} == {(job["state"], job["outcome"]) for job in ended}
    assert sorted(f"Host{n}x is box{n}y" for n in range(SESSIONS)) == sorted(texts(memd))


def test_inline_leaves_no_trace(memd: DaemonProcess) -> None:
    """The agent keeps what it will through its own tool; its client takes the exchange out of the history."""
    with Client(memd.socket, autostart=False, timeout=60) as client:
        session = client.session_open(key="k").session
        history: list[dict[str, Any]] = said("I like tea")
        receipt = client.compaction_begin(session, "e1", mode="inline")
        assert receipt.inline is not None
        exchange = [
            receipt.inline.message,
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]},
            {"role": "tool", "tool_call_id": "c", "content": "Stored."},
            {"role": "assistant", "content": "done"},
        ]
        client.memory_tool({"action": "add", "target": "user", "content": "Likes tea"}, session=session)
        later = [{"role": "user", "content": "Go on."}]
        assert [*history, *later] == strip([*history, *exchange, *later], receipt.inline.marker)
        assert not client.compaction_end(session, "e1").missed
        assert client.compaction_end(session, "e2").missed
