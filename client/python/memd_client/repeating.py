"""Which calls may be made again after their reply was lost.

What comes in: a method's name and an error. What goes out: yes or no. What must not be here: time, sockets.

A mutation is made safe by its ``request_id``; reads, and calls that say the same thing twice, are safe by nature.
Everything else, and every method this client does not know, is not repeated once the daemon may have seen it.
"""

from __future__ import annotations

import os

from memd_client.errors import Busy, ConnectionLost, MemdError, ShuttingDown, TooManyRequests

MUTATIONS = frozenset(
    {
        *("memory.add", "memory.replace", "memory.edit", "memory.remove", "memory.apply", "memory.wipe", "memory.tool"),
        *("history.undo", "history.redo", "history.restore", "history.redact"),
        *("approval.approve", "approval.reject"),
        *("profile.create", "profile.import"),
    }
)
REPEATABLE = MUTATIONS | {
    *("rpc.ping", "rpc.discover", "daemon.status", "daemon.metrics", "daemon.reload", "profile.list", "profile.export"),
    *("memory.read", "memory.tool_schema", "memory.explain", "scan.check", "approval.list"),
    *("history.list", "history.show", "history.diff", "events.wait", "jobs.list", "jobs.show", "jobs.wait"),
    # A turn is begun and ended by its id. A second session.open without a key leaves one session that expires unused.
    *("session.open", "session.snapshot", "session.refresh", "session.close", "turn.begin", "turn.end"),
    # A compaction is known by its epoch, and a job that is not wanted is so once and for all.
    *("compaction.begin", "compaction.end", "jobs.cancel", "jobs.renew"),
}
PASSING = (ShuttingDown, Busy, TooManyRequests)


def may_repeat(method: str, error: MemdError) -> bool:
    """Whether ``method``, which ended with ``error``, may be called again with the same parameters."""
    if isinstance(error, ConnectionLost):
        return not error.data.get("foreign") and (method in REPEATABLE or not error.data.get("sent", True))
    if isinstance(error, PASSING):
        return method in REPEATABLE or error.outcome != "unknown"
    return False


def new_request_id() -> str:
    """A random UUID (version 4). The uuid module costs more than a call."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
