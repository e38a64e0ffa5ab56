"""Lanes: one job at a time for an endpoint, and no job for one that does not answer.

What comes in: jobs that enter and leave, failures and successes, times as arguments. What goes out: whether a lane is free, and when one
that is down is to be tried again. What must not be here: reviewers, tasks, which job comes next.

An endpoint that fails is left alone for a time that doubles with every failure; then one job tries it, since there is only one at a
time anyway. The first success clears it for everybody who waits.
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST_US = 2_000_000
LONGEST_US = 300_000_000
"""A model server that comes back is found again within five minutes."""
ASKED_US = 3600 * 1_000_000
"""How long an endpoint may ask to be left alone; whoever asks for more is tried once an hour."""


@dataclass(frozen=True, slots=True)
class Down:
    """An endpoint that does not answer: how often in a row, until when it is left alone, and what it said."""

    failures: int
    until_us: int
    reason: str


class Lanes:
    """All lanes by name: an endpoint's URL, or what stands for one."""

    def __init__(self) -> None:
        self._busy: dict[str, str] = {}
        self._down: dict[str, Down] = {}

    def __repr__(self) -> str:
        return f"<Lanes {len(self._busy)} busy, {len(self._down)} down>"

    def enter(self, lane: str, job: str) -> None:
        """A job uses it."""
        self._busy[lane] = job

    def leave(self, lane: str, job: str) -> None:
        """The job does so no more. A job that is not in it leaves nothing."""
        if self._busy.get(lane) == job:
            del self._busy[lane]

    def is_busy(self, lane: str) -> bool:
        """True while a job uses it."""
        return lane in self._busy

    def down(self, lane: str, now_us: int) -> Down | None:
        """Why it is left alone now; None if it may be tried."""
        found = self._down.get(lane)
        return found if found is not None and found.until_us > now_us else None

    def all_down(self) -> dict[str, Down]:
        """Those that did not answer when they were last tried."""
        return dict(self._down)

    def failed(self, lane: str, reason: str, *, now_us: int, asked_s: float | None = None) -> Down:
        """It did not answer. ``asked_s``: how long it asked to be left alone."""
        known = self._down.get(lane)
        failures = known.failures + 1 if known else 1
        pause = min(LONGEST_US, FIRST_US * 2 ** min(failures - 1, 30))
        if asked_s is not None:
            pause = max(pause, min(ASKED_US, int(asked_s * 1_000_000)))
        self._down[lane] = found = Down(failures, now_us + pause, reason)
        return found

    def worked(self, lane: str) -> None:
        """It answered."""
        self._down.pop(lane, None)
