"""``python tests/bench scan``: what the scan finds and what it costs, side by side with the published peer's scanner.

What comes in: options, the corpora. What goes out: tables of recall and false positives for each half, and of speed; exit
status 1 if ``--check`` is given and a target is missed. Texts of the reporting half are never printed. What must not be here:
rules, corpora.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.scan_peer import Peer, environment
from bench.scan_worst import worst
from support.corpora import HALVES, Half, attacks, emoji_zwj_sequences, notes
from support.obfuscation import disguised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Caught = Callable[[str], bool]
    Clock = Callable[[str], float | None]

CAUGHT = frozenset({"refuse", "stage"})
PROSE_CHARS, SHORT_CHARS, LONG_CHARS = 2048, 2200, 65536
LEAST_PLAIN, LEAST_DISGUISED, MOST_FALSE, LEAST_RATIO, MOST_WORST_S = 0.95, 0.90, 0.005, 50, 0.002


class Side(NamedTuple):
    """One scanner: whether it objects to a text, and how many seconds it takes over one (None: it was stopped)."""

    name: str
    caught: Caught
    seconds: Clock


class Case(NamedTuple):
    """One text, and the groups that it counts in."""

    id: str
    text: str
    half: Half
    groups: tuple[str, ...]


class Verdict(NamedTuple):
    """A figure and its target."""

    what: str
    figure: str
    target: str
    met: bool


Share = tuple[int, int]  # caught, of


def memd_side() -> Side:
    """The scan of this project; the only place that knows its interface."""
    scanner = importlib.import_module("memd.scan").Scanner()

    def caught(text: str) -> bool:
        return any(str(getattr(it.severity, "value", it.severity)) in CAUGHT for it in scanner.scan(text))

    def seconds(text: str) -> float:
        start = time.perf_counter()
        scanner.scan(text)
        return time.perf_counter() - start

    return Side("memd", caught, seconds)


def peer_side(peer: Peer) -> Side:
    """The peer; a text that it cannot finish is one that it does not let through."""

    def caught(text: str) -> bool:
        answer = peer.ask(text)
        return answer.seconds is None or bool(answer.found)

    return Side("peer", caught, lambda text: peer.ask(text).seconds)


def cases() -> Iterator[Case]:
    """All texts of both halves, with the rows of the table in which each counts."""
    for it in attacks():
        yield Case(it.id, it.text, it.half, ("plain", f"plain class {it.category}", f"plain lang {it.lang}"))
        for worn in disguised(it):
            groups = (f"class {it.category}", f"lang {it.lang}", f"by {worn.disguise}")
            rows = ("disguised", *(f"disguised {group}" for group in groups))
            yield Case(f"{it.id}/{worn.disguise}", worn.text, it.half, rows)
    for note in notes():
        yield Case(note.id, note.text, note.half, ("false", f"false topic {note.topic}", f"false lang {note.lang}"))
    for n, sequence in enumerate(emoji_zwj_sequences()):
        for half in HALVES:
            yield Case(f"emoji-{n}", sequence, half, ("false emoji sequences",))


def shares(caught: Caught, texts: Sequence[Case]) -> tuple[dict[tuple[str, Half], Share], list[Case]]:
    """How many of each row are caught, and the cases that went wrong."""
    counts: dict[tuple[str, Half], list[int]] = defaultdict(lambda: [0, 0])
    wrong = []
    for case in texts:
        hit = caught(case.text)
        if hit == case.groups[0].startswith("false"):
            wrong.append(case)
        for group in case.groups:
            counts[group, case.half][0] += hit
            counts[group, case.half][1] += 1
    return {key: (hits, total) for key, (hits, total) in counts.items()}, wrong


def prose(count: int) -> list[str]:
    """Benign texts of 2 KiB, no two the same, so that a cache does not help."""
    pool = [it.text for it in notes() if it.lang == "en"]
    lines = [[pool[(n * 37 + step) % len(pool)] for step in range(120)] for n in range(count)]
    return ["\n".join(it)[:PROSE_CHARS] for it in lines]


def slowest(side: Side, length: int) -> tuple[str, float]:
    """The input of this length that costs most, the best of three times; infinite if it was stopped."""
    found = ("", 0.0)
    for name, text in worst(length):
        once = side.seconds(text)
        if once is None:
            return name, float("inf")
        if once > found[1]:  # what was fast once is not the slowest; a slow one may have met a busy machine
            again = [side.seconds(text + mark) for mark in (".", ",")]
            found = max(found, (name, min([once, *(it for it in again if it is not None)])), key=lambda it: it[1])
    return found


def percent(share: Share | None) -> str:
    return f"{share[0] / share[1]:8.1%} of {share[1]:<5}" if share and share[1] else " " * 16


def table(found: Mapping[str, Mapping[tuple[str, Half], Share]], halves: Sequence[Half]) -> str:
    """A row for each group, a column for each scanner and half."""
    heads = [(side, half) for side in found for half in halves]
    lines = [f"{'':28}" + "".join(f"{side + ' ' + half:>18}" for side, half in heads)]
    rows = sorted({group for counts in found.values() for group, _ in counts}, key=row_order)
    lines += [
        f"{row:28}" + "".join(f"{percent(found[side].get((row, half))):>18}" for side, half in heads) for row in rows
    ]
    return "\n".join(lines)


def row_order(row: str) -> tuple[int, str]:
    return ("plain", "disguised", "false").index(row.split(maxsplit=1)[0]), row


def quality(counts: Mapping[tuple[str, Half], Share], half: Half) -> list[Verdict]:
    """The figures of one half that have a target."""
    plain, worn, false, emoji = (
        hits / total
        for hits, total in (counts[row, half] for row in ("plain", "disguised", "false", "false emoji sequences"))
    )
    return [
        Verdict(f"recall, plain, {half}", f"{plain:.1%}", f">= {LEAST_PLAIN:.0%}", plain >= LEAST_PLAIN),
        Verdict(f"recall, disguised, {half}", f"{worn:.1%}", f">= {LEAST_DISGUISED:.0%}", worn >= LEAST_DISGUISED),
        Verdict(f"false positives, {half}", f"{false:.2%}", f"<= {MOST_FALSE:.1%}", false <= MOST_FALSE),
        Verdict("emoji sequences caught", f"{emoji:.1%}", "none", emoji == 0),
    ]


def median_seconds(side: Side, texts: Sequence[str]) -> float:
    """The median over the texts, each scanned once."""
    return statistics.median(it for text in texts if (it := side.seconds(text)) is not None)


def speed(sides: Sequence[Side], count: int) -> tuple[list[str], list[Verdict]]:
    """Lines for people, and the figures that have a target. The first side is ours."""
    texts = prose(count)
    for side in sides:
        side.seconds(texts[0] + " warm")
    usual = {side.name: median_seconds(side, texts) for side in sides}
    short = {side.name: slowest(side, SHORT_CHARS) for side in sides}
    long = {side.name: slowest(side, LONG_CHARS) for side in sides}
    lines = [f"{name}: benign 2 KiB {took * 1e6:.1f} us" for name, took in usual.items()]
    for length, worsts in ((SHORT_CHARS, short), (LONG_CHARS, long)):
        lines += [
            f"{it}: worst at {length} characters {took * 1e3:.2f} ms ({name})" for it, (name, took) in worsts.items()
        ]
    ours = sides[0].name
    took = short[ours][1]
    found = [Verdict("worst at 2,200 characters", f"{took * 1e3:.2f} ms", "< 2 ms", took < MOST_WORST_S)]
    for other in sides[1:]:
        ratio = usual[other.name] / usual[ours]
        found.append(Verdict(f"benign 2 KiB against {other.name}", f"{ratio:.0f} x", ">= 50 x", ratio >= LEAST_RATIO))
    return lines, found


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python tests/bench scan", description=__doc__)
    parser.add_argument("--half", choices=HALVES, help="this half only; whoever writes rules looks at `rules`")
    parser.add_argument(
        "--wrong", action="store_true", help="list what was missed and caught wrongly in the half `rules`"
    )
    parser.add_argument("--peer", type=Path, help="where the peer's environment is, or is to be made and kept")
    parser.add_argument("--no-peer", action="store_true", help="this project's scan alone")
    parser.add_argument("--no-speed", action="store_true", help="recall and false positives only")
    parser.add_argument("--texts", type=int, default=200, help="how many benign texts are timed")
    parser.add_argument("--check", action="store_true", help="exit status 1 if a target is missed")
    return parser.parse_args(arguments)


def report(sides: Sequence[Side], chosen: argparse.Namespace) -> list[Verdict]:
    """Measure, print, and say what has a target."""
    halves: Sequence[Half] = (chosen.half,) if chosen.half else HALVES
    texts = [case for case in cases() if case.half in halves]
    found, wrong = {}, {}
    for side in sides:
        found[side.name], wrong[side.name] = shares(side.caught, texts)
    print(table(found, halves))
    ours = sides[0].name
    judged = [it for half in halves for it in quality(found[ours], half)]
    if not chosen.no_speed:
        lines, timed = speed(sides, chosen.texts)
        print("", *lines, sep="\n")
        judged += timed
    if chosen.wrong:
        print("", *(f"{it.id}: {it.text[:200]!a}" for it in wrong[ours] if it.half == "rules"), sep="\n")
    return judged


def main(arguments: Sequence[str] | None = None, *, ours: Callable[[], Side] = memd_side) -> int:
    chosen = options(arguments)
    with contextlib.ExitStack() as stack:
        sides = [ours()]
        if not chosen.no_peer:
            folder = chosen.peer or Path(stack.enter_context(tempfile.TemporaryDirectory())) / "peer"
            sides.append(peer_side(stack.enter_context(Peer.of(environment(folder)))))
        judged = report(sides, chosen)
    print()
    for it in judged:
        print(f"{'ok  ' if it.met else 'MISS'}  {it.what}: {it.figure} ({it.target})")
    return int(chosen.check and not all(it.met for it in judged))


if __name__ == "__main__":
    sys.exit(main())
