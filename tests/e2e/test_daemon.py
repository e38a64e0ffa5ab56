"""Start, stop, reload, and who may be there at all: a real daemon, its exit statuses, its files."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import threading
import time

import pytest
from support.daemon import DaemonProcess
from support.rpc import Peer, RpcError
from support.serving import answers, serve_command, spawn, wait_answering, wait_until

from memd_client import Client
from memd_client.errors import MemdError

STOP_S = 5.0
WRITERS = 8
ROOMY = "[limits]\nmemory = 1000000\n"


def texts(daemon: DaemonProcess) -> list[str]:
    found = daemon.call("memory.read", target="memory")["stores"]["memory"]["entries"]
    return [entry["text"] for entry in found]


def test_life(daemon: DaemonProcess) -> None:
    """It starts, writes, stops with 0 and leaves no socket and no temp file; the next one goes on where it was."""
    daemon.start()
    daemon.call("memory.add", target="memory", content="kept")
    assert 0 == daemon.stop()
    assert not daemon.socket.exists()
    assert not daemon.operator_socket.exists()
    assert {"MEMORY.md", "MEMORY.md.lock", "USER.md.lock", ".memd.lock"} == {
        it.name for it in (daemon.home / "mem").iterdir()
    }
    daemon.start()
    assert ["kept"] == texts(daemon)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_in_time_under_load(daemon: DaemonProcess, number: signal.Signals) -> None:
    """Eight clients write as fast as they can; whatever one was told is done is there afterwards."""
    daemon.configure(ROOMY)
    daemon.start()
    told: list[str] = []
    stopped = threading.Event()

    def write(name: str) -> None:
        with Client(daemon.socket, client_name=name, autostart=False, timeout=0.2) as client:
            for count in range(10_000):
                text = f"{name} {count}"
                try:
                    client.memory_add("memory", text)
                except MemdError:
                    if stopped.is_set():
                        return
                else:
                    told.append(text)

    threads = [threading.Thread(target=write, args=(f"w{number}",)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(told) > 100, "a hundred writes")
    assert daemon.process is not None
    began = time.monotonic()
    daemon.process.send_signal(number)
    status = daemon.wait()
    took = time.monotonic() - began
    stopped.set()
    for thread in threads:
        thread.join()
    assert 0 == status
    assert took < STOP_S
    daemon.start()
    found = texts(daemon)
    assert [] == [text for text in told if text not in found]
    assert len(found) == len(set(found))


@pytest.mark.slow
def test_it_ends_in_time_with_a_store_that_is_locked(daemon: DaemonProcess) -> None:
    """What cannot be done is answered; a lock of another program does not hold the end up."""
    daemon.start()
    with (daemon.home / "mem/MEMORY.md.lock").open("w") as lock, daemon.connect() as peer:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = peer.send("memory.add", target="memory", content="never")
        peer.call("rpc.ping")
        began = time.monotonic()
        assert 0 == daemon.stop()
        assert time.monotonic() - began < STOP_S
        with pytest.raises(RpcError) as refused:
            peer.wait(waiting)
    assert ("shutting_down", "none") == (refused.value.name, refused.value.error["data"]["outcome"])
    daemon.start()
    assert [] == texts(daemon)


@pytest.mark.slow
def test_it_ends_in_time_with_a_peer_that_reads_nothing(daemon: DaemonProcess) -> None:
    daemon.configure(ROOMY)
    daemon.start()
    daemon.call("memory.add", target="memory", content="x" * 200_000)
    with daemon.connect() as peer:
        for _ in range(50):
            peer.send("memory.read")
        began = time.monotonic()
        assert 0 == daemon.stop()
        assert time.monotonic() - began < STOP_S


@pytest.mark.slow
def test_a_second_one_on_the_same_state_ends_with_75(daemon: DaemonProcess) -> None:
    """It names the first one's pid and leaves it and its sockets alone."""
    daemon.start()
    assert daemon.process is not None
    done = daemon.memd("serve")
    assert 75 == done.returncode
    assert f"pid {daemon.process.pid}" in done.stderr
    assert answers(daemon.socket)
    assert answers(daemon.operator_socket)


@pytest.mark.slow
def test_a_second_one_on_the_same_directory_ends_with_75(daemon: DaemonProcess) -> None:
    """Of another state directory and other sockets: the directory is what is owned."""
    daemon.start()
    assert daemon.process is not None
    with DaemonProcess(config=f'[profiles.default]\ndir = "{daemon.home}/mem"\n') as other:
        done = other.memd("serve")
        assert 75 == done.returncode
        assert f"pid {daemon.process.pid}" in done.stderr
        assert not other.socket.exists()
        daemon.kill()
        other.start()
        assert answers(other.socket)


