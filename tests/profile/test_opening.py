"""Opening: in order, at the same time once a disk hangs, and one after the other in one directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from memd.config import ProfileSettings
from memd.profile.opening import ANSWER_S, Opening, Openings

if TYPE_CHECKING:
    from trio.testing import MockClock

A, B, C = (ProfileSettings(name=name, dir=f"/{name}") for name in "abc")


class Disks:
    """Opens profiles: each takes its time, on the disk or not, and those in ``hangs`` wait for their event."""

    def __init__(self, *, seconds: float = 1.0, on_disk: bool = True) -> None:
        self.hangs: dict[str, trio.Event] = {}
        self.seen: list[str] = []
        self.openings = Openings(self.open)
        self._seconds = seconds
        self._on_disk = on_disk

    async def open(self, opening: Opening) -> None:
        name = opening.settings.name
        self.seen.append(f"begin {name}")
        with opening.looking:
            if self._on_disk:
                with opening.on_disk():
                    await self._answer(name)
            else:
                await self._answer(name)
        self.seen.append(f"{'given up' if opening.looking.cancelled_caught else 'end'} {name}")

    async def _answer(self, name: str) -> None:
        await trio.sleep(self._seconds)
        if name in self.hangs:
            await self.hangs[name].wait()


async def test_one_after_the_other(autojump_clock: MockClock) -> None:
    """As long as the disks answer, however long all of it takes."""
    disks = Disks()
    async with trio.open_nursery() as nursery:
        assert [] == await disks.openings.all([A, B, C], nursery)
    assert ["begin a", "end a", "begin b", "end b", "begin c", "end c"] == disks.seen


async def test_what_is_not_the_disks_fault_is_waited_for(autojump_clock: MockClock) -> None:
    """A long history, or rules that have to be compiled."""
    disks = Disks(seconds=10 * ANSWER_S, on_disk=False)
    async with trio.open_nursery() as nursery:
        assert [] == await disks.openings.all([A, B], nursery)
    assert ["begin a", "end a", "begin b", "end b"] == disks.seen


async def test_at_the_same_time_once_one_hangs(autojump_clock: MockClock) -> None:
    """All are waited for once, not one after the other; those that hang go on beside the others."""
    disks = Disks()
    disks.hangs = {"a": trio.Event(), "b": trio.Event()}
    async with trio.open_nursery() as nursery:
        begun = trio.current_time()
        late = await disks.openings.all([A, B, C], nursery)
        assert pytest.approx(2 * ANSWER_S) == trio.current_time() - begun
        assert ["a", "b"] == [opening.settings.name for opening in late]
        assert "<Openings under way: ['a', 'b']>" == repr(disks.openings)
        assert "<Opening of a: late>" == repr(late[0])
        assert ["begin a", "begin b", "begin c", "end c"] == [disks.seen[0], *sorted(disks.seen[1:3]), disks.seen[3]]
        again = trio.current_time()
        assert late == await disks.openings.all([A, B], nursery)
        assert again == trio.current_time()
        for event in disks.hangs.values():
            event.set()
    assert "<Opening of a: done>" == repr(late[0])
    assert {} == disks.openings.under_way


async def test_one_that_is_not_wanted_any_more_is_given_up(autojump_clock: MockClock) -> None:
    """And so is one that is elsewhere now."""
    disks = Disks()
    disks.hangs = {"a": trio.Event(), "b": trio.Event()}
    moved = ProfileSettings(name="b", dir="/elsewhere")
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            await disks.openings.all([A, B], nursery)
            disks.openings.give_up("a")
            disks.openings.give_up("c")
            del disks.hangs["b"]
            assert [] == await disks.openings.all([moved], nursery)
    assert {"given up a", "given up b", "end b"} <= set(disks.seen)


async def test_who_has_a_directory_is_waited_for(autojump_clock: MockClock) -> None:
    """In the order in which they came; others are not."""
    openings, seen = Openings(Disks().open), []

    async def take(name: str, *keys: str) -> None:
        with openings.turn(keys) as turn:
            await turn()
            seen.append(name)
            await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        for name, keys in (("a", "x"), ("b", "xy"), ("c", "y"), ("d", "z")):
            nursery.start_soon(take, name, *keys)
            await trio.testing.wait_all_tasks_blocked()
    assert ["a", "d", "b", "c"] == seen
