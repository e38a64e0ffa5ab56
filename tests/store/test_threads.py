"""Threads for blocking calls: results, errors, order, and calls that hang."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
import trio
import trio.lowlevel

from memd.store.threads import InlineRunner, ThreadRunner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memd.store.threads import Runner


@pytest.fixture(params=["inline", "threads"])
def runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    """Both runners keep the same promises."""
    if request.param == "inline":
        yield InlineRunner()
        return
    threads = ThreadRunner("test", size=2)
    yield threads
    threads.close()


async def test_a_result_comes_back(runner: Runner) -> None:
    """From ``run`` and from ``ask``."""
    assert 7 == await runner.run(int, "7")
    assert 7 == await runner.ask(int, "7")


async def test_an_exception_comes_back(runner: Runner) -> None:
    """In the task that called."""
    with pytest.raises(ValueError, match="invalid literal"):
        await runner.run(int, "x")
    with pytest.raises(ValueError, match="invalid literal"):
        await runner.ask(int, "x")


async def test_a_call_that_writes_cannot_be_cancelled(runner: Runner) -> None:
    """It would complete anyway, unseen."""
    done = []
    with trio.CancelScope() as scope:
        scope.cancel()
        done.append(await runner.run(int, "1"))
    assert [1] == done


async def test_one_thread_keeps_the_order() -> None:
    """The journal's thread carries its calls out one after the other, all in the same thread."""
    runner = ThreadRunner("one")
    seen: list[tuple[int, int]] = []

    async def call(number: int) -> None:
        await runner.run(lambda: seen.append((number, threading.get_ident())))

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(call, number)
    assert sorted(number for number, _ in seen) == sorted(range(20))
    assert 1 == len({thread for _, thread in seen})
    assert "<ThreadRunner one: 1/1 threads, 0 calls>" == repr(runner)
    runner.close()
    with pytest.raises(RuntimeError, match="is closed"):
        await runner.run(int)


async def test_a_hung_call_holds_one_thread_only() -> None:
    """Others go on, and the end does not wait for it longer than it is told to."""
    hung, release = threading.Event(), threading.Event()
    runner = ThreadRunner("files", size=2)

    def hang() -> None:
        hung.set()
        release.wait(10)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(runner.run, hang)
        while not hung.is_set():
            await trio.lowlevel.checkpoint()
        assert 3 == await runner.run(int, "3")
        runner.close(timeout=0.01)
        release.set()


async def test_a_look_may_be_abandoned() -> None:
    """Its answer, when it comes, goes to nobody."""
    release = threading.Event()
    runner = ThreadRunner("looks")
    with trio.move_on_after(0.01) as scope:
        await runner.ask(release.wait, 10)
    assert scope.cancelled_caught
    release.set()
    assert 4 == await runner.run(int, "4")
    runner.close()
