"""The daemon under a service manager: sockets that it is handed, and what it says about itself."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import sys
from typing import TYPE_CHECKING

import pytest
from support.rpc import Peer
from support.serving import Manager, serve_command, spawn, wait_answering, wait_until

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from support.daemon import DaemonProcess

FIRST_FD = 3
WATCHDOG_US = 400_000

# LISTEN_PID has to be the daemon's own, which only a process that becomes the daemon knows beforehand; and the descriptors
# have to be 3 and 4, whatever numbers they have here.
HANDING_OVER = """
import fcntl, os, sys
for number, given in enumerate([fcntl.fcntl(int(each), fcntl.F_DUPFD, 100) for each in sys.argv[1:3]], start=3):
    os.dup2(given, number)
    os.close(given)
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.argv[3], sys.argv[3:])
"""


@pytest.fixture
def manager(daemon: DaemonProcess) -> Iterator[Manager]:
    with Manager(daemon.home) as heard:
        yield heard


def listening(path: Path) -> socket.socket:
    path.parent.mkdir(mode=0o700, parents=True)
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(path))
    sock.listen()
    return sock


def hand_over(daemon: DaemonProcess, first: socket.socket, second: socket.socket, names: str) -> None:
    """Start the daemon with two listening sockets under these names."""
    numbers = first.fileno(), second.fileno()
    command = [sys.executable, "-c", HANDING_OVER, *map(str, numbers), *serve_command()]
    spawn(daemon, command, env={"LISTEN_FDS": "2", "LISTEN_FDNAMES": names}, pass_fds=numbers)


def test_it_says_when_it_is_ready_and_when_it_stops(daemon: DaemonProcess, manager: Manager) -> None:
    """READY once it answers, with a line for people; a reload between RELOADING and READY; STOPPING."""
    spawn(daemon, serve_command(), env={"NOTIFY_SOCKET": str(manager.path)})
    ready = manager.receive()
    assert ("1", "1 profile served") == (ready["READY"], ready["STATUS"])
    with Peer(daemon.socket) as peer:
        assert {} == peer.call("rpc.ping")
    daemon.reload()
    reloading = manager.receive()
    assert "1" == reloading["RELOADING"]
    assert int(reloading["MONOTONIC_USEC"]) > 0
    assert "1" == manager.receive()["READY"]
    daemon.configure("[limits]\nmemmory = 1\n")
    daemon.reload()
    assert "1" == manager.receive()["RELOADING"]
    assert "1" == manager.receive()["READY"]
    assert daemon.process is not None
    daemon.process.terminate()
    assert "1" == manager.receive()["STOPPING"]
    assert 0 == daemon.wait()


@pytest.mark.slow
def test_a_reload_right_after_ready_is_one(daemon: DaemonProcess, manager: Manager) -> None:
    """Whoever waits for READY may send signals."""
    for _ in range(10):
        spawn(daemon, serve_command(), env={"NOTIFY_SOCKET": str(manager.path)})
        manager.wait_for("READY")
        daemon.reload()
        manager.wait_for("RELOADING")
        manager.wait_for("READY")
        assert 0 == daemon.stop()


@pytest.mark.slow
def test_the_watchdog_is_fed_again_and_again(daemon: DaemonProcess, manager: Manager) -> None:
    """As long as it is alive, and not a moment longer."""
    spawn(daemon, serve_command(), env={"NOTIFY_SOCKET": str(manager.path), "WATCHDOG_USEC": str(WATCHDOG_US)})
    manager.wait_for("READY")
    for _ in range(3):
        assert "1" == manager.receive()["WATCHDOG"]
    assert daemon.process is not None
    daemon.process.send_signal(signal.SIGSTOP)
    with contextlib.suppress(BlockingIOError):
        while True:
            manager.receive_nowait()
    with pytest.raises(TimeoutError):
        manager.receive(timeout=3 * WATCHDOG_US / 1_000_000)
    daemon.process.send_signal(signal.SIGCONT)
    assert "1" == manager.wait_for("WATCHDOG")["WATCHDOG"]


@pytest.mark.slow
def test_another_processs_watchdog_is_not_fed(daemon: DaemonProcess, manager: Manager) -> None:
    watched = {"WATCHDOG_USEC": str(WATCHDOG_US), "WATCHDOG_PID": "1"}
    spawn(daemon, serve_command(), env={"NOTIFY_SOCKET": str(manager.path), **watched})
    manager.wait_for("READY")
    with pytest.raises(TimeoutError):
        manager.receive(timeout=3 * WATCHDOG_US / 1_000_000)


@pytest.mark.slow
def test_sockets_are_taken_over_by_name(daemon: DaemonProcess) -> None:
    """In either order; whoever connected before it ran is served; the paths belong to the manager and stay."""
    with listening(daemon.socket) as agent, listening(daemon.operator_socket) as operator, Peer(daemon.socket) as early:
        asked = early.send("rpc.ping")
        hand_over(daemon, operator, agent, "memd-operator:memd")
        assert {} == early.wait(asked)
        with Peer(daemon.socket) as peer:
            assert "agent" == peer.call("hello")["role"]
        with Peer(daemon.operator_socket) as peer:
            assert "operator" == peer.call("hello")["role"]
            inode = daemon.socket.stat().st_ino
            peer.call("daemon.stop")
        assert 0 == daemon.wait()
        assert inode == daemon.socket.stat().st_ino
        hand_over(daemon, agent, operator, "memd.socket:memd-operator.socket")
        with Peer(daemon.operator_socket) as peer:
            assert "operator" == peer.call("hello")["role"]


@pytest.mark.slow
def test_sockets_without_a_known_name_are_refused(daemon: DaemonProcess) -> None:
    """An agent must never get the operator's socket by a slip."""
    with listening(daemon.socket) as agent, listening(daemon.operator_socket) as operator:
        hand_over(daemon, agent, operator, "memd:unknown")
        assert 69 == daemon.wait()
    assert "FileDescriptorName" in daemon.log()


