"""Preparing: locks of other programs, files that cannot be read, and bytes that have to stand still."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
import trio
from support.hosts import CALLER, Host, add, held

from memd.errors import Busy, StoreUnreadable
from memd.profile.adoption import SETTLE_EMPTY_S, SETTLE_S

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from trio.testing import MockClock


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine with one profile."""
    return Host(tmp_path)


class TestOutsideLock:
    async def test_work_waits_for_the_lock(self, host: Host, autojump_clock: MockClock) -> None:
        """It is tried again until it is free; reads go on."""
        async with host.life() as life:
            await life.add("alpha")
            with held(host.directory / "MEMORY.md.lock"):
                ticket = life.submit(add("beta"))
                await trio.sleep(5)
                assert (False, ["alpha"]) == (ticket.done, life.texts())
                assert isinstance(ticket.blocked_by, Busy)
            await ticket.wait()
            assert ["alpha", "beta"] == life.texts()

    async def test_whoever_gives_up_learns_who_holds_it(self, host: Host, autojump_clock: MockClock) -> None:
        """The deadline is the caller's; nothing was changed."""
        async with host.life() as life:
            await life.add("alpha")
            with held(host.directory / "MEMORY.md.lock"):
                ticket = life.submit(add("beta"))
                await trio.sleep(1)
                assert ticket.blocked_by is not None
                assert "pid" in str(ticket.blocked_by)
                assert ticket.withdraw(ticket.blocked_by)
            await trio.sleep(1)
            assert ["alpha"] == life.texts()

    async def test_the_other_store_does_not_wait(self, host: Host, autojump_clock: MockClock) -> None:
        """Only work that needs both files does, and what stands behind it; the waiting costs no processor."""
        async with host.life() as life:
            await life.add("alpha")
            await life.do(add("beta", target="user"))
            with held(host.directory / "MEMORY.md.lock"):
                waiting = life.submit(add("gamma"))
                await life.do(add("delta", target="user"))
                assert not waiting.done
                cycles = _Counted(life.store.lock.acquire)
                life.store.lock.acquire = cycles  # type: ignore[method-assign]  # counts attempts
                await trio.sleep(1)
                assert 10 <= cycles.count <= 25
            await waiting.wait()

    async def test_at_the_end_nobody_waits_for_it(self, host: Host, autojump_clock: MockClock) -> None:
        """What others block is refused, and the daemon ends."""
        with ExitStack() as stack, trio.fail_after(5):
            async with host.life() as life:
                await life.add("alpha")
                stack.enter_context(held(host.directory / "MEMORY.md.lock"))
                ticket = life.submit(add("beta"))
                await trio.sleep(0.2)
        assert isinstance(ticket.error, Busy)

    async def test_without_a_usable_lock_writing_goes_on(self, host: Host, autojump_clock: MockClock) -> None:
        """And every session is told."""
        host.directory.mkdir()
        (host.directory / "MEMORY.md.lock").mkdir()
        async with host.life() as life:
            await life.add("alpha")
            assert "alpha\n" == host.read()
            assert ["lock_unusable"] == [notice.name for notice in life.profile.state("memory").notices]

    async def test_it_is_free_between_groups(self, host: Host, autojump_clock: MockClock) -> None:
        """Other programs get their turn."""
        async with host.life() as life:
            await life.add("alpha")
            await trio.sleep(0.01)
            with held(host.directory / "MEMORY.md.lock"):
                pass


class _Counted:
    """Counts its calls."""

    def __init__(self, call: Callable[[], None]) -> None:
        self.count = 0
        self._call = call

    def __call__(self) -> None:
        self.count += 1
        self._call()


class TestSettling:
    async def test_what_only_adds_is_believed_at_once(self, host: Host, autojump_clock: MockClock) -> None:
        """A write does not wait for it, and says so."""
        async with host.life() as life:
            await life.add("alpha")
            host.append("by hand\n")
            begun = trio.current_time()
            done = await life.add("beta")
            assert begun == trio.current_time()
            assert ["alpha", "by hand", "beta"] == life.texts()
            assert ["outside_adopted"] == [notice.name for notice in done.notices]
            assert ["change", "outside", "change"] == await life.kinds()

    @pytest.mark.parametrize(("left", "wait"), [("beta", SETTLE_S), ("alpha", SETTLE_EMPTY_S)])
    async def test_what_drops_entries_has_to_stand_still(
        self, host: Host, left: str, wait: float, autojump_clock: MockClock
    ) -> None:
        """Writes of this store wait meanwhile, longer if the end is missing: it may still come."""
        host.lag_s = 60
        async with host.life() as life:
            await life.add("alpha", "beta")
            host.write(f"{left}\n")
            begun = trio.current_time()
            await life.add("gamma")
            assert wait <= trio.current_time() - begun < wait + SETTLE_S
            assert [left, "gamma"] == life.texts()

    async def test_a_restore_by_truncating_and_writing_is_one_edit(self, host: Host, autojump_clock: MockClock) -> None:
        """``: > file; sleep 0.3; cat good >> file``, while clients write (FR-13)."""
        host.lag_s = 60
        async with host.life() as life:
            await life.add("alpha", "beta")
            host.write("")
            ticket = life.submit(add("gamma"))
            await trio.sleep(0.3)
            host.append("alpha\n§\nbeta\n")
            await ticket.wait()
            assert ["alpha", "beta", "gamma"] == life.texts()
            assert ["change", "change", "change"] == await life.kinds()

    @pytest.mark.parametrize("missing", [True, False])
    async def test_an_emptied_store_is_shown_empty(self, host: Host, missing: bool, autojump_clock: MockClock) -> None:
        """After half a second; the content is in the journal, it is said, and a restore is offered (FR-48)."""
        host.lag_s = 60
        async with host.life() as life:
            done = await life.add("alpha", "beta")
            if missing:
                host.memory.unlink()
            else:
                host.write("")
            begun = trio.current_time()
            await life.look()
            assert SETTLE_EMPTY_S <= trio.current_time() - begun < 2 * SETTLE_EMPTY_S
            assert [] == life.texts()
            assert "outside.adopted" in life.topics()
            (notice,) = life.profile.state("memory").notices
            assert ("store_emptied", done.revision) == (notice.name, notice.data["revision"])
            await life.profile.restore("memory", done.revision, CALLER)
            assert ("alpha\n§\nbeta\n", ()) == (host.read(), life.profile.state("memory").notices)

    async def test_git_conflict_markers_are_not_believed(self, host: Host, autojump_clock: MockClock) -> None:
        """The last good state is served, and the file is left alone until they are gone."""
        async with host.life() as life:
            await life.add("alpha")
            text = "<<<<<<< ours\nalpha\n=======\nbeta\n>>>>>>> theirs\n"
            host.write(text)
            with pytest.raises(StoreUnreadable, match="conflict markers"):
                await life.add("gamma")
            assert (["alpha"], "stale", text) == (life.texts(), life.profile.state("memory").condition, host.read())
            host.write("alpha\n§\nbeta\n")
            await life.look()
            assert (["alpha", "beta"], "ok") == (life.texts(), life.profile.state("memory").condition)


