"""What is in flight: deadlines in buckets, bytes, and the waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from memd.dispatch.call import Call
from memd.dispatch.flight import BUCKET_S, Flight

if TYPE_CHECKING:
    from memd.protocol.types import ErrorsForm


class Nowhere:
    """Takes replies and does nothing."""

    errors_form: ErrorsForm = "map"

    def answered(self, call: Call, message: bytes) -> None:
        """Nothing."""


def call(deadline: float = 1.0, *, size: int = 10) -> Call:
    item = Call(Nowhere(), 1, "m", mutation=False, size=size)
    item.deadline = deadline
    return item


def test_due_are_those_whose_deadline_has_passed() -> None:
    """Hardly late and never early, the earliest first."""
    flight = Flight()
    late, early, later = call(2.0), call(1.0), call(9.0)
    for item in (late, early, later):
        flight.add(item)
    assert [] == flight.due(0.99)
    assert [early] == flight.due(1.0 + 2 * BUCKET_S)
    assert [early, late] == flight.due(2.0 + 2 * BUCKET_S)


def test_what_is_removed_is_not_due() -> None:
    """Answered in time."""
    flight = Flight()
    one, other = call(), call()
    flight.add(one)
    flight.add(other)
    flight.remove(one)
    assert [other] == flight.due(100)
    flight.remove(other)
    assert [] == flight.due(100)
    assert 0 == flight.count


def test_it_is_congested_past_its_bytes() -> None:
    """At the bound it is not yet."""
    flight = Flight(max_bytes=100)
    small, large = call(size=100), call(size=1)
    flight.add(small)
    assert [False] == [flight.congested]
    flight.add(large)
    assert [True] == [flight.congested]
    flight.remove(large)
    assert [False] == [flight.congested]


@pytest.mark.parametrize("waiters", [1, 3])
async def test_everyone_who_waits_for_room_is_woken(waiters: int) -> None:
    """Many connections wait for the same bytes."""
    flight = Flight(max_bytes=5)
    item, woken = call(), []

    async def wait(number: int) -> None:
        await flight.wait_clear()
        woken.append(number)

    flight.add(item)
    with trio.fail_after(1):
        async with trio.open_nursery() as nursery:
            for number in range(waiters):
                nursery.start_soon(wait, number)
            await trio.testing.wait_all_tasks_blocked()
            assert [] == woken
            flight.remove(item)
    assert waiters == len(woken)


async def test_idle_and_busy() -> None:
    """Waiting for what holds already does not wait."""
    flight, item = Flight(), call()
    await flight.wait_idle()
    seen = []

    async def watch() -> None:
        await flight.wait_busy()
        seen.append("busy")
        await flight.wait_idle()
        seen.append("idle")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        await trio.testing.wait_all_tasks_blocked()
        flight.add(item)
        await trio.testing.wait_all_tasks_blocked()
        flight.remove(item)
    assert ["busy", "idle"] == seen
    assert "<Flight 0 requests, 0 bytes>" == repr(flight)
