"""The scan's benchmark counts what it says, keeps the reporting half to itself, and survives a peer that hangs."""

from __future__ import annotations

import sys

import pytest
from bench import scan
from bench.scan import Case, Side, cases, percent, prose, quality, shares, slowest, speed
from bench.scan_peer import Answer, Peer
from bench.scan_worst import worst
from support.corpora import attacks, notes

ECHO = """
import json, sys, time
for line in sys.stdin:
    text = json.loads(line)
    if text == "hang": time.sleep(60)
    if text == "end": sys.exit(3)
    print(json.dumps([["upper"] if text.isupper() else [], 0.5]), flush=True)
"""
CASES = [
    Case("a", "BAD", "rules", ("plain", "plain class 1")),
    Case("b", "missed", "rules", ("plain", "plain class 2")),
    Case("c", "BAD TOO", "report", ("disguised",)),
    Case("d", "FINE", "report", ("false",)),
    Case("e", "fine", "report", ("false",)),
]


class WordScanner:
    """A scanner that objects to one word, and takes a second for each character."""

    def __init__(self, word: str) -> None:
        self.word = word

    def side(self) -> Side:
        return Side("memd", lambda text: self.word in text, lambda text: float(len(text)))


def test_shares_count_each_row_of_each_half() -> None:
    """Caught attacks are hits, caught notes are wrong."""
    counts, wrong = shares(str.isupper, CASES)
    assert counts == {
        ("plain", "rules"): (1, 2),
        ("plain class 1", "rules"): (1, 1),
        ("plain class 2", "rules"): (0, 1),
        ("disguised", "report"): (1, 1),
        ("false", "report"): (1, 2),
    }
    assert [it.id for it in wrong] == ["b", "d"]


@pytest.mark.slow
def test_every_text_is_a_case() -> None:
    """Nothing of the corpora is left out, and the disguises come on top."""
    found = list(cases())
    assert {it.id for it in attacks()} | {it.id for it in notes()} <= {it.id for it in found}
    assert sum(it.groups[0] == "plain" for it in found) == len(attacks())
    assert sum(it.groups[0] == "false" for it in found) == len(notes())
    assert sum(it.groups[0] == "disguised" for it in found) > 10 * len(attacks()) // 2


@pytest.mark.parametrize(
    ("counts", "met"),
    [
        (((95, 100), (90, 100), (5, 1000), (0, 9)), [True, True, True, True]),
        (((94, 100), (89, 100), (6, 1000), (1, 9)), [False, False, False, False]),
    ],
)
def test_targets(counts: tuple[scan.Share, ...], met: list[bool]) -> None:
    """A figure on the border is met."""
    rows = dict(zip(("plain", "disguised", "false", "false emoji sequences"), counts, strict=True))
    judged = quality({(row, "report"): share for row, share in rows.items()}, "report")
    assert [it.met for it in judged] == met


def test_an_empty_group_has_no_share() -> None:
    """No division by zero, no 100 % of nothing."""
    assert percent((0, 0)).strip() == percent(None).strip() == ""
    assert percent((1, 4)).split() == ["25.0%", "of", "4"]


def test_timed_texts_differ() -> None:
    """A cache by hash does not help; each is full."""
    found = prose(200)
    assert len(set(found)) == 200
    assert {len(it) for it in found} == {2048}


@pytest.mark.parametrize("length", [2200, 4099])
def test_worst_inputs_have_the_length_asked_for(length: int) -> None:
    """Each name once, each text different."""
    found = list(worst(length))
    assert {len(text) for _, text in found} == {length}
    assert len({name for name, _ in found}) == len({text for _, text in found}) == len(found) > 60


def test_the_slowest_is_the_best_of_three() -> None:
    """One hiccup of the machine does not decide; a scanner that was stopped took for ever."""
    times = iter([5.0, 0.1, 0.2, *[0.15] * 500])
    assert slowest(Side("x", bool, lambda _: next(times)), 100)[1] == 0.15
    assert slowest(Side("x", bool, lambda _: None), 100)[1] == float("inf")


@pytest.mark.slow
def test_speed_is_a_ratio_of_medians() -> None:
    """Ours is first."""
    sides = [Side("memd", bool, lambda _: 0.0001), Side("peer", bool, lambda _: 0.005)]
    _, judged = speed(sides, 3)
    assert [(it.figure, it.met) for it in judged] == [("0.10 ms", True), ("50 x", True)]


@pytest.mark.slow
def test_a_peer_answers_hangs_and_ends() -> None:
    """It is stopped after the deadline and started again; an end by itself is an error."""
    with Peer([sys.executable, "-c", ECHO], deadline_s=5.0) as peer:
        assert peer.ask("LOUD") == Answer(("upper",), 0.5)
        assert peer.ask("hang") == Answer((), None)
        assert peer.ask("quiet\n\u2028é") == Answer((), 0.5)
        with pytest.raises(ChildProcessError, match="status 3"):
            peer.ask("end")
        assert peer.ask("LOUD").found == ("upper",)


@pytest.mark.slow
def test_a_run_prints_tables_and_keeps_the_reporting_half_to_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """What is listed as wrong comes from the half `rules`; a scanner that finds little misses its targets."""
    assert scan.main(["--no-peer", "--no-speed", "--wrong", "--check"], ours=WordScanner("gnor").side) == 1
    printed = capsys.readouterr().out
    assert "plain lang vi" in printed
    assert "MISS  recall, plain, report" in printed
    assert [it.id for it in attacks("report") if f"{it.id}: " in printed or f"{it.id}/" in printed] == []
    assert any(f"{it.id}: " in printed for it in attacks("rules"))
