"""Lanes: one job in each, and a pause that grows for one that does not answer."""

from __future__ import annotations

from memd.jobs.lanes import ASKED_US, FIRST_US, LONGEST_US, Lanes


def test_a_lane_is_its_jobs() -> None:
    """Nobody else leaves it."""
    lanes = Lanes()
    lanes.enter("a", "j-1")
    lanes.leave("a", "j-2")
    assert (True, False) == (lanes.is_busy("a"), lanes.is_busy("b"))
    lanes.leave("a", "j-1")
    assert not lanes.is_busy("a")
    assert "<Lanes 0 busy, 0 down>" == repr(lanes)


def test_the_pause_doubles_up_to_a_bound() -> None:
    """And is forgotten with the first success."""
    lanes = Lanes()
    pauses = [lanes.failed("a", "why", now_us=0).until_us for _ in range(40)]
    assert [FIRST_US, 2 * FIRST_US, 4 * FIRST_US] == pauses[:3]
    assert {LONGEST_US} == set(pauses[10:])
    down = lanes.down("a", LONGEST_US - 1)
    assert down is not None
    assert (40, "why") == (down.failures, down.reason)
    assert None is lanes.down("a", LONGEST_US)
    assert ["a"] == list(lanes.all_down())
    lanes.worked("a")
    assert {} == lanes.all_down()
    assert FIRST_US == lanes.failed("a", "why", now_us=0).until_us


def test_it_may_ask_for_more_but_not_for_ever() -> None:
    """What it asks for holds if it is longer than the pause it would get."""
    lanes = Lanes()
    assert 60_000_000 == lanes.failed("a", "why", now_us=0, asked_s=60).until_us
    assert 2 * FIRST_US == lanes.failed("a", "why", now_us=0, asked_s=0.1).until_us
    assert ASKED_US == lanes.failed("a", "why", now_us=0, asked_s=1e9).until_us
