"""Faults as the kernel makes them: a small file system that is full, a limit on the size of files, calls that fail at random.

The sweeps of ``test_every_call.py`` meet every position; these are the real things they stand for.
"""

from __future__ import annotations

import errno
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.rpc import RpcError

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.daemon import DaemonProcess
    from support.rpc import Peer

pytestmark = pytest.mark.slow

MOUNTED = 'mount -t tmpfs -o size="$1" tmpfs "$2" && shift 2 && exec "$@"'
NAMESPACES = subprocess.run(["unshare", "-Urm", "true"], capture_output=True, check=False).returncode == 0


def add(peer: Peer, text: str) -> Any:
    return peer.call("memory.add", target="memory", content=text)


def texts(peer: Peer) -> list[str]:
    return [entry["text"] for entry in peer.call("memory.read", target="memory")["stores"]["memory"]["entries"]]


def refused(call: Callable[[], Any]) -> dict[str, Any]:
    with pytest.raises(RpcError) as caught:
        call()
    error: dict[str, Any] = caught.value.error
    return error


def fill(path: Path) -> None:
    """Take every block there is."""
    with path.open("wb", buffering=0) as file:
        for size in (65_536, 4096, 1):
            with suppress(OSError):
                while True:
                    file.write(b"x" * size)


@pytest.mark.skipif(not NAMESPACES, reason="this kernel lets nobody mount a file system of his own")
def test_a_small_file_system_that_is_full(daemon: DaemonProcess) -> None:
    """Refused as no_space, the old file as it was; reads go on, removing works, and with room so does everything."""
    directory = daemon.home / "state/mem"
    daemon.configure(f'[profiles.default]\ndir = "{directory}"\n[limits]\nmemory = 100000\n')
    daemon.wrapper = ["unshare", "-Urm", "sh", "-c", MOUNTED, "sh", "9m", str(daemon.home / "state")]
    daemon.start()
    assert daemon.process is not None
    inside = Path(f"/proc/{daemon.process.pid}/root")
    ballast, memory = inside / f"{daemon.home}/state/ballast".lstrip("/"), inside / f"{directory}/MEMORY.md".lstrip("/")
    with daemon.connect() as peer:
        acknowledged = [f"entry {number} {'x' * 500}" for number in range(20)]
        for text in acknowledged:
            add(peer, text)
        fill(ballast)
        before = memory.read_bytes()
        error = refused(lambda: [add(peer, f"more {number} {'y' * 900}") for number in range(20)])
        assert ("no_space", "none") == (error["name"], error["data"]["outcome"])
        kept = texts(peer)
        assert acknowledged == [text for text in kept if text.startswith("entry")]
        assert before[:100] == memory.read_bytes()[:100]
        peer.call("memory.remove", target="memory", old_text=acknowledged[0])
        assert acknowledged[1:] == [text for text in texts(peer) if text.startswith("entry")]
        ballast.unlink()
        add(peer, "with room again")
        assert "with room again" == texts(peer)[-1]
        assert memory.read_text().endswith("with room again\n")


def test_a_limit_on_the_size_of_files(daemon: DaemonProcess) -> None:
    """SIGXFSZ ends nobody: what does not fit is refused, and all that was acknowledged is there without the limit."""
    daemon.configure("[limits]\nmemory = 10000000\n")
    daemon.env["PYTHONDONTWRITEBYTECODE"] = "1"
    daemon.wrapper = ["sh", "-c", 'ulimit -f 1200 && exec "$@"', "sh"]
    daemon.start()
    acknowledged: list[str] = []
    outcomes = set()
    with daemon.connect() as peer:
        for number in range(300):
            try:
                add(peer, f"entry {number} {'x' * 300}")
            except RpcError as refusal:
                outcomes.add((refusal.error["name"], refusal.error["data"]["outcome"]))
                if len(outcomes) > 3:
                    break
            else:
                acknowledged.append(f"entry {number} {'x' * 300}")
        assert {("no_space", "none"), ("io_error", "none")} & outcomes
        assert acknowledged == texts(peer)
    assert daemon.process is not None
    assert daemon.process.poll() is None
    daemon.wrapper = []
    daemon.restart()
    with daemon.connect() as peer:
        assert acknowledged == texts(peer)
        add(peer, "without the limit")


@pytest.mark.skipif(shutil.which("fiu-run") is None, reason="needs fiu-run of fiu-utils, which .ci/run installs")
@pytest.mark.parametrize("kind", ["posix/io/rw/*", "posix/io/sync/*", "posix/io/oc/open", "posix/io/dir/rename"])
def test_calls_that_fail_at_random(daemon: DaemonProcess, suite_profile: str, kind: str) -> None:
    """One in fifty: every call is answered, and without the faults all is there that was acknowledged, once."""
    if suite_profile != "long":
        pytest.skip("random, and no two runs alike: for the long profile")
    daemon.configure("[limits]\nmemory = 10000000\n")
    daemon.env["PYTHONDONTWRITEBYTECODE"] = "1"  # half a compiled module would stay behind
    daemon.wrapper = ["fiu-run", "-x", "-c", f"enable_random name={kind},probability=0.02,failinfo={errno.EIO}"]
    present, maybe = set(), set()
    for attempt in range(5):  # the start itself may meet a fault, and says so
        try:
            daemon.start()
        except AssertionError:
            daemon.kill()
            continue
        with suppress(ConnectionError), daemon.connect() as peer:
            for number in range(100):
                text = f"{attempt} {number}"
                maybe.add(text)
                try:
                    add(peer, text)
                except RpcError as refusal:
                    if refusal.error["data"]["outcome"] == "none":
                        maybe.discard(text)
                else:
                    present.add(text)
        daemon.kill()
    daemon.wrapper = []
    daemon.start()
    with daemon.connect() as peer:
        found = texts(peer)
    assert len(set(found)) == len(found)
    assert present <= set(found) <= maybe
