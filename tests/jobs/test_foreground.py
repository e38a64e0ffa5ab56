"""The foreground: who is in a turn, and since when the others are quiet."""

from __future__ import annotations

from memd.jobs.foreground import GONE_US, Foreground


def test_a_turn_from_its_beginning_to_its_end() -> None:
    """Then the idle window."""
    foreground = Foreground()
    assert 5 == foreground.free_at("s", now_us=100, idle_us=5)
    foreground.begin("s", 10)
    assert foreground.in_turn("s", 20)
    assert 10 + GONE_US == foreground.free_at("s", now_us=20, idle_us=5)
    foreground.end("s", 30)
    assert not foreground.in_turn("s", 30)
    assert 35 == foreground.free_at("s", now_us=30, idle_us=5)


def test_what_nobody_ends_is_over_after_an_hour() -> None:
    """Its client is gone."""
    foreground = Foreground()
    foreground.begin("s", 0)
    assert not foreground.in_turn("s", GONE_US)
    assert 5 == foreground.free_at("s", now_us=GONE_US, idle_us=5)


def test_who_is_over_or_long_quiet_is_forgotten() -> None:
    """So that the tables stay as small as what goes on."""
    foreground = Foreground()
    foreground.end("old", 0)
    foreground.end("new", GONE_US)
    foreground.trim(GONE_US + 1)
    assert (7, GONE_US + 7) == tuple(foreground.free_at(one, now_us=0, idle_us=7) for one in ("old", "new"))
    foreground.begin("new", 0)
    assert "<Foreground 1 turns>" == repr(foreground)
    foreground.forget("new")
    assert "<Foreground 0 turns>" == repr(foreground)
