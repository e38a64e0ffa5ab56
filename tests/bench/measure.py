"""What is measured: the daemon and the store it replaces in turns, so that both meet the same moods of the machine.

What comes in: how long and how often. What goes out: figures of each round. What must not be here: tables, targets.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.baseline import first_text
from bench.load import Replacing, closed_loops, packed_call, reply_size, round_trips
from support.daemon import DaemonProcess
from support.rpc import Peer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HERE = Path(__file__).parent
BLOCK = (
    20  # round trips of one side before it is the other's turn: of 5, 20, 100 and 500 the one whose ratio repeats best
)


@dataclass(frozen=True)
class Side:
    """Durable writes of one side in one round."""

    per_second: float
    p50_us: int
    p99_us: int


@dataclass(frozen=True)
class Round:
    """Both sides, one after the other, with so many clients."""

    clients: int
    baseline: Side
    memd: Side
    fsyncs_per_write: float


@dataclass(frozen=True)
class RoundTrip:
    """A block of snapshot reads against a block of echoes of the same bytes; ``start`` counts the pairs of servers."""

    start: int
    echo_p50_us: float
    memd_p50_us: float


def side(latencies: list[int], seconds: float) -> Side:
    latencies.sort()
    last = len(latencies) - 1
    return Side(len(latencies) / seconds, latencies[last // 2], latencies[last * 99 // 100])


def writes(clients: int, seconds: float, env: Mapping[str, str]) -> Round:
    """One round: the baseline, then a fresh daemon."""
    baseline = side(_baseline(clients, seconds, env), seconds)
    with DaemonProcess(env=env) as daemon, ExitStack() as stack:
        daemon.memory.write_text(first_text())
        daemon.start()
        peers = [stack.enter_context(daemon.connect()) for _ in range(clients)]
        before = peers[0].call("daemon.status")["commits"]
        latencies = closed_loops([peer.socket for peer in peers], [Replacing(n) for n in range(clients)], seconds)
        after = peers[0].call("daemon.status")["commits"]
        acknowledged = after["acknowledged"] - before["acknowledged"]
        assert acknowledged == len(latencies), "a write was answered that was not counted, or the other way round"
        fsyncs = (after["fsyncs"] - before["fsyncs"]) / acknowledged
    return Round(clients, baseline, side(latencies, seconds), fsyncs)


def snapshot_reads(start: int, blocks: int) -> Iterator[RoundTrip]:
    """Blocks of ``session.snapshot`` round trips between blocks of echoes, on one connection each.

    Client and both servers share one processor where that can be arranged. Left to the scheduler, either server is now on
    the client's core and now on another, which alone changes a round trip from 25 to 100 us: ratios of the same code came
    out anywhere from 0.6 to 4.9.
    """
    with DaemonProcess() as daemon, _one_processor():
        daemon.memory.write_text(first_text())
        daemon.start()
        with daemon.connect() as reader:
            session = reader.call("session.open")["session"]
            request = packed_call("session.snapshot", {"session": session})
            size = reply_size(reader.socket, request)
            path = daemon.home / "echo.sock"
            command = [sys.executable, str(HERE / "echo.py"), str(path), str(size)]
            with subprocess.Popen(command, stdout=subprocess.PIPE) as echo:
                assert echo.stdout is not None
                assert echo.stdout.readline() == b"ready\n"
                with Peer(path) as floor:
                    for _ in range(blocks):
                        bare = statistics.median(round_trips(floor.socket, request, size, BLOCK)) / 1000
                        ours = statistics.median(round_trips(reader.socket, request, size, BLOCK)) / 1000
                        yield RoundTrip(start, bare, ours)
                echo.kill()


@contextmanager
def _one_processor() -> Iterator[None]:
    """Keep this process, and those that it starts meanwhile, on one processor; macOS has no such call."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def slow_fsync(folder: Path) -> dict[str, str]:
    """Compile the library that makes every sync take 4 ms; the environment that preloads it."""
    library = folder / "slow_fsync.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, HERE / "slow_fsync.c"], check=True)
    return {"LD_PRELOAD": str(library)}


def _baseline(clients: int, seconds: float, env: Mapping[str, str]) -> list[int]:
    folder = tempfile.mkdtemp(prefix="memd-")
    try:
        command = [sys.executable, str(HERE / "baseline.py"), folder, str(clients), str(seconds)]
        found = subprocess.run(command, env={**os.environ, **env}, stdout=subprocess.PIPE, check=True)
        return list(json.loads(found.stdout))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
