"""Agent sessions: frozen snapshots, turns, failure budgets.

What comes in: calls of the handlers, with the clock and the journal as arguments. What goes out: sessions and tickets.
What must not be here: wire types, model calls, tasks.
"""

from __future__ import annotations

from memd.sessions.budget import Failure, FailureBudget
from memd.sessions.frozen import EMPTY_SNAPSHOT, Fence, FrozenSnapshot, ProfileView
from memd.sessions.registry import Opened, OpenRequest, SessionJournal, SessionRegistry, SessionStatistics
from memd.sessions.session import Session, Turn

__all__ = [
    "EMPTY_SNAPSHOT",
    "Failure",
    "FailureBudget",
    "Fence",
    "FrozenSnapshot",
    "OpenRequest",
    "Opened",
    "ProfileView",
    "Session",
    "SessionJournal",
    "SessionRegistry",
    "SessionStatistics",
    "Turn",
]
