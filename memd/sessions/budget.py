"""The failure budget of a turn: a model that keeps failing is told to stop, and is never locked out.

What comes in: what became of each write. What goes out: how many repairable refusals stand in a row, and whether the
next words to the caller should be the last. What must not be here: the clock (times are arguments), wire types, the
writes themselves.

Rules. Only refusals that the caller can repair count (``CurationError``), and only in a row: a valid write, a no-op too,
sets the count to 0. Up to ``limit`` of them the caller is told how to repair; every one after that is terminal. A write is
always tried, whatever the count, so a budget never keeps a valid write out. A client that declares no turns has one
budget for its connection, which expires when it has not failed for a while.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Failure:
    """What one refusal means: how many in a row now, whether that is too many, whether the call was a repeat."""

    count: int
    limit: int
    exhausted: bool
    repeated: bool


class FailureBudget:
    """Counts consecutive refusals of one turn, or of one connection (then ``idle_us`` is set)."""

    __slots__ = ("_count", "_last_call", "_last_us", "idle_us")

    def __init__(self, *, idle_us: int | None = None) -> None:
        self.idle_us = idle_us
        self._count = 0
        self._last_us = 0
        self._last_call = b""

    def __repr__(self) -> str:
        return f"<FailureBudget {self._count} in a row>"

    def count(self, now_us: int) -> int:
        """Refusals in a row at this time."""
        if self.idle_us is not None and now_us - self._last_us > self.idle_us:
            self.reset()
        return self._count

    def refuse(self, call: bytes, *, limit: int, now_us: int) -> Failure:
        """Count one refusal. ``call`` identifies the call, so that an unchanged repeat can be recognised."""
        count = self.count(now_us) + 1
        repeated = bool(call) and call == self._last_call
        self._count, self._last_us, self._last_call = count, now_us, call
        return Failure(count, limit, count > limit, repeated)

    def reset(self) -> None:
        """A valid write: the count starts again at 0."""
        self._count = 0
        self._last_call = b""