@pytest.mark.slow
def test_sockets_for_another_process_are_not_taken(daemon: DaemonProcess) -> None:
    """It makes its own."""
    spawn(daemon, serve_command(), env={"LISTEN_FDS": "2", "LISTEN_FDNAMES": "memd:memd-operator", "LISTEN_PID": "1"})
    wait_answering(daemon)
    assert daemon.operator_socket.is_socket()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("systemd-socket-activate") is None, reason="needs systemd's systemd-socket-activate")
def test_under_systemds_own_activator(daemon: DaemonProcess) -> None:
    """The first connection starts it; a second activation after its end does, too."""
    daemon.socket.parent.mkdir(mode=0o700)
    variables = [f"--setenv={name}" for name in daemon.env if name != "PATH"]
    command = ["systemd-socket-activate", *variables, f"--listen={daemon.socket}", "--fdname=memd", *serve_command()]
    for number in range(2):
        daemon.socket.unlink(missing_ok=True)
        spawn(daemon, command)
        wait_until(daemon.socket.is_socket, "a socket")
        with Peer(daemon.socket) as peer:
            peer.call("memory.add", target="memory", content=f"entry {number}")
            assert number + 1 == len(peer.call("memory.read")["stores"]["memory"]["entries"])
        assert 0 == daemon.stop()


@pytest.mark.slow
def test_what_it_was_handed_is_closed_on_exec(daemon: DaemonProcess) -> None:
    with listening(daemon.socket) as agent, listening(daemon.operator_socket) as operator:
        hand_over(daemon, agent, operator, "memd:memd-operator")
        with Peer(daemon.socket) as peer:
            peer.call("rpc.ping")
        assert daemon.process is not None
        for number in (FIRST_FD, FIRST_FD + 1):
            flags = int(_fdinfo(daemon.process, number)["flags"], 8)
            assert flags & os.O_CLOEXEC


def _fdinfo(process: subprocess.Popen[bytes], number: int) -> dict[str, str]:
    with open(f"/proc/{process.pid}/fdinfo/{number}") as file:
        return dict(line.split(":", 1) for line in file.read().splitlines() if ":" in line)