@pytest.mark.slow
def test_of_two_profiles_only_the_one_owned_elsewhere_is_refused(daemon: DaemonProcess) -> None:
    daemon.start()
    with DaemonProcess() as other:
        other.configure(f'[profiles.a]\ndir = "{daemon.home}/mem"\n[profiles.b]\ndir = "{other.home}/mem"\n')
        other.start()
        with other.connect(profile="b") as peer:
            assert peer.call("memory.add", target="memory", content="x")["changed"]
        with pytest.raises(RpcError) as refused:
            other.connect(profile="a")
        assert "profile_owned" == refused.value.name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("[limits]\nmemmory = 3\n", ["config.toml:2:", "limits.memmory"]),
        ("[wire]\n\nin_flight = 'many'\n", ["config.toml:3:", "wire.in_flight"]),
        ("[limits\n", ["config.toml:1:"]),
        ("[daemon]\ngrace_s = 11\n", ["config.toml:2:", "daemon.grace_s"]),
    ],
)
def test_settings_that_cannot_be_used_end_it_with_78(daemon: DaemonProcess, config: str, said: list[str]) -> None:
    """The message names the file, the line and the key; nothing is touched."""
    daemon.configure(config)
    done = daemon.memd("serve")
    assert 78 == done.returncode
    assert [] == [word for word in said if word not in done.stderr]
    assert not daemon.journal.exists()


@pytest.mark.slow
def test_settings_that_others_may_write_end_it_with_78(daemon: DaemonProcess) -> None:
    (daemon.home / "config/memd/config.toml").chmod(0o666)
    assert 78 == daemon.memd("serve").returncode


@pytest.mark.slow
def test_reload(daemon: DaemonProcess) -> None:
    """Good settings hold from then on; bad ones change nothing, are told with line and key, and can be mended."""
    daemon.configure("[wire]\nin_flight = 8\n")
    daemon.start()
    daemon.configure("[wire]\nin_flight = 9\n")
    daemon.reload()
    wait_until(lambda: "reloaded" in daemon.log(), "a reload")
    assert 9 == daemon.call("hello")["limits"]["in_flight"]
    daemon.configure("[wire]\nin_flights = 10\n")
    daemon.reload()
    wait_until(lambda: "reload_refused" in daemon.log(), "a refusal")
    assert "config.toml:2:" in daemon.log()
    assert "in_flights" in daemon.log()
    assert 9 == daemon.call("hello")["limits"]["in_flight"]
    assert "settings_refused" in {notice["name"] for notice in daemon.call("daemon.status")["notices"]}
    daemon.configure("[wire]\nin_flight = 11\n")
    daemon.reload()
    wait_until(lambda: daemon.log().count('"reloaded"') == 2, "the second reload")
    assert 11 == daemon.call("hello")["limits"]["in_flight"]
    assert "settings_refused" not in {notice["name"] for notice in daemon.call("daemon.status")["notices"]}


@pytest.mark.slow
def test_a_reload_opens_a_new_profile(daemon: DaemonProcess) -> None:
    daemon.start()
    daemon.configure(f'[profiles.default]\ndir = "{daemon.home}/mem"\n[profiles.new]\ndir = "{daemon.home}/new"\n')
    daemon.reload()
    wait_until(lambda: "reloaded" in daemon.log(), "a reload")
    with daemon.connect(profile="new") as peer:
        assert peer.call("memory.add", target="memory", content="in the new one")["changed"]
    assert "in the new one\n" == (daemon.home / "new/MEMORY.md").read_text()


@pytest.mark.slow
def test_a_stale_socket_is_cleared(daemon: DaemonProcess) -> None:
    daemon.start()
    daemon.kill()
    assert daemon.socket.is_socket()
    daemon.start()
    assert answers(daemon.socket)


@pytest.mark.slow
def test_a_daemon_that_stops_leaves_the_socket_of_its_successor(daemon: DaemonProcess) -> None:
    daemon.start()
    daemon.socket.unlink()
    with socket.socket(socket.AF_UNIX) as successor:
        successor.bind(str(daemon.socket))
        successor.listen()
        inode = daemon.socket.stat().st_ino
        assert 0 == daemon.stop()
        assert inode == daemon.socket.stat().st_ino
    assert not daemon.operator_socket.exists()


@pytest.mark.slow
def test_a_socket_path_that_is_too_long_is_told(daemon: DaemonProcess) -> None:
    """With its length and what to set; a shorter one is all it takes."""
    deep = daemon.home / ("d" * 60) / ("e" * 60)
    daemon.env["XDG_RUNTIME_DIR"] = str(deep)
    done = daemon.memd("serve")
    assert 69 == done.returncode
    length = len(str(deep / "memd/memd.sock")) + 1
    assert [] == [word for word in (f"{length} bytes", "MEMD_SOCKET", "XDG_RUNTIME_DIR") if word not in done.stderr]
    short = daemon.home / "s"
    daemon.start("--socket", f"{short}/a", "--operator-socket", f"{short}/o")
    assert answers(short / "a")
    assert answers(short / "o")


