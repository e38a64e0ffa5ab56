"""Field cases about several writers of one store: each is one kind of trouble, put right.

FR-01 two clients at the same time; FR-02 what a shell appended before a replacement; FR-37 several calls of one reply; FR-95 another
profile is opened in between. The other storage cases are in ``test_outside``; ``tests/data/cases.toml`` lists all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from support.hosts import Host, add, remove, replace

if TYPE_CHECKING:
    from pathlib import Path

    from support.hosts import Life
    from trio.testing import MockClock


async def test_two_clients_at_the_same_time(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Every acknowledged entry is there, also after a crash, and the revisions that were acknowledged only grow."""
    host = Host(tmp_path)
    revisions: list[int] = []

    async def client(life: Life, name: str) -> None:
        for number in range(50):
            done = await life.do(add(f"{name}-{number:02}"))
            revisions.append(done.revision)

    wanted = sorted(f"{name}-{number:02}" for name in "AB" for number in range(50))
    async with host.life("crash") as life:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client, life, "A")
            nursery.start_soon(client, life, "B")
        assert wanted == sorted(life.texts())
    assert 100 == len(set(revisions))
    assert wanted == sorted(host.read().rstrip("\n").split("\n§\n"))
    async with host.life() as life:
        assert wanted == sorted(life.texts())


async def test_what_a_shell_appended_survives_a_replacement(tmp_path: Path, autojump_clock: MockClock) -> None:
    """It is an entry of its own, and the replaced one is only what it was."""
    host = Host(tmp_path)
    host.write("alpha\n§\nbeta")
    async with host.life() as life:
        host.append("\nadded by a shell\n")
        await life.do(replace("beta", "beta v2"))
        assert ["alpha", "beta v2", "added by a shell"] == life.texts()
    assert "alpha\n§\nbeta v2\n§\nadded by a shell\n" == host.read()


async def test_calls_that_do_not_wait_for_each_other(tmp_path: Path, autojump_clock: MockClock) -> None:
    """They take effect in the order in which they were sent, each on what those before it left."""
    host = Host(tmp_path)
    async with host.life() as life:
        tickets = [life.submit(it) for it in (add("one"), replace("one", "two"), add("three"), remove("two"))]
        for ticket in tickets:
            await ticket.wait()
        assert ["three"] == life.texts()
        assert ["change"] * 4 == await life.kinds()
    assert "three\n" == host.read()


async def test_what_is_under_way_stays_in_its_profile(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Whatever else is opened and written before it is done."""
    host = Host(tmp_path, profiles={"p": "p", "q": "q"})
    async with host.life() as life:
        other = life.profiles.by_name["q"]
        first, second = life.submit(add("of p")), other.submit(add("of q"))
        await second.wait()
        await first.wait()
        assert ["of p"] == life.texts()
    assert ("of p\n", "of q\n") == (host.read(), (tmp_path / "q" / "MEMORY.md").read_text())
