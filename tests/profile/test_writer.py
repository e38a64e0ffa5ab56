"""The writer: order, visibility, polls, checkpoints and the end, on real files under virtual time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
import trio
from msgspec.structs import replace as with_fields
from support.faults import FailingSync
from support.hosts import Host, add, change, relaxed, replace

from memd.errors import Cancelled, Conflict
from memd.profile.group import GROUP_OPERATIONS
from memd.profile.writer import CHECKPOINT_S, IDLE_CHECKPOINT_S
from memd.store.threads import InlineRunner

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from trio.testing import MockClock

    from memd.deferred import Ticket


T = TypeVar("T")


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine with one profile."""
    return Host(tmp_path)


def _note(order: list[str], name: str, ticket: Ticket) -> None:
    order.append(f"{name} {ticket.error is None}")


class Meddler(InlineRunner):
    """Takes a ticket's work out in one of the hops of its commit."""

    def __init__(self, hops: int) -> None:
        self.ticket: Ticket | None = None
        self._hops = hops

    async def run(self, fn: Callable[..., T], *args: Any) -> T:
        found = await super().run(fn, *args)
        if self.ticket is not None:
            if not self._hops:
                self.ticket.withdraw(Cancelled("taken out", outcome="none"))
            self._hops -= 1
        return found


class TestQueue:
    async def test_what_waits_is_one_group_in_order(self, host: Host, autojump_clock: MockClock) -> None:
        """One fsync, one version of the file, one revision each."""
        async with host.life() as life:
            before = life.committer.statistics()
            tickets = [life.submit(add(f"entry {number}")) for number in range(20)]
            revisions = [(await ticket.wait()).revision for ticket in tickets]
            after = life.committer.statistics()
            assert sorted(revisions) == revisions
            assert (1, 20) == (after.groups - before.groups, len(set(revisions)))
            assert [f"entry {number}" for number in range(20)] == life.texts()

    async def test_it_is_visible_when_it_is_answered(self, host: Host, autojump_clock: MockClock) -> None:
        """In the published state, in the file and in the journal."""
        async with host.life() as life:
            found: list[object] = []
            ticket = life.submit(add("alpha"))
            ticket.on_done(lambda _: found.extend([life.texts(), host.read(), life.journal.newest()[0]]))
            done = await ticket.wait()
            assert [["alpha"], "alpha\n", done.revision] == found

    async def test_an_answer_waits_for_the_state_it_is_about(self, host: Host, autojump_clock: MockClock) -> None:
        """A no-op and a refusal on top of an uncommitted write are told with it, not before."""
        async with host.life() as life:
            order: list[str] = []
            for name, mutation in (
                ("add", add("alpha")),
                ("again", add("alpha")),
                ("refused", replace("beta", "gamma")),
            ):
                life.submit(mutation).on_done(partial(_note, order, name))
            assert [] == order
            await life.add("last")
            assert ["add True", "again True", "refused False"] == order

    async def test_a_group_is_bounded(self, host: Host, autojump_clock: MockClock) -> None:
        """The rest is the next one, in order."""
        async with host.life() as life:
            before = life.committer.statistics().groups
            tickets = [life.submit(add(f"entry {number}")) for number in range(GROUP_OPERATIONS + 1)]
            for ticket in tickets:
                await ticket.wait()
            assert 2 == life.committer.statistics().groups - before
            assert [f"entry {number}" for number in range(GROUP_OPERATIONS + 1)] == life.texts()

    async def test_what_is_taken_out_in_time_is_not_done(self, host: Host, autojump_clock: MockClock) -> None:
        """Those behind it are applied without it; once its group is drained it runs to its end."""
        async with host.life() as life:
            first, second = life.submit(add("alpha")), life.submit(add("alpha two"))
            third = life.submit(replace("alpha", "beta"))
            assert second.withdraw(Cancelled("taken out", outcome="none"))
            assert not second.withdraw(Cancelled("taken out", outcome="none"))
            await third.wait()
            assert ["beta"] == life.texts()
            assert not first.withdraw(Cancelled("too late"))
            with pytest.raises(Cancelled):
                await second.wait()

    @pytest.mark.parametrize("outside", [False, True])
    async def test_what_is_planned_and_not_yet_in_the_journal_can_be_taken_out(
        self, host: Host, autojump_clock: MockClock, *, outside: bool
    ) -> None:
        """Whatever hop it happens in, also when the plan had to be made anew for an outside edit: nothing of it is done."""
        hops = 0
        while True:
            meddler = host.runner = Meddler(hops)
            async with host.life() as life:
                await life.add(f"before {hops}")
                if outside:
                    host.append(f"by hand {hops}\n")
                meddler.ticket = life.submit(add(f"taken {hops}"))
                await life.add(f"behind {hops}")
                assert (f"taken {hops}" in life.texts()) is not meddler.ticket.withdrawn
                assert f"behind {hops}" in life.texts()
                taken = meddler.ticket.withdrawn
            assert [] == host.temps()
            if not taken:
                break
            hops += 1
        assert hops >= 1 + outside

    async def test_if_revision_is_compared_in_its_turn(self, host: Host, autojump_clock: MockClock) -> None:
        """With the head as it is then, outside edits included."""
        async with host.life() as life:
            done = await life.add("alpha")
            host.append("by hand\n")
            with pytest.raises(Conflict) as caught:
                await life.do(change("add", content="beta", if_revision=done.revision))
            assert "alpha\n§\nby hand" == caught.value.extra["current"]


