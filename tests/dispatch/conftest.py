"""A daemon in memory that runs while a test does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.fake_daemon import World

if TYPE_CHECKING:
    import trio


@pytest.fixture
async def world(nursery: trio.Nursery) -> World:
    """One profile, ``default``, with its dispatcher running."""
    world = World()
    await nursery.start(world.dispatcher.run)
    return world
