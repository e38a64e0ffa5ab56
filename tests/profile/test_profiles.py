"""All profiles of a daemon: ownership, shared files, problems that concern one of them only."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import trio
from msgspec.structs import replace
from support.hosts import CALLER, Host, add

from memd.errors import OwnedElsewhere, ProfileOwned, StoreDisabled, StoreUnreadable
from memd.profile.history import Selector
from memd.settings import Limits, Stores
from memd.store.locks import OWNER_FILE, Ownership

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock


class TestOpening:
    async def test_directories_are_made_private(self, tmp_path: Path, autojump_clock: MockClock) -> None:
        """Whatever the umask, on the first start on an empty home (FR-26)."""
        host = Host(tmp_path, profiles={"p": "deep/er/p"})
        before = os.umask(0o777)
        try:
            async with host.life() as life:
                await life.add("alpha")
        finally:
            os.umask(before)
        modes = [
            (tmp_path / name).stat().st_mode & 0o777
            for name in ("deep", "deep/er", "deep/er/p", "deep/er/p/MEMORY.md", "deep/er/p/MEMORY.md.lock")
        ]
        assert [0o700, 0o700, 0o700, 0o600, 0o600] == modes

    async def test_one_that_cannot_be_used_does_not_keep_others_from_starting(
        self, tmp_path: Path, autojump_clock: MockClock
    ) -> None:
        """It is a problem with a name and a reason."""
        (tmp_path / "bad").write_text("a file")
        (tmp_path / "dangling").mkdir()
        (tmp_path / "dangling" / "USER.md").symlink_to("gone.md")
        host = Host(tmp_path, profiles={"p": "p", "bad": "bad/p", "dangling": "dangling"})
        async with host.life() as life:
            await life.add("alpha")
            assert {"bad", "dangling"} == set(life.profiles.problems)
            assert {"p"} == set(life.profiles.by_name)
            assert "problems ['bad', 'dangling']" in repr(life.profiles)

    async def test_a_problem_can_be_solved_while_it_runs(self, tmp_path: Path, autojump_clock: MockClock) -> None:
        """By opening it again."""
        (tmp_path / "bad").write_text("a file")
        host = Host(tmp_path, profiles={"p": "p", "bad": "bad"})
        async with host.life() as life:
            assert {"bad"} == set(life.profiles.problems)
            (tmp_path / "bad").unlink()
            await life.profiles.open(host.settings[1])
            assert {} == life.profiles.problems
            await life.profiles.by_name["bad"].submit(add("alpha")).wait()

    async def test_those_that_were_refused_are_tried_again(self, tmp_path: Path, autojump_clock: MockClock) -> None:
        """One comes back once it can, and says so; one that is not wanted any more is let be."""
        for name in ("bad", "other"):
            (tmp_path / name).write_text("a file")
        host = Host(tmp_path, profiles={"p": "p", "bad": "bad", "other": "other"})
        async with host.life() as life:
            assert [] == await life.profiles.open_refused()
            life.profiles.keep_refused({"p", "bad"})
            assert {"bad"} == set(life.profiles.problems)
            (tmp_path / "bad").unlink()
            (tmp_path / "other").unlink()
            assert ["bad"] == await life.profiles.open_refused()
            assert ({}, {"p", "bad"}) == (life.profiles.problems, set(life.profiles.by_name))
            await life.profiles.by_name["bad"].submit(add("alpha")).wait()
            events, _ = await life.profiles.by_name["bad"].events.since(0, ["store.state"])
            assert [("memory", "ok"), ("user", "ok")] == [(event.target, event.data["state"]) for event in events]
            assert [] == await life.profiles.open_refused()

    async def test_both_stores_cannot_be_one_file(self, tmp_path: Path, autojump_clock: MockClock) -> None:
        """A link of one to the other."""
        (tmp_path / "p").mkdir()
        (tmp_path / "p" / "MEMORY.md").write_text("alpha\n")
        (tmp_path / "p" / "USER.md").symlink_to("MEMORY.md")
        (tmp_path / "q").mkdir()
        host = Host(tmp_path, profiles={"p": "p", "q": "q"})
        async with host.life() as life:
            assert "both stores" in life.profiles.problems["p"].message


class TestOwnership:
    async def test_one_that_is_owned_by_another_daemon_is_left_out(
        self, tmp_path: Path, autojump_clock: MockClock
    ) -> None:
        """The others are served; the owner is named."""
        (tmp_path / "q").mkdir()
        other = Ownership(str(tmp_path / "q"))
        other.claim()
        host = Host(tmp_path, profiles={"p": "p", "q": "q"})
        async with host.life() as life:
            problem = life.profiles.problems["q"]
            assert isinstance(problem, ProfileOwned)
            assert os.getpid() == problem.extra["pid"]
            await life.add("alpha")
        other.release()

    async def test_if_all_are_owned_it_does_not_start(self, tmp_path: Path, autojump_clock: MockClock) -> None:
        """With the status for that."""
        (tmp_path / "p").mkdir()
        other = Ownership(str(tmp_path / "p"))
        other.claim()
        host = Host(tmp_path)
        with pytest.raises(ExceptionGroup) as caught:
            async with host.life():
                pass
        assert caught.group_contains(OwnedElsewhere, match=f"pid {os.getpid()}")
        other.release()

    async def test_it_is_given_back_at_the_end(self, tmp_path: Path, autojump_clock: MockClock) -> None:
        """The next daemon gets it."""
        host = Host(tmp_path)
        async with host.life():
            with pytest.raises(ProfileOwned):
                Ownership(str(host.directory)).claim()
        other = Ownership(str(host.directory))
        other.claim()
        other.release()

    async def test_a_lock_file_that_is_removed_is_made_again(self, tmp_path: Path, autojump_clock: MockClock) -> None:
        """Unless somebody else was faster: then its stores stop writing."""
        host = Host(tmp_path)
        async with host.life() as life:
            await life.add("alpha")
            (host.directory / OWNER_FILE).unlink()
            assert [] == await life.profiles.check_ownership()
            await life.add("beta")
            (host.directory / OWNER_FILE).unlink()
            other = Ownership(str(host.directory))
            other.claim()
            assert [str(host.directory)] == await life.profiles.check_ownership()
            with pytest.raises(ProfileOwned):
                await life.add("gamma")
            assert ["alpha", "beta"] == life.texts()
            other.release()


class TestShared:
    async def test_two_profiles_on_one_directory_share_a_writer(
        self, tmp_path: Path, autojump_clock: MockClock
    ) -> None:
        """Each sees the other's changes at once, under its own name."""
        (tmp_path / "p").mkdir()
        (tmp_path / "alias").symlink_to("p")
        host = Host(tmp_path, profiles={"p": "p", "q": "alias"})
        async with host.life() as life:
            other = life.profiles.by_name["q"]
            assert other.writer is life.profile.writer
            assert 1 == len(life.profiles.writers())
            await life.add("alpha")
            await other.submit(add("beta")).wait()
            assert ["alpha", "beta"] == [entry.text for entry in other.state("memory").document.entries] == life.texts()
            assert {"p", "q"} == {event.profile for event in life.events}

    async def test_request_ids_are_each_profiles_own(self, tmp_path: Path, autojump_clock: MockClock) -> None:
        """The same id twice, once refused, in one group: the success is remembered."""
        host = Host(tmp_path, profiles={"p": "p", "q": "p"})
        async with host.life() as life:
            other = life.profiles.by_name["q"]
            refused = replace(add("x", request_id="r"), if_revision=99)
            tickets = [life.submit(refused), other.submit(add("alpha", request_id="r"))]
            await tickets[1].wait()
            assert tickets[0].error is not None
            assert (await other.submit(add("alpha", request_id="r")).wait()).replayed
            assert not (await life.do(add("beta", request_id="r"))).replayed

    async def test_they_need_equal_limits(self, tmp_path: Path, autojump_clock: MockClock) -> None:
        """The second is a problem."""
        host = Host(tmp_path, profiles={"p": "p", "q": "p"})
        host.settings[1] = replace(host.settings[1], limits=Limits(memory=1, user=20_000))
        async with host.life() as life:
            assert "give both the same" in life.profiles.problems["q"].message

    async def test_one_file_may_be_shared(self, tmp_path: Path, autojump_clock: MockClock) -> None:
        """The writer of the shared one takes the other too, although it runs already; what both find is adopted once."""
        for name, text in (("p", "alpha\n"), ("q", "beta\n")):
            (tmp_path / name).mkdir()
            (tmp_path / name / "MEMORY.md").write_text(text)
        (tmp_path / "p" / "USER.md").write_text("who\n")
        (tmp_path / "q" / "USER.md").symlink_to("../p/USER.md")
        host = Host(tmp_path, profiles={"p": "p", "q": "q"})
        host.roots = (str(tmp_path),)
        async with host.life() as life:
            other = life.profiles.by_name["q"]
            assert other.writer is life.profile.writer
            assert (["alpha"], ["who"]) == (life.texts(), life.texts("user"))
            assert ["beta"] == [entry.text for entry in other.state("memory").document.entries]
            await other.submit(add("gamma")).wait()
            await life.do(add("delta", target="user"))
            done = await other.undo(Selector(last=2), CALLER)
            assert ({"memory", "user"}, ()) == ({change.target for change in done.changes}, done.conflicts)
            assert (["alpha"], ["who"]) == (life.texts(), life.texts("user"))

    async def test_two_writers_cannot_become_one(self, tmp_path: Path, autojump_clock: MockClock) -> None:
        """A profile that takes one file of each of two others is a problem."""
        for name in ("p", "q", "r"):
            (tmp_path / name).mkdir()
        for name, at in (("MEMORY.md", "p"), ("USER.md", "q")):
            (tmp_path / at / name).write_text("text\n")
            (tmp_path / "r" / name).symlink_to(f"../{at}/{name}")
        host = Host(tmp_path, profiles={"p": "p", "q": "q", "r": "r"})
        host.roots = (str(tmp_path),)
        async with host.life() as life:
            assert isinstance(life.profiles.problems["r"], StoreUnreadable)
            assert "two other profiles" in life.profiles.problems["r"].message


