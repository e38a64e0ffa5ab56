"""What other programs and people do to the files of a running daemon, as they did it when they came to grief."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from support.rpc import Peer, RpcError
from support.serving import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.daemon import DaemonProcess

pytestmark = pytest.mark.slow

COMMITS_BESIDE = 20

NOT_ROOT = pytest.mark.skipif(os.geteuid() == 0, reason="to root every file is readable; .ci/run is no root here")


def started(daemon: DaemonProcess, content: bytes | None = None) -> Peer:
    """A daemon over a file with this content, and a connection."""
    if content is not None:
        daemon.memory.write_bytes(content)
        daemon.memory.chmod(0o600)
    daemon.start()
    return daemon.connect()


def texts(peer: Peer) -> list[str]:
    entries = peer.call("memory.read", target="memory")["stores"]["memory"]["entries"]
    return [entry["text"] for entry in entries]


def add(peer: Peer, text: str) -> Any:
    return peer.call("memory.add", target="memory", content=text)


def refused(call: Callable[[], Any]) -> dict[str, Any]:
    with pytest.raises(RpcError) as caught:
        call()
    error: dict[str, Any] = caught.value.error
    return error


def condition(peer: Peer) -> str:
    return str(peer.call("memory.read", target="memory")["stores"]["memory"]["state"])


def test_what_a_shell_appended_is_an_entry_of_its_own(daemon: DaemonProcess) -> None:
    """With a newline before it or not; the replaced entry is only that."""
    with started(daemon, b"alpha\n\xc2\xa7\nbeta") as peer:
        with daemon.memory.open("ab") as file:
            file.write(b"\nadded by a shell\n")
        done = peer.call("memory.replace", target="memory", old_text="beta", content="beta v2")
        assert "outside_adopted" in [notice["name"] for notice in done["notices"]]
        assert ["alpha", "beta v2", "added by a shell"] == texts(peer)
        add(peer, "delta")
        with daemon.memory.open("ab") as file:
            file.write(b"gamma")
        with daemon.connect() as later:  # a connection's first read always looks at the file
            assert ["alpha", "beta v2", "added by a shell", "delta", "gamma"] == texts(later)


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_newlines_stay_as_they_are(daemon: DaemonProcess, newline: bytes) -> None:
    """Three entries in, three out; new text follows the style of the file."""
    border = newline + "§".encode() + newline
    with started(daemon, border.join([b"alpha one", b"beta two", b"gamma three"])) as peer:
        peer.call("memory.replace", target="memory", old_text="beta", content="beta\nNEW")
        add(peer, "delta")
        assert ["alpha one", "beta\nNEW", "gamma three", "delta"] == texts(peer)
    expected = border.join([b"alpha one", b"beta" + newline + b"NEW", b"gamma three", b"delta"])
    assert expected == daemon.memory.read_bytes()


def test_a_byte_outside_utf8_stays_and_is_told(daemon: DaemonProcess) -> None:
    """The good entry is served, the bad one kept byte for byte and never injected; every session is told."""
    with started(daemon, b"caf\xe9 is open\n\xc2\xa7\nother") as peer:
        add(peer, "third")
        opened = peer.call("session.open")
        assert "undecodable" in [notice["name"] for notice in opened["notices"]]
        assert "caf" not in opened["snapshot"]["text"]
        assert ["caf\ufffd is open", "other", "third"] == texts(peer)
    assert daemon.memory.read_bytes().startswith(b"caf\xe9 is open\n")


def test_a_restore_by_truncating_first_is_not_taken_as_empty(daemon: DaemonProcess) -> None:
    """`: > file; …; cat good >> file` while clients add: nothing of the good file and no acknowledged entry is missing."""
    with started(daemon, b"alpha\n\xc2\xa7\nbeta\n") as peer, daemon.connect() as other:
        add(peer, "before")
        good = daemon.memory.read_bytes()
        daemon.memory.write_bytes(b"")
        number = other.send("memory.add", target="memory", content="meanwhile")
        with daemon.memory.open("ab") as file:
            file.write(good)
        other.wait(number)
        assert {"alpha", "beta", "before", "meanwhile"} == set(texts(peer))


def test_deleted_by_others(daemon: DaemonProcess) -> None:
    """Shown empty once it has stood still, said, kept in the history, brought back by restore."""
    with started(daemon) as peer:
        add(peer, "kept in the journal")
        revision = peer.call("memory.read")["stores"]["memory"]["revision"]
        peer.call("events.subscribe", topics=["outside.adopted"])
        daemon.memory.unlink()
        event = peer.wait_notification("event")[0]
        assert 1 == len(event["data"]["dropped"])
        assert [] == texts(peer)
        notices = peer.call("session.open")["notices"]
        assert "store_emptied" in [notice["name"] for notice in notices]
        peer.call("history.restore", target="memory", revision=revision)
        assert ["kept in the journal"] == texts(peer)
        add(peer, "and on")
    assert "kept in the journal\n§\nand on\n" == daemon.memory.read_text()


def test_replaced_by_a_valid_file_with_other_entries(daemon: DaemonProcess) -> None:
    """A clean rewrite by another tool is adopted as a revision; the next add goes on from it."""
    with started(daemon, b"old one\n\xc2\xa7\nold two\n") as peer:
        time_passes = daemon.home / "mem/new"
        time_passes.write_bytes("restored a\n§\nrestored b\n".encode())
        time_passes.rename(daemon.memory)
        add(peer, "added")
        assert ["restored a", "restored b", "added"] == texts(peer)
        kinds = [row["origin"] for row in peer.call("history.list", target="memory")["revisions"]]
        assert "outside" in kinds


def test_blank_lines_and_double_borders_are_no_reason_to_rewrite_or_refuse(daemon: DaemonProcess) -> None:
    """One rule for every mutation, and what is not touched stays byte for byte."""
    with started(daemon, "alpha\n\n§\n\n§\n\nbeta\n".encode()) as peer:
        for number in range(3):
            peer.call("memory.replace", target="memory", old_text="beta", content=f"beta {number}")
        add(peer, "gamma")
    assert daemon.memory.read_bytes() == "alpha\n\n§\n\n§\n\nbeta 2\n§\ngamma\n".encode()
    assert [] == [path.name for path in (daemon.home / "mem").iterdir() if ".bak" in path.name or ".tmp" in path.name]


def test_a_lock_held_by_another_program_is_busy_with_its_holder(daemon: DaemonProcess) -> None:
    """The caller hears it at its deadline, and nothing was changed; afterwards all goes on."""
    with started(daemon) as peer:
        add(peer, "first")
        with (daemon.home / "mem/MEMORY.md.lock").open("r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            call = {"target": "memory", "content": "second", "deadline_ms": 300}
            error = refused(lambda: peer.call("memory.add", **call))
            assert ("busy", True, "none") == (error["name"], error["retryable"], error["data"]["outcome"])
            assert os.getpid() == error["data"]["holder"]
            assert ["first"] == texts(peer)
        add(peer, "third")
        assert ["first", "third"] == texts(peer)


def test_modes_survive_and_new_files_are_private(daemon: DaemonProcess) -> None:
    """0660 stays 0660; what memd makes is 0600 whatever the umask."""
    with started(daemon, b"shared\n") as peer:
        daemon.memory.chmod(0o660)
        add(peer, "more")
        peer.call("memory.add", target="user", content="mine")
    assert (0o660, 0o600) == (daemon.memory.stat().st_mode & 0o777, daemon.user.stat().st_mode & 0o777)


def test_several_links_are_rewritten_in_place(daemon: DaemonProcess) -> None:
    """The other name sees the change, and a session is told why the file is not replaced."""
    with started(daemon, b"linked\n") as peer:
        other = daemon.home / "other-name"
        other.hardlink_to(daemon.memory)
        add(peer, "more")
        assert "linked\n§\nmore\n" == other.read_text()
        assert "written_in_place" in [notice["name"] for notice in peer.call("session.open")["notices"]]


def test_a_link_is_followed_and_stays_a_link(daemon: DaemonProcess) -> None:
    real = daemon.home / "elsewhere"
    real.mkdir()
    (real / "notes.md").write_text("linked\n")
    daemon.memory.symlink_to("../elsewhere/notes.md")
    with started(daemon) as peer:
        add(peer, "more")
    assert (True, "linked\n§\nmore\n") == (daemon.memory.is_symlink(), (real / "notes.md").read_text())


@pytest.mark.parametrize("kind", ["directory", "fifo", "large", "socket"])
def test_something_else_in_its_place(daemon: DaemonProcess, kind: str) -> None:
    """Unreadable is not empty: typed, with the path, bytes untouched, the last good state served."""
    with started(daemon) as peer:
        add(peer, "good")
        daemon.memory.rename(daemon.home / "mem/saved")
        _put_odd(daemon.memory, kind)
        error = refused(lambda: add(peer, "more"))
        assert ("store_unreadable", "none") == (error["name"], error["data"]["outcome"])
        found = daemon.memory.stat()
        facts = {"path": str(daemon.memory), "mode": f"{found.st_mode & 0o7777:04o}", "owner": os.geteuid()}
        assert facts == {name: error["data"][name] for name in facts}
        assert (["good"], "stale") == (texts(peer), condition(peer))
        _take_odd(daemon.memory, kind)
        (daemon.home / "mem/saved").rename(daemon.memory)
        add(peer, "more")
        assert (["good", "more"], "ok") == (texts(peer), condition(peer))


@NOT_ROOT
def test_no_permission(daemon: DaemonProcess) -> None:
    """Not readable, then not writable: typed with mode and errno; reads go on; better times are noticed."""
    with started(daemon, b"alpha\n\xc2\xa7\nbeta\n") as peer:
        daemon.memory.chmod(0)
        error = refused(lambda: add(peer, "gamma"))
        assert ("store_unreadable", 13) == (error["name"], error["data"]["errno"])
        assert ("0000", os.geteuid()) == (error["data"]["mode"], error["data"]["owner"])
        assert "mode 0000" in error["message"]
        daemon.memory.chmod(0o444)
        (daemon.home / "mem").chmod(0o555)
        error = refused(lambda: add(peer, "gamma"))
        assert ("read_only", 13, "0444") == (error["name"], error["data"]["errno"], error["data"]["mode"])
        assert (["alpha", "beta"], "read_only") == (texts(peer), condition(peer))
        (daemon.home / "mem").chmod(0o700)
        daemon.memory.chmod(0o600)
        add(peer, "gamma")
        assert (["alpha", "beta", "gamma"], "ok") == (texts(peer), condition(peer))


@NOT_ROOT
def test_unreadable_for_a_moment(daemon: DaemonProcess) -> None:
    """A sync client's lock of a few moments is waited for, not reported."""
    with started(daemon, b"alpha\n") as peer:
        daemon.memory.chmod(0)
        number = peer.send("memory.add", target="memory", content="beta")
        daemon.memory.chmod(0o600)
        assert peer.wait(number)["changed"]


