"""A file that somebody else builds line by line, for longer than anybody waits, beside clients that write."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import IO, TYPE_CHECKING

import pytest
import trio
from support.hosts import Host, add, change, remove

from memd.profile.adoption import BUILDING_MOST_S, SETTLE_EMPTY_S, SETTLE_MOST_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from trio.testing import MockClock

PAUSE_S = 0.3
NAMES = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine with one profile whose entries are older than what others write next."""
    found = Host(tmp_path)
    found.lag_s = 60
    return found


@contextmanager
def opened(host: Host) -> Iterator[IO[bytes]]:
    """The file, truncated, as ``open(name, "w")`` does."""
    with host.memory.open("wb", buffering=0) as file:
        yield file


async def build(file: IO[bytes], texts: list[str], pause_s: float = PAUSE_S, *, held_up_at: int = -1) -> None:
    """Write these entries, border by border and line by line, perhaps with a longer pause before one of them."""
    for index, text in enumerate(texts):
        await trio.sleep(1.5 if index == held_up_at else 0)
        file.write(f"{'§' + chr(10) if index else ''}{text}\n".encode())
        await trio.sleep(pause_s)


async def test_clients_go_on_and_nothing_is_dropped_or_brought_back(host: Host, autojump_clock: MockClock) -> None:
    """What is not written yet is not deleted, what was removed since it was read stays removed, what it brings is there."""
    async with host.life() as life:
        await life.add(*NAMES)
        await life.do(remove("beta"))
        begun = trio.current_time()
        with opened(host) as file:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(build, file, [*NAMES, "by a script"])
                await trio.sleep(0.1)
                await life.do(add("meanwhile"))
                assert pytest.approx(begun + SETTLE_MOST_S, abs=0.2) == trio.current_time()
                expected = [name for name in NAMES if name != "beta"]
                assert [*expected, "meanwhile"] == life.texts()
                await life.do(remove("kappa"))
                await life.do(add("and on"))
                assert pytest.approx(begun + SETTLE_MOST_S, abs=0.3) == trio.current_time()
        assert 1 == len(host.temps())
        await trio.sleep(4.5)
        expected.remove("kappa")
        assert sorted([*expected, "meanwhile", "and on", "by a script"]) == sorted(life.texts())
        assert ([], life.texts()) == (host.temps(), host.read().removesuffix("\n").split("\n§\n"))


async def test_what_a_complete_file_lacks_is_gone(host: Host, autojump_clock: MockClock) -> None:
    """A script that leaves an entry out has deleted it, once it is done; also where its file was put aside."""
    async with host.life() as life:
        await life.add(*NAMES)
        with opened(host) as file:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(build, file, [name for name in NAMES if name != "gamma"])
                await life.do(add("meanwhile"))
                assert "gamma" in life.texts()
        await trio.sleep(4.5)
        assert sorted([*(name for name in NAMES if name != "gamma"), "meanwhile"]) == sorted(life.texts())


async def test_without_clients_it_is_adopted_when_it_is_complete(host: Host, autojump_clock: MockClock) -> None:
    """Nobody needs the half of it; whoever asks is answered after two seconds from what there was."""
    async with host.life() as life:
        await life.add(*NAMES)
        with opened(host) as file:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(build, file, [*NAMES[2:], "by a script"])
                await trio.sleep(0.1)
                await life.profile.writer.look().wait()
                assert pytest.approx(SETTLE_MOST_S, abs=0.3) == trio.current_time()
                await trio.sleep(0.4)
                assert NAMES == life.texts()
        await trio.sleep(SETTLE_EMPTY_S + 0.1)
        assert [*NAMES[2:], "by a script"] == life.texts()


@pytest.mark.parametrize("clients", [True, False])
async def test_a_script_may_be_held_up(host: Host, clients: bool, autojump_clock: MockClock) -> None:
    """For more than a second in the middle of an old version: half of that says nothing."""
    async with host.life() as life:
        await life.add(*NAMES)
        await life.do(remove("beta"))
        rest = [name for name in NAMES if name != "beta"]
        with opened(host) as file:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial(build, file, [*NAMES, "by a script"], held_up_at=4))
                await trio.sleep(0.1)
                if clients:
                    await life.do(add("meanwhile"))
                    rest.append("meanwhile")
                for _ in range(25):
                    assert rest == life.texts()
                    await trio.sleep(0.1)
                    life.profile.writer.look()
        await trio.sleep(4.5)
        assert {*rest, "by a script"} == set(life.texts())


