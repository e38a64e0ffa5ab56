"""The ledger: what a job cost, and what that makes of the day."""

from __future__ import annotations

from support.fake_daemon import FakeClock
from support.jobs import review

from memd.jobs.ledger import Ledger
from memd.jobs.ports import Used
from memd.jobs.schedule import DAY_US
from memd.store.work import SpendingRecord


def test_only_what_is_new_is_charged() -> None:
    """However often it is looked at; the job keeps the sum of all attempts."""
    ledger = Ledger(clock=FakeClock(10 * DAY_US))
    used, charged = Used(input=100, cached=30, output=5, steps=1, model="m"), Used()
    job, more = ledger.charge(review(), used, charged)
    assert SpendingRecord(profile="p", day=10, input=100, cached=30, output=5) == more
    job, more = ledger.charge(job, used, charged)
    assert None is more
    used.input, used.steps = 150, 2
    job, more = ledger.charge(job, used, charged)
    assert SpendingRecord(profile="p", day=10, input=50) == more
    assert (150, 30, 5, 2, "m") == (job.input, job.cached, job.output, job.steps, job.model)
    assert (155, 0) == (ledger.spent("p", 10), ledger.spent("q", 10))


def test_a_day_begins_at_zero() -> None:
    """What was kept of this one is taken over; days long past are forgotten."""
    clock = FakeClock(10 * DAY_US)
    ledger = Ledger(clock=clock)
    ledger.load([SpendingRecord(profile="p", day=10, input=7, output=1)])
    assert (8, 7) == (ledger.spent("p", 10), ledger.of_today("p").input)
    clock.now_us += 5 * DAY_US
    assert (15, 0) == (ledger.today, ledger.of_today("p").input)
    ledger.charge(review(), Used(input=1), Used())
    assert (0, 1) == (ledger.spent("p", 10), ledger.spent("p", 15))
    assert "<Ledger of 1 days>" == repr(ledger)
