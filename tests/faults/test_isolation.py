"""One store on a disk that does not answer, or is full, beside nine on a healthy one: theirs are not delayed.

Real threads and real time, but nothing is measured: the nine get through many changes while the tenth is known to be stuck.
"""

from __future__ import annotations

import errno
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio
from support.hosts import Host, add

from memd.errors import Busy, DeadlineExceeded, NoSpace, from_oserror
from memd.store.files import Files, Image, Signature
from memd.store.locks import OWNER_FILE, Ownership
from memd.store.threads import ThreadRunner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memd.store.place import Place

pytestmark = pytest.mark.slow

HEALTHY = [f"p{number}" for number in range(9)]
CHANGES = 20
PATIENCE_S = 60


class SickDisk(Files):
    """Everything about one directory hangs until it is let go, or finds no room."""

    def __init__(self, name: str, *, full: bool = False) -> None:
        super().__init__()
        self.sick = threading.Event()
        self.stuck = threading.Event()
        self.well = threading.Event()
        self._name = name
        self._full = full

    def read(self, place: Place) -> Image:
        self._hang(place)
        return super().read(place)

    def signature(self, place: Place) -> Signature:
        self._hang(place)
        return super().signature(place)

    def _hang(self, place: Place) -> None:
        if self._concerns(place) and not self._full:
            self.stuck.set()
            assert self.well.wait(PATIENCE_S)

    def write_temp(self, place: Place, data: bytes, like: Image) -> str:
        if self._concerns(place) and self._full:
            raise from_oserror(OSError(errno.ENOSPC, "full"), place.path, step="write")
        return super().write_temp(place, data, like)

    def _concerns(self, place: Place) -> bool:
        return self.sick.is_set() and place.directory.endswith(self._name)


class HangingClaim(Ownership):
    """A claim on a directory whose disk does not answer until it is ``well``."""

    def __init__(self, real: Ownership) -> None:
        super().__init__(str(Path(real.path).parent))
        self.well = threading.Event()
        self._real = real

    def still_held(self) -> bool:
        assert self.well.wait(PATIENCE_S)
        return self._real.still_held()

    def release(self) -> None:
        self._real.release()


@pytest.fixture
def files() -> Iterator[ThreadRunner]:
    runner = ThreadRunner("files", size=4)
    yield runner
    runner.close()


def machine(root: Path, disk: SickDisk, runner: ThreadRunner) -> Host:
    host = Host(root, profiles={"sick": "sick", **{name: name for name in HEALTHY}})
    host.files, host.runner = disk, runner
    return host


async def test_a_disk_that_hangs(tmp_path: Path, files: ThreadRunner) -> None:
    """The others go on; its own callers can give up, with the right outcome; when it is well all that was asked is done."""
    disk = SickDisk("/sick")
    async with machine(tmp_path, disk, files).life() as life:
        sick = life.profiles.by_name["sick"]
        await sick.submit(add("before")).wait()
        disk.sick.set()
        waiting, given_up = sick.submit(add("waits")), sick.submit(add("given up"))
        with trio.fail_after(PATIENCE_S):
            await trio.to_thread.run_sync(disk.stuck.wait)
            for number in range(CHANGES):
                for name in HEALTHY:
                    await life.profiles.by_name[name].submit(add(f"{name} {number}")).wait()
        assert not waiting.done
        assert given_up.withdraw(DeadlineExceeded("too late", outcome="none"))
        assert ["before"] == [entry.text for entry in sick.state("memory").document.entries]
        disk.sick.clear()
        disk.well.set()
        with trio.fail_after(PATIENCE_S):
            await waiting.wait()
        assert ["before", "waits"] == [entry.text for entry in sick.state("memory").document.entries]
        assert "before\n§\nwaits\n" == (tmp_path / "sick" / "MEMORY.md").read_text()
    healthy = "\n§\n".join(f"p0 {number}" for number in range(CHANGES)) + "\n"
    assert healthy == (tmp_path / "p0" / "MEMORY.md").read_text()


async def test_reads_of_a_disk_that_hangs(tmp_path: Path, files: ThreadRunner) -> None:
    """Each is answered from what is published; they hold one thread, not one each, whatever the pool has."""
    disk = SickDisk("/sick")
    async with machine(tmp_path, disk, files).life() as life:
        sick = life.profiles.by_name["sick"]
        await sick.submit(add("before")).wait()
        disk.sick.set()
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                for _ in range(20):
                    nursery.start_soon(sick.look)
            await sick.look()
            for name in HEALTHY:
                await life.profiles.by_name[name].submit(add("beside it")).wait()
            assert ["before"] == [entry.text for entry in sick.state("memory").document.entries]
            disk.sick.clear()
            disk.well.set()
            await sick.look()
            await sick.submit(add("after")).wait()


