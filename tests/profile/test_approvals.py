"""memd.profile.approvals and approving: what a person decides, on a real journal and real files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from support.faults import FailingJournal
from support.hosts import Host
from support.judged import ATTACK, DECIDER, DOUBTFUL, PERSON, TOOL, add, change, edit, mutation, take

from memd.config import Approval, Limits
from memd.errors import (
    BlockedContent,
    Conflict,
    InvalidParams,
    IoFailure,
    NoSuchProposal,
    OverLimit,
    StoreDisabled,
    WireError,
)
from memd.profile.approving import Decider
from memd.settings import Stores
from memd.store.proposals import proposals_of

if TYPE_CHECKING:
    from pathlib import Path

    from support.hosts import Life
    from trio.testing import MockClock

    from memd.profile.approvals import Approvals
    from memd.profile.values import Committed, Operation
    from memd.store.records import EventRecord

DAY_S = 86_400


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine with one profile."""
    return Host(tmp_path)


def approvals(life: Life) -> Approvals:
    return life.profile.approvals


async def staged(life: Life, *operations: Operation) -> str:
    """The id of a proposal that a tool made."""
    done = await life.do(mutation(*operations, caller=TOOL))
    assert done.staged is not None
    return done.staged


async def approve(life: Life, wanted: str, **options: str) -> Committed:
    ticket = approvals(life).approve(wanted, DECIDER, fingerprint=b"f", **options)
    return await ticket.wait()  # type: ignore[no-any-return]  # a Committed


async def told(life: Life, topic: str = "approval.settled") -> list[EventRecord]:
    await life.committer.settle()
    return [event for event in life.events if event.topic == topic]


