"""Reviews through a whole daemon: counted, run, committed, told, undone; over restarts, crashes and many short sessions."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from support.rpc import RpcError

if TYPE_CHECKING:
    from support.daemon import DaemonProcess
    from support.rpc import Peer

pytestmark = pytest.mark.slow

SETTINGS = "[review]\ninterval = 2\nidle_s = 0.1\n"
SLOWLY = "[review]\ninterval = 2\nidle_s = 3600\n"
SAID = ["Remember that I prefer tea over coffee.", "Please note that the staging server is at stage.example.org."]


@pytest.fixture
def memd(daemon: DaemonProcess) -> DaemonProcess:
    """A daemon that reviews every second turn."""
    daemon.configure(SETTINGS)
    daemon.start()
    return daemon


def turn(peer: Peer, session: str, number: int, text: str, **end: Any) -> dict[str, Any]:
    """A turn of a person and a model."""
    peer.call("turn.begin", session=session, turn=f"t{number}", user=True)
    messages = [{"role": "user", "content": text}, {"role": "assistant", "content": "Noted."}]
    found: dict[str, Any] = peer.call(
        "turn.end", session=session, turn=f"t{number}", **{"status": "completed", "messages": messages, **end}
    )
    return found


def wait_finished(peer: Peer, job: str) -> dict[str, Any]:
    """The event of a job's end, waited for."""
    since = 0
    while True:
        told = peer.call("events.wait", topics=["job.finished"], since_seq=since, timeout_ms=60_000)
        assert told["events"], f"{job} has not ended in a minute"
        for event in told["events"]:
            if event["job"] == job:
                found: dict[str, Any] = event
                return found
        since = told["seq"]


def texts(daemon: DaemonProcess) -> list[str]:
    stores = daemon.call("memory.read")["stores"]
    return [entry["text"] for target in ("memory", "user") for entry in stores[target]["entries"]]


def rows(daemon: DaemonProcess, sql: str) -> list[Any]:
    """What is in the journal of a daemon that is not running."""
    with closing(sqlite3.connect(daemon.journal)) as connection:
        return connection.execute(sql).fetchall()


def test_what_was_said_is_kept_and_can_be_undone(memd: DaemonProcess) -> None:
    """From the second turn's end to the file, and back as one."""
    with memd.connect(client={"name": "agent", "version": "1"}) as peer:
        session = peer.call("session.open", key="k")["session"]
        assert {} == turn(peer, session, 1, SAID[0])
        plan = turn(peer, session, 2, SAID[1])["review"]
        assert "daemon" == plan["placement"]
        assert plan == peer.call("turn.end", session=session, turn="t2", status="completed", messages=[])["review"]
        told = wait_finished(peer, plan["job"])
    assert ("ok", "rules", session) == (told["data"]["outcome"], told["data"]["reviewer"], told["session"])
    found = texts(memd)
    assert 2 == len(found)
    assert any("tea" in text for text in found)
    assert any("stage.example.org" in text for text in found)
    assert "tea" in memd.user.read_text() + memd.memory.read_text()
    revisions = memd.call("history.list", job=plan["job"])["revisions"]
    assert {"review"} == {one["origin"] for one in revisions}
    status = json.loads(memd.memd("status", "--json").stdout)
    assert (1, 0) == (status["jobs"]["ended_ok"], status["jobs"]["queued"])
    with memd.connect(operator=True) as person:
        undone = person.call("history.undo", job=plan["job"])
    assert [] == undone["conflicts"]
    assert [] == texts(memd)
    memd.stop()
    assert [(0,)] == rows(memd, "SELECT count(*) FROM message")
    (logged,) = [line for line in memd.log().splitlines() if '"job_ended"' in line]
    assert {"job": plan["job"], "outcome": "ok", "reviewer": "rules"}.items() <= json.loads(logged).items()
    assert "tea" not in memd.log()


def test_a_crash_between_the_turn_and_the_review(memd: DaemonProcess) -> None:
    """What was acknowledged is reviewed after the restart, once; the count of a third turn is there, too."""
    memd.configure(SLOWLY)
    memd.restart()
    with memd.connect() as peer:
        session = peer.call("session.open", key="k")["session"]
        turn(peer, session, 1, SAID[0])
        plan = turn(peer, session, 2, SAID[1])["review"]
        turn(peer, session, 3, "Thanks.")
    memd.kill()
    memd.configure(SETTINGS)
    memd.start()
    with memd.connect() as peer:
        assert "ok" == wait_finished(peer, plan["job"])["data"]["outcome"]
        assert 2 == len(texts(memd))
        session = peer.call("session.open", key="k")["session"]
        assert "review" in turn(peer, session, 4, "Good night.")
    memd.restart(kill=True)
    assert 2 == len(texts(memd))


def test_short_sessions_are_reviewed_together(memd: DaemonProcess) -> None:
    """One turn each; the second close brings the review about."""
    with memd.connect() as peer:
        closed = []
        for number, text in enumerate(SAID):
            session = peer.call("session.open")["session"]
            turn(peer, session, number, text)
            closed.append(peer.call("session.close", session=session, reason="end"))
        assert {} == closed[0]
        told = wait_finished(peer, closed[1]["review"]["job"])
    assert "ok" == told["data"]["outcome"]
    assert 2 == len(texts(memd))