async def test_a_disk_that_is_full(tmp_path: Path, files: ThreadRunner) -> None:
    """Its callers are refused at once, in the same groups in which the others are served."""
    disk = SickDisk("/sick", full=True)
    async with machine(tmp_path, disk, files).life() as life:
        sick = life.profiles.by_name["sick"]
        await sick.submit(add("before")).wait()
        disk.sick.set()
        with trio.fail_after(PATIENCE_S):
            for number in range(CHANGES):
                refused = sick.submit(add(f"refused {number}"))
                tickets = [life.profiles.by_name[name].submit(add(f"{name} {number}")) for name in HEALTHY]
                for ticket in tickets:
                    await ticket.wait()
                with pytest.raises(NoSpace) as caught:
                    await refused.wait()
                assert "none" == caught.value.outcome
        disk.sick.clear()
        await sick.submit(add("after")).wait()
        assert ["before", "after"] == [entry.text for entry in sick.state("memory").document.entries]


async def test_many_on_a_disk_that_hangs(tmp_path: Path) -> None:
    """More of them than there are threads: the others have theirs all the same."""
    runner = ThreadRunner("files", size=4, spare=64)
    disk = SickDisk("sick")
    names = [f"{number}sick" for number in range(10)]
    host = Host(tmp_path, profiles={name: name for name in (*names, *HEALTHY)})
    host.files, host.runner = disk, runner
    async with host.life() as life:
        disk.sick.set()
        with trio.fail_after(PATIENCE_S):
            waiting = [life.profiles.by_name[name].submit(add("waits")) for name in names]
            for number in range(CHANGES):
                for name in HEALTHY:
                    await life.profiles.by_name[name].submit(add(f"{name} {number}")).wait()
            assert not any(ticket.done for ticket in waiting)
            disk.sick.clear()
            disk.well.set()
            for ticket in waiting:
                await ticket.wait()
    runner.close()


async def test_a_start_with_disks_that_hang(tmp_path: Path) -> None:
    """The others are served; those say that they are still being opened, once, and join when their disk answers."""
    runner = ThreadRunner("files", size=4, spare=64)
    disk = SickDisk("sick")
    disk.sick.set()
    names = [f"{number}sick" for number in range(6)]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "MEMORY.md").write_text("before\n")
    host = Host(tmp_path, profiles={name: name for name in (*names, *HEALTHY)})
    host.files, host.runner = disk, runner
    with trio.fail_after(PATIENCE_S):
        async with host.life() as life:
            assert (set(names), set(HEALTHY)) == (set(life.profiles.problems), set(life.profiles.by_name))
            problem = life.profiles.problems["0sick"]
            assert isinstance(problem, Busy)
            assert "profile 0sick is still being opened" in problem.message
            assert str(tmp_path / "0sick") == problem.path
            for name in HEALTHY:
                await life.profiles.by_name[name].submit(add("beside")).wait()
            assert [] == await life.profiles.open_refused()
            life.profiles.keep_refused({*names, *HEALTHY})
            disk.sick.clear()
            disk.well.set()
            joined: list[str] = []
            while len(joined) < len(names):
                joined += await life.profiles.open_refused()
                await trio.sleep(0.01)
            assert (names, {}) == (sorted(joined), life.profiles.problems)
            for name in names:
                profile = life.profiles.by_name[name]
                await profile.submit(add("after")).wait()
                assert ["before", "after"] == [entry.text for entry in profile.state("memory").document.entries]
    runner.close()


async def test_a_directory_that_hangs_hides_no_loss(tmp_path: Path) -> None:
    """Others' claims are checked all the same."""
    runner = ThreadRunner("files", size=2, spare=8)
    host = Host(tmp_path, profiles={name: name for name in HEALTHY})
    host.runner = runner
    with trio.fail_after(PATIENCE_S):
        async with host.life() as life:
            claims = life.profiles._claims
            first, *_, last = claims._owned
            hanging = claims._owned[first] = HangingClaim(claims._owned[first])
            (tmp_path / HEALTHY[-1] / OWNER_FILE).unlink()
            other = Ownership(str(tmp_path / HEALTHY[-1]))
            other.claim()
            assert [] == await life.profiles.check_ownership()
            assert [str(tmp_path / HEALTHY[-1])] == await life.profiles.check_ownership()
            assert last in claims.lost
            hanging.well.set()
            other.release()
    runner.close()
