"""Committing: what callers hear when the journal or the disk fails, and that it is the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from support.faults import FSYNC, FULL, FailingJournal, FullDisk
from support.hosts import Host, add, remove, replace

from memd.errors import Conflict, IoFailure, NoSpace, NotFound
from memd.store.reserve import Reserve

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock

    from memd.store.files import Image
    from memd.store.place import Place


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine with one profile."""
    return Host(tmp_path)


class TestFailures:
    @pytest.fixture
    def plan(self, host: Host) -> FailingJournal:
        """What fails, and where."""
        plan = FailingJournal()
        host.connect = plan.connect
        return plan

    @pytest.mark.parametrize("at", ["BEGIN", "INSERT OR REPLACE INTO revision", "COMMIT"])
    async def test_a_definite_error_never_reappears(
        self, host: Host, plan: FailingJournal, at: str, autojump_clock: MockClock
    ) -> None:
        """Not in the file, not after a restart; what waits behind is applied on what is there."""
        async with host.life() as life:
            await life.add("alpha")
            plan.fail(at)
            with pytest.raises(IoFailure) as caught:
                await life.do(replace("alpha", "lost"))
            assert "none" == caught.value.outcome
            await life.do(replace("alpha", "beta"))
            assert ("beta\n", []) == (host.read(), host.temps())
        async with host.life() as life:
            assert (["beta"], ["change", "change"]) == (life.texts(), await life.kinds())

    async def test_asked_again_before_anybody_knows_it_is_still_unknown(
        self, host: Host, plan: FailingJournal, autojump_clock: MockClock
    ) -> None:
        """That nothing was done may only be said once the journal has been read; then the answer comes from it."""
        async with host.life() as life:
            await life.add("alpha")
            mutation = add("beta", request_id="r")
            plan.fail("COMMIT", done=True, opening=4)
            outcomes = []
            for _ in range(3):
                with pytest.raises(IoFailure) as caught:
                    await life.do(mutation)
                outcomes.append(caught.value.outcome)
            with pytest.raises(IoFailure) as caught:
                await life.add("another call")
            outcomes.append(caught.value.outcome or "none")
            assert ["unknown", "unknown", "unknown", "none"] == outcomes
            plan.heal()
            await trio.sleep(3)
            done = await life.do(mutation)
            assert (True, ["alpha", "beta"]) == (done.replayed, life.texts())

    async def test_refusals_of_a_group_that_fails_fail_with_it(
        self, host: Host, plan: FailingJournal, autojump_clock: MockClock
    ) -> None:
        """They were about a state that never came to be."""
        async with host.life() as life:
            await life.add("alpha")
            plan.fail("COMMIT")
            first, second = life.submit(remove("alpha")), life.submit(replace("alpha", "beta"))
            for ticket in (first, second):
                with pytest.raises(IoFailure):
                    await ticket.wait()
            with pytest.raises(NotFound):
                await life.do(replace("gamma", "delta"))
            assert ["alpha"] == life.texts()

    async def test_a_commit_that_counts_after_all_is_acknowledged(
        self, host: Host, plan: FailingJournal, autojump_clock: MockClock
    ) -> None:
        """The caller hears of nothing."""
        async with host.life() as life:
            plan.fail("COMMIT", done=True)
            await life.add("alpha")
            assert "alpha\n" == host.read()

    @pytest.mark.parametrize("done", [True, False])
    async def test_what_is_unknown_is_done_once(
        self, host: Host, plan: FailingJournal, done: bool, autojump_clock: MockClock
    ) -> None:
        """Whoever asks again under the same id learns it as soon as the journal can be read."""
        async with host.life() as life:
            await life.add("alpha")
            plan.fail("COMMIT", done=done, opening=2)
            mutation = replace("alpha", "beta", request_id="r")
            with pytest.raises(IoFailure) as caught:
                await life.do(mutation)
            assert "unknown" == caught.value.outcome
            answer = await life.do(mutation)  # waits for the journal
            assert (done, "beta\n", ["beta"]) == (answer.replayed, host.read(), life.texts())
            assert ["change", "change"] == await life.kinds()
            assert "ok" == life.profile.state("memory").condition

    async def test_what_waited_behind_an_unknown_outcome_is_planned_on_what_is_there(
        self, host: Host, plan: FailingJournal, autojump_clock: MockClock
    ) -> None:
        """Other calls too, and one that reuses the id for something else."""
        async with host.life() as life:
            plan.fail("COMMIT", done=True, opening=2)
            with pytest.raises(IoFailure):
                await life.do(add("alpha", request_id="r"))
            tickets = [life.submit(replace("alpha", "beta")), life.submit(add("gamma", request_id="r"))]
            await tickets[0].wait()
            with pytest.raises(Conflict):
                await tickets[1].wait()
            assert (["beta"], "beta\n") == (life.texts(), host.read())

    async def test_an_adoption_that_cannot_be_committed_does_not_spin(
        self, host: Host, plan: FailingJournal, autojump_clock: MockClock
    ) -> None:
        """It is tried again each second, and in the end it is there."""
        async with host.life() as life:
            await life.add("alpha")
            host.append("by hand\n")
            plan.fail(*["COMMIT"] * 20, name=FULL)
            begun = plan.begun
            life.profile.writer.look()
            await trio.sleep(3.5)
            assert 3 <= plan.begun - begun <= 12
            plan.heal()
            await trio.sleep(2)
            assert ["alpha", "by hand"] == life.texts()

    async def test_a_journal_whose_questions_fail_ends_nothing(
        self, host: Host, plan: FailingJournal, autojump_clock: MockClock
    ) -> None:
        """A question is an error of its caller, not of the writer."""
        async with host.life() as life:
            await life.add("alpha", "beta")
            host.write("alpha\n")
            plan.fail("SELECT store, revision", name=FSYNC)
            with pytest.raises(IoFailure):
                await life.add("gamma")
            await life.add("delta")
            assert "delta" in life.texts()


