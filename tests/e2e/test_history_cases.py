"""Field cases about history and undo, as a person at a shell meets them: each is one kind of trouble, put right.

FR-19 where memory is; FR-146 undo, history, restore, archive; FR-147 who wrote what; FR-150 notices come from the journal;
FR-154 what became of a text; FR-16 a batch that removes can be undone; FR-44 one kept copy for one content.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from support.daemon import DaemonProcess

pytestmark = pytest.mark.slow


def answer(daemon: DaemonProcess, *argv: str) -> Any:
    done = daemon.memd(*argv, "--json")
    assert (0, "") == (done.returncode, done.stderr)
    return json.loads(done.stdout)


def texts(daemon: DaemonProcess, target: str = "memory") -> list[str]:
    return [entry["text"] for entry in answer(daemon, "read", target)["stores"][target]["entries"]]


def test_undo_three_times_then_redo(memd: DaemonProcess) -> None:
    """FR-146: replace, remove, batch; undone one by one, redone one by one; by hand on the way."""
    for text in ("alpha", "beta", "gamma"):
        answer(memd, "add", text)
    answer(memd, "replace", "beta", "beta two", "--reason", "it moved")
    answer(memd, "remove", "gamma")
    batch = [{"action": "remove", "old_text": "alpha"}, {"action": "add", "content": "delta"}]
    memd.call("memory.apply", target="memory", operations=batch)
    states = [["beta two", "delta"], ["alpha", "beta two"], ["alpha", "beta two", "gamma"], ["alpha", "beta", "gamma"]]
    assert states[0] == texts(memd)
    for state in states[1:]:
        answer(memd, "undo")
        assert state == texts(memd)
    for state in reversed(states[:-1]):
        answer(memd, "redo")
        assert state == texts(memd)
    shown = memd.memd("history", "--limit", "100").stdout
    assert (3, 3) == (shown.count(" undo: "), shown.count(" redo: "))
    changed = next(row for row in answer(memd, "history")["revisions"] if row.get("reason") == "it moved")
    assert "undone_by" not in changed  # it was redone
    assert ("beta", "beta two") == (changed["changes"][0]["before"], changed["changes"][0]["after"])
    entry = changed["changes"][0]["id"]
    rows = answer(memd, "history", "--entry", entry)["revisions"]
    assert rows
    assert all(entry in {change["id"] for change in row["changes"]} for row in rows)


def test_removal_is_not_for_ever(memd: DaemonProcess) -> None:
    """FR-146: what was removed is found in the archive, and the state before it is restored, previewed first."""
    first = answer(memd, "add", "the router is at 10.0.0.1")
    answer(memd, "remove", "router")
    (match,) = answer(memd, "explain", "router is at")["matches"]
    assert ("removed", first["entry"]["id"]) == (match["state"], match["id"])
    preview = answer(memd, "restore", str(first["revision"]), "--preview")
    assert ("add", []) == (preview["changes"][0]["action"], preview["revisions"])
    assert [] == texts(memd)
    answer(memd, "restore", str(first["revision"]))
    assert ["the router is at 10.0.0.1"] == texts(memd)


def test_a_removed_entry_comes_back_where_it_stood(memd: DaemonProcess) -> None:
    """FR-146: although others removed and added entries before it since."""
    for text in ("one", "two", "three", "four"):
        answer(memd, "add", text)
    gone = answer(memd, "remove", "three")
    answer(memd, "remove", "one")
    memd.memory.write_text("zero\n§\n" + memd.memory.read_text())
    answer(memd, "undo", str(gone["revision"]))
    assert ["zero", "two", "three", "four"] == texts(memd)


def test_entries_tell_who_wrote_them(memd: DaemonProcess) -> None:
    """FR-147: from a user, an agent, a tool and by hand; over edits of the file by others; the file stays plain."""
    answer(memd, "add", "from an agent")
    staged = answer(memd, "add", "from a tool", "--origin", "tool")["staged"]
    with memd.connect(operator=True, client={"name": "person"}) as peer:
        peer.call("approval.approve", id=staged)
        peer.call("memory.add", target="memory", content="from a user")
    with memd.memory.open("a") as file:
        file.write("§\nby hand\n")
    assert "from an agent\n§\nfrom a tool\n§\nfrom a user\n§\nby hand\n" == memd.memory.read_text()
    before = answer(memd, "read", "memory")["stores"]["memory"]["entries"]
    assert ["agent", "tool", "user", "outside"] == [entry["origin"] for entry in before]
    memd.memory.write_text("by hand\n\n§\n\nfrom a user\n§\nfrom a tool\n§\nfrom an agent\n")
    after = answer(memd, "read", "memory")["stores"]["memory"]["entries"]
    known = {entry["id"]: entry for entry in before}
    for entry in after:
        same = ("text", "origin", "created_us")
        assert [known[entry["id"]][name] for name in same] == [entry[name] for name in same]
    (row,) = answer(memd, "history", "--origin", "user")["revisions"]
    assert ("person", "from a user") == (row["client"], row["changes"][0]["after"])


def test_why_was_it_not_used(memd: DaemonProcess) -> None:
    """FR-154: refused then, removed since, stored now, never seen; with times."""
    answer(memd, "add", "tea is best")
    answer(memd, "remove", "tea")
    answer(memd, "add", "coffee is best")
    refused = memd.memd("add", "x" * 5000)
    assert 1 == refused.returncode
    for text, state in (("tea is best", "removed"), ("coffee", "stored"), ("x" * 5000, "refused")):
        (match,) = answer(memd, "explain", text)["matches"]
        assert state == match["state"]
        assert match["at"].startswith("20")
    told = memd.memd("explain", "milk")
    assert (0, "memd has never seen a text like that: it was neither stored nor refused\n") == (
        told.returncode,
        told.stdout,
    )


def test_status_says_where_memory_is(memd: DaemonProcess) -> None:
    """FR-19: the exact files, profile, revision; at the start of a connection too."""
    done = answer(memd, "add", "tea")
    status = answer(memd, "status")
    (profile,) = status["profiles"]
    store = profile["stores"]["memory"]
    assert ("default", str(memd.memory), done["revision"]) == (profile["name"], store["path"], store["revision"])
    with memd.connect() as peer:
        hello = peer.call("hello")
    assert ("default", str(memd.memory)) == (hello["profile"], hello["stores"]["memory"]["path"])
    row = answer(memd, "history", "--limit", "1")["revisions"][0]
    assert (done["revision"], "memd-cli") == (row["revision"], row["client"])


def test_a_notice_comes_from_the_journal(memd: DaemonProcess) -> None:
    """FR-150: an event for every change, also of a reply nobody read, with the numbers history has."""
    with memd.connect() as peer:
        peer.send("memory.add", target="memory", content="unread")
    memd.call("events.wait", topics=["memory.changed"], since_seq=0, timeout_ms=10_000)
    answer(memd, "undo")
    events = memd.call("events.wait", topics=["memory.changed"], since_seq=0)["events"]
    rows = answer(memd, "history")["revisions"]
    assert [row["revision"] for row in reversed(rows)] == [event["revision"] for event in events]
    assert [row["kind"] for row in reversed(rows)] == [event["data"]["kind"] for event in events]


def test_a_batch_that_removes_can_be_undone_as_one(memd: DaemonProcess) -> None:
    """FR-16: three of six go at 20 %; the event names them, one undo brings them back in their order."""
    said = [f"fact number {number} that is worth keeping" for number in range(6)]
    for text in said:
        answer(memd, "add", text, "-u")
    batch = [{"action": "remove", "old_text": text} for text in said[:3]] + [{"action": "add", "content": "short"}]
    done = memd.call("memory.apply", target="user", operations=batch)
    events = memd.call("events.wait", topics=["memory.changed"], since_seq=0)["events"]
    assert ["remove", "remove", "remove", "add"] == [change["action"] for change in events[-1]["data"]["changes"]]
    answer(memd, "undo", str(done["revision"]))
    assert said == texts(memd, "user")


def test_one_content_is_kept_once(memd: DaemonProcess) -> None:
    """FR-44: no pile of copies beside the file, however often the same is tried."""
    memd.memory.write_text("alpha\n\n§\n\nbeta\n")
    for _ in range(5):
        answer(memd, "replace", "beta", "beta v2")
    assert ["alpha", "beta v2"] == texts(memd)
    assert {"MEMORY.md", "MEMORY.md.lock"} >= {
        path.name for path in memd.memory.parent.iterdir() if "bak" in path.name or path.name.startswith("MEMORY")
    }
