"""Every verb, and the client's methods, against a real daemon."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.daemon import DaemonProcess

from memd_client import Client
from memd_client.errors import Conflict, NotFound, OverLimit, PermissionDenied

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def daemon() -> Iterator[DaemonProcess]:
    """One for all tests here; each wipes what it finds."""
    with DaemonProcess() as running:
        running.start()
        yield running


@pytest.fixture(autouse=True)
def clean(daemon: DaemonProcess) -> None:
    for target in ("memory", "user"):
        assert 0 == daemon.memd("wipe", target, "--confirm", "default").returncode


@pytest.fixture
def client(daemon: DaemonProcess) -> Iterator[Client]:
    with Client(daemon.socket, client_name="test", autostart=False) as opened:
        yield opened


def answer(daemon: DaemonProcess, *argv: str, stdin: str = "") -> Any:
    done = daemon.memd(*argv, "--json", stdin=stdin)
    assert (0, "") == (done.returncode, done.stderr)
    return json.loads(done.stdout)


def texts(daemon: DaemonProcess, target: str = "memory") -> list[str]:
    return [entry["text"] for entry in answer(daemon, "read")["stores"][target]["entries"]]


def test_verbs_of_memory(daemon: DaemonProcess) -> None:
    added = answer(daemon, "add", "-", "--reason", "because", stdin="Server is Debian 12\n")
    identifier = added["entry"]["id"]
    assert "Server is Debian 13" == answer(daemon, "replace", identifier, "Server is Debian 13")["entry"]["text"]
    assert "Server is Debian 14" == answer(daemon, "edit", "13", "14", "--id", identifier)["entry"]["text"]
    assert "user" == answer(daemon, "add", "Prefers tea", "-u", "--origin", "user")["entry"]["origin"]
    assert (["Server is Debian 14"], ["Prefers tea"]) == (texts(daemon), texts(daemon, "user"))
    assert "stored" == answer(daemon, "explain", "Debian 14")["matches"][0]["state"]
    assert answer(daemon, "remove", "Debian")["changed"]
    assert [] == texts(daemon)


def test_verbs_of_history(daemon: DaemonProcess) -> None:
    first = answer(daemon, "add", "one")["revision"]
    second = answer(daemon, "add", "two")["revision"]
    listed = answer(daemon, "history", "memory", "-n", "2")["revisions"]
    assert [second, first] == [revision["revision"] for revision in listed]
    assert "one" == answer(daemon, "show", str(first))["changes"][0]["after"]
    assert "two" == answer(daemon, "diff", str(first), str(second))["changes"][0]["after"]
    answer(daemon, "undo", str(first))
    assert ["two"] == texts(daemon)
    answer(daemon, "redo")
    assert ["one", "two"] == texts(daemon)
    answer(daemon, "restore", str(first))
    assert ["one"] == texts(daemon)
    done = daemon.memd("history")
    assert (0, True) == (done.returncode, "+ one" in done.stdout)


def test_an_undo_that_conflicts_is_status_1(daemon: DaemonProcess) -> None:
    added = answer(daemon, "add", "Port is 1")
    answer(daemon, "replace", "--id", added["entry"]["id"], "Port is 2")
    done = daemon.memd("undo", str(added["revision"]))
    assert (1, True) == (done.returncode, "nothing was undone" in done.stderr)
    assert ["Port is 2"] == texts(daemon)


def test_export_and_import(daemon: DaemonProcess) -> None:
    answer(daemon, "add", "kept")
    saved = daemon.memd("export").stdout
    answer(daemon, "wipe", "memory", "--confirm", "default")
    answer(daemon, "import", "-", stdin=saved)
    assert ["kept"] == texts(daemon)


def test_verbs_of_the_daemon(daemon: DaemonProcess) -> None:
    answer(daemon, "add", "one")
    status = answer(daemon, "status")
    assert str(daemon.memory) == status["profiles"][0]["stores"]["memory"]["path"]
    assert "memd-cli" == status["profiles"][0]["stores"]["memory"]["last"]["client"]
    assert str(daemon.memory) in daemon.memd("status").stdout
    assert "default" == answer(daemon, "profile", "list")["profiles"][0]["name"]
    assert daemon.memd("metrics").stdout.endswith("# EOF\n")
    assert 0 == daemon.memd("reload").returncode
    assert f"{daemon.socket}\n" == daemon.memd("socket").stdout
    assert f"{daemon.home}/config/memd/config.toml\n" == daemon.memd("config", "path").stdout


def test_snapshot_is_frozen_by_its_key(daemon: DaemonProcess) -> None:
    answer(daemon, "add", "one")
    before = daemon.memd("snapshot", "--key", "t:1").stdout
    answer(daemon, "add", "two")
    assert before == daemon.memd("snapshot", "--key", "t:1").stdout
    assert before != daemon.memd("snapshot").stdout == daemon.memd("snapshot", "--key", "t:1", "--refresh").stdout


def test_watch_shows_what_happened(daemon: DaemonProcess, client: Client) -> None:
    with client.events(["memory.changed"]) as stream:
        answer(daemon, "add", "seen")
        event = stream.get(10)
    assert event is not None
    assert ("memory.changed", "memory") == (event.topic, event.target)


def test_refusals_are_typed(client: Client) -> None:
    with pytest.raises(NotFound) as missing:
        client.memory_remove("memory", old_text="nowhere")
    assert ("none", 1) == (missing.value.outcome, missing.value.data["failures"]["count"])
    with pytest.raises(OverLimit) as over:
        client.memory_add("user", "x" * 1400)
    assert 25 == over.value.data["excess"]
    with pytest.raises(PermissionDenied):
        client.memory_wipe("memory", "default")
    added = client.memory_add("memory", "one")
    client.memory_add("memory", "two")
    with pytest.raises(Conflict):
        client.memory_add("memory", "three", if_revision=added.revision)


def test_sessions_turns_and_batches(client: Client) -> None:
    opened = client.session_open(key="t:2")
    assert "" == opened.snapshot.text
    client.turn_begin(opened.session, "t1", user=True)
    batch = client.memory_apply(
        "memory",
        [{"action": "add", "content": "a"}, {"action": "add", "content": "b"}],
        session=opened.session,
        origin="user",
    )
    assert (2, ["applied", "applied"]) == (batch.applied, [result.status for result in batch.results])
    assert client.memory_tool({"action": "add", "target": "memory", "content": "c"}, session=opened.session).success
    client.turn_end(opened.session, "t1", messages=[{"role": "user", "content": "hi"}])
    shown = client.session_snapshot(opened.session)
    assert (True, opened.snapshot.id) == (shown.stale, shown.snapshot.id)
    assert "c" in shown.changes_text
    assert "c" in client.session_refresh(opened.session).snapshot.text
    assert client.session_close(opened.session).flush is None


def test_the_rest_of_the_methods(client: Client) -> None:
    added = client.memory_add("memory", "one")
    assert "memory" in str(client.memory_tool_schema("anthropic"))
    assert "memory.add" in str(client.rpc_discover())
    assert "stored" == client.memory_explain("one").matches[0].state
    assert ["one"] == [entry.text for entry in client.history_show(added.revision).entries["memory"]]
    assert "one" == client.profile_export().entries["memory"][0].text
    assert client.daemon_status().commits.acknowledged > 0
    assert client.history_undo(revision=added.revision).changes
    page = client.events_wait(["memory.changed"], since_seq=0)
    assert page.events
    assert page.seq >= page.events[-1].seq


def test_a_killed_daemon_loses_nothing_that_was_acknowledged(daemon: DaemonProcess, client: Client) -> None:
    """One client writes on while the daemon is killed and started again five times: every entry is there once."""
    for number in range(10):
        client.memory_add("memory", f"entry {number}")
        if number % 2:
            daemon.restart(kill=True)
    assert [f"entry {number}" for number in range(10)] == texts(daemon)


def test_foreign_markdown_becomes_entries(daemon: DaemonProcess) -> None:
    """Shown first, then imported, then undone to the byte."""
    notes = "# House notes\n\n- boiler is in the cellar\n- bins go out Tuesday\n"
    daemon.memory.write_text(notes)
    assert "memd import --foreign" in daemon.memd("status").stdout + json.dumps(answer(daemon, "status"))
    planned = answer(daemon, "import", "--foreign", "--preview")
    assert (notes, ["nothing_foreign"]) == (daemon.memory.read_text(), [item["name"] for item in planned["notices"]])
    done = answer(daemon, "import", "--foreign", "memory", "--yes")
    assert (["boiler is in the cellar", "bins go out Tuesday"], 1) == (texts(daemon), len(done["revisions"]))
    assert 0 == daemon.memd("undo").returncode
    assert notes == daemon.memory.read_text()


def test_a_profile_moves_with_its_ids(tmp_path: Path) -> None:
    """Export, create, import: ids, texts, order, times and origins are equal; again is nothing; damage changes nothing."""
    with DaemonProcess() as daemon:  # its own, since a second profile changes what every other call needs
        daemon.start()
        for text in ("one", "two", "three"):
            answer(daemon, "add", text)
        answer(daemon, "remove", "two")
        answer(daemon, "add", "who", "-u", "--origin", "user")
        before = answer(daemon, "export")["entries"]
        assert 0 == daemon.memd("export", "-o", str(tmp_path / "out.json")).returncode
        assert 0 == daemon.memd("profile", "create", "moved").returncode
        into = ("import", str(tmp_path / "out.json"), "--profile", "moved")
        assert "history_not_imported" in [item["name"] for item in answer(daemon, *into)["notices"]]
        assert before == answer(daemon, "export", "--profile", "moved")["entries"]
        assert [] == answer(daemon, *into)["changes"]
        damaged = json.loads((tmp_path / "out.json").read_text())
        damaged["entries"]["memory"].insert(0, {"text": "new"})
        damaged["entries"]["user"][0]["text"] = "whom"
        (tmp_path / "out.json").write_text(json.dumps(damaged))
        refused = daemon.memd(*into)
        assert (False, True) == (refused.returncode == 0, "data.entries.user[0]" in refused.stderr)
        assert before == answer(daemon, "export", "--profile", "moved")["entries"]
