"""A story is recorded, and the power goes at every one of its steps; then memd recovers.

What it is: a program, started with the library of ``interposer.py`` preloaded. What comes in: a scenario, every how many-th
step, a seed. What goes out: one JSON object: steps, states, what was broken. What must not be here: the model
(``power.py``), the promises (``promises.py``).
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.asking import Run
from support.hosts import relaxed
from support.interposer import Calls
from support.power import Disk, State, parse
from support.promises import Ledger
from support.scenarios import SCENARIOS, Scenario
from support.sweep import damage, forked, machine, recover, virtually

from memd.store import schema

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    Connect = Callable[[Path], sqlite3.Connection]

FIRST = ["/state"]
"""Directories that were there, durably, before memd was."""


def main(argv: list[str]) -> int:
    """``power_cut SCENARIO STRIDE SEED [unsynced]``: the last is a journal that does not sync, for the judge to find."""
    name, stride, seed, *fault = argv
    folder = Path(tempfile.mkdtemp(prefix="memd-power-"))
    try:
        connect = relaxed if fault else schema.connect
        result = cut_everywhere(folder / "disk", SCENARIOS[name], connect, int(stride), random.Random(int(seed)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps({"scenario": name, **result}))  # noqa: T201 - what the program is for
    return 0


def cut_everywhere(root: Path, scenario: Scenario, connect: Connect, stride: int, rng: random.Random) -> dict[str, Any]:
    """Record the story below ``root``, then judge what each power cut leaves."""
    root.mkdir()
    record = root.with_name("record")
    broken = [line[1] for line in forked(lambda _: _recorded(root, scenario, connect, record)) if line[0] == "broken"]
    steps = parse(record.read_bytes())
    disk = Disk(FIRST)
    states: set[tuple[State, int]] = set()
    begin = rng.randrange(stride)
    for number, step in enumerate(steps):
        disk.play(step)
        last = number + 1 == len(steps)
        if not last and (steps[number + 1].kind == "note" or number % stride != begin):
            continue  # what is told before the next change is told of this state
        for state in disk.states(rng):
            if (state, len(disk.notes)) not in states:
                states.add((state, len(disk.notes)))
                found = _judged(root, scenario, state, disk.notes)
                broken += [
                    f"power cut after step {number} ({step.kind} {' '.join(step.words)}): {line}" for line in found
                ]
    return {"steps": len(steps), "states": len(states), "broken": broken}


def _recorded(root: Path, scenario: Scenario, connect: Connect, record: Path) -> None:
    calls = Calls(root)
    host = machine(root, scenario)
    host.connect = connect
    calls.record(record)

    def tell(*line: Any) -> None:
        calls.note(json.dumps(line))

    async def story() -> None:
        if scenario.before is not None:
            async with host.life(scenario.ending) as life:
                await scenario.before(Run(life, tell))
        if scenario.damaged:
            damage(host, tell)
        async with host.life() as life:
            run = Run(life, tell)
            if scenario.prepare is not None:
                await scenario.prepare(run)
            await scenario.body(run)

    virtually(story)


def _judged(root: Path, scenario: Scenario, state: State, notes: Sequence[str]) -> list[str]:
    """What is broken after a start on this state of the disk, by what had been told until then."""
    materialise(root, state)
    ledger = Ledger()
    for note in notes:
        kind, *values = json.loads(note)
        getattr(ledger, kind)(*values)
    return [
        str(values[0]) for _, *values in forked(lambda tell: recover(root, scenario, ledger, tell, other_boot=True))
    ]


def materialise(root: Path, state: State) -> None:
    """Put files and directories there. Those that were there once keep their identity, as on a disk that is mounted again."""
    kept = root.with_name("kept")
    kept.mkdir(exist_ok=True)
    for path in sorted(root.rglob("*"), reverse=True):
        if not path.is_dir() or path.is_symlink():
            path.unlink()
        elif f"/{path.relative_to(root)}" not in state.directories:
            _take_away(path, kept / path.name)
    for name in sorted(state.directories - {""}):
        _bring_back(root / name.lstrip("/"), kept / name.rpartition("/")[2])
    for (name, *others), data in state.files:
        path = root / name.lstrip("/")
        path.write_bytes(data)
        path.chmod(0o600)
        for other in others:
            (root / other.lstrip("/")).hardlink_to(path)


def _take_away(path: Path, kept: Path) -> None:
    if kept.exists():
        path.rmdir()  # made by a recovery
    else:
        path.rename(kept)


def _bring_back(path: Path, kept: Path) -> None:
    if kept.exists():
        if path.exists():
            path.rmdir()
        kept.rename(path)
    path.mkdir(exist_ok=True, mode=0o700)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
