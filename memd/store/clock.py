"""The clock of stored times: wall time that never runs backwards; and which boot of the machine this is.

What comes in: a source of nanoseconds and the newest stored time. What goes out: microseconds since the epoch, never
below one given out before. What must not be here: waiting (trio's clock does that).
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

DAY_US = 86_400_000_000


class Clock:
    """Microseconds since the epoch, monotonic over daemon restarts once ``floor_us`` is set from the journal."""

    def __init__(self, source_ns: Callable[[], int] = time.time_ns, *, floor_us: int = 0) -> None:
        self._source_ns = source_ns
        self._last_us = floor_us

    def __repr__(self) -> str:
        return f"<Clock {self._last_us}>"

    def now_us(self) -> int:
        """Now; at least the last value given out."""
        self._last_us = max(self._last_us, self._source_ns() // 1000)
        return self._last_us

    def raise_floor(self, floor_us: int) -> None:
        """Never give out a time before ``floor_us``: the newest time in the journal."""
        self._last_us = max(self._last_us, floor_us)

    @property
    def behind_us(self) -> int:
        """By how much the machine's clock is behind the newest stored time; 0 in order."""
        return max(0, self._last_us - self._source_ns() // 1000)


def read_boot_id() -> str:
    """An identifier that changes with every boot of the machine; ``""`` where there is none (then: never the same)."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""