async def test_refusals_and_no_ops_are_answered_too(host: Host, autojump_clock: MockClock) -> None:
    """They put nothing aside, and the file is still looked at."""
    async with host.life() as life:
        await life.add(*NAMES)
        with opened(host) as file:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(build, file, NAMES[1:])
                await trio.sleep(0.1)
                assert not (await life.do(add("alpha"))).changed
                assert not (await life.do(change("add", content="alpha", request_id="one"))).changed
                assert [] == host.temps()
        await trio.sleep(SETTLE_EMPTY_S + 0.1)
        assert NAMES[1:] == life.texts()


async def test_what_never_ends_is_adopted_as_it_is(host: Host, autojump_clock: MockClock) -> None:
    """After a minute, put aside or not; and what it still brings after that."""
    async with host.life() as life:
        await life.add(*NAMES)
        with opened(host) as file:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(build, file, [*NAMES, *(f"line {number}" for number in range(250))])
                await life.do(add("meanwhile"))
                assert [*NAMES, "meanwhile"] == life.texts()
                await trio.sleep(BUILDING_MOST_S + 4)
                assert {"meanwhile", "line 0", "line 100"} <= set(life.texts())
        await trio.sleep(4.5)
        assert {f"line {number}" for number in range(250)} <= set(life.texts())


async def test_who_begins_with_a_line_of_their_own_drops_nothing_either(host: Host, autojump_clock: MockClock) -> None:
    """Such a file looks like a new one at first, and is believed as one; what it goes on with was not meant to go."""
    async with host.life() as life:
        await life.add(*NAMES)
        await life.do(remove("beta"))
        with opened(host) as file:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(build, file, ["by a script", *NAMES])
                await trio.sleep(0.05)
                await life.do(add("meanwhile"))
                assert ["by a script", "meanwhile"] == life.texts()
        await trio.sleep(4.5)
        expected = {name for name in NAMES if name != "beta"}
        assert {*expected, "meanwhile", "by a script"} == set(life.texts())


async def test_the_same_without_clients(host: Host, autojump_clock: MockClock) -> None:
    """The rest comes at once."""
    async with host.life() as life:
        await life.add(*NAMES)
        await life.do(remove("beta"))
        with opened(host) as file:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(build, file, ["by a script", *NAMES])
                await trio.sleep(0.05)
                await life.look()
                assert ["by a script"] == life.texts()
        await life.look()
        assert {*(name for name in NAMES if name != "beta"), "by a script"} == set(life.texts())


@pytest.mark.parametrize("looks", [1, 2, 4])
async def test_the_same_with_pauses_in_which_it_looks_complete(
    host: Host, looks: int, autojump_clock: MockClock
) -> None:
    """It is taken in several times as it grows, and then put aside by a change of our own."""
    async with host.life() as life:
        await life.add(*NAMES)
        await life.do(remove("beta"))
        with opened(host) as file:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(build, file, ["by a script", *NAMES], 0.7)
                await trio.sleep(0.05)
                for _ in range(looks):
                    await life.look()
                    await trio.sleep(0.7)
                await life.do(add("meanwhile"))
        await trio.sleep(4.5)
        expected = {name for name in NAMES if name != "beta"}
        assert {*expected, "meanwhile", "by a script"} == set(life.texts())


async def test_at_the_end_it_is_adopted_as_it_is(host: Host, autojump_clock: MockClock) -> None:
    """memd stops while somebody still writes: what is there by then is not lost."""
    async with host.life() as life:
        await life.add(*NAMES)
        with opened(host) as file:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(build, file, ["by a script", *NAMES[:6]])
                await life.do(add("meanwhile"))
    async with host.life() as life:
        assert {"by a script", "meanwhile", *NAMES[:6]} <= set(life.texts())
        assert [] == host.temps()


async def test_after_a_crash_it_is_adopted_as_it_is(host: Host, autojump_clock: MockClock) -> None:
    """It kept its name until then."""
    async with host.life("crash") as life:
        await life.add(*NAMES)
        with opened(host) as file:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(build, file, [*NAMES, "by a script"])
                await life.do(add("meanwhile"))
        assert 1 == len(host.temps())
    async with host.life() as life:
        assert {*NAMES, "by a script", "meanwhile"} == set(life.texts())
        assert [] == host.temps()
