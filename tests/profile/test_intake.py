"""What others left in a file is taken in first, and not on the event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from msgspec.structs import replace
from support.hosts import Host, add

from memd.profile.adoption import Older
from memd.profile.draft import Draft
from memd.profile.entries import Document, parse, render
from memd.profile.intake import _adoptions
from memd.profile.memory_store import Foreign, MemoryStore
from memd.profile.values import Limits
from memd.store.files import Files, Image
from memd.store.place import locate
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


def named(*texts: str) -> Document:
    """A document whose entries have their texts as ids, of long ago."""
    document = parse("\n§\n".join(texts).encode())
    return replace(document, entries=tuple(replace(entry, id=entry.text, updated_us=1) for entry in document.entries))


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
        assert "_adoptions" not in witness.seen
        host.write("alpha\n§\nby hand\n")
        await life.look()
        assert 1 == witness.seen.count("_adoptions")


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


@pytest.mark.parametrize(("after_us", "expected"), [(200, ["a", "b", "c", "m", "x"]), (0, ["a", "b", "c", "x"])])
def test_what_a_swap_displaced_started_from_nothing_that_came_after(
    tmp_path: Path, after_us: int, expected: list[str]
) -> None:
    """Although the head is the most like it: what a client added since stays. Unless nobody knows when it was displaced."""
    place = locate(str(tmp_path), "MEMORY.md")
    store = MemoryStore(target="memory", place=place, limits=Limits(1000), files=Files())
    store.document = named("a", "b", "c", "m")
    store.data = render(store.document)
    store.foreign.append(Foreign(named("z"), "a\n§\nb\n§\nc\n§\nx\n".encode(), after_us=after_us))
    draft = Draft(store, Image(store.data), 10**9, lambda: 1)
    older = [Older(b"", named("a", "b", "c", "m"), 250), Older(b"", named("a", "b", "c", "d", "e"), 100)]
    (found,) = _adoptions(draft, older, 0.0)
    assert expected == sorted(entry.text for entry in found.merged.document.entries)