@pytest.mark.slow
def test_an_odd_umask_changes_nothing(daemon: DaemonProcess) -> None:
    """On an empty home, under umask 0777: directories 0700, files and sockets 0600."""
    for name in ("mem", "state", "run", "data"):
        shutil.rmtree(daemon.home / name)
    daemon.log_file.touch()
    spawn(daemon, ["sh", "-c", 'umask 0777; exec "$@"', "sh", *serve_command()])
    wait_answering(daemon)
    daemon.call("memory.add", target="memory", content="x")
    wrong = []
    for path in (
        path for top in ("mem", "state", "run") for path in (daemon.home / top, *(daemon.home / top).rglob("*"))
    ):
        mode = path.stat().st_mode & 0o7777
        if mode != (0o700 if path.is_dir() else 0o600):
            wrong.append((str(path), oct(mode)))
    assert [] == wrong
    assert "x\n" == daemon.memory.read_text()


@pytest.mark.slow
def test_it_ends_when_nobody_needs_it(daemon: DaemonProcess) -> None:
    """After ``idle_exit_s`` without a connection, and not while there is one."""
    daemon.configure("[daemon]\nidle_exit_s = 1\n")
    daemon.start()
    assert daemon.process is not None
    with daemon.connect() as peer:
        peer.call("rpc.ping")
        time.sleep(2.5)  # noqa: TID251 - that nothing happens takes its time
        assert daemon.process.poll() is None
    assert 0 == daemon.wait()
    assert not daemon.socket.exists()


@pytest.mark.slow
def test_a_created_profile_is_there_after_a_restart(daemon: DaemonProcess) -> None:
    daemon.start()
    with daemon.connect(operator=True) as peer:
        peer.call("profile.create", name="made")
    with daemon.connect(profile="made") as peer:
        peer.call("memory.add", target="user", content="in the made one")
    daemon.restart(kill=True)
    with daemon.connect(profile="made") as peer:
        entries = peer.call("memory.read")["stores"]["user"]["entries"]
    assert ["in the made one"] == [entry["text"] for entry in entries]
    assert "in the made one\n" == (daemon.home / "data/memd/profiles/made/USER.md").read_text()


@pytest.mark.slow
def test_a_journal_of_a_newer_memd_is_left_alone(daemon: DaemonProcess) -> None:
    daemon.start()
    daemon.call("memory.add", target="memory", content="x")
    daemon.stop()
    with sqlite3.connect(daemon.journal) as connection:
        ours = connection.execute("PRAGMA user_version").fetchone()[0]
        connection.execute("PRAGMA user_version=4711")
    connection.close()
    before = daemon.journal.read_bytes()
    done = daemon.memd("serve")
    assert 78 == done.returncode
    assert "4711" in done.stderr
    assert str(ours) in done.stderr
    assert before == daemon.journal.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["all", "middle", "empty"])
def test_a_damaged_journal_is_set_aside(daemon: DaemonProcess, damage: str) -> None:
    """The memory is what the file says; no revision number comes back; what is lost is said."""
    daemon.start()
    old = [daemon.call("memory.add", target="memory", content=f"entry {number}")["revision"] for number in range(20)]
    instance = daemon.call("hello")["server"]["instance"]
    daemon.stop()
    data = daemon.journal.read_bytes()
    broken = {"all": b"\xff" * len(data), "middle": data[:4096] + b"\xff" * (len(data) - 4096), "empty": b""}[damage]
    daemon.journal.write_bytes(broken)
    daemon.start()
    assert [f"entry {number}" for number in range(20)] == texts(daemon)
    assert daemon.call("memory.add", target="memory", content="new")["revision"] > max(old)
    assert instance != daemon.call("hello")["server"]["instance"]
    if damage != "empty":  # an empty file is how SQLite begins
        assert "journal_damaged" in {notice["name"] for notice in daemon.call("daemon.status")["notices"]}
        assert [broken] == [path.read_bytes() for path in daemon.journal.parent.glob("journal.db.damaged-*")]


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else; test_other_user does it by sudo")
def test_another_uid_is_refused(daemon: DaemonProcess) -> None:
    daemon.memory.write_text("my cat is called Felix\n")
    daemon.start()
    for path in (daemon.home, daemon.home / "run", daemon.socket.parent):
        path.chmod(0o755)
    daemon.socket.chmod(0o666)
    script = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); sys.stdout.buffer.write(s.recv(4096))"
    command = ["setpriv", "--reuid=65534", "--clear-groups", "/usr/bin/python3", "-c", script, str(daemon.socket)]
    done = subprocess.run(command, cwd="/", capture_output=True, timeout=30, check=False)
    assert b"permission_denied" in done.stdout, done.stderr
    assert b"Felix" not in done.stdout
    with Peer(daemon.socket) as peer:
        assert {} == peer.call("rpc.ping")
