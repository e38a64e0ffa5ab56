"""Where a process comes from, as far as the system says.

What comes in: a process id. What goes out: its ancestors, and the terminal that it is on. What must not be here: what follows.

On Linux this is read from ``/proc``. Elsewhere nothing is known, and nothing is an error: it is a hint.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

DEEPEST = 64
"""Generations that are followed: far more than any shell in a terminal in a session has."""
_PTS_MAJORS = range(136, 144)  # Documentation/admin-guide/devices.txt of Linux: Unix98 pty slaves
_TTY_MAJOR = 4


@dataclass(frozen=True, slots=True)
class Lineage:
    """Ancestors of a process, its parent first; and its terminal, ``""`` without one."""

    ancestors: tuple[int, ...] = ()
    terminal: str = ""


def lineage_of(pid: int, *, proc: str = "/proc") -> Lineage:
    """What is known of a process; nothing if it is gone."""
    first = _stat(pid, proc)
    if first is None:
        return Lineage()
    ancestors: list[int] = []
    parent = first[0]
    while parent > 0 and parent not in ancestors and len(ancestors) < DEEPEST:
        ancestors.append(parent)
        found = _stat(parent, proc)
        parent = 0 if found is None else found[0]
    return Lineage(tuple(ancestors), _terminal(first[1]))


def _stat(pid: int, proc: str) -> tuple[int, int] | None:
    """Parent and terminal number from ``stat`` (proc(5)): fields 4 and 7, the name in field 2 being anything in brackets."""
    try:
        text = Path(proc, str(pid), "stat").read_bytes()
        fields = text[text.rindex(b")") + 1 :].split()
        return int(fields[1]), int(fields[4])
    except (OSError, ValueError, IndexError):
        return None


def _terminal(device: int) -> str:
    if not device:
        return ""
    major, minor = os.major(device), os.minor(device)
    if major in _PTS_MAJORS:
        return f"/dev/pts/{minor + 256 * (major - _PTS_MAJORS.start)}"
    return f"/dev/tty{minor}" if major == _TTY_MAJOR else f"{major}:{minor}"