def test_a_foreign_file_is_shown_and_not_swallowed(daemon: DaemonProcess) -> None:
    """`replace` of a small part is refused, `edit` works, and nothing else of the file changes."""
    notes = "# House notes\n\n- boiler is in the cellar\n- bins go out Tuesday\n"
    with started(daemon, notes.encode()) as peer:
        assert "foreign" == condition(peer)
        part = {"target": "memory", "old_text": "bins go out Tuesday"}
        error = refused(lambda: peer.call("memory.replace", **part, content="bins go out Friday"))
        assert ("ambiguous_match", "none") == (error["name"], error["data"]["outcome"])
        assert notes == daemon.memory.read_text()
        peer.call("memory.edit", **part, new_text="bins go out Friday")
    assert notes.replace("Tuesday", "Friday") == daemon.memory.read_text()


def test_conflict_markers_serve_the_last_good_state(daemon: DaemonProcess) -> None:
    with started(daemon, b"alpha\n") as peer:
        add(peer, "beta")
        conflicted = "<<<<<<< HEAD\nalpha\n=======\nomega\n>>>>>>> theirs\n"
        daemon.memory.write_text(conflicted)
        error = refused(lambda: add(peer, "gamma"))
        assert "store_unreadable" == error["name"]
        assert (["alpha", "beta"], conflicted) == (texts(peer), daemon.memory.read_text())


