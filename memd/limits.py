"""The process's descriptor limit: raised to what it may be, and what fits into it.

What comes in: how many connections are wanted. What goes out: how many there is room for. What must not be here: anything
else about the process.
"""

from __future__ import annotations

import resource

RESERVED = 16
"""Descriptors kept for logs, the journal and the locks of the directories."""
PER_STORE = 600
"""Displaced files kept open for a second look, and the files of one commit."""


def raise_descriptor_limit(wanted: int) -> int:
    """Raise the soft limit to the hard one; returns how many connections fit, at most ``wanted``."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = hard
    if hard in (resource.RLIM_INFINITY, -1):
        limit = max(soft, 1_048_576)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    except (OSError, ValueError):  # macOS refuses more than its own maximum
        limit = soft
    room = max(1, limit - RESERVED - PER_STORE)
    return min(wanted, room)
