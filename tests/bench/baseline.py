"""The store that agents use today: lock, read again, change, temporary file, fsync, rename. One process a client.

What comes in: a directory, a number of clients, seconds. What goes out: a JSON object on standard output with the number of
durable writes and the latency of each in microseconds. What must not be here: anything of memd. It is run as a program of its
own, so that a preloaded library slows its fsync as it does the daemon's.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import tempfile
import time
from pathlib import Path

BORDER = "\n§\n"
LIMIT = 2200
SLOTS = 16  # entries of the file; client n replaces entry n % SLOTS
WIDTH = 100  # characters of an entry, so that the file is three quarters full


def entry(slot: int, counter: int) -> str:
    """An entry that is found by its slot and differs from the one before by its counter."""
    return f"slot {slot:02}: {counter:010} ".ljust(WIDTH, "x")


def first_text() -> str:
    """The file before the first write."""
    return BORDER.join(entry(slot, 0) for slot in range(SLOTS)) + "\n"


def replace(folder: Path, slot: int, counter: int) -> None:
    """One durable change, as a careful agent makes it."""
    file = folder / "MEMORY.md"
    with (folder / "MEMORY.md.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        entries = file.read_text().strip().split(BORDER)
        found = [index for index, text in enumerate(entries) if f"slot {slot:02}:" in text]
        entries[found[0]] = entry(slot, counter)
        text = BORDER.join(entries)
        assert len(text) <= LIMIT
        handle, name = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "w") as temporary:
            temporary.write(text + "\n")
            temporary.flush()
            os.fsync(temporary.fileno())
        Path(name).replace(file)


def client(folder: Path, number: int, start: float, seconds: float) -> list[int]:
    """Write from ``start`` on; the latencies."""
    latencies = []
    counter = number * 10_000_000
    while time.monotonic() < start:
        pass
    now = time.perf_counter_ns()
    end = now + int(seconds * 1e9)
    while now < end:
        counter += 1
        replace(folder, number % SLOTS, counter)
        before, now = now, time.perf_counter_ns()
        latencies.append((now - before) // 1000)
    return latencies


def run(folder: Path, clients: int, seconds: float) -> list[int]:
    """All clients at once; all latencies."""
    (folder / "MEMORY.md").write_text(first_text())
    start = time.monotonic() + 0.05 + 0.01 * clients  # all are forked by then
    pipes = []
    for number in range(clients):
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.close(reader)
            with os.fdopen(writer, "w") as out:
                json.dump(client(folder, number, start, seconds), out)
            os._exit(0)
        os.close(writer)
        pipes.append(reader)
    latencies: list[int] = []
    for pipe in pipes:
        with os.fdopen(pipe) as results:
            latencies += json.load(results)
        os.wait()
    return latencies


if __name__ == "__main__":
    json.dump(run(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])), sys.stdout)