class TestSettings:
    async def test_a_store_that_is_switched_off(self, tmp_path: Path, autojump_clock: MockClock) -> None:
        """It is neither read nor written, and its file stays."""
        host = Host(tmp_path)
        host.write("alpha\n")
        host.settings[0] = replace(host.settings[0], stores=Stores(memory=False))
        async with host.life() as life:
            assert "disabled" == life.profile.state("memory").condition
            with pytest.raises(StoreDisabled):
                await life.add("beta")
            assert "alpha\n" == host.read()

    async def test_switching_off_refuses_what_is_queued(self, tmp_path: Path, autojump_clock: MockClock) -> None:
        """Nobody waits for it until a deadline."""
        host = Host(tmp_path)
        async with host.life() as life:
            await life.add("alpha")
            ticket = life.submit(add("beta"))
            await life.profiles.reconfigure(life.profile, replace(host.settings[0], stores=Stores(memory=False)))
            with trio.fail_after(1), pytest.raises(StoreDisabled):
                await ticket.wait()
            await life.profiles.reconfigure(life.profile, host.settings[0])
            await life.add("gamma")
            assert ["alpha", "gamma"] == life.texts()

    async def test_statistics_are_sums(self, tmp_path: Path, autojump_clock: MockClock) -> None:
        """Over all writers."""
        host = Host(tmp_path, profiles={"p": "p", "q": "q"})
        async with host.life() as life:
            await life.add("alpha")
            await life.profiles.by_name["q"].submit(add("beta")).wait()
            statistics = life.profiles.statistics()
            assert (2, 0) == (statistics.acknowledged, statistics.waiting)
