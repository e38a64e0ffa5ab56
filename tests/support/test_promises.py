"""support.promises: the judge of the fault tests finds each promise that is broken."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.promises import Found, Ledger, Outcome, broken

KEPT = Found(("a", "b", "hand"), ("a", "b", "hand"), "a b hand gone")


def ledger() -> Ledger:
    """``a`` was added, ``b`` replaced ``gone``, ``refused`` was refused, nobody knows of ``maybe``, ``hand`` by hand."""
    made = Ledger()
    for come, gone, outcome in (
        ("a", None, "done"),
        ("gone", None, "done"),
        ("b", "gone", "done"),
        ("refused", None, "none"),
        ("maybe", None, "unknown"),
    ):
        made.asked(come, gone)
        made.answered(come, gone, _outcome(outcome))
    made.saved("hand")
    return made


def _outcome(name: str) -> Outcome:
    return "done" if name == "done" else "none" if name == "none" else "unknown"


@pytest.mark.parametrize("more", [(), ("maybe",)])
def test_nothing_is_said_where_every_promise_is_kept(more: tuple[str, ...]) -> None:
    """What nobody knows may be there or not."""
    texts = (*KEPT.published, *more)
    assert [] == broken(ledger(), replace(KEPT, published=texts, file=texts))


@pytest.mark.parametrize(
    ("published", "said"),
    [
        (("b", "hand"), "acknowledged and gone: a"),
        (("a", "b", "hand", "refused"), "refused or removed, and there: refused"),
        (("a", "b", "hand", "gone"), "refused or removed, and there: gone"),
        (("a", "b", "hand", "b"), "there 2 times: b"),
        (("a", "b", "hand", "torn"), "nobody wrote this: torn"),
        (("a", "b"), "saved by hand and not shown: hand"),
    ],
)
def test_what_is_published(published: tuple[str, ...], said: str) -> None:
    assert said in broken(ledger(), replace(KEPT, published=published, file=published))


def test_a_removal_that_was_refused_leaves_the_entry() -> None:
    made = ledger()
    made.asked(None, "a")
    made.answered(None, "a", "none")
    texts = ("b", "hand")
    assert ["acknowledged and gone: a"] == broken(made, replace(KEPT, published=texts, file=texts))


def test_a_call_that_was_never_answered_may_have_been_done() -> None:
    """The process ended before it could say so."""
    made = ledger()
    made.asked("new", "a")
    texts = ("new", "b", "hand")
    assert [] == broken(made, replace(KEPT, published=texts, file=texts))


def test_file_and_journal() -> None:
    """The file says what is published, and what a hand saved is kept somewhere in any case."""
    assert ["the file says ('a',), memd ('a', 'b', 'hand')"] == broken(ledger(), replace(KEPT, file=("a",)))
    assert ["saved by hand and lost: hand"] == broken(ledger(), replace(KEPT, recorded="a b gone"))


def test_trouble_is_passed_on() -> None:
    assert ["p is not served"] == broken(ledger(), replace(KEPT, trouble=("p is not served",)))


def test_what_changes_together_is_not_half_done() -> None:
    made = ledger()
    made.as_one("a", "maybe")
    assert ["half done: of ['a', 'maybe'], only ['a'] are there"] == broken(made, KEPT)
    texts = (*KEPT.published, "maybe")
    assert [] == broken(made, replace(KEPT, published=texts, file=texts))


@pytest.mark.parametrize(
    ("outcome", "kept"),
    [("done", ["open"]), ("none", [None]), ("unknown", [None, "open"])],
)
def test_the_state_of_what_is_no_entry(outcome: str, kept: list[str | None]) -> None:
    """It is what was answered; what nobody knows is either."""
    made = ledger()
    made.becoming("session: s", "open")
    made.became("session: s", "open", _outcome(outcome))
    for state in (None, "open", "damaged"):
        states = {"session: s": state} if state else {}
        assert (state in kept) == (not broken(made, replace(KEPT, states=states)))


def test_a_state_that_was_refused_leaves_the_one_before() -> None:
    """Even where both are the same, as of a session in which a turn is not begun."""
    made = ledger()
    for outcome in ("done", "none"):
        made.becoming("session: s", "open")
        made.became("session: s", "open", _outcome(outcome))
    assert [] == broken(made, replace(KEPT, states={"session: s": "open"}))
    assert ["session: s is None, and should be one of ['open']"] == broken(made, KEPT)


@pytest.mark.parametrize(
    ("state", "text", "kept"),
    [("approved", "a", True), ("approved", "else", False), ("pending", "a", False), ("rejected", "else", True)],
)
def test_a_proposal_is_approved_with_its_text(state: str, text: str, kept: bool) -> None:
    assert kept == (not broken(ledger(), replace(KEPT, states={f"proposal: {text}": state})))
