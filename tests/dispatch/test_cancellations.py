"""A connection that ends at any moment of a request leaves nothing half done, and the next request works."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from support.fake_daemon import World
from support.fake_profile import MemoryProfile

REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("memory.read", {}),
    ("memory.add", {"target": "memory", "content": "b"}),
    ("memory.tool", {"arguments": {"action": "read", "target": "memory"}}),
    ("memory.explain", {"text": "a"}),
    ("session.open", {"key": "k"}),
    ("history.list", {}),
    ("history.undo", {"last": 1}),
    ("events.wait", {"timeout_ms": 1000}),
    ("events.subscribe", {"topics": [], "since_seq": 0}),
    ("profile.export", {}),
]
STEPS = 6


class SlowProfile(MemoryProfile):
    """Every wait of it takes some steps of the event loop."""

    async def look(self) -> None:
        for _ in range(3):
            await trio.lowlevel.checkpoint()
        await super().look()

    async def explain(self, text: str) -> Any:
        for _ in range(3):
            await trio.lowlevel.checkpoint()
        return await super().explain(text)

    async def list_revisions(self, *chosen: Any, **wanted: Any) -> Any:
        for _ in range(3):
            await trio.lowlevel.checkpoint()
        return await super().list_revisions(*chosen, **wanted)

    async def undo(self, *args: Any, **kwargs: Any) -> Any:
        for _ in range(3):
            await trio.lowlevel.checkpoint()
        return await super().undo(*args, **kwargs)


@pytest.mark.parametrize("steps", range(STEPS))
@pytest.mark.parametrize(("method", "params"), REQUESTS, ids=[method for method, _ in REQUESTS])
async def test_an_end_at_every_step(nursery: trio.Nursery, method: str, params: dict[str, Any], steps: int) -> None:
    """Nothing stays in flight, no watcher or subscription is left, and another connection is served."""
    world = World()
    slow = world.profile = world.memory["default"] = SlowProfile()
    world.profiles["default"] = slow
    world.journal.hold = True
    await nursery.start(world.dispatcher.run)
    client = world.client()
    client.ok("memory.add", target="memory", content="a")
    slow.due = True
    client.send(method, **params)
    for _ in range(steps):
        await trio.lowlevel.checkpoint()
    client.conversation.disconnected()
    sent = len(client.channel.sent)
    world.journal.commit()
    slow.due = False
    await trio.testing.wait_all_tasks_blocked()
    assert sent == len(client.channel.sent)
    assert 0 == world.dispatcher.flight.count
    assert (0, "<EventHub 0 subscriptions>") == (slow.attached, repr(world.hub))
    assert [] == world.bugs
    world.journal.hold = False
    assert world.client().ok("memory.add", target="memory", content="c")["changed"]
    assert world.client().ok("session.open", key="k")["session"]
