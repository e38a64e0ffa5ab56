"""The schedule: what can be done with a job now, or when to look again.

What comes in: a job, the settings of its profile, who could review it, lanes, the foreground, what was spent, the time. What goes out: one
of four decisions. What must not be here: doing it (``runner``), the journal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from memd.jobs.counting import is_of_rest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memd.jobs.foreground import Foreground
    from memd.jobs.lanes import Lanes
    from memd.jobs.ports import JobProfile, Worker
    from memd.jobs.states import Outcome
    from memd.profile.stored import JobRecord

DAY_US = 86_400 * 1_000_000
UNSERVED_US = 60 * 1_000_000
MOST_TRIES = 5
"""Attempts of one job that may end without a word or without use: a job that brings the daemon down must not do so for ever."""


@dataclass(frozen=True, slots=True)
class Start:
    """Take it now. ``worker`` is None if its reviewer has ended and only the commit is left; ``lane`` is then its own."""

    worker: Worker | None
    lane: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Leave it queued; look again at a time, or (None) when something changes."""

    until_us: int | None


@dataclass(frozen=True, slots=True)
class Hold:
    """Nobody can do it before a time."""

    until_us: int
    reason: str


@dataclass(frozen=True, slots=True)
class End:
    """It cannot be done at all."""

    outcome: Outcome
    reason: str


Decision = Start | Wait | Hold | End


def lane_of(worker: Worker, job: JobRecord) -> str:
    """The lane that a job uses with a reviewer: its endpoint, else the reviewer's own in this profile."""
    return worker.endpoint or f"{worker.kind} of {job.profile}"


def is_metered(worker: Worker) -> bool:
    """True if what it does costs tokens."""
    return worker.kind != "rules"


class Schedule:
    """Decides. ``workers`` gives those who could review for a profile, the chosen one first.

    ``spent`` gives a profile's tokens of a day; ``failures`` those of a job's turn. ``passed_over``: reviewers of a job that there is no use
    in asking again.
    """

    def __init__(
        self,
        *,
        workers: Callable[[JobProfile], Sequence[Worker]],
        lanes: Lanes,
        foreground: Foreground,
        spent: Callable[[str, int], int],
        failures: Callable[[JobRecord], int],
    ) -> None:
        self.passed_over: dict[str, set[tuple[str, str | None]]] = {}
        self._workers = workers
        self._lanes = lanes
        self._foreground = foreground
        self._spent = spent
        self._failures = failures

    def __repr__(self) -> str:
        return f"<Schedule with {self._lanes!r}>"

    def decide(self, job: JobRecord, profile: JobProfile | None, now_us: int) -> Decision:
        """What to do with a job that is queued."""
        if profile is None:
            return Hold(now_us + UNSERVED_US, f"the profile {job.profile} is not served at the moment")
        if job.decided:
            return Start(None, f"commit {job.id}")
        return (
            self._hopeless(job, profile) or self._in_the_way(job, profile, now_us) or self._choose(job, profile, now_us)
        )

    def _hopeless(self, job: JobRecord, profile: JobProfile) -> End | None:
        settings = profile.settings
        if not (settings.stores.memory or settings.stores.user):
            return End("failed", "both stores of the profile are switched off ([stores] memory, user)")
        if settings.review.reviewer == "off":
            return End("cancelled", "reviews are switched off ([review] reviewer)")
        if job.tries >= MOST_TRIES:
            return End(
                "failed", f"given up after {job.tries} attempts that led nowhere; the last: {job.reason or 'unknown'}"
            )
        if self._failures(job) >= settings.turn.failure_budget:
            return End(
                "failed", f"failed {self._failures(job)} times in this turn; the last: {job.reason or 'unknown'}"
            )
        return None

    def _in_the_way(self, job: JobRecord, profile: JobProfile, now_us: int) -> Wait | None:
        if job.offered_us > now_us:
            return Wait(job.offered_us)
        if job.kind == "review" and not is_of_rest(job):
            idle_us = int(profile.settings.review.idle_s * 1_000_000)
            free_us = self._foreground.free_at(job.session, now_us=now_us, idle_us=idle_us)
            if free_us > now_us:
                return Wait(free_us)
        return None

    def _choose(self, job: JobRecord, profile: JobProfile, now_us: int) -> Decision:
        """The first reviewer that can; one that is merely busy is waited for, one that is down or too expensive is not."""
        workers = self._workers(profile)
        if not workers:
            return Hold(now_us + UNSERVED_US, "no reviewer can be used at the moment ([review] reviewer, fallback)")
        over = self.passed_over.get(job.id, set())
        problems: list[Hold | End] = []
        for worker in workers:
            if (worker.kind, worker.endpoint) in over:
                continue
            problem = self._problem(job, profile, worker, now_us)
            if problem is None:
                lane = lane_of(worker, job)
                return Wait(None) if self._lanes.is_busy(lane) else Start(worker, lane)
            problems.append(problem)
        return _least(problems) or End("failed", job.reason or "no reviewer could do it ([review] reviewer, fallback)")

    def _problem(self, job: JobRecord, profile: JobProfile, worker: Worker, now_us: int) -> Hold | End | None:
        review = profile.settings.review
        if is_metered(worker):
            used = job.input + job.output
            if used >= review.tokens_per_job:
                reason = f"it has used {used:,} tokens, and may use {review.tokens_per_job:,} ([review] tokens_per_job)"
                return End("failed", reason)
            if self._spent(job.profile, now_us // DAY_US) >= review.tokens_per_day:
                reason = f"the day's {review.tokens_per_day:,} tokens are spent ([review] tokens_per_day)"
                return Hold((now_us // DAY_US + 1) * DAY_US, reason)
        down = self._lanes.down(lane_of(worker, job), now_us)
        return Hold(down.until_us, down.reason) if down is not None else None


def _least(problems: Sequence[Hold | End]) -> Hold | End | None:
    """What to do where every reviewer has a problem: wait for the first that will be able again, if any will."""
    holds = [one for one in problems if isinstance(one, Hold)]
    return min(holds, key=lambda hold: hold.until_us) if holds else next(iter(problems), None)
