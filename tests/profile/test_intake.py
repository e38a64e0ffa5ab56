"""What others left in a file is taken in first, and not on the event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from support.hosts import Host, add

from memd.store.threads import InlineRunner

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from trio.testing import MockClock

T = TypeVar("T")


class Witness(InlineRunner):
    """Notes which functions were given to threads."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def run(self, fn: Callable[..., T], *args: Any) -> T:
        self.seen.append(fn.__name__)
        return await super().run(fn, *args)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine with one profile, a minute behind the clock of its files."""
    host = Host(tmp_path)
    host.lag_s = 60
    return host


async def test_what_the_file_holds_is_adopted_first(host: Host, autojump_clock: MockClock) -> None:
    """Whoever writes is told; its bytes are kept if the file is written over them at once."""
    async with host.life() as life:
        host.write("alpha\n")
        done = await life.do(add("beta"))
        assert ["outside_adopted"] == [notice.name for notice in done.notices]
        assert ("alpha\n§\nbeta\n", ["alpha", "beta"]) == (host.read(), life.texts())
        kinds = [row[0] for row in life.journal.connection.execute("SELECT kind FROM revision ORDER BY revision")]
        kept = [row[0] for row in life.journal.connection.execute("SELECT data FROM preimage")]
        assert (["outside", "change"], [b"alpha\n"]) == (kinds, kept)


async def test_merging_is_done_in_a_thread(host: Host, autojump_clock: MockClock) -> None:
    """A change of our own does not pay for it."""
    host.runner = witness = Witness()
    async with host.life() as life:
        await life.add("alpha", "beta")
        assert "_take" not in witness.seen
        host.write("alpha\n§\nby hand\n")
        await life.look()
        assert 1 == witness.seen.count("_take")


async def test_what_stays_against_the_file_is_told(host: Host, autojump_clock: MockClock) -> None:
    """Whoever deleted it by hand hears why it is there."""
    async with host.life() as life:
        await life.add("alpha", "beta")
        old = host.read()
        await life.add("gamma")
        host.write(f"{old}§\nby hand\n")
        done = await life.do(add("delta"))
        assert ["alpha", "beta", "gamma", "by hand", "delta"] == life.texts()
        (notice,) = [notice for notice in done.notices if notice.name == "outside_adopted"]
        assert "1 change; 1 entry written since it was read stays" in notice.message
        assert 1 == len(notice.data["kept"])
