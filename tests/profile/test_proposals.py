"""memd.profile.proposals: what waits, as values and as a table."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from support.judged import ATTACK, SCANS, TOOL, add, change, edit, found, take

from memd.errors import NoSuchProposal
from memd.profile.entries import Document, Entry
from memd.profile.proposals import (
    Proposals,
    attempt,
    from_record,
    staged,
    to_record,
    try_out,
    with_content,
)
from memd.profile.values import Limits, Stamp

if TYPE_CHECKING:
    from memd.profile.proposals import Proposal
    from memd.profile.values import Operation

LIMITS = Limits(100)
DAY_US = 86_400_000_000


def proposal(proposal_id: str = "p-1", *operations: Operation, **fields: Any) -> Proposal:
    given = {"target": "memory", "us": 1_000_000, "base": 3, "findings": (found(),), **fields}
    return staged(proposal_id, store=1, profile="p", caller=TOOL, operations=operations or (add("x"),), **given)


def document(*texts: str) -> Document:
    entries = tuple(Entry(text, text, f"e{number}") for number, text in enumerate(texts, 1))
    return Document(entries=entries, gaps=("\n§\n",) * max(0, len(entries) - 1))


def test_a_proposal_comes_back_from_the_journal_as_it_was() -> None:
    """Every field, whatever became of it."""
    one = proposal("p-1", change("a", "b"), edit("c", ""), state="rejected", settled_us=5, settled={"pid": 1})
    assert one == from_record(to_record(one))
    assert ("tool", "reader", 2, "said in a document") == (one.origin, one.client, one.pid, one.reason)


class TestTable:
    def test_what_waits_is_listed_in_order_and_counted(self) -> None:
        """Those settled are known, and do not wait."""
        table = Proposals([to_record(proposal("p-1")), to_record(proposal("p-2", us=9_000_000))])
        table.put(proposal("p-3", state="needs_review", us=5_000_000))
        table.put(proposal("p-4", state="approved"))
        assert ["p-1", "p-2", "p-3"] == [one.id for one in table.waiting()]
        assert (3, 9) == table.count(10_000_000)
        assert 4 == len(table.everything())
        assert "<Proposals 3 waiting of 4>" == repr(table)
        assert (0, 0) == Proposals().count(10_000_000)

    def test_what_was_never_answered_for_is_not_there(self) -> None:
        """Its group was taken back."""
        record = to_record(proposal("p-1"))
        record.state = "withdrawn"
        assert () == Proposals([record]).everything()

    def test_one_that_is_settled_or_unknown_cannot_be_settled(self) -> None:
        """The error says what became of it."""
        table = Proposals()
        table.put(proposal("p-1", state="expired"))
        with pytest.raises(NoSuchProposal, match="is expired already") as caught:
            table.require_open("p-1")
        assert {"state": "expired"} == caught.value.data()
        with pytest.raises(NoSuchProposal, match="no proposal or withheld entry 'p-9'"):
            table.require_open("p-9")

    def test_the_very_same_is_found(self) -> None:
        """In the same store, while it waits."""
        table = Proposals()
        table.put(proposal("p-1", add("x"), add("y")))
        assert table.same("memory", [add("x"), add("y")]) is table.find("p-1")
        assert table.same("user", [add("x"), add("y")]) is None
        assert table.same("memory", [add("x")]) is None
        table.put(proposal("p-1", add("x"), add("y"), state="rejected"))
        assert table.same("memory", [add("x"), add("y")]) is None

    def test_one_is_settled_by_one_at_a_time(self) -> None:
        """Until it is released."""
        table = Proposals()
        assert table.claim("p-1")
        assert not table.claim("p-1")
        table.release("p-1")
        assert table.claim("p-1")

    def test_what_waits_too_long_is_due(self) -> None:
        """By the setting, and not what is settled."""
        table = Proposals()
        table.put(proposal("p-1", us=0))
        table.put(proposal("p-2", us=DAY_US))
        table.put(proposal("p-3", us=0, state="rejected"))
        assert [] == table.due(30 * DAY_US, 30)
        assert ["p-1"] == [one.id for one in table.due(30 * DAY_US + 1, 30)]

    def test_ids_are_never_given_out_twice(self) -> None:
        """Not even for the same text at the same time."""
        table = Proposals()
        for _ in range(50):
            fresh = table.new_id("seed")
            assert table.find(fresh) is None
            table.put(proposal(fresh))
        assert 50 == len(table.everything())

    def test_a_redaction_reaches_every_text(self) -> None:
        """Operations, reasons, what was said when it was settled."""
        table = Proposals()
        table.put(
            proposal(
                "p-1",
                change("old pin", "new pin"),
                problem="no pin",
                settled={"reason": "a pin", "pid": 4},
                state="rejected",
            )
        )
        table.redact(lambda text: text.replace("pin", "…"))
        assert "pin" not in repr(table.find("p-1"))
        assert "new …" == table.everything()[0].operations[0].content


class TestTrial:
    def test_what_it_would_do_is_shown(self) -> None:
        """As a difference of the whole store."""
        trial = try_out(document("a", "b"), proposal("p-1", change("a", "z")), limits=LIMITS, scans=SCANS)
        assert "" == trial.problem
        assert "-a" in trial.diff.splitlines()
        assert "+z" in trial.diff.splitlines()

    @pytest.mark.parametrize(
        ("operations", "why"),
        [
            ((change("nope", "z"),), "no entry contains"),
            ((add("x" * 101),), "too many"),
            ((take("a"), change("nope", "z")), "operation 2 of 2 failed"),
            ((add(ATTACK),), "the scan refuses it now"),
        ],
    )
    def test_what_no_longer_fits_says_why(self, operations: tuple[Operation, ...], why: str) -> None:
        """In words; nothing is shown as if it could be done."""
        trial = try_out(document("a", "b"), proposal("p-1", *operations), limits=LIMITS, scans=SCANS)
        assert why in trial.problem
        assert (None, "") == (trial.after, trial.diff)


def test_one_operation_is_applied_alone_and_several_together() -> None:
    """The limit holds for the end of a batch only."""
    ids = count(1)
    common: Any = {"limits": Limits(5), "stamp": Stamp(1, "tool"), "new_id": lambda _: f"n{next(ids)}"}
    done = attempt(document("aaaa"), (add("bbbb"), take("aaaa")), **common)
    assert ["bbbb"] == [entry.text for entry in done.document.entries]
    done = attempt(document("a"), (add("b"),), **common)
    assert ["a", "b"] == [entry.text for entry in done.document.entries]


class TestContent:
    @pytest.mark.parametrize(
        ("operation", "field"), [(add("x"), "content"), (change("a", "x"), "content"), (edit("a", "x"), "new_text")]
    )
    def test_a_person_may_want_another_text(self, operation: Operation, field: str) -> None:
        """In the place of the one that was proposed."""
        (wanted,) = with_content(proposal("p-1", operation), "mine")
        assert "mine" == getattr(wanted, field)
        assert replace(wanted, **{field: "x"}) == operation

    def test_without_it_nothing_changes(self) -> None:
        """However many operations there are."""
        assert (add("x"), take("y")) == with_content(proposal("p-1", add("x"), take("y")), None)

    @pytest.mark.parametrize("operations", [(take("a"),), (add("x"), add("y"))])
    def test_where_there_is_no_one_text_it_cannot_be_another(self, operations: tuple[Operation, ...]) -> None:
        """A removal, or several."""
        with pytest.raises(ValueError, match="p-1"):
            with_content(proposal("p-1", *operations), "mine")
