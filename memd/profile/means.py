"""Means: the parts that a profile is made of.

What comes in: what ``profiles`` has built. What goes out: one value to hand on. What must not be here: behaviour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memd.profile.events import EventStream
    from memd.profile.memory_store import MemoryStore
    from memd.profile.policy import Guard
    from memd.profile.requests import Requests
    from memd.profile.values import Target
    from memd.profile.writer import Writer
    from memd.store.clock import Clock


@dataclass(frozen=True, slots=True)
class Means:
    """What one profile works with; stores and writer may be shared with others."""

    stores: Mapping[Target, MemoryStore]
    guard: Guard
    writer: Writer
    events: EventStream
    requests: Requests
    clock: Clock
