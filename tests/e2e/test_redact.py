"""Redaction from end to end: a text planted in every place there is, redacted, and nowhere in any file."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from support.rpc import RpcError

if TYPE_CHECKING:
    from pathlib import Path

    from support.daemon import DaemonProcess

pytestmark = pytest.mark.slow

SECRET = 'hunter2 "Zürich"\nvault-4711'
FORMS = (
    SECRET,
    SECRET.replace("\n", "\r\n"),
    json.dumps(SECRET)[1:-1],
    json.dumps(SECRET, ensure_ascii=False)[1:-1],
    "hunter2",
    "vault-4711",
)


def places_of(root: Path, forms: tuple[str, ...] = FORMS) -> list[str]:
    """Files anywhere below the directory that hold the text, in UTF-8 or UTF-16, escaped or not."""
    found = []
    for directory, _, names in os.walk(root):
        for name in names:
            path = os.path.join(directory, name)
            if not os.path.isfile(path):
                continue
            with open(path, "rb") as file:
                data = file.read()
            wanted = [form.encode(code) for form in forms for code in ("utf-8", "utf-16-le", "utf-16-be")]
            found += [path] if any(form in data for form in wanted) else []
    return sorted(found)


def plant_set_aside(daemon: DaemonProcess) -> None:
    """A journal with the text in it, damaged, and so set aside at the next start."""
    daemon.start()
    daemon.call("memory.add", target="memory", content=f"old {SECRET}")
    daemon.stop()
    with daemon.journal.open("r+b") as file:
        file.write(b"\0" * 64)
    daemon.start()
    (copy,) = daemon.journal.parent.glob("journal.db.damaged-*")
    assert str(copy) in places_of(daemon.home)


def plant(daemon: DaemonProcess) -> dict[str, Any]:
    """The text everywhere a client or a person can put it; returns what there is to ask for afterwards."""
    known: dict[str, Any] = {}
    with daemon.connect(client={"name": "cli hunter2"}) as peer:
        opened = peer.call("session.open", key="k", endpoint=f"http://x/?token={SECRET}", parent="p vault-4711")
        known["session"] = opened["session"]
        assert SECRET in opened["snapshot"]["text"]
        peer.call("session.open", key="key hunter2")
        known["turn"] = peer.call("turn.begin", session=opened["session"], turn=f"t {SECRET}", user=True)["turn"]
        said: dict[str, Any] = {"target": "memory", "session": opened["session"]}
        known["whole"] = peer.call("memory.add", content=SECRET, request_id="r1", reason=f"because {SECRET}", **said)
        known["json"] = peer.call("memory.add", content=f"as JSON: {json.dumps(SECRET)}", **said)
        known["gone"] = peer.call("memory.add", content=f"to go {SECRET} soon", **said)
        known["removed"] = peer.call("memory.remove", id=known["gone"]["entry"]["id"], request_id="r2", **said)
        known["plain"] = peer.call("memory.add", target="user", content="tea, not coffee", request_id="r3")
        peer.call("memory.replace", target="user", old_text="tea", content=f"coffee {SECRET}")
        peer.call("memory.replace", target="user", old_text="coffee", content="water", request_id="r4")
        with pytest.raises(RpcError, match="over_limit"):
            peer.call("memory.add", target="user", content=f"{SECRET}{'x' * 2000}")
        with pytest.raises(RpcError, match="not_found"):
            peer.call("memory.remove", target="user", old_text=SECRET)
        with daemon.memory.open("a") as file:  # adopted and written in one group: the bytes found are kept as well
            file.write(f"§\nby hand {SECRET}\n")
        peer.call("memory.add", target="memory", content="after that")
        before = daemon.memory.read_text()
        daemon.memory.write_text(before.replace("by hand", "by another hand"))
        peer.call("memory.add", target="memory", content="and after that")
        peer.call("memory.explain", text=SECRET)
    return known


@pytest.fixture
def planted(daemon: DaemonProcess) -> tuple[DaemonProcess, dict[str, Any]]:
    daemon.configure("[limits]\nmemory = 20000\n")
    plant_set_aside(daemon)
    return daemon, plant(daemon)


def redact(daemon: DaemonProcess, **params: Any) -> Any:
    with daemon.connect(operator=True) as peer:
        return peer.call("history.redact", deadline_ms=60_000, **params)


def test_nothing_is_left_in_any_file(planted: tuple[DaemonProcess, dict[str, Any]]) -> None:
    """Memory files, journal, log of the journal, set-aside copy; a search while it runs and after the stop."""
    daemon, known = planted
    assert daemon.journal.parent.is_dir()
    for part in ("hunter2", "vault-4711"):
        redact(daemon, text=f"{part}", reason=f"it was {part}")
    done = redact(daemon, text='"Zürich"')
    assert done["tables"]["revision"] > 0
    text = daemon.memory.read_text()
    assert "old [redacted] [redacted]\n[redacted]" in text
    assert "by another hand [redacted]" in text
    assert known["whole"]["entry"]["id"] not in {
        entry["id"] for entry in daemon.call("memory.read")["stores"]["memory"]["entries"]
    }
    assert [] == places_of(daemon.home)
    daemon.stop()
    assert [] == places_of(daemon.home)


def test_a_text_over_lines_is_found_in_every_form(planted: tuple[DaemonProcess, dict[str, Any]]) -> None:
    """The whole text at once: with quotes, an umlaut and a newline in it."""
    daemon, known = planted
    with daemon.connect() as peer:
        peer.call("events.subscribe", topics=["snapshot.stale"])
        assert peer.call("session.open", session=known["session"])["resumed"]
        done = redact(daemon, text=SECRET, reason=f"leaked: {SECRET}")
        (event,) = peer.wait_notification("event")
        assert (known["session"], {"reason": "redacted"}) == (event["session"], event["data"])
        resumed = peer.call("session.open", session=known["session"])
        assert "snapshot_redacted" in {notice["name"] for notice in resumed["notices"]}
        assert "old [redacted]" in resumed["snapshot"]["text"]
        peer.call("session.refresh", session=known["session"])
        again = peer.call("session.open", session=known["session"])
        assert "snapshot_redacted" not in {notice["name"] for notice in again["notices"]}
    assert all(
        done["tables"][name] for name in ("revision", "rendering", "preimage", "request", "session", "set_aside")
    )
    assert 1 == len(done["revisions"])
    assert dict.fromkeys(done["tables"], 0) == redact(daemon, text=SECRET)["tables"]
    daemon.stop()
    assert [] == places_of(daemon.home, FORMS[:4])


def test_what_was_redacted_is_still_history(planted: tuple[DaemonProcess, dict[str, Any]]) -> None:
    """Stubs that can be listed and shown; undo, restore, replays and exports bring nothing back."""
    daemon, known = planted
    done = redact(daemon, text=SECRET)
    daemon.restart()
    rows = daemon.call("history.list", limit=100)["revisions"]
    assert "redact" in {row["kind"] for row in rows}
    shown = daemon.call("history.show", revision=known["whole"]["revision"])
    assert ("[redacted]", True, "because [redacted]") == (
        shown["changes"][0]["after"],
        shown["redacted"],
        shown["reason"],
    )
    undone = daemon.call("history.undo", revision=known["removed"]["revision"])
    assert re.search("was redacted", undone["conflicts"][0]["reason"])
    with pytest.raises(RpcError, match="cannot be undone"):
        daemon.call("history.undo", revision=done["revisions"][0])
    for name in ("r1", "r2"):
        with pytest.raises(RpcError, match="has been redacted"):
            daemon.call("memory.add", target="memory", content=SECRET, request_id=name)
    assert daemon.call("memory.add", target="user", content="tea, not coffee", request_id="r3")["replayed"]
    states = {match["state"] for match in daemon.call("memory.explain", text="[redacted]")["matches"]}
    assert states <= {"stored", "removed"}
    exported = json.dumps(daemon.call("profile.export"), ensure_ascii=False)
    assert "hunter2" not in exported.replace("cli hunter2", "")
    restored = daemon.call("history.restore", target="memory", revision=known["whole"]["revision"])
    assert "[redacted]" not in {change.get("after") for change in restored["changes"]}
    daemon.stop()
    assert [] == places_of(daemon.home, FORMS[:4])


def test_a_revision_is_redacted_by_its_number(daemon: DaemonProcess) -> None:
    """What it replaced is hidden wherever it stands; what is live stays; a revision that is wholly live is refused."""
    daemon.start()
    first = daemon.call("memory.add", target="memory", content="pin is hunter2")
    with pytest.raises(RpcError, match="is in memory now"):
        redact(daemon, revision=first["revision"])
    second = daemon.call("memory.replace", target="memory", old_text="hunter2", content="pin is in the vault")
    redact(daemon, revision=second["revision"])
    assert "pin is in the vault\n" == daemon.memory.read_text()
    changes = daemon.call("history.show", revision=second["revision"])["changes"]
    assert ("[redacted]", "[redacted]") == (changes[0]["before"], changes[0]["after"])
    assert "[redacted]" == daemon.call("history.show", revision=first["revision"])["changes"][0]["after"]
    daemon.stop()
    assert [] == places_of(daemon.home)
    daemon.start()
    assert ["pin is in the vault"] == [
        entry["text"] for entry in daemon.call("memory.read")["stores"]["memory"]["entries"]
    ]


@pytest.mark.parametrize("delay_s", [0.0, 0.3, 1.0, 1.3, 1.6])
def test_a_crash_on_the_way_is_made_good(planted: tuple[DaemonProcess, dict[str, Any]], delay_s: float) -> None:
    """Wherever it is killed: the next start is in order, and the same call again leaves nothing."""
    daemon, _ = planted
    with daemon.connect(operator=True) as peer:
        peer.send("history.redact", text=SECRET)
        peer.socket.settimeout(delay_s or 0.01)
        with contextlib.suppress(TimeoutError, BlockingIOError):
            peer.wait(1)
        daemon.kill()
    daemon.start()
    redact(daemon, text=SECRET)
    daemon.stop()
    assert [] == places_of(daemon.home, FORMS[:4])


def test_a_start_finishes_what_a_crash_left_in_freed_pages(daemon: DaemonProcess) -> None:
    """As after a kill between the commit and the rebuilding of the file: the mark says that this is still to be done."""
    daemon.start()
    daemon.call("memory.add", target="memory", content="tea")
    daemon.stop()
    with contextlib.closing(sqlite3.connect(daemon.journal, isolation_level=None)) as journal:
        journal.execute("PRAGMA secure_delete=OFF")
        row = ("p", "memory", "n", b"", SECRET)
        journal.execute("INSERT INTO refusal(us, profile, target, name, text_hash, reason) VALUES (1,?,?,?,?,?)", row)
        journal.execute("DELETE FROM refusal")
        journal.execute("INSERT INTO meta VALUES ('redacting', 1)")
    assert [str(daemon.journal)] == places_of(daemon.home / "state", FORMS[:4])
    daemon.start()
    assert ["tea"] == [entry["text"] for entry in daemon.call("memory.read")["stores"]["memory"]["entries"]]
    daemon.stop()
    assert [] == places_of(daemon.home)
    with contextlib.closing(sqlite3.connect(daemon.journal)) as journal:
        assert [] == journal.execute("SELECT * FROM meta WHERE key='redacting'").fetchall()
