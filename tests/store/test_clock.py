"""Stored times never run backwards."""

from __future__ import annotations

from memd.store.clock import DAY_US, Clock


class SetBack:
    """A machine clock that somebody sets."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self) -> int:
        return int(self.seconds * 1_000_000_000)


def test_times_follow_the_machine() -> None:
    """Microseconds since the epoch."""
    source = SetBack(5)
    clock = Clock(source)
    assert 5_000_000 == clock.now_us()
    source.seconds = 6.000_001
    assert 6_000_001 == clock.now_us()


def test_a_clock_that_is_set_back_stands_still() -> None:
    """The last time given out is given out again, and it is told by how much the machine is behind."""
    source = SetBack(100)
    clock = Clock(source)
    clock.now_us()
    source.seconds = 40
    assert 100_000_000 == clock.now_us()
    assert 60_000_000 == clock.behind_us
    source.seconds = 101
    assert 101_000_000 == clock.now_us()
    assert 0 == clock.behind_us


def test_the_newest_stored_time_is_the_floor() -> None:
    """After a restart nothing is older than what is stored; an older floor does not lower it."""
    clock = Clock(SetBack(10))
    clock.raise_floor(DAY_US)
    clock.raise_floor(5)
    assert DAY_US == clock.now_us()
    assert f"<Clock {DAY_US}>" == repr(clock)
