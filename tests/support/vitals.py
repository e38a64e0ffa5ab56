"""How a running daemon is from outside, and whether what a test did to it left traces.

What comes in: a daemon, a test's attack as the body of ``unharmed``. What goes out: nothing, or an ``AssertionError`` that
names what grew, stopped or broke. What must not be here: attacks.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from support.rpc import PATIENCE_S, Peer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.daemon import DaemonProcess

GROWTH_KIB = 16 * 1024
"""Memory that may stay: a few messages of the usual limit, which the allocator keeps for the next ones."""

FILES = 8
"""Descriptors other than sockets that may stay for now: files that the last writes displaced get a second look."""

THREADS = 40
"""Threads that may stay for now: as many as trio lets work at once, which it keeps for ten seconds more."""


@dataclass(frozen=True)
class Vitals:
    """What a process holds."""

    sockets: int
    files: int
    threads: int
    rss_kib: int


def vitals(pid: int) -> Vitals:
    """Look into ``/proc``."""
    links = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed since
            links.append(os.readlink(f"/proc/{pid}/fd/{name}"))
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    sockets = sum(link.startswith("socket:") for link in links)
    return Vitals(sockets, len(links) - sockets, int(status["Threads"]), int(status["VmRSS"].split()[0]))


@contextlib.contextmanager
def unharmed(daemon: DaemonProcess, *, growth_kib: int = GROWTH_KIB) -> Iterator[Peer]:
    """Run an attack beside a bystander, which is given to the body; its connection is the only one before and after.

    Afterwards the daemon is the same process, serves the bystander and a newcomer, has met no bug, and holds what it held:
    as many sockets, and files, threads and memory within small bounds.

    Raises:
        AssertionError: It was harmed.
    """
    process = daemon.process
    assert process is not None
    with daemon.connect() as bystander:
        _serve(daemon, bystander)
        before = _settle(bystander, process.pid)
        bugs, log = metric(daemon, "memd_bugs_total"), len(daemon.log())
        yield bystander
        _settle(bystander, process.pid)
        _serve(daemon, bystander)
        after = _settle(bystander, process.pid, files=before.files + FILES)
    assert process.poll() is None
    assert bugs == metric(daemon, "memd_bugs_total"), daemon.log()[log:]
    assert "Traceback" not in daemon.log()[log:]
    assert before.sockets == after.sockets
    assert after.threads <= before.threads + THREADS
    assert after.rss_kib <= before.rss_kib + growth_kib


def metric(daemon: DaemonProcess, name: str) -> int:
    """One number of ``daemon.metrics``."""
    text = daemon.call("daemon.metrics")["text"]
    return int(next(line for line in text.splitlines() if line.startswith(f"{name} ")).split()[1])


def _settle(peer: Peer, pid: int, *, files: int | None = None) -> Vitals:
    """Wait until this connection is the only one and what was opened is closed.

    Every question is a step in which the daemon may let something go.
    """
    end = time.monotonic() + PATIENCE_S
    while True:
        count = peer.call("daemon.status")["connections"]
        now = vitals(pid)
        if count == 1 and (files is None or now.files <= files):
            return now
        assert time.monotonic() < end, f"{count} connections stay open, {now}"


def _serve(daemon: DaemonProcess, bystander: Peer) -> None:
    """A newcomer's write is durable, and the bystander reads it, and takes it away again."""
    text = "the newcomer was here"
    added = daemon.call("memory.add", target="user", content=text)["entry"]["id"]
    entries = bystander.call("memory.read", target="user")["stores"]["user"]["entries"]
    assert [text] == [entry["text"] for entry in entries if entry["id"] == added]
    assert bystander.call("memory.remove", target="user", id=added)["changed"]
