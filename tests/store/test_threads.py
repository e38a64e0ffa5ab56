"""Threads for blocking calls: results, errors, order, and calls that hang."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
import trio
import trio.lowlevel
import trio.testing

from memd.store.threads import STUCK_S, InlineRunner, ThreadRunner

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


@pytest.mark.slow
async def test_stuck_calls_are_made_up_for() -> None:
    """However many of them hang, up to the spare threads."""
    release, begun = threading.Event(), threading.Semaphore(0)
    runner = ThreadRunner("files", size=2, spare=3)

    def hang() -> None:
        begun.release()
        release.wait(30)

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(runner.run, hang)
            for _ in range(4):
                await trio.to_thread.run_sync(begun.acquire)
            assert 3 == await runner.run(int, "3")
            assert 4 == await runner.ask(int, "4")
            nursery.start_soon(runner.run, hang)
            await trio.to_thread.run_sync(begun.acquire)
            with trio.move_on_after(3 * STUCK_S) as scope:  # all five hang
                await runner.ask(int, "5")
            assert scope.cancelled_caught
            nursery.start_soon(runner.run, int, "6")
            await trio.testing.wait_all_tasks_blocked()
            assert "<ThreadRunner files: 5/2 threads, 6 calls>" == repr(runner)
            release.set()
    assert "<ThreadRunner files: 5/2 threads, 0 calls>" == repr(runner)
    runner.close()


@pytest.mark.slow
async def test_the_line_is_kept() -> None:
    """Who comes first is served first, also when somebody in front has given up."""
    releases = threading.Event(), threading.Event()
    runner = ThreadRunner("files", spare=1)
    seen: list[str] = []
    async with trio.open_nursery() as nursery:
        for release in releases:
            nursery.start_soon(runner.run, release.wait, 30)
        await trio.sleep(2 * STUCK_S)
        async with trio.open_nursery() as standing:
            for name in "abc":
                standing.start_soon(*((_give_up, runner, seen) if name == "b" else (runner.run, seen.append, name)))
                await trio.testing.wait_all_tasks_blocked()
            releases[0].set()  # one thread is free, for one after the other
        releases[1].set()
    assert ["a", "c"] == seen
    runner.close()


async def _give_up(runner: ThreadRunner, seen: list[str]) -> None:
    with trio.move_on_after(0):
        await runner.ask(seen.append, "b")


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
