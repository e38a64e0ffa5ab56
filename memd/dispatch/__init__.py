"""Dispatch: from a request's name to its answer.

What comes in: requests of connections. What goes out: replies and events. What must not be here: sockets, files, SQL.
"""

from __future__ import annotations

from memd.dispatch.context import Services
from memd.dispatch.conversation import Conversation
from memd.dispatch.dispatcher import Dispatcher, DispatchStatistics
from memd.dispatch.flight import Flight
from memd.dispatch.handlers import method_table
from memd.dispatch.hub import EventHub
from memd.dispatch.ports import Control, DaemonStatistics
from memd.dispatch.table import Method, MethodTable

__all__ = [
    "Control",
    "Conversation",
    "DaemonStatistics",
    "DispatchStatistics",
    "Dispatcher",
    "EventHub",
    "Flight",
    "Method",
    "MethodTable",
    "Services",
    "method_table",
]
