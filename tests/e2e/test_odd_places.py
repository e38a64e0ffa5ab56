"""Files and directories that are not plainly there: linked elsewhere, mounted, renamed, replaced, with rights of their own.

Mounts are made in a name space of the daemon's own, where the kernel lets everybody do so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.rpc import RpcError
from support.serving import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.daemon import DaemonProcess
    from support.rpc import Peer

pytestmark = pytest.mark.slow

NAMESPACES = subprocess.run(["unshare", "-Urm", "true"], capture_output=True, check=False).returncode == 0
NEEDS_MOUNTS = pytest.mark.skipif(not NAMESPACES, reason="this kernel lets nobody mount a file system of his own")


def texts(peer: Peer, target: str = "memory") -> list[str]:
    return [entry["text"] for entry in peer.call("memory.read", target=target)["stores"][target]["entries"]]


def condition(peer: Peer) -> str:
    return str(peer.call("memory.read", target="memory")["stores"]["memory"]["state"])


def add(peer: Peer, text: str) -> Any:
    return peer.call("memory.add", target="memory", content=text)


def refused(call: Callable[[], Any]) -> dict[str, Any]:
    with pytest.raises(RpcError) as caught:
        call()
    error: dict[str, Any] = caught.value.error
    return error


def notices(answer: dict[str, Any]) -> list[str]:
    return [notice["name"] for notice in answer["notices"]]


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A directory on another file system."""
    folder = Path("/dev/shm") / f"memd-{os.getpid()}"
    folder.mkdir(mode=0o700)
    yield folder
    shutil.rmtree(folder)


class TestLinks:
    def test_to_another_file_system(self, daemon: DaemonProcess, elsewhere: Path) -> None:
        """Where the setting allows it: the link stays, the new version is made beside the real file."""
        assert daemon.home.stat().st_dev != elsewhere.stat().st_dev
        real = elsewhere / "notes.md"
        real.write_text("first\n")
        daemon.configure(f'[daemon]\nsymlink_roots = ["{elsewhere}"]\n')
        daemon.memory.symlink_to(real)
        daemon.start()
        with daemon.connect() as peer:
            add(peer, "second")
            assert ["first", "second"] == texts(peer)
        assert (True, "first\n§\nsecond\n") == (daemon.memory.is_symlink(), real.read_text())

    def test_to_where_nothing_allows_it(self, daemon: DaemonProcess, elsewhere: Path) -> None:
        """Refused by the setting's name; what is there is not looked at. Put right, it is served without a restart."""
        real = elsewhere / "notes.md"
        real.write_text("secret\n")
        daemon.memory.symlink_to(real)
        daemon.start()
        error = refused(lambda: daemon.connect(profile="default").close())
        assert "store_unreadable" == error["name"]
        assert "symlink_roots" in error["message"]
        daemon.memory.unlink()
        daemon.memory.write_text("own\n")
        wait_until(lambda: _served(daemon), "the profile")
        with daemon.connect() as peer:
            assert ["own"] == texts(peer)
        assert "secret\n" == real.read_text()

    @pytest.mark.parametrize("kind", ["dangling", "a loop"])
    def test_to_nowhere(self, daemon: DaemonProcess, kind: str) -> None:
        """Typed, and served once there is something."""
        target = daemon.home / "mem/later.md"
        daemon.memory.symlink_to(daemon.memory if kind == "a loop" else target)
        daemon.start()
        error = refused(lambda: daemon.connect(profile="default").close())
        assert ("store_unreadable", True) == (error["name"], "MEMORY.md" in error["message"])
        if kind == "a loop":
            daemon.memory.unlink()
            daemon.memory.symlink_to(target)
        target.write_text("now\n")
        wait_until(lambda: _served(daemon), "the profile")
        with daemon.connect() as peer:
            add(peer, "and then")
        assert "now\n§\nand then\n" == target.read_text()

    def test_led_elsewhere_while_it_runs(self, daemon: DaemonProcess) -> None:
        """Neither the old file nor the new one is written; put back, all goes on."""
        first, second = daemon.home / "mem/first.md", daemon.home / "mem/second.md"
        first.write_text("first\n")
        second.write_text("second\n")
        daemon.memory.symlink_to("first.md")
        daemon.start()
        with daemon.connect() as peer:
            assert ["first"] == texts(peer)
            daemon.memory.unlink()
            daemon.memory.symlink_to("second.md")
            wait_until(lambda: condition(peer) != "ok", "its being noticed")
            error = refused(lambda: add(peer, "where to?"))
            assert ("store_unreadable", "none") == (error["name"], error["data"]["outcome"])
            assert ["first\n", "second\n"] == [first.read_text(), second.read_text()]
            daemon.memory.unlink()
            daemon.memory.symlink_to("first.md")
            wait_until(lambda: condition(peer) == "ok", "its being put back")
            add(peer, "here")
        assert ["first\n§\nhere\n", "second\n"] == [first.read_text(), second.read_text()]


def _served(daemon: DaemonProcess) -> bool:
    try:
        daemon.connect(profile="default").close()
    except RpcError:
        return False
    return True