class TestPolls:
    async def test_files_of_profiles_with_clients_are_looked_at(self, host: Host, autojump_clock: MockClock) -> None:
        """Each second; others are not."""
        async with host.life() as life:
            await life.add("alpha")
            host.append("one\n")
            await trio.sleep(30)
            assert ["alpha"] == life.texts()
            life.profile.attach()
            await life.add("beta")
            host.append("two\n")
            await trio.sleep(1.5)
            assert ["alpha", "one", "beta", "two"] == life.texts()
            life.profile.detach()

    async def test_a_change_that_no_stat_shows_is_found_in_time(self, host: Host, autojump_clock: MockClock) -> None:
        """Every ten seconds the bytes are compared; before every commit anyway."""
        async with host.life() as life:
            life.profile.attach()
            await life.add("alpha")
            host.append("beta\n")
            life.store.image = with_fields(life.store.image, signature=life.store.files.signature(life.store.place))
            await trio.sleep(3)
            assert ["alpha"] == life.texts()
            await trio.sleep(10)
            assert ["alpha", "beta"] == life.texts()
            life.profile.detach()


class TestCheckpoints:
    async def test_an_idle_file_is_fsynced_and_recorded(self, host: Host, autojump_clock: MockClock) -> None:
        """A second after its last change."""
        async with host.life() as life:
            done = await life.add("alpha")
            await trio.sleep(IDLE_CHECKPOINT_S / 2)
            assert 0 == life.store.checkpoint
            await trio.sleep(IDLE_CHECKPOINT_S * 3)
            assert done.revision == life.store.checkpoint
            assert [done.revision, 0] == [row.checkpoint for row in life.journal.stores()]
            assert 2 == life.profile.writer.file_fsyncs

    async def test_a_busy_file_is_fsynced_every_few_seconds(self, host: Host, autojump_clock: MockClock) -> None:
        """Although it is never idle."""
        async with host.life() as life:
            for number in range(24):
                await life.add(f"entry {number}")
                await trio.sleep(0.5)
            assert 2 * 2 <= life.profile.writer.file_fsyncs <= 3 * 2
            assert trio.current_time() >= 2 * CHECKPOINT_S

    async def test_a_stop_leaves_everything_on_disk(self, host: Host, autojump_clock: MockClock) -> None:
        """Recorded in the journal."""
        async with host.life() as life:
            done = await life.add("alpha")
        connection = relaxed(host.journal_path)
        assert (done.revision,) == connection.execute("SELECT max(checkpoint) FROM store").fetchone()
        connection.close()

    async def test_a_failed_one_is_tried_again_later(self, host: Host, autojump_clock: MockClock) -> None:
        """Not at once, and with a descriptor of its own; writes go on."""
        host.files = files = FailingSync(times=3)
        async with host.life() as life:
            done = await life.add("alpha")
            await trio.sleep(2.5)
            assert (0, 2) == (life.store.checkpoint, files.asked)
            await life.add("beta")
            await trio.sleep(5)
            assert (done.revision + 1, 4) == (life.store.checkpoint, files.asked)


class TestEnd:
    async def test_everything_queued_is_done(self, host: Host, autojump_clock: MockClock) -> None:
        """And answered."""
        async with host.life() as life:
            tickets = [life.submit(add(f"entry {number}")) for number in range(10)]
        assert [None] * 10 == [ticket.error for ticket in tickets]
        assert 10 == host.read().count("entry")

    async def test_what_a_shell_still_writes_to_displaced_files_is_there(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """The last look is at the very end."""
        async with host.life() as life:
            await life.add("alpha")
            shell = host.memory.open("a")
            await life.add("beta")
            shell.write("late\n")
            shell.close()
        assert ["alpha", "beta", "late"] == sorted(host.read().replace("§\n", "").split())
        assert [] == host.temps()
