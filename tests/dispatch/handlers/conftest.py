"""A connection to a daemon in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.fake_daemon import Client, World


@pytest.fixture
async def client(world: World) -> Client:
    """An agent's, with full access."""
    return world.client()


@pytest.fixture
async def operator(world: World) -> Client:
    """A person's."""
    return world.client("operator")
