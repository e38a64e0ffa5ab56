"""What is displaced by a swap keeps its name until it is in the journal, and not a moment longer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from support.faults import RacingHand
from support.hosts import Host

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine with one profile whose entries are older than what a person writes next."""
    found = Host(tmp_path)
    found.lag_s = 60
    return found


def saved(text: str) -> RacingHand:
    """Somebody saves the file as this text just before the next swap."""

    def save(path: str) -> None:
        with open(path, "wb") as file:
            file.write(text.encode())

    return RacingHand(save)


async def test_one_that_waits_holds_up_no_other(host: Host, autojump_clock: MockClock) -> None:
    """A busy file has always some displaced bytes waiting for their second look."""
    del autojump_clock
    async with host.life() as life:
        await life.add("alpha", "beta", "gamma", "delta")
        life.store.files = saved("beta\n§\ngamma\n§\ndelta\n")
        await life.add("one")
        await trio.sleep(0.8)
        life.store.files = saved("alpha\n§\nbeta\n§\ndelta\n§\none\n")
        await life.add("two")
        assert 2 == len(host.temps())
        await trio.sleep(0.6)
        assert (1, "alpha" in life.texts()) == (len(host.temps()), False)
        await trio.sleep(1)
        assert [] == host.temps()
        assert ["beta", "delta", "one", "two"] == sorted(life.texts())


async def test_what_only_adds_is_adopted_and_removed_at_once(host: Host, autojump_clock: MockClock) -> None:
    del autojump_clock
    async with host.life() as life:
        await life.add("alpha")
        life.store.files = saved("alpha\n§\nby hand\n")
        await life.add("one")
        await trio.sleep(0.1)
        assert ([], ["alpha", "by hand", "one"]) == (host.temps(), sorted(life.texts()))


async def test_after_a_crash_it_is_adopted_once(host: Host, autojump_clock: MockClock) -> None:
    """Before its second look, and when nothing of it is left to be told from the entries."""
    del autojump_clock
    async with host.life("crash") as life:
        await life.add("alpha", "beta")
        life.store.files = saved("beta\n")
        await life.add("one")
        assert 1 == len(host.temps())
    async with host.life("crash") as life:
        assert (["beta", "one"], []) == (sorted(life.texts()), host.temps())
        await life.add("alpha")
    async with host.life() as life:
        assert ["alpha", "beta", "one"] == sorted(life.texts())
