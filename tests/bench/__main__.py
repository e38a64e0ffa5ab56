"""``python tests/bench``: the daemon against the store it replaces, as ratios from one run.

With ``scan``, ``dialogues`` or ``fidelity`` as the first word it is the benchmark of that name. What comes in: options. What goes out: a table, or
JSON; exit status 1 if ``--check`` is given and a target is missed. What must not be here: measuring.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import dialogues, fidelity, scan
from bench.measure import Round, RoundTrip, slow_fsync, snapshot_reads, writes

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST_SPEED_UP = {16: 5.0, 64: 14.0}
MOST_FSYNCS = {16: 0.35, 64: 0.1}
MOST_ECHOES = 1.4


class Verdict(NamedTuple):
    """A figure and its target."""

    what: str
    figure: float
    target: str
    met: bool


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python tests/bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often each pair is measured; the median counts")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each side of a pair runs")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--blocks", type=int, default=200, help="blocks of 20 snapshot reads for each start")
    parser.add_argument("--starts", type=int, default=7, help="fresh servers for the reads: one differs from the next")
    parser.add_argument("--slow-fsync", action="store_true", help="every sync takes 4 ms, on both sides; needs cc")
    parser.add_argument("--json", action="store_true", help="every round, as JSON")
    parser.add_argument("--check", action="store_true", help="exit status 1 if a target is missed")
    return parser.parse_args(arguments)


def verdicts(rounds: list[Round], trips: list[RoundTrip]) -> list[Verdict]:
    """The figures that have a target."""
    found = []
    for clients in sorted({it.clients for it in rounds} & LEAST_SPEED_UP.keys()):
        mine = [it for it in rounds if it.clients == clients]
        ratio = statistics.median(it.memd.per_second / it.baseline.per_second for it in mine)
        fsyncs = statistics.median(it.fsyncs_per_write for it in mine)
        least, most = LEAST_SPEED_UP[clients], MOST_FSYNCS[clients]
        found.append(Verdict(f"writes a second, {clients} clients", ratio, f">= {least:g} x", ratio >= least))
        found.append(Verdict(f"fsyncs a write, {clients} clients", fsyncs, f"<= {most:g}", fsyncs <= most))
    if trips:
        echoes = median_ratio(trips)
        found.append(Verdict("snapshot read p50", echoes, f"<= {MOST_ECHOES:g} x echo", echoes <= MOST_ECHOES))
    return found


def median_ratio(trips: list[RoundTrip]) -> float:
    return statistics.median(it.memd_p50_us / it.echo_p50_us for it in trips)


def table(rounds: list[Round], trips: list[RoundTrip]) -> str:
    """The medians, for people."""
    lines = [f"{'clients':>7}  {'':8}  {'writes/s':>8}  {'p50 ms':>7}  {'p99 ms':>7}"]
    for clients in sorted({it.clients for it in rounds}):
        for name in ("baseline", "memd"):
            sides = [getattr(it, name) for it in rounds if it.clients == clients]
            speed, p50, p99 = (
                statistics.median(getattr(it, key) for it in sides) for key in ("per_second", "p50_us", "p99_us")
            )
            lines.append(f"{clients:7}  {name:8}  {speed:8.0f}  {p50 / 1000:7.2f}  {p99 / 1000:7.2f}")
        ratios = " ".join(
            f"{it.memd.per_second / it.baseline.per_second:.2f}" for it in rounds if it.clients == clients
        )
        lines.append(f"{clients:7}  ratio of each round: {ratios}")
    if trips:
        echo, ours = (statistics.median(getattr(it, key) for it in trips) for key in ("echo_p50_us", "memd_p50_us"))
        ratios = " ".join(
            f"{median_ratio([it for it in trips if it.start == n]):.2f}" for n in sorted({it.start for it in trips})
        )
        lines.append(f"snapshot read p50: {ours:.0f} us, bare echo {echo:.0f} us; ratio of each start: {ratios}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words[:1] == ["dialogues"]:
        return dialogues.main(words[1:])
    if words[:1] == ["fidelity"]:
        return fidelity.main(words[1:])
    if words[:1] == ["scan"]:
        return scan.main(words[1:])
    chosen = options(words)
    with tempfile.TemporaryDirectory() as folder:
        env = slow_fsync(Path(folder)) if chosen.slow_fsync else {}
        rounds = [writes(n, chosen.seconds, env) for _ in range(chosen.rounds) for n in chosen.clients]
    starts = range(chosen.starts if chosen.blocks else 0)
    trips = [trip for start in starts for trip in snapshot_reads(start, chosen.blocks)]
    judged = verdicts(rounds, trips)
    if chosen.json:
        print(json.dumps({"writes": [asdict(it) for it in rounds], "reads": [asdict(it) for it in trips]}, indent=1))
    else:
        print(table(rounds, trips))
        for it in judged:
            print(f"{'ok  ' if it.met else 'MISS'}  {it.what}: {it.figure:.2f} ({it.target})")
    return int(chosen.check and not all(it.met for it in judged))


if __name__ == "__main__":
    sys.exit(main())