class TestApprove:
    async def test_it_is_applied_under_its_own_origin(self, host: Host, autojump_clock: MockClock) -> None:
        """The revision says whose it was and who let it through; the event names pid, command and terminal (FR-147)."""
        async with host.life() as life:
            wanted = await staged(life, add("from a page"))
            done = await approve(life, wanted)
            assert (True, "tool", "from a page") == (
                done.changed,
                getattr(done.entry, "origin", None),
                getattr(done.entry, "text", None),
            )
            rows, _ = await life.profile.list_revisions()
            record = rows[0].record
            assert ("tool", "reader", 2) == (record.origin, record.client, record.pid)
            assert "approved by memd (pid 7) on /dev/pts/3: said in a document" == record.reason
            (event,) = await told(life)
            assert (wanted, record.revision) == (event.id, event.data["revision"])
            said = {"state": "approved", "pid": 7, "command": "memd", "terminal": "/dev/pts/3", "client": "memd-cli"}
            assert said.items() <= event.data.items()
            assert [] == await approvals(life).listed()
            assert "from a page\n" == host.read()

    async def test_it_is_there_after_a_crash_and_not_to_be_had_twice(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """Revision and state are one transaction."""
        async with host.life("crash") as life:
            wanted = await staged(life, add("x"))
            await approve(life, wanted)
        async with host.life() as life:
            assert ["x"] == life.texts()
            with pytest.raises(NoSuchProposal, match="is approved already"):
                await approve(life, wanted)

    async def test_a_repeat_under_the_same_request_is_answered_alike(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """Whoever lost the reply asks again."""
        async with host.life() as life:
            wanted = await staged(life, add("x"))
            first = await approve(life, wanted, request_id="r1")
            again = await approve(life, wanted, request_id="r1")
            assert (first.revision, True) == (again.revision, again.replayed)

    async def test_a_person_may_put_it_in_other_words(self, host: Host, autojump_clock: MockClock) -> None:
        """The scan looks at those, too: what it doubts is the person's choice, what it refuses is not."""
        async with host.life() as life:
            wanted = await staged(life, add("x"))
            with pytest.raises(BlockedContent):
                await approve(life, wanted, content=ATTACK)
            done = await approve(life, wanted, content=DOUBTFUL)
            assert DOUBTFUL == getattr(done.entry, "text", None)
            assert {} == life.profile.state("memory").withheld
            several = await staged(life, take(DOUBTFUL[:3]), add("y"))
            with pytest.raises(InvalidParams, match="has 2 operations"):
                await approve(life, several, content="z")

    async def test_what_the_scan_doubted_is_in_prompts_afterwards(self, host: Host, autojump_clock: MockClock) -> None:
        """It is approved, also after a restart."""
        async with host.life() as life:
            await approve(life, await staged(life, add(DOUBTFUL)))
        async with host.life() as life:
            assert ([DOUBTFUL], {}) == (life.texts(), life.profile.state("memory").withheld)

    async def test_what_fits_no_longer_needs_a_review(self, host: Host, autojump_clock: MockClock) -> None:
        """With the reason, durably; the list says so, and after a change for the better it waits as before (FR-140)."""
        host.settings[0] = replace(host.settings[0], limits=Limits(memory=60))
        async with host.life() as life:
            wanted = await staged(life, add("x" * 40))
            await life.do(mutation(add("y" * 40)))
            with pytest.raises(OverLimit):
                await approve(life, wanted)
            (event, *_) = await told(life, "memory.changed")
            assert event is not None
            found = life.profile.guard.proposals.find(wanted)
            assert found is not None
            assert ("needs_review", True) == (found.state, "too many" in found.problem)
            await life.committer.settle()
            assert ["needs_review"] == [one.state for one in proposals_of(life.journal, "p")]
        async with host.life() as life:
            (listed,) = await approvals(life).listed()
            assert ("needs_review", True) == (listed.proposal.state, "too many" in listed.trial.problem)
            await life.do(mutation(take("yyy")))
            (listed,) = await approvals(life).listed()
            assert ("pending", "") == (listed.proposal.state, listed.trial.problem)
            await approve(life, wanted)
            assert ["x" * 40] == life.texts()

    @pytest.mark.parametrize(
        ("operation", "meanwhile", "why"),
        [
            (change("alpha", "gamma"), change("alpha", "beta"), "has changed"),
            (change("alpha", "gamma"), take("alpha"), "no entry"),
            (take("alpha"), edit("alpha", "alpha and more"), "has changed"),
            (edit("ph", "PH"), change("alpha", "beta"), "does not"),
        ],
    )
    async def test_a_change_in_between_is_explained(
        self, host: Host, operation: Operation, meanwhile: Operation, why: str, autojump_clock: MockClock
    ) -> None:
        """What was decided about one text is not done to another."""
        async with host.life() as life:
            await life.add("alpha")
            wanted = await staged(life, operation)
            await life.do(mutation(meanwhile))
            (listed,) = await approvals(life).listed()
            assert "needs_review" == listed.proposal.state
            with pytest.raises(WireError) as caught:
                await approve(life, wanted)
            assert caught.value.message.startswith(listed.trial.problem)
            assert not any(word in listed.trial.problem for word in (";", "listed", "data."))
            assert why in listed.trial.problem or "contain" in listed.trial.problem

    async def test_a_removal_of_equal_entries_means_no_other(self, host: Host, autojump_clock: MockClock) -> None:
        """All of them, and not one that merely holds their text when they are gone."""
        host.write("foo bar\n§\nqux\n§\nfoo bar\n§\nqux\n§\nother\n")
        async with host.life() as life:
            await approve(life, await staged(life, take("qux")))
            assert ["foo bar", "foo bar", "other"] == life.texts()
            wanted = await staged(life, take("foo bar"))
            (listed,) = await approvals(life).listed()
            assert "-foo bar\n-§\n-foo bar" in listed.trial.diff
            host.write("foo bar is precious\n§\nother\n")
            await life.look()
            with pytest.raises(Conflict):
                await approve(life, wanted)
            assert ["foo bar is precious", "other"] == life.texts()

    async def test_a_person_decides_also_where_such_writes_are_refused_now(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """The setting is about what comes by itself; what the scan refuses stays refused."""
        async with host.life() as life:
            wanted = await staged(life, add("from a page"))
            await life.profiles.reconfigure(
                life.profile, replace(life.profile.settings, approval=Approval(tool="refuse"))
            )
            assert "tool" == getattr((await approve(life, wanted)).entry, "origin", None)

    async def test_an_edit_fits_as_long_as_its_part_is_there(self, host: Host, autojump_clock: MockClock) -> None:
        """Whatever else became of the entry."""
        async with host.life() as life:
            await life.add("port 80, host a")
            wanted = await staged(life, edit("host a", "host b"))
            await life.do(mutation(edit("80", "8080")))
            await approve(life, wanted)
            assert ["port 8080, host b"] == life.texts()

    async def test_a_batch_is_applied_as_one(self, host: Host, autojump_clock: MockClock) -> None:
        """One revision, which one undo takes back."""
        async with host.life() as life:
            await life.add("alpha")
            wanted = await staged(life, take("alpha"), add("beta"), add("gamma"))
            done = await approve(life, wanted)
            assert (["beta", "gamma"], None, 3) == (life.texts(), done.entry, len(done.changes))
            assert ["change", "change"] == await life.kinds()

    async def test_one_that_makes_no_difference_any_more_is_settled(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """Without a revision."""
        async with host.life() as life:
            wanted = await staged(life, add("x"))
            await life.do(mutation(add("x")))
            done = await approve(life, wanted)
            assert (False, []) == (done.changed, life.profile.guard.proposals.waiting())

    async def test_a_store_that_is_switched_off_keeps_it_waiting(self, host: Host, autojump_clock: MockClock) -> None:
        """The trouble of a store is not the proposal's."""
        async with host.life() as life:
            wanted = await staged(life, add("x"))
            await life.profiles.reconfigure(life.profile, replace(host.settings[0], stores=Stores(memory=False)))
            with pytest.raises(StoreDisabled):
                await approve(life, wanted)
            await life.profiles.reconfigure(life.profile, host.settings[0])
            assert (await approve(life, wanted)).changed

    async def test_nobody_else_decides_meanwhile(self, host: Host, autojump_clock: MockClock) -> None:
        """The second hears of the first."""
        async with host.life() as life:
            wanted = await staged(life, add("x"))
            ticket = approvals(life).approve(wanted, DECIDER)
            with pytest.raises(Conflict, match="at this moment"):
                approvals(life).approve(wanted, DECIDER)
            with pytest.raises(Conflict, match="at this moment"):
                await approvals(life).reject(wanted, DECIDER)
            await ticket.wait()
            with pytest.raises(NoSuchProposal, match="is approved already"):
                await approvals(life).reject(wanted, DECIDER)

    async def test_an_approval_that_failed_can_be_repeated(self, host: Host, autojump_clock: MockClock) -> None:
        """A failed disk settles nothing."""
        plan = FailingJournal()
        host.connect = plan.connect
        async with host.life() as life:
            wanted = await staged(life, add("x"))
            plan.fail("COMMIT")
            with pytest.raises(IoFailure):
                await approve(life, wanted)
            assert "pending" == getattr(life.profile.guard.proposals.find(wanted), "state", None)
            await approve(life, wanted)
            assert ["x"] == life.texts()


class TestReject:
    async def test_it_is_settled_and_explained(self, host: Host, autojump_clock: MockClock) -> None:
        """Nothing changes; the reason is told to whoever asks later (FR-154)."""
        async with host.life("crash") as life:
            wanted = await staged(life, add("an advert"))
            by = Decider(replace(PERSON, reason="nobody asked"), "memd", "")
            settled = await approvals(life).reject(wanted, by)
            assert ("rejected", "nobody asked") == (settled.state, settled.settled["reason"])
            (event,) = await told(life)
            assert {"state": "rejected", "reason": "nobody asked", "command": "memd"}.items() <= event.data.items()
        async with host.life() as life:
            assert ([], []) == (life.texts(), await approvals(life).listed())
            (why,) = await life.profile.explain("an advert")
            assert ("refused", "proposed by tool, rejected by memd: nobody asked") == (why.state, why.reason)

    async def test_the_same_call_again_has_the_same_answer(self, host: Host, autojump_clock: MockClock) -> None:
        """Another one is told that it is settled."""
        async with host.life() as life:
            wanted = await staged(life, add("x"))
            first = await approvals(life).reject(wanted, DECIDER, request_id="r1")
            assert first == await approvals(life).reject(wanted, DECIDER, request_id="r1")
            with pytest.raises(NoSuchProposal, match="is rejected already"):
                await approvals(life).reject(wanted, DECIDER, request_id="r2")

    async def test_what_could_not_be_written_still_waits(self, host: Host, autojump_clock: MockClock) -> None:
        """And can be settled afterwards."""
        plan = FailingJournal()
        host.connect = plan.connect
        async with host.life() as life:
            wanted = await staged(life, add("x"))
            plan.fail("COMMIT")
            with pytest.raises(IoFailure):
                await approvals(life).reject(wanted, DECIDER)
            assert 1 == len(await approvals(life).listed())
            await approvals(life).reject(wanted, DECIDER)


class TestTime:
    async def test_77_that_nobody_looks_at(self, host: Host, autojump_clock: MockClock) -> None:
        """Count and age are known at once; those that are too old expire, and that is told and explained (FR-139)."""
        async with host.life() as life:
            for number in range(77):
                await staged(life, add(f"note {number}"))
            assert 77 == approvals(life).pending()[0]
            autojump_clock.jump(29 * DAY_S)
            assert (77, True) == (approvals(life).pending()[0], approvals(life).pending()[1] >= 29 * DAY_S)
            await life.profiles.tend()
            assert 77 == approvals(life).pending()[0]
            autojump_clock.jump(2 * DAY_S)
            await life.profiles.tend()
            assert (0, 0) == approvals(life).pending()
            events = await told(life)
            assert (77, {"expired"}) == (len(events), {event.data["state"] for event in events})
            assert any(one.state == "expired" for one in await life.profile.explain("note 5"))
            late = await staged(life, add("too late"))
            autojump_clock.jump(31 * DAY_S)
            with pytest.raises(NoSuchProposal, match="is expired already"):
                await approve(life, late)
        async with host.life() as life:
            assert [] == await approvals(life).listed()

    async def test_each_change_of_a_store_has_them_tried_anew(self, host: Host, autojump_clock: MockClock) -> None:
        """Outside edits too, without anybody asking."""
        host.lag_s = 60
        async with host.life() as life:
            await life.add("alpha")
            wanted = await staged(life, change("alpha", "beta"))
            host.write("something else\n")
            await life.look()
            await life.profiles.tend()
            assert "needs_review" == getattr(life.profile.guard.proposals.find(wanted), "state", None)


class TestExplain:
    async def test_what_waits_and_what_is_let_in(self, host: Host, autojump_clock: MockClock) -> None:
        """Where it is, and since when."""
        async with host.life() as life:
            wanted = await staged(life, add("from a page"))
            (why,) = await life.profile.explain("a page")
            assert ("staged", wanted, "proposed by tool, waits for approval") == (why.state, why.id, why.reason)
            await approve(life, wanted)
            states = [why.state for why in await life.profile.explain("a page")]
            assert ["stored", "stored"] == states


async def test_a_redaction_reaches_what_waits(host: Host, autojump_clock: MockClock) -> None:
    """In memory at once."""
    async with host.life() as life:
        await staged(life, add("the pin is hunter2"))
        life.profile.guard.proposals.redact(lambda text: text.replace("hunter2", "[redacted]"))
        (listed,) = await approvals(life).listed()
        assert "the pin is [redacted]" == listed.proposal.operations[0].content


async def test_what_was_redacted_is_not_approved_as_it_stands_there(host: Host, autojump_clock: MockClock) -> None:
    """Nobody has proposed that; in a person's own words it may be, and a text that says so by itself always."""
    async with host.life() as life:
        wanted = await staged(life, add("the pin is hunter2"))
        life.profile.guard.proposals.redact(lambda text: text.replace("hunter2", "[redacted]"))
        (listed,) = await approvals(life).listed()
        assert listed.trial.problem.startswith("a text in it was redacted: reject it")
        with pytest.raises(Conflict, match="a text in it was redacted") as caught:
            await approve(life, wanted)
        assert ("redacted", []) == (caught.value.extra["reason"], life.texts())
        await approve(life, wanted, content="the pin is in the safe")
        await approve(life, await staged(life, add("the page said [redacted]")))
        assert ["the pin is in the safe", "the page said [redacted]"] == life.texts()


async def test_settings_of_a_profile_are_its_own(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Two profiles with one store: what one lets through is looked at by the other's rules."""
    host = Host(tmp_path, profiles={"p": "same", "q": "same"})
    host.settings[1] = replace(host.settings[1], approval=Approval(tool="apply", outside="withhold"))
    async with host.life() as life:
        other = life.profiles.by_name["q"]
        assert (await other.submit(mutation(add("x"), caller=TOOL)).wait()).changed
        assert (await life.do(mutation(add("y"), caller=TOOL))).staged
        (tmp_path / "same/MEMORY.md").write_text("x\n§\nby hand\n")
        await life.look()
        assert {} == life.profile.state("memory").withheld
        assert ["origin.outside"] == list(other.state("memory").withheld.values())
        assert [] == await other.approvals.listed()