def test_acknowledged_is_visible_to_others_and_after_a_kill(daemon: DaemonProcess) -> None:
    with started(daemon) as peer, daemon.connect() as other:
        add(peer, "reported as done")
        assert "reported as done" in other.call("session.open")["snapshot"]["text"]
    daemon.restart(kill=True)
    with daemon.connect() as peer:
        assert "reported as done" in peer.call("session.open")["snapshot"]["text"]


def test_a_tight_loop_of_appends_beside_commits(daemon: DaemonProcess, suite_profile: str) -> None:
    """Every line that the shell appended and every acknowledged entry is there at the end, and no commit waited for that end.

    The loop goes on until there were enough commits beside it; were they held up by it, it would come to its last line first.
    """
    least, most = (20_000 if suite_profile == "long" else 2_000), 60_000
    daemon.configure("[limits]\nmemory = 10000000\n")
    enough = daemon.home / "enough"
    script = (
        f'i=0; while [ $i -lt {least} ] || [ ! -e "$1" -a $i -lt {most} ]; '
        'do i=$((i+1)); echo "line $i." >> "$0"; done; echo $i'
    )
    with started(daemon) as peer:
        add(peer, "entry 0 by a client")  # the first write waits until the rules are compiled
        acknowledged = ["entry 0 by a client"]
        command = ["bash", "-c", script, str(daemon.memory), str(enough)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as shell:
            beside = 0
            while shell.poll() is None:
                text = f"entry {len(acknowledged)} by a client"
                add(peer, text)
                acknowledged.append(text)
                beside += shell.poll() is None
                if beside >= COMMITS_BESIDE:
                    enough.touch()
            assert shell.stdout is not None
            count = int(shell.stdout.read())
        assert beside >= COMMITS_BESIDE
        wanted = {f"line {number}." for number in range(1, count + 1)}

        def all_there() -> bool:
            return wanted <= set("\n".join(texts(peer)).split("\n"))

        wait_until(all_there, "every line adopted")
        found = texts(peer)
        assert [text for text in found if text.endswith("by a client")] == acknowledged
    lines = daemon.memory.read_text().split("\n")
    assert wanted | set(acknowledged) <= set(lines)
    assert len(wanted) == sum(line.startswith("line ") for line in lines)


def _put_odd(path: Path, kind: str) -> None:
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(str(path))
    else:
        with path.open("wb") as file:
            file.truncate(50 * 1024 * 1024)


def _take_odd(path: Path, kind: str) -> None:
    if kind == "directory":
        path.rmdir()
    else:
        path.unlink()
