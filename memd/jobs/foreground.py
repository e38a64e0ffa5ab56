"""The foreground: which sessions are in a turn, and since when the others are quiet.

What comes in: turns that begin and end, times as arguments. What goes out: whether a review of a session has to wait, and for how
long. What must not be here: jobs, tasks, what a turn counts for.
"""

from __future__ import annotations

GONE_US = 3600 * 1_000_000
"""A turn that has been open for so long is nobody's any more: its client ended without a word."""


class Foreground:
    """Turns by session. A session that was never heard of is quiet."""

    def __init__(self) -> None:
        self._open: dict[str, int] = {}
        self._quiet: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<Foreground {len(self._open)} turns>"

    def begin(self, session: str, now_us: int) -> None:
        """A turn begins."""
        self._open[session] = now_us

    def end(self, session: str, now_us: int) -> None:
        """It has ended."""
        self._open.pop(session, None)
        self._quiet.pop(session, None)
        self._quiet[session] = now_us

    def forget(self, session: str) -> None:
        """The session is over."""
        self._open.pop(session, None)
        self._quiet.pop(session, None)

    def in_turn(self, session: str, now_us: int) -> bool:
        """True while a turn of the session runs."""
        began = self._open.get(session)
        return began is not None and now_us - began < GONE_US

    def free_at(self, session: str, *, now_us: int, idle_us: int) -> int:
        """When a review of the session may begin: a time in the past if it may now; while a turn runs, when it would be given up."""
        if self.in_turn(session, now_us):
            return self._open[session] + GONE_US
        return self._quiet.get(session, 0) + idle_us

    def trim(self, now_us: int) -> None:
        """Forget who has been quiet for so long that it makes no difference."""
        for session in [one for one, since in self._quiet.items() if now_us - since > GONE_US]:
            del self._quiet[session]
