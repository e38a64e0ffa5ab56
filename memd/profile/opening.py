"""Opening profiles one after the other, and none waits long for another's disk.

What comes in: settings in their order, and the function that opens one profile. What goes out: profiles opened in that
order; those that a disk holds up go on beside the others. What must not be here: what opening does.

In order, because of two profiles with one file the first is served; at the same time, once a disk does not answer, because
a mount that is away can hang for minutes. Nothing on a disk that hangs is cancelled but the first look for the directory.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator

    from memd.config import ProfileSettings

ANSWER_S = 3.0
"""A disk that needs longer for one step is not waited for: opening takes milliseconds, on a busy disk up to a second."""


class Opening:
    """One profile on its way. ``late``: somebody has stopped waiting for it."""

    def __init__(self, settings: ProfileSettings) -> None:
        self.settings = settings
        self.late = False
        self.done = trio.Event()
        self.looking = trio.CancelScope()
        self._since: float | None = None

    def __repr__(self) -> str:
        state = "done" if self.done.is_set() else "late" if self.late else "under way"
        return f"<Opening of {self.settings.name}: {state}>"

    @contextmanager
    def on_disk(self) -> Iterator[None]:
        """In here the disk is waited for."""
        self._since = trio.current_time()
        try:
            yield
        finally:
            self._since = None

    async def wait(self) -> bool:
        """True once it is over, whatever came of it; False if the disk does not answer."""
        while not self.done.is_set() and not self.late:
            now = trio.current_time()
            since = now if self._since is None else self._since
            self.late = now - since >= ANSWER_S
            if not self.late:
                with trio.move_on_at(since + ANSWER_S):
                    await self.done.wait()
        return self.done.is_set()


class Openings:
    """Those under way, by name; and whose turn it is in a directory that several of them have."""

    def __init__(self, opens: Callable[[Opening], Awaitable[None]]) -> None:
        self.under_way: dict[str, Opening] = {}
        self._opens = opens
        self._turns: dict[Hashable, trio.Event] = {}

    def __repr__(self) -> str:
        return f"<Openings under way: {sorted(self.under_way)}>"

    def begin(self, settings: ProfileSettings, nursery: trio.Nursery) -> Opening:
        """Begin to open this one, if that has not begun yet; elsewhere, if it is now said to be there."""
        opening = self.under_way.get(settings.name)
        if opening is None or opening.settings.dir != settings.dir:
            self.give_up(settings.name)
            opening = self.under_way[settings.name] = Opening(settings)
            nursery.start_soon(self._see_through, opening)
        return opening

    async def all(self, wanted: Iterable[ProfileSettings], nursery: trio.Nursery) -> list[Opening]:
        """Open these: in order, and what is left at the same time once one is held up. Those that are late."""
        begun: list[Opening] = []
        for settings in wanted:
            begun.append(self.begin(settings, nursery))
            if not any(opening.late for opening in begun):
                await begun[-1].wait()
        return [opening for opening in begun if not await opening.wait()]

    @contextmanager
    def turn(self, keys: Iterable[Hashable]) -> Iterator[Callable[[], Awaitable[None]]]:
        """Take one's place behind those that have one of ``keys`` now; what it gives waits until it is one's turn."""
        wanted = set(keys)
        before = {self._turns[key] for key in wanted if key in self._turns}
        mine = trio.Event()
        self._turns.update(dict.fromkeys(wanted, mine))

        async def wait() -> None:
            for event in before:
                await event.wait()

        try:
            yield wait
        finally:
            mine.set()
            for key in wanted:
                if self._turns[key] is mine:
                    del self._turns[key]

    def give_up(self, name: str) -> None:
        """Stop looking for its directory, if that is what it waits for."""
        opening = self.under_way.get(name)
        if opening is not None:
            opening.looking.cancel()

    async def _see_through(self, opening: Opening) -> None:
        try:
            await self._opens(opening)
        finally:
            if self.under_way[opening.settings.name] is opening:
                del self.under_way[opening.settings.name]
            opening.done.set()
