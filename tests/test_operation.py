"""The chores of a running daemon that need no running daemon."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from memd.operation import EXTEND_S, extend_start
from memd.transport.notify import Notifier

if TYPE_CHECKING:
    from trio.testing import MockClock


class Heard(Notifier):
    """Remembers what it was told to extend, and when."""

    def __init__(self) -> None:
        super().__init__(None)
        self.said: list[tuple[float, int]] = []

    def extend_timeout(self, us: int) -> bool:
        self.said.append((trio.current_time(), us))
        return True


async def test_a_long_start_asks_for_time_again_before_it_is_up(autojump_clock: MockClock) -> None:
    """And no more once it is ready; a short one says nothing."""
    del autojump_clock
    notifier, ready = Heard(), trio.Event()
    begun = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(extend_start, notifier, ready)
        await trio.sleep(2.5 * EXTEND_S)
        ready.set()
    assert [EXTEND_S, 2 * EXTEND_S] == [at - begun for at, _ in notifier.said]
    assert all(us > EXTEND_S * 1_000_000 for _, us in notifier.said)
    await extend_start(notifier, ready)
    assert 2 == len(notifier.said)
