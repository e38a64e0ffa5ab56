"""When a writer waits for the clients it has just answered."""

from __future__ import annotations

import pytest

from memd.profile.gathering import MOST_S, PAUSE, SHARE, Gathering


def test_nobody_waits_for_nobody() -> None:
    """Without work in the queue, or without answered clients, a group begins at once."""
    gathering = Gathering()
    assert 0.0 == gathering.patience(5)
    gathering.answered(3, 0.01)
    assert 0.0 == gathering.patience(0)


def test_the_wait_is_a_share_of_a_cycle() -> None:
    """Those who wait already pay at most a quarter of a cycle, and never more than a few milliseconds."""
    gathering = Gathering()
    gathering.answered(3, 0.01)
    assert pytest.approx(0.01 * SHARE) == gathering.patience(1)
    gathering.answered(3, 60.0)
    assert MOST_S == gathering.patience(1)


def test_a_wait_in_vain_is_not_repeated_soon() -> None:
    """When fewer than half came back, the next groups do not wait; then it is tried again."""
    gathering = Gathering()
    gathering.answered(4, 0.01)
    gathering.came(1)
    assert [0.0] * PAUSE == [gathering.patience(1) for _ in range(PAUSE)]
    assert gathering.patience(1) > 0


def test_half_of_them_is_enough() -> None:
    """A wait that brought half of the answered goes on being worth it."""
    gathering = Gathering()
    gathering.answered(4, 0.01)
    gathering.came(2)
    assert gathering.patience(1) > 0
    assert "<Gathering 4 expected, pause 0>" == repr(gathering)
