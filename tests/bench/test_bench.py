"""The benchmark runs, and what it prints is about what it measured. Its figures are for people, not for a test."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from bench.__main__ import main, verdicts
from bench.measure import Round, RoundTrip, Side

if TYPE_CHECKING:
    from collections.abc import Sequence

QUICK = ["--rounds", "1", "--seconds", "0.3", "--clients", "1", "3", "--blocks", "1", "--starts", "2"]


def a_round(clients: int, ratio: float, fsyncs: float) -> Round:
    return Round(clients, Side(100, 1, 1), Side(100 * ratio, 1, 1), fsyncs)


def test_targets_are_judged_by_the_median_of_the_rounds() -> None:
    """One bad round does not decide."""
    rounds = [a_round(16, ratio, fsyncs) for ratio, fsyncs in ((4, 0.9), (6, 0.3), (7, 0.2))]
    assert [it.met for it in verdicts(rounds, [RoundTrip(0, 100, 139)])] == [True, True, True]
    assert [it.met for it in verdicts(rounds[:1], [RoundTrip(0, 100, 141)])] == [False, False, False]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [[], pytest.param(["--slow-fsync"], marks=pytest.mark.skipif(shutil.which("cc") is None, reason="needs cc"))],
    ids=["real", "slow-fsync"],
)
def test_a_short_run_measures_both_sides(options: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Every pair of a round is there, and so are the snapshot reads."""
    assert main([*QUICK, "--json", *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [it["clients"] for it in found["writes"]] == [1, 3]
    for it in found["writes"]:
        assert it["baseline"]["per_second"] > 0
        assert it["memd"]["per_second"] > 0
        assert 0 < it["fsyncs_per_write"] < 4
    assert [it["start"] for it in found["reads"]] == [0, 1]