def test_what_does_not_count(memd: DaemonProcess) -> None:
    """Interrupted turns, synthetic ones, a repeated id, those of a subagent; and an agent's own write sets it back."""
    with memd.connect() as peer, memd.connect(context="subagent") as other:
        session = peer.call("session.open", key="k")["session"]
        for number in (1, 2, 3):
            assert {} == turn(peer, session, number, "x", status="interrupted")
        assert {} == turn(peer, session, 4, SAID[0])
        assert {} == turn(peer, session, 4, SAID[0])
        theirs = other.call("session.open", key="o")["session"]
        for number in (1, 2, 3):
            assert {} == turn(other, theirs, number, "x")
        peer.call("memory.add", target="memory", content="written by the agent itself", session=session)
        assert {} == turn(peer, session, 5, "x")
        assert "review" in turn(peer, session, 6, "x")


def test_secrets_never_reach_the_journal(memd: DaemonProcess) -> None:
    """Masked before they are stored; what a tool said is kept apart, and gone with the job."""
    memd.configure(SLOWLY)
    memd.restart()
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    with memd.connect() as peer:
        session = peer.call("session.open")["session"]
        turn(peer, session, 1, f"my token is {key}, " + "and more words " * 400)
    memd.kill()
    data = b"".join(file.read_bytes() for file in memd.journal.parent.glob("journal.db*"))
    assert b"and more words" in data
    assert key.encode() not in data


FACTS = [
    "I prefer tea over coffee",
    "my dog is called Momo",
    "our builds run on Bazel seven",
    "I live in Lisbon",
    "invoices go to Petra on Fridays",
    "the printer stands in the cellar",
]


def test_killed_at_any_moment(memd: DaemonProcess) -> None:
    """Right after a turn's end, and a little later each time: every job ends once, every fact is there once."""
    memd.configure("[review]\ninterval = 1\nidle_s = 0\n")
    memd.restart()
    jobs = []
    for number, fact in enumerate(FACTS):
        with memd.connect() as peer:
            session = peer.call("session.open", key="k")["session"]
            jobs.append(turn(peer, session, number, f"Remember that {fact}.")["review"]["job"])
            for _ in range(number * 10):  # where it strikes
                peer.call("rpc.ping")
        memd.restart(kill=True)
    with memd.connect() as peer:
        for job in jobs:
            assert "ok" == wait_finished(peer, job)["data"]["outcome"]
        told = peer.call("events.wait", topics=["job.finished"], since_seq=0, timeout_ms=0)["events"]
    assert sorted(jobs) == sorted(event["job"] for event in told)
    found = texts(memd)
    assert [1] * len(FACTS) == [sum(fact[1:] in text for text in found) for fact in FACTS]
    assert len(FACTS) == len(found)


def test_copies_are_gone_with_their_job(memd: DaemonProcess) -> None:
    """What was said and is not worth keeping, what a tool said: no file of the daemon's has it, nor its log."""
    planted = [b"planted by a person", b"planted by a tool", b"planted by a model"]
    with memd.connect() as peer:
        session = peer.call("session.open")["session"]
        said = [
            {"role": "user", "content": "Have a look at this, planted by a person."},
            {"role": "tool", "content": "planted by a tool " * 2000},
            {"role": "assistant", "content": "planted by a model"},
        ]
        turn(peer, session, 1, "", messages=said)
        job = turn(peer, session, 2, "", messages=said)["review"]["job"]
        assert "nothing" == wait_finished(peer, job)["data"]["outcome"]
    memd.stop()
    files = [file for file in memd.home.rglob("*") if file.is_file() and not file.is_relative_to(memd.home / "config")]
    assert memd.journal in files
    assert [] == [(file.name, text) for file in files for text in planted if text in file.read_bytes()]


def test_the_client_that_is_warm_reviews(memd: DaemonProcess) -> None:
    """It claims its job, gets prompt, conversation and tool, submits; what makes no sense is refused, what another's is not given."""
    memd.configure('[review]\ninterval = 1\nidle_s = 0\nreviewer = "client"\nlease_s = 60\n')
    memd.restart()
    memd.call("memory.add", target="memory", content="the port is 8080")
    with memd.connect() as peer:
        session = peer.call("session.open")["session"]
        plan = turn(peer, session, 1, "I like tea. The port is 9090 now.")["review"]
        assert "client" == plan["placement"]
        other = peer.call("session.open")["session"]
        with pytest.raises(RpcError, match="conflict"):
            peer.call("jobs.claim", job=plan["job"], session=other)
        claimed = peer.call("jobs.claim", job=plan["job"], session=session)
        assert 60 == claimed["lease_s"]
        memory, conversation = (message["content"] for message in claimed["messages"])
        assert "the port is 8080" in memory
        assert "I like tea." in conversation
        assert "memory" == claimed["tool"]["function"]["name"]
        lease = {"job": plan["job"], "lease": claimed["lease"]}
        assert {"lease_s": 60} == peer.call("jobs.renew", **lease)
        operations = [
            {"action": "add", "target": "user", "content": "Likes tea"},
            {"action": "remove", "target": "memory", "old_text": "nowhere to be found"},
            {"action": "add", "target": "nowhere", "content": "x"},
        ]
        job = peer.call("jobs.submit", **lease, operations=operations, summary="tea", model="big")
        assert ("ok", "client", "big", "tea") == tuple(
            job[name] for name in ("outcome", "reviewer", "model", "summary")
        )
        assert ({"count": 2, "limit": 3}, ["not_found"]) == (job["failures"], [it["name"] for it in job["refused"]])
        assert ["the port is 8080", "Likes tea"] == texts(memd)
        plan = turn(peer, session, 2, SAID[0])["review"]
        claimed = peer.call("jobs.claim", job=plan["job"], session=session)
        back = peer.call("jobs.submit", job=plan["job"], lease=claimed["lease"], error="no model here")
        assert ("queued", "its client gave it back: no model here") == (back["state"], back["reason"])
        assert "rules" == wait_finished(peer, plan["job"])["data"]["reviewer"]
