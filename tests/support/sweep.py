"""Every system call of a commit fails or is the last, one after the other.

What it is: a program, started with the library of ``interposer.py`` preloaded. What comes in: a scenario, error numbers
(0: the process ends), every how many-th call. What goes out: one JSON object: the calls there are, the cases that were
run, in how many a store stopped writing, and what was broken. What must not be here: the promises (``promises.py``), the stories (``scenarios.py``).

Each case runs in a process of its own that is forked off, and so does the recovery after it: locks, descriptors and
threads of one never reach another.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import sys
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio
import trio.testing
from support.asking import Run
from support.hosts import Host
from support.interposer import NEVER, Calls
from support.promises import Ledger, broken
from support.scenarios import SCENARIOS, Scenario, recovered

from memd.errors import MemdError
from memd.scan import Scanner
from memd.store import schema
from memd.store.reserve import Reserve

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Sequence

DIED = 137
PATIENCE_S = 600  # of virtual time
RESERVE_BYTES = 65_536
WARM = "afterwards in p of boot-1 12345678, beside the hand: one other text, by hand alone; the very first in memory"
"""What the automaton learns from this it need not learn again in each child."""


@dataclass(frozen=True)
class Case:
    """The call of this number fails with ``error``, and so do those after it, ``times`` in all."""

    number: int
    error: int
    times: int
    other_boot: bool

    def __str__(self) -> str:
        what = errno.errorcode[self.error] if self.error else "death"
        when = f"{self.number}{' and from then on' if self.times > 1 else ''}"
        return f"{what} at call {when}, then {'another' if self.other_boot else 'the same'} boot"


def main(argv: list[str]) -> int:
    """``sweep SCENARIO ERRORS TIMES STRIDE OFFSET``."""
    name, errors, times, stride, offset = argv
    scenario = SCENARIOS[name]
    total, _, said, _ = _case(scenario, Case(NEVER, errno.EIO, 1, other_boot=False))
    result: dict[str, Any] = {"scenario": name, "calls": total, "cases": 0, "stopped": 0, "struck": {}, "broken": said}
    for number in range(1 + int(offset), total + 1, int(stride)):
        for case in _cases(number, [int(item) for item in errors.split(",")], int(times)):
            _, struck, found, stops = _case(scenario, case)
            result["cases"] += 1
            result["stopped"] += stops > 0
            call = struck.partition(" /")[0] or "none"
            result["struck"][call] = result["struck"].get(call, 0) + 1
            result["broken"] += [f"{name}, {case} ({struck}): {line}" for line in found]
    print(json.dumps(result))  # noqa: T201 - what the program is for
    return 0


def _cases(number: int, errors: Sequence[int], times: int) -> Iterator[Case]:
    """What is done to one call. After a death both boots count; a life that ended in order hardly cares."""
    for error in errors:
        for other_boot in (bool((number + error) % 2),) if error else (False, True):
            yield Case(number, error, times, other_boot)


def _case(scenario: Scenario, case: Case) -> tuple[int, str, list[str], int]:
    """Run one case and recover: the calls there were, the one that was struck, what is broken, stores that stopped."""
    root = Path(tempfile.mkdtemp(prefix="memd-sweep-"))
    ledger, total, struck, problems = Ledger(), 0, "the end", []
    try:
        for kind, *values in forked(lambda tell: _live(root, scenario, case, tell)):
            if kind == "calls":
                total, struck = values
            elif kind == "broken":
                problems += values
            else:
                getattr(ledger, kind)(*values)
        for _, problem in forked(lambda tell: recover(root, scenario, ledger, tell, other_boot=case.other_boot)):
            problems.append(problem)
        return total, struck, problems, len(ledger.stops)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _live(root: Path, scenario: Scenario, case: Case, tell: Callable[..., None]) -> None:
    """The life in which a call fails, and what is asked of it once the disk is well again."""
    calls = Calls(root)
    host = machine(root, scenario)

    async def story() -> None:
        if scenario.before is not None:
            async with host.life(scenario.ending) as life:
                await scenario.before(Run(life, tell))
        if scenario.damaged:
            damage(host, tell)
        if scenario.at_start:
            calls.arm(case.number, case.error, case.times)
        async with host.life() as life:
            await _told(Run(life, tell, paused=calls.paused), scenario, case, calls)

    try:
        virtually(story)
    except* MemdError as errors:  # a start that is refused says why, and nothing has happened
        if not scenario.at_start:
            tell("broken", f"the daemon ended: {errors!r}")
    tell("calls", calls.disarm(), calls.struck)


async def _told(run: Run, scenario: Scenario, case: Case, calls: Calls) -> None:
    if scenario.prepare is not None:
        await scenario.prepare(run)
    if not scenario.at_start:
        calls.arm(case.number, case.error, case.times)
    await scenario.body(run)
    if not scenario.at_end:
        calls.disarm()
        await run.ask_again()
        await run.next_write_works()


def recover(root: Path, scenario: Scenario, ledger: Ledger, tell: Callable[..., None], *, other_boot: bool) -> None:
    """The next life, on a well disk, after the same boot or another one; what is broken is told."""
    host = machine(root, scenario)
    host.boot = "boot-2" if other_boot else "boot-1"

    def note(kind: str, *values: Any) -> None:
        if kind == "broken":
            tell(kind, *values)
        else:
            getattr(ledger, kind)(*values)

    async def story() -> None:
        async with host.life() as life:
            run = Run(life, note)
            await life.look()
            await run.next_write_works()
            await life.look()
            for problem in broken(ledger, await recovered(life)):
                tell("broken", problem)

    virtually(story)
    if host.reserve is not None and not (
        host.reserve.keep() and host.reserve.path.stat().st_blocks * 512 >= RESERVE_BYTES
    ):
        tell("broken", "no room is kept for a full disk, although there is room")
    for problem in _left(root, ledger):
        tell("broken", problem)


def damage(host: Host, tell: Callable[..., None]) -> None:
    """Spoil the journal's first page. What is left of it may not be destroyed."""
    with host.journal_path.open("r+b") as file:
        file.write(b"no database any more".ljust(200))
        file.flush()
        os.fsync(file.fileno())
    tell("keeping", hashlib.sha256(host.journal_path.read_bytes()).hexdigest())


