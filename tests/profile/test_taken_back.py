"""A group whose file could not be swapped in is taken back with the proposals in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from support.faults import TornSwap
from support.hosts import CALLER, Host
from support.judged import DECIDER, DOUBTFUL, TOOL, add, mutation

from memd.errors import IoFailure
from memd.profile.history import Selector

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock

    from memd.profile.values import Caller, Mutation, Target


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine with one profile."""
    return Host(tmp_path)


async def test_what_was_staged_beside_a_failed_change_is_not_there(host: Host, autojump_clock: MockClock) -> None:
    """Its caller was told that nothing was done; not now, and not after a restart; whoever watches hears of it."""
    async with host.life() as life:
        await life.add("alpha")
        for store in life.profile.stores.values():
            store.files = TornSwap()
        with pytest.raises(IoFailure) as caught:
            await life.do(mutation(add("beta"), add(DOUBTFUL)))
        assert "none" == caught.value.outcome
        assert ([], ["alpha"]) == (life.profile.guard.proposals.waiting(), life.texts())
        settled = [event.data["state"] for event in life.events if event.topic == "approval.settled"]
        assert ["withdrawn"] == settled
    async with host.life() as life:
        assert ([], ["alpha"]) == (life.profile.guard.proposals.waiting(), life.texts())


async def test_an_approval_that_could_not_be_swapped_in_waits_again(host: Host, autojump_clock: MockClock) -> None:
    """As it did before, and may be approved once more."""
    async with host.life("crash") as life:
        await life.add("alpha")
        staged = (await life.do(mutation(add("beta"), caller=TOOL))).staged
        assert staged is not None
        for store in life.profile.stores.values():
            store.files = TornSwap()
        with pytest.raises(IoFailure):
            await life.profile.approvals.approve(staged, DECIDER).wait()
        assert ["alpha"] == life.texts()
    async with host.life() as life:
        assert [staged] == [one.id for one in life.profile.guard.proposals.waiting()]
        await life.profile.approvals.approve(staged, DECIDER).wait()
        assert ["alpha", "beta"] == life.texts()


async def test_an_undo_that_could_not_be_swapped_in_can_be_asked_for_again(
    host: Host, autojump_clock: MockClock
) -> None:
    """The change that it was to undo is not taken for undone; nor is an undo for redone."""
    async with host.life() as life:
        await life.add("alpha")
        await life.add("beta")
        for redo, texts in ((False, ["alpha"]), (True, ["alpha", "beta"]), (False, ["alpha"])):
            before = life.texts()
            life.store.files = TornSwap()
            with pytest.raises(IoFailure) as caught:
                await life.profile.undo(Selector(last=1), CALLER, redo=redo)
            assert ("none", before) == (caught.value.outcome, life.texts())
            await life.profile.undo(Selector(last=1), CALLER, redo=redo)
            assert texts == life.texts()


@pytest.mark.parametrize("failing", ["MEMORY", "USER"])
async def test_half_an_undo_is_finished_by_asking_again(host: Host, failing: str, autojump_clock: MockClock) -> None:
    """One file of two could not be swapped in: nobody can say that nothing was done, and the rest is still to be undone."""
    both: tuple[Target, ...] = ("memory", "user")
    async with host.life() as life:
        for target in both:
            await life.do(add_to(target, caller=replace(CALLER, session="s")))
        files = TornSwap(only=failing)
        for store in life.profile.stores.values():
            store.files = files
        with pytest.raises(IoFailure, match="the other store") as caught:
            await life.profile.undo(Selector(session="s"), CALLER, request_id="r", fingerprint=b"f")
        assert "unknown" == caught.value.outcome
        assert [f"for {failing.lower()}"] == [text for target in both for text in life.texts(target)]
        undone = await life.profile.undo(Selector(session="s"), CALLER, request_id="r", fingerprint=b"f")
        assert [failing.lower()] == [change.target for change in undone.changes]
        assert [] == [text for target in both for text in life.texts(target)]
        await life.profile.undo(Selector(session="s"), CALLER, redo=True)
        assert ["for memory", "for user"] == [text for target in both for text in life.texts(target)]


def add_to(target: Target, *, caller: Caller) -> Mutation:
    return mutation(add(f"for {target}"), caller=caller, target=target)
