"""The failure budget: counts in a row, ends in a terminal answer, never latches."""

from __future__ import annotations

from hypothesis import given, strategies as st

from memd.sessions.budget import Failure, FailureBudget

MINUTE = 60_000_000


def refuse(budget: FailureBudget, call: bytes = b"c", *, now_us: int = 0) -> Failure:
    return budget.refuse(call, limit=3, now_us=now_us)


def test_three_refusals_are_told_how_to_repair_and_the_fourth_is_terminal() -> None:
    """The limit itself is still repairable."""
    budget = FailureBudget()
    found = [refuse(budget, bytes([n])) for n in range(5)]
    assert [1, 2, 3, 4, 5] == [failure.count for failure in found]
    assert [False, False, False, True, True] == [failure.exhausted for failure in found]


def test_a_valid_write_starts_the_count_again() -> None:
    """Also after the budget was exhausted: a counter that nobody resets would disable memory for good."""
    budget = FailureBudget()
    for _ in range(6):
        refuse(budget)
    budget.reset()
    assert 0 == budget.count(0)
    assert Failure(1, 3, exhausted=False, repeated=False) == refuse(budget)


def test_an_unchanged_repeat_is_recognised_and_another_call_is_not() -> None:
    """Only the call directly before counts as a repeat."""
    budget = FailureBudget()
    assert [False, True, False, False] == [refuse(budget, call).repeated for call in (b"a", b"a", b"b", b"a")]


def test_a_budget_of_a_turn_does_not_expire() -> None:
    """A turn may take hours."""
    budget = FailureBudget()
    refuse(budget)
    assert 1 == budget.count(10**12)


def test_a_budget_of_a_connection_expires_when_it_has_not_failed_for_a_while() -> None:
    """Five minutes exactly still count, a little more does not."""
    budget = FailureBudget(idle_us=5 * MINUTE)
    refuse(budget)
    assert 1 == budget.count(5 * MINUTE)
    assert 0 == budget.count(5 * MINUTE + 1)


def test_failures_spread_over_days_never_exhaust_it() -> None:
    """Three in three sessions of work are not three in a row."""
    budget = FailureBudget(idle_us=5 * MINUTE)
    days = [refuse(budget, now_us=day * 24 * 60 * MINUTE) for day in range(1, 6)]
    assert [1] * 5 == [failure.count for failure in days]


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 6))
def test_the_count_is_the_number_of_refusals_since_the_last_valid_write(outcomes: list[bool], limit: int) -> None:
    """Whatever the order of outcomes."""
    budget, expected = FailureBudget(), 0
    for good in outcomes:
        if good:
            budget.reset()
            expected = 0
        else:
            expected += 1
            failure = budget.refuse(b"", limit=limit, now_us=0)
            assert (expected, expected > limit) == (failure.count, failure.exhausted)
    assert expected == budget.count(0)


def test_its_repr_shows_the_count() -> None:
    """For logs."""
    budget = FailureBudget()
    refuse(budget)
    assert "<FailureBudget 1 in a row>" == repr(budget)
