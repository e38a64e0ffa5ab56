"""Sixteen clients, a person with an editor and a shell, and somebody who keeps killing the daemon.

Nothing here depends on how fast the machine is: the daemon is killed after so many acknowledgements, and clients go on
until each of their changes is acknowledged.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.chaos import HAND, Change, Evidence, line, problems

from memd_client import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from support.daemon import DaemonProcess

CONFIG = "[limits]\nmemory = 1000000\n[wire]\ndeadline_ms = 60000\n"
TESTS = str(Path(__file__).resolve().parents[1])
POLL_S = 0.02
PAGE = 1000


@dataclass
class Run:
    """Who takes part, and for how long."""

    clients: int
    changes: int
    kills: int
    seed: str


def run(daemon: DaemonProcess, plan: Run) -> Evidence:
    """Let it all happen, and gather what is left."""
    daemon.configure(CONFIG)
    daemon.memory.write_text("")
    daemon.start()
    names = [f"c{number:02}" for number in range(plan.clients)]
    hand = _spawn(daemon, "chaos_hand", "edit", str(daemon.memory), str(daemon.socket), plan.seed)
    watcher = _spawn(daemon, "chaos_hand", "watch", str(daemon.memory))
    workers = {
        name: _spawn(daemon, "chaos_client", str(daemon.socket), name, str(plan.changes), plan.seed) for name in names
    }
    total = plan.clients * plan.changes
    for kill in range(1, plan.kills + 1):
        goal = kill * total // (plan.kills + 1)
        while _acknowledged(daemon, names) < goal and not any(it.poll() for it in (*workers.values(), hand)):
            time.sleep(POLL_S)  # noqa: TID251 - no event loop here
        daemon.restart(kill=True)
    for name, process in {**workers, "edit": hand, "watch": watcher}.items():
        if name not in workers:
            _close(process)
        assert 0 == process.wait(), f"{name}: {_errors(daemon, name)}"
        _close(process)
    return _gather(daemon, names)


def _spawn(daemon: DaemonProcess, module: str, *arguments: str) -> subprocess.Popen[bytes]:
    name = arguments[1] if module == "chaos_client" else arguments[0]
    env = {**daemon.env, "PYTHONPATH": f"{TESTS}:{daemon.env['PYTHONPATH']}"}
    with (daemon.home / f"{name}.out").open("wb") as out, (daemon.home / f"{name}.err").open("wb") as errors:
        command = [sys.executable, "-m", f"support.{module}", *arguments]
        return subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=out, stderr=errors)


def _close(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()


def _acknowledged(daemon: DaemonProcess, names: Sequence[str]) -> int:
    return sum((daemon.home / f"{name}.out").read_bytes().count(b"\n") for name in names)


def _told(daemon: DaemonProcess, name: str) -> list[dict[str, Any]]:
    return [json.loads(said) for said in (daemon.home / f"{name}.out").read_text().splitlines()]


def _errors(daemon: DaemonProcess, name: str) -> str:
    return (daemon.home / f"{name}.err").read_text()[-2000:]


def _gather(daemon: DaemonProcess, names: Sequence[str]) -> Evidence:
    """The daemon is stopped first, so that whatever it still had to look at is looked at; then the next one is asked."""
    daemon.restart()
    acknowledged: dict[str, list[Change]] = {}
    expected: dict[str, list[str]] = {}
    for name in names:
        *said, last = _told(daemon, name)
        acknowledged[name] = [Change(it["revision"], name, tuple(it["gone"]), tuple(it["come"])) for it in said]
        expected[name] = last["mine"]
    hand = _told(daemon, "edit")
    removed = [it["removed"] for it in hand if "removed" in it]
    watched = _told(daemon, "watch")
    assert watched[-1]["reads"] > 0
    with Client(daemon.socket, autostart=False, timeout=60) as client:
        published = [entry.text for entry in client.memory_read("memory").stores["memory"].entries]
        history = _history(client)
    return Evidence(
        acknowledged=acknowledged,
        expected=expected,
        hand_kept=[it["kept"] for it in hand if it["kept"] not in removed],
        hand_removed=removed,
        file=daemon.memory.read_text(),
        published=published,
        history=history,
        seen=[it["damaged"] for it in watched if "damaged" in it],
    )


def _history(client: Client) -> list[Change]:
    changes: list[Change] = []
    before: int | None = None
    while True:
        page = client.history_list(target="memory", limit=PAGE, before=before)
        for revision in page.revisions:
            gone = tuple(change.before for change in revision.changes if change.before)
            come = tuple(change.after for change in revision.changes if change.after)
            changes.append(Change(revision.revision, revision.client, gone, come))
        before = page.next
        if before is None:
            return changes


def evidence() -> Evidence:
    """What a small run without faults leaves."""
    first, second = line("c00", 1, "one"), line("c00", 2, "two")
    mine = line(HAND, 1, "by hand")
    changes = [Change(11, "c00", (), (first,)), Change(13, "c00", (), (second,))]
    return Evidence(
        acknowledged={"c00": changes},
        expected={"c00": [first, second]},
        hand_kept=[mine],
        hand_removed=[line(HAND, 2, "away")],
        file=f"{first}\n§\n{second}\n§\n{mine}\n",
        published=[first, second, mine],
        history=[*changes, Change(12, "", (), (mine,))],
    )


def test_the_judge_finds_nothing_where_nothing_is_wrong() -> None:
    assert [] == problems(evidence())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda it: {"file": it.file.replace(f"{line('c00', 2, 'two')}\n§\n", "")},
            "acknowledged, but not in the file",
        ),
        (lambda it: {"file": f"{line('c00', 2, 'two')}\n§\n{it.file}"}, "not as acknowledged"),
        (lambda it: {"expected": {"c00": it.expected["c00"][::-1]}}, "out of order"),
        (lambda it: {"file": it.file[:-20]}, "damaged in the file"),
        (lambda it: {"file": it.file.replace(f"\n§\n{line(HAND, 1, 'by hand')}", "")}, "0 times in the file"),
        (lambda it: {"file": f"{it.file}§\n{line(HAND, 2, 'away')}\n"}, "removed by hand, and back"),
        (lambda it: {"published": it.published[:-1]}, "file and memory.read differ"),
        (lambda it: {"history": it.history[1:]}, "not in the history"),
        (lambda it: {"history": [*it.history, Change(14, "c00", (), it.history[1].come)]}, "done twice"),
        (lambda it: {"history": [*it.history, Change(14, "", it.history[1].come, ())]}, "changed from outside"),
        (lambda it: {"history": [Change(11, "c00", (), ("x",)), *it.history[1:]]}, "history says"),
        (lambda it: {"acknowledged": {"c00": it.acknowledged["c00"][::-1]}}, "do not grow"),
        (lambda it: {"seen": ["half a li"]}, "somebody read a damaged entry"),
    ],
)
def test_the_judge_finds_each_fault(change: Callable[[Evidence], dict[str, Any]], said: str) -> None:
    """A lost, doubled, reordered, damaged or invented write, and a hand edit that is gone."""
    found = problems(dataclasses.replace(evidence(), **change(evidence())))
    assert [] != [problem for problem in found if said in problem], found


def test_small(daemon: DaemonProcess) -> None:
    """Three clients and one kill."""
    assert [] == problems(run(daemon, Run(clients=3, changes=15, kills=1, seed="small")))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_large(daemon: DaemonProcess) -> None:
    """Every acknowledged write is in file and journal exactly once, in order; every edit by hand is there; nothing is torn."""
    found = run(daemon, Run(clients=16, changes=200, kills=10, seed="large"))
    assert [] == problems(found)
    assert 16 * 200 == sum(map(len, found.acknowledged.values()))
