"""memd.profile.staging and editing: what of a change is applied, and what waits, on a real journal and real files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from msgspec.structs import replace
from support.faults import FailingJournal
from support.hosts import Host
from support.judged import (
    AGENT,
    ATTACK,
    DOUBTFUL,
    PERSON,
    REVIEW,
    SECRET,
    TOKEN,
    TOOL,
    add,
    change,
    edit,
    mutation,
    take,
)

from memd.config import Approval, Limits
from memd.errors import BlockedContent, IoFailure, NotFound, OverLimit, PermissionDenied
from memd.profile.proposals import MOST_PENDING

if TYPE_CHECKING:
    from pathlib import Path

    from support.hosts import Life
    from trio.testing import MockClock

    from memd.profile.proposals import Proposal
    from memd.profile.values import Operation


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine with one profile."""
    return Host(tmp_path)


def waiting(life: Life) -> list[Proposal]:
    return life.profile.guard.proposals.waiting()


async def refusals(life: Life) -> list[tuple[str, str]]:
    """Names and reasons of what the journal keeps of refusals."""
    await life.committer.settle()
    sql = "SELECT name, reason FROM refusal ORDER BY id"
    return list(await life.committer.query(lambda: life.journal.connection.execute(sql).fetchall()))


class TestOne:
    async def test_what_waits_changes_nothing_and_is_on_disk(self, host: Host, autojump_clock: MockClock) -> None:
        """Before it is answered: a crash right after finds it there."""
        async with host.life("crash") as life:
            await life.add("alpha")
            head = life.store.revision
            done = await life.do(mutation(add("from a page"), caller=TOOL))
            assert (False, None, (), head) == (done.changed, done.entry, done.changes, done.revision)
            assert done.staged is not None
            assert done.staged in done.message
            assert ["staged"] == [notice.name for notice in done.notices]
            assert ["staged"] == [step.status for step in done.steps]
            assert "alpha\n" == host.read()
            (event,) = [event for event in life.events if event.topic == "approval.staged"]
            assert (done.staged, "tool", 1) == (event.id, event.data["origin"], event.data["operations"])
            assert "from a page" not in repr(event)
        async with host.life() as life:
            (found,) = waiting(life)
            assert (done.staged, "tool", "memory", head) == (found.id, found.origin, found.target, found.base)
            assert ("pending", (add("from a page"),)) == (found.state, found.operations)
            assert ["alpha"] == life.texts()

    async def test_what_cannot_be_done_is_not_staged(self, host: Host, autojump_clock: MockClock) -> None:
        """It is validated, and measured, before anybody is bothered with it (FR-140)."""
        host.settings[0] = replace(host.settings[0], limits=Limits(memory=2200), approval=Approval(agent="stage"))
        async with host.life() as life:
            with pytest.raises(NotFound):
                await life.do(mutation(change("nope", "x")))
            with pytest.raises(OverLimit):
                await life.do(mutation(add("x" * 5000)))
            assert [] == waiting(life)

    @pytest.mark.parametrize("text", [ATTACK, SECRET])
    async def test_what_the_scan_refuses_is_kept_nowhere(
        self, host: Host, text: str, autojump_clock: MockClock
    ) -> None:
        """Not staged, not journaled, not in an event; that it was refused is, by which rule too (FR-61, FR-64)."""
        host.settings[0] = replace(host.settings[0], approval=Approval(agent="stage"))
        async with host.life() as life:
            with pytest.raises(BlockedContent) as caught:
                await life.do(mutation(add(text)))
            rule = caught.value.extra["findings"][0]["rule"]
            assert [("blocked_content", rule)] == await refusals(life)
            (event,) = [event for event in life.events if event.topic == "memory.refused"]
            assert [rule] == event.data["rules"]
            (why,) = await life.profile.explain(text)
            assert ("refused", rule) == (why.state, why.rule)
            assert [] == waiting(life)
        assert text.encode() not in host.journal_path.read_bytes()

    async def test_the_same_again_is_the_same_proposal(self, host: Host, autojump_clock: MockClock) -> None:
        """An agent that asks each turn does not fill the list, and two at the same moment neither."""
        async with host.life() as life:
            first = await life.do(mutation(add("x"), caller=TOOL))
            again = await life.do(mutation(add(" x\n"), caller=TOOL))
            other = await life.do(mutation(add("y"), caller=TOOL))
            tickets = [life.submit(mutation(add("z"), caller=TOOL)) for _ in range(2)]
            both = [(await ticket.wait()).staged for ticket in tickets]
            assert 1 == len(set(both))
            assert 3 == len({first.staged, again.staged, other.staged, *both})
            assert "already" in again.message
            assert 3 == len(waiting(life))

    async def test_a_bound_on_what_waits(self, host: Host, autojump_clock: MockClock) -> None:
        """More is refused with the advice to look at what is there; what waits already may be asked for again."""
        async with host.life() as life:
            for number in range(MOST_PENDING):
                await life.do(mutation(add(f"note {number}"), caller=TOOL))
            with pytest.raises(PermissionDenied, match="memd pending") as caught:
                await life.do(mutation(add("one more"), caller=TOOL))
            assert MOST_PENDING == caught.value.extra["limit"]
            assert (await life.do(mutation(add("note 7"), caller=TOOL))).staged
            await life.do(mutation(add("by an agent")))
            assert ["by an agent"] == life.texts()

    async def test_a_refusal_by_the_settings_names_origin_and_setting(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """Nothing is done."""
        host.settings[0] = replace(host.settings[0], approval=Approval(tool="refuse"))
        async with host.life() as life:
            with pytest.raises(PermissionDenied, match=r"'tool'.*approval\.tool"):
                await life.do(mutation(add("x"), caller=TOOL))
            assert ([], []) == (life.texts(), waiting(life))

    async def test_a_person_is_asked_nothing(self, host: Host, autojump_clock: MockClock) -> None:
        """What the scan doubts is applied, is in prompts, stays approved over a restart, and comes with a notice."""
        async with host.life() as life:
            done = await life.do(mutation(add(DOUBTFUL), caller=PERSON))
            assert (True, None, ["approved"]) == (done.changed, done.staged, [one.name for one in done.notices])
            assert {} == life.profile.state("memory").withheld
        async with host.life() as life:
            assert {} == life.profile.state("memory").withheld
            assert [DOUBTFUL] == life.texts()
            (entry,) = life.profile.state("memory").document.entries
            assert ["invisible.zero-width"] == [one.rule for one in life.profile.state("memory").findings[entry.id]]

    async def test_a_repeat_under_the_same_request_is_answered_alike(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """Also after a restart."""
        wanted = mutation(add("x"), caller=TOOL, request_id="r1")
        async with host.life() as life:
            first = await life.do(wanted)
        async with host.life() as life:
            again = await life.do(wanted)
            assert (first.staged, True, False) == (again.staged, again.replayed, again.changed)
            assert 1 == len(waiting(life))

    async def test_a_proposal_that_could_not_be_written_was_never_there(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """Nothing is reported as staged that is not on disk."""
        plan = FailingJournal()
        host.connect = plan.connect
        async with host.life() as life:
            plan.fail("INSERT OR REPLACE INTO proposal")
            with pytest.raises(IoFailure) as caught:
                await life.do(mutation(add("x"), caller=TOOL))
            assert "none" == caught.value.outcome
            assert [] == waiting(life)
        async with host.life() as life:
            assert [] == waiting(life)

    async def test_a_job_that_would_empty_a_store_waits(self, host: Host, autojump_clock: MockClock) -> None:
        """Whatever the settings let it do."""
        host.settings[0] = replace(host.settings[0], approval=Approval(review_change="apply"))
        async with host.life() as life:
            await life.add("alpha " * 10, "beta")
            small = await life.do(mutation(take("beta"), caller=REVIEW))
            assert small.changed
            large = await life.do(mutation(take("alpha"), caller=REVIEW))
            assert "a quarter" in large.message
            assert large.staged
            assert 1 == len(life.texts())


class TestBatch:
    @pytest.mark.parametrize("action", ["replace", "edit"])
    async def test_adds_that_need_nothing_else_are_applied(
        self, host: Host, action: str, autojump_clock: MockClock
    ) -> None:
        """As one revision; what waits is one proposal that means its entry by id."""
        async with host.life() as life:
            await life.add("alpha")
            doubted = change("alpha", DOUBTFUL) if action == "replace" else edit("lph", "\u200b")
            done = await life.do(mutation(add("one"), doubted, add("two")))
            assert ["alpha", "one", "two"] == life.texts()
            assert ["applied", "staged", "applied"] == [step.status for step in done.steps]
            assert [life.ids()[text] for text in ("one", "alpha", "two")] == [step.id for step in done.steps]
            (proposal,) = waiting(life)
            (operation,) = proposal.operations
            assert (done.staged, life.ids()["alpha"]) == (proposal.id, operation.id)
            assert (True, 2) == (done.changed, len(done.changes))
            assert ["change", "change"] == await life.kinds()
            assert done.revision == proposal.base

    async def test_adds_that_need_the_room_wait_with_what_frees_it(self, host: Host, autojump_clock: MockClock) -> None:
        """They are one atomic proposal, which fits as a whole."""
        host.settings[0] = replace(host.settings[0], limits=Limits(memory=45))
        async with host.life() as life:
            await life.add("a" * 30)
            done = await life.do(mutation(add("b" * 30), change("aaaa", "the a\u200bs"), add("c")))
            assert ["staged", "staged", "applied"] == [step.status for step in done.steps]
            assert ["a" * 30, "c"] == life.texts()
            (proposal,) = waiting(life)
            assert ["add", "replace"] == [one.action for one in proposal.operations]

    async def test_adds_that_are_the_target_of_what_waits_wait_with_it(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """An add whose text a removal takes away first, and one that a removal would make ambiguous."""
        host.settings[0] = replace(host.settings[0], approval=Approval(review_change="stage"))
        async with host.life() as life:
            await life.add("alpha", "filler " * 20)
            done = await life.do(mutation(take("alpha"), add("alpha"), add("beta"), caller=REVIEW))
            assert ["staged", "staged", "applied"] == [step.status for step in done.steps]
            assert [] == [one.trial.problem for one in await life.profile.approvals.listed() if one.trial.problem]

    async def test_an_add_that_would_make_what_waits_ambiguous_does_not(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """What waits means its entry by id, whatever is added meanwhile."""
        async with host.life() as life:
            await life.add("beta")
            done = await life.do(mutation(change("bet", "gamma"), add("a better one"), caller=REVIEW))
            assert ["staged", "applied"] == [step.status for step in done.steps]
            (listed,) = await life.profile.approvals.listed()
            assert "" == listed.trial.problem

    async def test_a_batch_that_would_not_fit_behind_its_adds_waits_as_a_whole(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """An add that would make a later step of it ambiguous is a part of it."""
        async with host.life() as life:
            await life.add("alpha " + "x" * 50)
            steps = (change("alpha", "beta two " + "x" * 50), edit("beta", "gamma"), add("more beta"))
            done = await life.do(mutation(*steps, caller=REVIEW))
            assert ["staged"] * 3 == [step.status for step in done.steps]
            (listed,) = await life.profile.approvals.listed()
            assert "" == listed.trial.problem

    async def test_a_batch_without_any_such_add_waits_as_a_whole(self, host: Host, autojump_clock: MockClock) -> None:
        """All or nothing still holds for it."""
        async with host.life() as life:
            await life.add("alpha")
            done = await life.do(mutation(take("alpha"), add(DOUBTFUL), caller=AGENT))
            assert (False, ["staged", "staged"]) == (done.changed, [step.status for step in done.steps])
            assert ["alpha"] == life.texts()

    async def test_what_makes_no_difference_is_told_as_such(self, host: Host, autojump_clock: MockClock) -> None:
        """It does not wait."""
        async with host.life() as life:
            await life.add("alpha")
            done = await life.do(mutation(add("alpha"), add(DOUBTFUL)))
            assert ["unchanged", "staged"] == [step.status for step in done.steps]
            assert 1 == len(waiting(life)[0].operations)

    @pytest.mark.parametrize(
        ("operations", "index", "error"),
        [
            ((add("ok fact"), add(ATTACK), add("more")), 1, BlockedContent),
            ((add(DOUBTFUL), add(SECRET)), 1, BlockedContent),
            ((add(SECRET), add("fine")), 0, BlockedContent),
        ],
    )
    async def test_one_refused_text_aborts_it_and_every_outcome_is_told(
        self,
        host: Host,
        operations: tuple[Operation, ...],
        index: int,
        error: type[BlockedContent],
        autojump_clock: MockClock,
    ) -> None:
        """``applied: 0``, in words too (FR-55)."""
        async with host.life() as life:
            with pytest.raises(error) as caught:
                await life.do(mutation(*operations))
            extra = caught.value.extra
            assert (0, index) == (extra["applied"], extra["index"])
            outcomes = ["refused" if at == index else "not_tried" for at in range(len(operations))]
            assert outcomes == [row["status"] for row in extra["results"]]
            assert "nothing was applied" in caught.value.message
            assert extra["findings"]
            assert TOKEN not in repr((caught.value.message, extra))
            assert ([], []) == (life.texts(), waiting(life))

    async def test_a_policy_that_refuses_one_operation_aborts_it(self, host: Host, autojump_clock: MockClock) -> None:
        """With the outcome of each."""
        host.settings[0] = replace(host.settings[0], approval=Approval(review_change="refuse"))
        async with host.life() as life:
            await life.add("alpha")
            with pytest.raises(PermissionDenied) as caught:
                await life.do(mutation(add("beta"), take("alpha"), caller=REVIEW))
            assert ["not_tried", "refused"] == [row["status"] for row in caught.value.extra["results"]]
            assert ["alpha"] == life.texts()

    async def test_too_much_waiting_aborts_it(self, host: Host, autojump_clock: MockClock) -> None:
        """With the outcome of each, and nothing is applied of it."""
        async with host.life() as life:
            for number in range(MOST_PENDING):
                await life.do(mutation(add(f"note {number}"), caller=TOOL))
            with pytest.raises(PermissionDenied) as caught:
                await life.do(mutation(add("fine"), add(DOUBTFUL)))
            assert (0, 1) == (caught.value.extra["applied"], caught.value.extra["index"])
            assert [] == life.texts()

    async def test_ids_of_what_waits_are_free_again(self, host: Host, autojump_clock: MockClock) -> None:
        """The entry gets, when it is approved, the id that its text gives it."""
        async with host.life() as life:
            await life.do(mutation(add("x"), caller=TOOL))
            await life.do(mutation(add("x"), caller=AGENT))
            first = life.ids()["x"]
        (host.root / "other").mkdir()
        async with Host(host.root / "other").life() as life:
            await life.do(mutation(add("x")))
            assert first == life.ids()["x"]


async def test_large_texts_are_scanned_off_the_loop(host: Host, autojump_clock: MockClock) -> None:
    """In the runner, before anything is planned; small ones are not worth the hop."""
    calls: list[str] = []

    class Noting:
        async def run(self, fn: object, *args: object) -> object:
            calls.append(getattr(fn, "__name__", ""))
            await trio.lowlevel.checkpoint()
            return fn(*args)  # type: ignore[operator]  # what the writer hands in

        ask = run

    host.runner = Noting()  # type: ignore[assignment]  # as inline as the other
    host.settings[0] = replace(host.settings[0], limits=Limits(memory=1_000_000))
    async with host.life() as life:
        await life.add("small")
        assert "scan_all" not in calls
        long = "the build box is called kiln and has forty cores " * 200
        await life.add(long)
        assert 1 == calls.count("scan_all")
        await life.do(mutation(edit("small", "small " + long[:4000])))
        assert 2 == calls.count("scan_all")
        host.append("\n§\n" + long * 2)
        await life.look()
        assert 3 == calls.count("scan_all")
        await life.do(mutation(edit("small", "tiny")))
        assert 4 == calls.count("scan_all")