class TestUnreadable:
    async def test_a_moment_is_bridged(self, host: Host, autojump_clock: MockClock) -> None:
        """A sync client replaces the file by something else for 200 ms (FR-08)."""
        async with host.life() as life:
            await life.add("alpha")
            host.memory.rename(host.directory / "aside")
            host.memory.mkdir()
            ticket = life.submit(add("beta"))
            await trio.sleep(0.2)
            host.memory.rmdir()
            (host.directory / "aside").rename(host.memory)
            await ticket.wait()
            assert (["alpha", "beta"], []) == (
                life.texts(),
                [topic for topic in life.topics() if topic == "store.state"],
            )

    async def test_unreadable_is_not_empty(self, host: Host, autojump_clock: MockClock) -> None:
        """The bytes stay, the last good state is served as stale, and it is told; then all goes on (FR-05)."""
        async with host.life() as life:
            await life.add("alpha")
            host.memory.rename(host.directory / "aside")
            host.memory.mkdir()
            with pytest.raises(StoreUnreadable, match="is a directory"):
                await life.add("beta")
            state = life.profile.state("memory")
            assert (["alpha"], "stale") == (life.texts(), state.condition)
            await trio.sleep(2)
            assert "store.state" in life.topics()
            host.memory.rmdir()
            (host.directory / "aside").rename(host.memory)
            await life.add("gamma")
            assert (["alpha", "gamma"], "ok") == (life.texts(), life.profile.state("memory").condition)

    async def test_a_huge_file_is_left_alone(self, host: Host, autojump_clock: MockClock) -> None:
        """50 MB are no memory."""
        async with host.life() as life:
            await life.add("alpha")
            with host.memory.open("wb") as file:
                file.truncate(50 * 1024 * 1024)
            with pytest.raises(StoreUnreadable, match="52,428,800 bytes"):
                await life.add("beta")
            assert (50 * 1024 * 1024, []) == (host.memory.stat().st_size, host.temps())

    @pytest.mark.parametrize("after", [0, 2])
    async def test_a_directory_that_was_replaced_is_not_written(
        self, host: Host, after: float, autojump_clock: MockClock
    ) -> None:
        """Never empty, however soon it is asked, and fine again when it comes back."""
        async with host.life() as life:
            await life.add("alpha")
            host.directory.rename(host.root / "aside")
            host.directory.mkdir()
            await trio.sleep(after)
            with pytest.raises(StoreUnreadable, match="not the one memd started with"):
                await life.add("beta")
            assert (["alpha"], False) == (life.texts(), host.memory.exists())
            (host.directory / "MEMORY.md.lock").unlink(missing_ok=True)
            host.directory.rmdir()
            (host.root / "aside").rename(host.directory)
            await trio.sleep(2)
            await life.add("gamma")
            assert "alpha\n§\ngamma\n" == host.read()

    async def test_a_link_that_leads_elsewhere_is_not_followed(self, host: Host, autojump_clock: MockClock) -> None:
        """Until a restart."""
        host.directory.mkdir()
        for name in ("one.md", "two.md"):
            (host.directory / name).write_text(f"{name}\n")
        host.memory.symlink_to("one.md")
        async with host.life() as life:
            assert ["one.md"] == life.texts()
            await life.add("alpha")
            assert "one.md\n§\nalpha\n" == (host.directory / "one.md").read_text()
            host.memory.unlink()
            host.memory.symlink_to("two.md")
            await trio.sleep(2)
            with pytest.raises(StoreUnreadable, match="now leads to"):
                await life.add("beta")
        assert "two.md\n" == (host.directory / "two.md").read_text()
        async with host.life() as life:
            assert ["two.md"] == life.texts()