def _left(root: Path, ledger: Ledger) -> Iterator[str]:
    """What no file may be or hold after a stop in order, and what some file has to hold."""
    kept = set()
    for path in root.rglob("*"):
        if ".memd-" in path.name or ("damaged" in path.name and not ledger.kept):
            yield f"left behind after the stop: {path.relative_to(root)}"
        if path.is_file():
            data = path.read_bytes()
            kept.add(hashlib.sha256(data).hexdigest())
            yield from (
                f"redacted, and in {path.name}: {text}" for text in sorted(ledger.hidden) if text.encode() in data
            )
    if not ledger.kept <= kept:
        yield "a damaged journal was destroyed"


def machine(root: Path, scenario: Scenario) -> Host:
    """A host with three profiles, whose journal syncs."""
    host = Host(root, profiles={"p": "p", "q": "q", "r": "r"}, connect=schema.connect)
    if scenario.reserve:
        host.reserve = Reserve(root / "state" / "reserve", size=RESERVE_BYTES)
    return host


def virtually(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a story under virtual time."""

    async def bounded() -> None:
        with trio.fail_after(PATIENCE_S):
            await story()

    trio.run(bounded, clock=trio.testing.MockClock(autojump_threshold=0))


def _innermost(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    frames = traceback.extract_tb(error.__traceback__)
    frame = next((one for one in reversed(frames) if "/memd/" in one.filename), frames[-1])  # ours, not the library's
    return f"{error!r} in {frame.name}, {Path(frame.filename).name}:{frame.lineno}"


def forked(work: Callable[[Callable[..., None]], None]) -> list[list[Any]]:
    """What ``work`` told in a process of its own, which may end at any moment."""
    for _ in range(2):
        Scanner().scan(WARM)  # compiles the rules here, once, and not in every child
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)

        def tell(*line: Any) -> None:
            os.write(writing, json.dumps(line).encode() + b"\n")

        status = 0
        try:
            work(tell)
        except BaseException as error:  # noqa: BLE001 - whatever it was, the parent has to hear of it
            tell("broken", f"an error that is nobody's: {_innermost(error)}")
            status = 1
        os._exit(status)
    os.close(writing)
    with open(reading, "rb") as pipe:
        lines = [json.loads(line) for line in pipe]
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) not in {0, 1, DIED}:
        lines.append(["broken", f"the process ended with {os.waitstatus_to_exitcode(status)}"])
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
