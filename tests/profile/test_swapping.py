"""Swapping: nothing that a hand writes between our look and our rename is lost, and a failed swap is taken back."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import trio
from support.faults import FailingJournal, NoExchange, RacingHand, TornRewrite, TornSwap
from support.hosts import CALLER, Host, add, replace

from memd.errors import IoFailure
from memd.profile.history import Selector
from memd.store import queries
from memd.store.files import Files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from trio.testing import MockClock


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine with one profile whose entries are older than what a person writes next."""
    found = Host(tmp_path)
    found.lag_s = 60
    return found


def _append(path: str) -> None:
    with open(path, "ab") as file:
        file.write(b"by hand\n")


def _replace_file(path: str) -> None:
    """As editors save: a new file under the name."""
    with open(path, "rb") as file:
        text = file.read()
    with open(f"{path}~", "wb") as file:
        file.write(text + "§\nby hand\n".encode())
    os.replace(f"{path}~", path)


def _save_without_alpha(path: str) -> None:
    with open(path, "wb") as file:
        file.write(b"beta\n")


class TestDisplaced:
    @pytest.mark.parametrize("hand", [_append, _replace_file])
    @pytest.mark.parametrize("system", [Files, NoExchange])
    async def test_what_was_written_in_between_is_adopted(
        self, host: Host, hand: Callable[[str], None], system: type[Files], autojump_clock: MockClock
    ) -> None:
        """The write is acknowledged and the hand's entry is there, each once, whatever the file system."""

        class Raced(RacingHand, system):  # type: ignore[misc,valid-type]  # either file system
            """Both at once."""

        async with host.life() as life:
            await life.add("alpha", "beta")
            life.store.files = Raced(hand)
            await life.add("ours")
            await life.look()
            assert ["alpha", "beta", "by hand", "ours"] == sorted(life.texts())
        assert [] == host.temps()

    async def test_bytes_that_would_drop_entries_get_a_second_look(self, host: Host, autojump_clock: MockClock) -> None:
        """What they are meant to become shows a second later; until then the write stands."""
        async with host.life() as life:
            await life.add("alpha", "beta")
            life.store.files = RacingHand(_save_without_alpha)
            await life.add("gamma")
            assert ["alpha", "beta", "gamma"] == life.texts()
            assert 1 == len(host.temps())
            await trio.sleep(3)
            assert (["beta", "gamma"], []) == (life.texts(), host.temps())

    async def test_a_truncated_file_that_is_filled_again_loses_nothing(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """A program rewrites the file in place while we swap it out: its descriptor is read once more."""
        opened = []

        def truncate(path: str) -> None:
            opened.append(open(path, "wb"))  # noqa: SIM115 - kept open, that is the point

        async with host.life() as life:
            await life.add("alpha")
            life.store.files = RacingHand(truncate)
            await life.add("beta")
            opened[0].write("alpha\n§\nby hand\n".encode())
            opened[0].close()
            await trio.sleep(3)
            assert ["alpha", "beta", "by hand"] == sorted(life.texts())

    async def test_a_shell_that_held_the_file_open_loses_nothing(self, host: Host, autojump_clock: MockClock) -> None:
        """Its line goes to the displaced file and is found there within a second or so."""
        async with host.life() as life:
            await life.add("alpha")
            shell = host.memory.open("ab")
            await life.add("beta")
            shell.write(b"late\n")
            shell.close()
            await trio.sleep(2)
            assert ["alpha", "beta", "late"] == sorted(life.texts())
            assert sorted(life.texts()) == sorted(host.read().replace("§\n", "").split())

    async def test_a_script_that_goes_on_writing_into_a_displaced_file_loses_nothing(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """It is looked at for as long as it changes, and let go a second after the last time."""
        async with host.life() as life:
            await life.add("alpha")
            with host.memory.open("ab") as script:
                await life.add("beta")
                for number in range(20):
                    script.write(f"§\nline {number}\n".encode())
                    script.flush()
                    await trio.sleep(0.7)
            await trio.sleep(3)
            wanted = ["alpha", "beta", *(f"line {number}" for number in range(20))]
            assert sorted(wanted) == sorted(life.texts())
            assert not life.store.lingering
            assert [] == host.temps()

    async def test_what_was_adopted_late_is_history_and_can_be_undone(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """A revision of origin ``outside``, with an event."""
        async with host.life() as life:
            await life.add("alpha")
            life.store.files = RacingHand(_append)
            await life.add("beta")
            await life.look()
            assert ["change", "change", "outside"] == await life.kinds()
            assert "outside.adopted" in life.topics()
            rows, _ = await life.profile.list_revisions(limit=1)
            await life.profile.undo(Selector(revision=rows[0].record.revision), CALLER)
            assert ["alpha", "beta"] == life.texts()


class TestStopped:
    async def test_a_store_that_had_to_stop_writing_makes_no_clean_stop(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """Or half a rewrite would be taken for what a person did to the file. The next start puts it right."""
        async with host.life() as life:
            await life.add("alpha", "beta")
            os.link(host.memory, host.root / "other name")
            life.store.files = TornRewrite(2)
            with pytest.raises(IoFailure) as caught:
                await life.do(replace("alpha", "a much longer text"))
            assert "unknown" == caught.value.outcome
            assert not life.profiles.consistent
        async with host.life() as life:
            assert ["a much longer text", "beta"] == life.texts()
            assert "outside" not in await life.kinds()
            assert life.profiles.consistent


class TestTakenBack:
    @pytest.mark.parametrize("times", [1, 2])
    async def test_what_was_adopted_and_taken_back_is_no_older_text(
        self, host: Host, times: int, autojump_clock: MockClock
    ) -> None:
        """Or the file would seem to bring nothing new when it is adopted again, and the hand's entry be gone."""
        async with host.life() as life:
            await life.add("alpha", "beta")
            host.append("§\nby hand\n")
            life.store.files = TornSwap(times)
            for _ in range(times):
                with pytest.raises(IoFailure):
                    await life.add("gamma")
            await life.look()
            assert (["alpha", "beta", "by hand"], "alpha\n§\nbeta\n§\nby hand\n") == (life.texts(), host.read())
            await life.add("gamma")
            assert ["alpha", "beta", "by hand", "gamma"] == life.texts()
            assert "alpha\n§\nbeta\n§\nby hand\n§\ngamma\n" == host.read()

    async def test_a_swap_that_fails_is_taken_back_before_it_is_told(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """By a revision of its own; the error is definite, also after a restart, and the id can be used again."""
        async with host.life() as life:
            await life.add("alpha")
            life.store.files = TornSwap()
            mutation = add("beta", request_id="r")
            with pytest.raises(IoFailure) as caught:
                await life.do(mutation)
            assert ("none", ["alpha"], "alpha\n", []) == (caught.value.outcome, life.texts(), host.read(), host.temps())
            assert ["change", "change", "compensate"] == await life.kinds()
            kinds = [event.data["kind"] for event in life.events if event.topic == "memory.changed"]
            assert ["change", "change", "compensate"] == kinds
            assert sorted(event.seq for event in life.events) == [event.seq for event in life.events]
            head = life.profile.state("memory").revision
        host.files = Files()
        async with host.life() as life:
            assert (["alpha"], head) == (life.texts(), life.profile.state("memory").revision)
            done = await life.do(mutation)
            assert (False, ["alpha", "beta"]) == (done.replayed, life.texts())

    async def test_what_was_adopted_with_it_is_adopted_again(self, host: Host, autojump_clock: MockClock) -> None:
        """Neither the hand's entry nor the write is lost for good: the one stays, the other is refused."""
        async with host.life() as life:
            await life.add("alpha")
            host.append("by hand\n")
            life.store.files = TornSwap()
            with pytest.raises(IoFailure):
                await life.add("beta")
            assert "alpha\nby hand\n" == host.read()
            await trio.sleep(3)
            assert (["alpha", "by hand"], "alpha\n§\nby hand\n") == (life.texts(), host.read())

    async def test_displaced_bytes_survive_a_failed_swap_of_their_adoption(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """They are only in memory and under a temp name then; that name stays until they are in the file."""
        async with host.life() as life:
            await life.add("alpha")
            life.store.files = RacingHand(_append)
            await life.add("beta")
            life.store.files = TornSwap()
            await trio.sleep(0.5)
            assert 1 == len(host.temps())
            await trio.sleep(4)
            assert (["alpha", "beta", "by hand"], []) == (sorted(life.texts()), host.temps())

    async def test_when_it_cannot_be_taken_back_the_store_stops_writing(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """``unknown`` to whoever waits; the next start finds out from the journal."""
        plan = FailingJournal()
        host.connect = plan.connect
        async with host.life() as life:
            await life.add("alpha")
            life.store.files = TornSwap()
            plan.fail("BEGIN", skip=1)  # the group's commit works, that of the compensation does not
            with pytest.raises(IoFailure) as caught:
                await life.add("beta")
            assert "unknown" == caught.value.outcome
            with pytest.raises(IoFailure):
                await life.add("gamma")
            assert (["alpha"], "alpha\n", "stale") == (
                life.texts(), host.read(), life.profile.state("memory").condition
            )  # fmt: skip
            await life.do(add("delta", target="user"))

    async def test_of_two_files_one_may_fail(self, host: Host, autojump_clock: MockClock) -> None:
        """An undo over both stores is not all or nothing then, and says that it does not know."""
        async with host.life() as life:
            await life.add("alpha")
            await life.do(add("beta", target="user"))
            life.store.files = life.profile.stores["user"].files = TornSwap(only="USER")
            with pytest.raises(IoFailure, match=r"the other store was made") as caught:
                await life.profile.undo(Selector(last=2), CALLER)
            assert ("unknown", [], ["beta"]) == (caught.value.outcome, life.texts(), life.texts("user"))


class TestInPlace:
    async def test_all_links_keep_seeing_one_file(self, host: Host, autojump_clock: MockClock) -> None:
        """With its pre-image in the journal, fsynced before the answer, and a standing notice."""
        host.write("alpha\n")
        os.link(host.memory, host.root / "other")
        async with host.life() as life:
            await life.add("beta")
            inode = host.memory.stat().st_ino
            await life.add("gamma")
            assert ("alpha\n§\nbeta\n§\ngamma\n", inode) == (
                (host.root / "other").read_text(),
                host.memory.stat().st_ino,
            )
            kept = {data for _, _, data in queries.preimages(life.journal, life.store.id)}
            assert {b"alpha\n", "alpha\n§\nbeta\n".encode()} <= kept
            assert ["written_in_place"] == [notice.name for notice in life.profile.state("memory").notices]

    async def test_half_a_rewrite_is_put_back(self, host: Host, autojump_clock: MockClock) -> None:
        """And taken back in the journal; the error is definite."""
        host.write("alpha\n")
        os.link(host.memory, host.root / "other")
        async with host.life() as life:
            life.store.files = TornRewrite()
            with pytest.raises(IoFailure) as caught:
                await life.do(replace("alpha", "a much longer text than before"))
            assert ("none", "alpha\n", ["alpha"]) == (caught.value.outcome, host.read(), life.texts())
            await life.add("beta")
            assert "alpha\n§\nbeta\n" == host.read()

    async def test_half_a_rewrite_that_cannot_be_put_back_stops_the_store(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """What is in the file is nobody's text: it is not adopted while the daemon runs."""
        host.write("alpha\n")
        os.link(host.memory, host.root / "other")
        async with host.life() as life:
            life.store.files = TornRewrite(times=2)
            with pytest.raises(IoFailure) as caught:
                await life.do(replace("alpha", "a much longer text than before"))
            assert "unknown" == caught.value.outcome
            await life.look()
            await trio.sleep(5)
            assert (["alpha"], "stale") == (life.texts(), life.profile.state("memory").condition)