class TestFullDisk:
    async def test_a_write_is_refused_and_leaves_nothing(self, host: Host, autojump_clock: MockClock) -> None:
        """The old file is intact, reads and events go on, and with room again so do writes (FR-28)."""
        async with host.life() as life:
            await life.add("alpha")
            life.store.files = disk = FullDisk()
            with pytest.raises(NoSpace) as caught:
                await life.add("beta")
            assert ("none", "alpha\n", []) == (caught.value.outcome, host.read(), host.temps())
            disk.full = False
            await life.add("gamma")
            assert ["alpha", "gamma"] == life.texts()

    async def test_one_full_disk_does_not_delay_another(self, tmp_path: Path, autojump_clock: MockClock) -> None:
        """Each profile hears of its own."""
        host = Host(tmp_path, profiles={"p": "p", "q": "q"})
        async with host.life() as life:
            life.store.files = FullDisk()
            first = life.submit(add("alpha"))
            second = life.profiles.by_name["q"].submit(add("beta"))
            await second.wait()
            with pytest.raises(NoSpace):
                await first.wait()

    async def test_removing_spends_the_reserve(self, host: Host, autojump_clock: MockClock) -> None:
        """It is room for the smaller file."""
        host.reserve = Reserve(host.root / "reserve", size=4096)
        host.reserve.keep()
        async with host.life() as life:
            await life.add("alpha", "beta")
            life.store.files = disk = ReservedDisk(host.reserve)
            with pytest.raises(NoSpace):
                await life.add("gamma")
            assert host.reserve.kept
            await life.do(remove("alpha"))
            assert ("beta\n", False) == (host.read(), host.reserve.kept)
            assert disk.asked > 2

    async def test_an_adoption_waits_for_room_without_spinning(self, host: Host, autojump_clock: MockClock) -> None:
        """It needs a new version of the file: a border before what was appended."""
        async with host.life() as life:
            await life.add("alpha")
            life.store.files = disk = FullDisk()
            host.append("by hand\n")
            life.profile.writer.look()
            await trio.sleep(3.5)
            assert 3 <= disk.asked <= 6
            disk.full = False
            await trio.sleep(2)
            assert "alpha\n§\nby hand\n" == host.read()


class ReservedDisk(FullDisk):
    """A disk that has room again once the reserve is spent."""

    def __init__(self, reserve: Reserve) -> None:
        super().__init__()
        self._reserve = reserve

    def write_temp(self, place: Place, data: bytes, like: Image) -> str:
        """Full while the reserve is kept."""
        self.full = self._reserve.kept
        return super().write_temp(place, data, like)