class TestRights:
    def test_mode_attributes_and_lists_are_kept(self, daemon: DaemonProcess) -> None:
        """Where the file system has them: 0660, a user attribute, an access control list."""
        daemon.memory.write_text("first\n")
        daemon.memory.chmod(0o660)
        os.setxattr(daemon.memory, "user.note", b"mine")
        if shutil.which("setfacl") is not None:
            subprocess.run(["setfacl", "-m", "u:1:r", str(daemon.memory)], check=True)
        wanted = {name: os.getxattr(daemon.memory, name) for name in os.listxattr(daemon.memory)}
        mode = daemon.memory.stat().st_mode
        daemon.start()
        with daemon.connect() as peer:
            inode = daemon.memory.stat().st_ino
            add(peer, "second")
        assert inode != daemon.memory.stat().st_ino
        assert mode == daemon.memory.stat().st_mode
        assert wanted == {name: os.getxattr(daemon.memory, name) for name in os.listxattr(daemon.memory)}
        assert wanted["user.note"] == b"mine"

    @NEEDS_MOUNTS
    def test_a_read_only_file_system(self, daemon: DaemonProcess) -> None:
        """EROFS is read_only with path, errno and mode; reads go on."""
        daemon.memory.write_text("kept\n")
        daemon.memory.chmod(0o600)
        script = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'
        daemon.wrapper = ["unshare", "-Urm", "sh", "-c", script, "sh", str(daemon.home / "mem")]
        (daemon.home / "mem/.memd.lock").touch(mode=0o600)
        daemon.start()
        if not _served(daemon):  # not even the directory's lock can be had there
            error = refused(lambda: daemon.connect(profile="default").close())
            assert ("read_only", 30) == (error["name"], error["data"]["errno"])
            return
        with daemon.connect() as peer:
            error = refused(lambda: add(peer, "more"))
            assert ("read_only", 30) == (error["name"], error["data"]["errno"])
            assert ["kept"] == texts(peer)
        assert "kept\n" == daemon.memory.read_text()


class TestMounts:
    @NEEDS_MOUNTS
    def test_a_file_that_is_a_mount_point(self, daemon: DaemonProcess) -> None:
        """It cannot be exchanged: it is rewritten where it is, with one notice, and the mounted file has it all."""
        mounted = daemon.home / "mounted.md"
        mounted.write_text("first\n")
        daemon.memory.write_text("")
        script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
        daemon.wrapper = ["unshare", "-Urm", "sh", "-c", script, "sh", str(mounted), str(daemon.memory)]
        daemon.start()
        with daemon.connect() as peer:
            inode = mounted.stat().st_ino
            found = [name for number in range(3) for name in notices(add(peer, f"more {number}"))]
            assert ["first", "more 0", "more 1", "more 2"] == texts(peer)
        assert "first\n§\nmore 0\n§\nmore 1\n§\nmore 2\n" == mounted.read_text()
        assert inode == mounted.stat().st_ino
        assert len(found) <= 1

    @NEEDS_MOUNTS
    def test_an_unmounted_home(self, daemon: DaemonProcess) -> None:
        """A directory that is empty because its disk is not there is not an empty memory: nothing is written into it."""
        daemon.start()
        with daemon.connect() as peer:
            add(peer, "on the disk")
        daemon.stop()
        script = 'mount -t tmpfs tmpfs "$1" && shift && exec "$@"'
        daemon.wrapper = ["unshare", "-Urm", "sh", "-c", script, "sh", str(daemon.home / "mem")]
        daemon.start()
        assert daemon.process is not None
        with daemon.connect() as peer:
            error = refused(lambda: add(peer, "lost?"))
            assert ("store_unreadable", "none") == (error["name"], error["data"]["outcome"])
            inside = Path(f"/proc/{daemon.process.pid}/root{daemon.home}/mem")
            assert [] == [path.name for path in inside.iterdir() if path.name.endswith(".md")]
        daemon.stop()
        daemon.wrapper = []
        daemon.start()
        with daemon.connect() as peer:
            assert ["on the disk"] == texts(peer)

    def test_a_directory_renamed_and_made_again(self, daemon: DaemonProcess) -> None:
        """Unreadable, never empty; back in its place, all is there."""
        daemon.start()
        with daemon.connect() as peer:
            add(peer, "kept")
            moved = daemon.home / "moved"
            daemon.memory.parent.rename(moved)
            daemon.memory.parent.mkdir(mode=0o700)
            error = refused(lambda: add(peer, "into the new one"))
            assert ("store_unreadable", "none") == (error["name"], error["data"]["outcome"])
            assert (["kept"], "stale") == (texts(peer), condition(peer))
            assert [] == [path.name for path in daemon.memory.parent.iterdir() if path.name.endswith(".md")]
            shutil.rmtree(daemon.memory.parent)
            moved.rename(daemon.memory.parent)
            wait_until(lambda: condition(peer) == "ok", "the directory")
            add(peer, "again")
            assert ["kept", "again"] == texts(peer)
