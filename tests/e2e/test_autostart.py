"""Many clients that find nobody at the same moment, and whoever reads what they print."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from support.home import Home
from support.serving import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

CROWD = 50
FEW = 6
PATIENCE_S = 60
ADD = "from memd_client import Client; print(Client(timeout=30).memory_add('memory', 'by a child').revision)"


@pytest.fixture
def home() -> Iterator[Home]:
    with Home() as made:
        yield made


def start_together(home: Home, count: int, label: str) -> set[int]:
    """So many clients at once, each of which writes; returned are the daemons that answered them."""
    pids: list[int] = []
    failed: list[BaseException] = []
    together = threading.Barrier(count)

    def ask(name: str) -> None:
        try:
            together.wait()
            with home.client(name, timeout=PATIENCE_S) as client:
                client.memory_add("memory", f"{name} was here")
                pids.append(client.hello.server.pid)
        except BaseException as error:  # noqa: BLE001 - a thread's failure has to reach the test
            failed.append(error)

    threads = [threading.Thread(target=ask, args=(f"{label}.{number}",)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == failed
    assert count == len(pids)
    found = home.memory.read_text().splitlines()
    assert [] == [f"{label}.{number}" for number in range(count) if f"{label}.{number} was here" not in found]
    return set(pids)


def test_a_few_at_once_get_one_daemon(home: Home) -> None:
    assert start_together(home, FEW, "few") == set(home.daemons())
    home.stop_all()
    assert not home.socket.exists()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_fifty_at_once_get_one_daemon_each_time(home: Home, suite_profile: str) -> None:
    """From nothing, after a polite end, and after a kill with the stale socket in the way."""
    home.configure("[limits]\nmemory = 10000000\n")
    for turn in range(100 if suite_profile == "long" else 3):
        (pid,) = start_together(home, CROWD, f"turn {turn}")
        assert [pid] == home.daemons()
        with home.connect(operator=True) as peer:  # a store holds a thousand entries
            peer.call("memory.wipe", target="memory", confirm="default")
        if turn % 2:
            home.stop_all()
        else:
            os.kill(pid, 9)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_one_starts_while_the_other_stops(home: Home, suite_profile: str) -> None:
    """Whoever comes while a daemon is going is served by it or by the next, and the next one's socket stays."""
    home.configure("[limits]\nmemory = 10000000\n")
    for turn in range(100 if suite_profile == "long" else 8):
        start_together(home, 1, f"before {turn}")
        for number in home.daemons():
            os.kill(number, signal.SIGTERM)
        start_together(home, FEW, f"while {turn}")
        wait_until(lambda: len(home.daemons()) == 1, "the end of the one that was told to stop")
        assert [home.pid()] == home.daemons()


@pytest.mark.slow
def test_starters_that_die_leave_no_trace(home: Home) -> None:
    """A starter that is killed while it starts holds up nobody after it."""
    for _ in range(5):
        starter = subprocess.Popen([home.env["MEMD_BIN"], "socket", "--start"], env=home.env, stdout=subprocess.DEVNULL)
        with suppress(subprocess.TimeoutExpired):
            starter.wait(0.1)  # the later ones may find the daemon of an earlier one
        starter.kill()
        starter.wait()
    with home.client() as client:
        assert client.memory_add("memory", "and yet").changed
        pid = client.hello.server.pid
        wait_until(lambda: home.daemons() == [pid], "the end of those that came too late")


@pytest.mark.slow
def test_whoever_reads_a_starter_is_not_kept_waiting(home: Home) -> None:
    """The daemon goes on, and holds neither the output of the process that needed it nor anything else of it."""
    reading, writing = os.pipe()
    with open(reading, "rb") as end:
        done = subprocess.run(
            [sys.executable, "-c", ADD],
            env=home.env,
            capture_output=True,
            pass_fds=[writing],
            timeout=PATIENCE_S,
            check=False,
        )
        os.close(writing)
        assert b"" == end.read()
    assert (0, b"") == (done.returncode, done.stderr)
    assert int(done.stdout) > 0
    assert 1 == len(home.daemons())
    done = subprocess.run(
        f"'{home.env['MEMD_BIN']}' socket --start | cat",
        env=home.env,
        shell=True,
        capture_output=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert f"{home.socket}\n".encode() == done.stdout
