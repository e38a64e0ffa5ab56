"""A group whose file could not be swapped in is taken back with the proposals in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.faults import TornSwap
from support.hosts import Host
from support.judged import DECIDER, DOUBTFUL, TOOL, add, mutation

from memd.errors import IoFailure

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock


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
