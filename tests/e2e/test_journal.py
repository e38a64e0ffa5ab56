"""What happens to the journal of a real daemon: removed or replaced while it runs, restored from a backup, barred.

The kinds of damage are in ``tests/faults/test_journal_damage.py``, a newer one and one that is set aside in ``test_daemon.py``.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from support.rpc import RpcError
from support.serving import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.daemon import DaemonProcess

pytestmark = pytest.mark.slow


def add(daemon: DaemonProcess, text: str) -> dict[str, Any]:
    done: dict[str, Any] = daemon.call("memory.add", target="memory", content=text)
    return done


def texts(daemon: DaemonProcess) -> list[str]:
    return [entry["text"] for entry in daemon.call("memory.read")["stores"]["memory"]["entries"]]


def refused(call: Callable[[], Any]) -> dict[str, Any]:
    with pytest.raises(RpcError) as caught:
        call()
    error: dict[str, Any] = caught.value.error
    return error


def notices(daemon: DaemonProcess) -> list[str]:
    return [notice["name"] for notice in daemon.call("daemon.status")["notices"]]


@pytest.mark.parametrize("fate", ["removed", "replaced", "the folder is gone"])
def test_while_it_runs(daemon: DaemonProcess, fate: str) -> None:
    """Nothing more is acknowledged, for it would be in a file without a name; reads go on, and a restart heals it."""
    daemon.start()
    last = add(daemon, "before")["revision"]
    if fate == "replaced":
        shutil.copy(daemon.journal, daemon.journal.with_name("copy"))
        daemon.journal.with_name("copy").rename(daemon.journal)
    elif fate == "removed":
        daemon.journal.unlink()
    else:
        daemon.journal.parent.rename(daemon.home / "elsewhere")
    wait_until(lambda: "journal_replaced" in notices(daemon), "the notice")
    error = refused(lambda: add(daemon, "after"))
    assert ("io_error", "none", True) == (error["name"], error["data"]["outcome"], "restarted" in error["message"])
    assert ["before"] == texts(daemon)
    assert "before\n" == daemon.memory.read_text()
    daemon.restart()
    assert add(daemon, "after")["revision"] > last
    assert ["before", "after"] == texts(daemon)


def test_yesterdays_backup(daemon: DaemonProcess) -> None:
    """No number that was given out since comes back, nor does the instance; the file's newer entries stay."""
    daemon.start()
    add(daemon, "yesterday")
    daemon.stop()
    backup = daemon.journal.read_bytes()
    daemon.start()
    today = [add(daemon, f"today {number}")["revision"] for number in range(3)]
    instance = daemon.call("hello")["server"]["instance"]
    seq = daemon.call("events.wait", since_seq=0, timeout_ms=0)["seq"]
    daemon.stop()
    daemon.journal.write_bytes(backup)
    daemon.start()
    assert ["yesterday", "today 0", "today 1", "today 2"] == texts(daemon)
    assert instance != daemon.call("hello")["server"]["instance"]
    head = daemon.call("memory.read")["stores"]["memory"]["revision"]
    assert head > max(today)
    error = refused(lambda: daemon.call("memory.add", target="memory", content="x", if_revision=today[-1]))
    assert ("conflict", "if_revision") == (error["name"], error["data"]["reason"])
    assert daemon.call("events.wait", since_seq=seq, timeout_ms=0)["lost"]
    assert add(daemon, "after")["revision"] > head


@pytest.mark.parametrize("kind", ["directory", "link", "dangling link"])
def test_something_else_in_its_place(daemon: DaemonProcess, kind: str) -> None:
    """The start is refused with its path; what stands there is left alone, and so is what a link leads to."""
    other = daemon.home / "other"
    daemon.journal.parent.mkdir(mode=0o700)
    if kind == "directory":
        daemon.journal.mkdir()
    else:
        daemon.journal.symlink_to(other)
    if kind == "link":
        other.write_text("mine")
    done = daemon.memd("serve")
    assert done.returncode not in {0, 75}
    assert str(daemon.journal) in done.stderr.replace("\n", "")
    assert "Traceback" not in done.stderr
    assert ("mine" if kind == "link" else None) == (other.read_text() if other.exists() else None)
    assert kind == "directory" or daemon.journal.is_symlink()


@pytest.mark.skipif(os.geteuid() == 0, reason="to root every file is readable; .ci/run is no root here")
def test_one_that_may_not_be_read(daemon: DaemonProcess) -> None:
    """It is not taken for damage: refused, and as it was."""
    daemon.start()
    add(daemon, "kept")
    daemon.stop()
    before = daemon.journal.read_bytes()
    daemon.journal.parent.chmod(0o500)
    daemon.journal.chmod(0)
    done = daemon.memd("serve")
    daemon.journal.chmod(0o600)
    daemon.journal.parent.chmod(0o700)
    assert done.returncode not in {0, 75}
    assert str(daemon.journal) in done.stderr.replace("\n", "")
    assert before == daemon.journal.read_bytes()
    daemon.start()
    assert ["kept"] == texts(daemon)


def test_one_that_others_may_read_is_closed_to_them(daemon: DaemonProcess) -> None:
    daemon.start()
    add(daemon, "private")
    daemon.stop()
    daemon.journal.chmod(0o644)
    daemon.start()
    assert 0o600 == daemon.journal.stat().st_mode & 0o777
