"""Counting: how many of the user's turns no review has seen, per session and for those that have ended; when a review is due.

What comes in: turns that end, with copies of their messages; sessions that close or idle; an agent's own writes. What goes out: what has
to become durable in one with that, and the job that is due. What must not be here: the journal, tasks, what a turn is (``sessions``).

Counted is a completed turn that a user's message began and that did not count before. At the interval a review of everything that none
has seen is due, and is accepted in the very transaction of the turn's end: the count is spent then or not at all. What a session leaves
when it closes or idles for an hour is the profile's, so that many short sessions are reviewed as well. An agent that has just written
by itself has no need of a nudge: its session counts from 0.

A change holds here at once, since the next call may come before it is durable; ``settle(False)`` of what is given out takes it back. The
copies are then kept in memory and ride with the session's next change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memd.profile.stored import JobRecord, RangeRecord, TallyRecord, WorkPart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from memd.profile.stored import MessageRecord

IDLE_US = 3600 * 1_000_000
"""A session without a turn for so long leaves what no review has seen to its profile."""

REST = ""
"""In place of a session: those of a profile that have ended."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings that matter here: turns between reviews (0: none), and how long a review is offered to its client first."""

    interval: int
    offer_us: int = 0


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """A turn that has ended. ``counts``: a completed user turn that did not count before."""

    profile: str
    session: str
    turn: str
    counts: bool
    endpoint: str | None = None


@dataclass(frozen=True, slots=True)
class Counted:
    """What a change comes to: what has to become durable, the job that is due, and what to call when it is, or is not."""

    work: WorkPart | None
    job: JobRecord | None
    settle: Callable[[bool], None]


NOTHING = Counted(None, None, lambda _: None)


class Counting:
    """The counts of all profiles.

    Args:
        clock: Microseconds since the epoch.
        name: A new job's id.
    """

    def __init__(self, *, clock: Callable[[], int], name: Callable[[], str]) -> None:
        self._clock = clock
        self._name = name
        self._tallies: dict[tuple[str, str], TallyRecord] = {}
        self._unsaved: dict[tuple[str, str], list[MessageRecord]] = {}

    def __repr__(self) -> str:
        return f"<Counting {len(self._tallies)} sessions>"

    def load(self, tallies: Iterable[TallyRecord], agent_writes: Mapping[str, int]) -> None:
        """Take over what the journal kept. A write that an agent made after its session's count was noted counts, too."""
        for tally in tallies:
            self._tallies[tally.profile, tally.session] = tally
            if agent_writes.get(tally.session, 0) > tally.us:
                tally.unseen = 0

    def unseen(self, profile: str, session: str = REST) -> int:
        """Turns that no review has seen: of a session, or of those that have ended."""
        found = self._tallies.get((profile, session))
        return found.unseen if found else 0

    def fresh(self, profile: str, session: str) -> int:
        """Turns of a session since the last review or flush."""
        found = self._tallies.get((profile, session))
        return found.fresh if found else 0

    def planned(self, profile: str, session: str, turn: str) -> str | None:
        """The job that the end of this turn brought about, if it was the session's last."""
        found = self._tallies.get((profile, session))
        return found.job if found and found.turn == turn else None

    def take_numbers(self, profile: str, session: str, count: int) -> int:
        """The number of the first of so many messages of a session; none of them is given out again."""
        tally = self._tally(profile, session)
        first = tally.last + 1
        tally.last += count
        return first

    # -- what happens -------------------------------------------------------------------------------------------

    def turn_ended(
        self, ended: TurnEnd, messages: Sequence[MessageRecord], rules: Rules, *, extend: JobRecord | None = None
    ) -> Counted:
        """Count a turn. ``messages``: its copies, with numbers that were taken; ``extend``: a review of the session that has not begun."""
        tally = self._tally(ended.profile, ended.session)
        tally.turn, tally.job = ended.turn, None
        tally.fresh += int(ended.counts)
        if rules.interval:
            tally.unseen += int(ended.counts)
        else:
            tally.first = tally.last + 1  # nobody will want them
        return self._saved(tally, list(messages) if rules.interval else [], rules, extend, ended.endpoint)

    def turn_repeated(self, ended: TurnEnd, rules: Rules, *, extend: JobRecord | None = None) -> Counted:
        """The end of a turn is told again: nothing counts, but what could not be made durable then is tried again."""
        tally = self._tallies.get((ended.profile, ended.session))
        if tally is None or (ended.profile, ended.session) not in self._unsaved:
            return NOTHING
        return self._saved(tally, [], rules, extend, ended.endpoint)

    def _saved(
        self,
        tally: TallyRecord,
        messages: list[MessageRecord],
        rules: Rules,
        extend: JobRecord | None,
        endpoint: str | None,
    ) -> Counted:
        tally.us = self._clock()
        before = replace(tally)
        job = None
        if rules.interval and tally.unseen >= rules.interval:
            job = self._job(tally, rules, extend, turn=tally.turn, endpoint=endpoint)
            self._spend(tally, job)
        kept = self._take_unsaved(tally.profile, tally.session) + messages
        work = WorkPart(messages=kept, tallies=[replace(tally)], jobs=[job] if job else [])

        def settle(durable: bool) -> None:
            if durable:
                return
            self._keep_unsaved(tally.profile, tally.session, kept)
            if job is not None:
                tally.unseen += before.unseen
                tally.fresh += before.fresh
                tally.first = min(tally.first, before.first)
                tally.job = None if tally.job == job.id else tally.job

        return Counted(work, job, settle)

    def session_closed(self, profile: str, session: str, rules: Rules, *, extend: JobRecord | None = None) -> Counted:
        """A session is over: what it leaves is the profile's, or nobody's if there is nothing that counts."""
        tally = self._tallies.pop((profile, session), None)
        if tally is None:
            return NOTHING
        unsaved = self._take_unsaved(profile, session)
        moved = self._move(tally, rules, extend)
        work = moved.work or WorkPart(gone=_range(tally))
        work.over.append((profile, session))
        if moved.work is not None:
            work.messages = unsaved

        def settle(durable: bool) -> None:
            moved.settle(durable)
            if not durable:
                self._tallies[profile, session] = tally
                self._keep_unsaved(profile, session, unsaved)

        return Counted(work, moved.job, settle)

    def sessions(self) -> list[tuple[str, str]]:
        """Profile and session of everything that is counted."""
        return [key for key in self._tallies if key[1] != REST]

    def idle(self, profile: str, rules: Rules, *, busy: Callable[[str], bool]) -> list[TallyRecord]:
        """The sessions of a profile that have idled for an hour with something left. ``busy``: one that is in a turn is not idle."""
        oldest = self._clock() - IDLE_US
        return [
            tally
            for tally in self._tallies.values()
            if tally.profile == profile
            and tally.session != REST
            and tally.unseen
            and tally.us <= oldest
            and rules.interval
            and not busy(tally.session)
        ]

    def session_idles(self, tally: TallyRecord, rules: Rules, *, extend: JobRecord | None = None) -> Counted:
        """What a session that idles leaves is the profile's; the session counts on from 0."""
        before = replace(tally)
        moved = self._move(tally, rules, extend)
        tally.unseen, tally.first = 0, tally.last + 1
        work = moved.work or WorkPart()
        work.tallies.append(replace(tally))
        work.messages = self._take_unsaved(tally.profile, tally.session)

        def settle(durable: bool) -> None:
            moved.settle(durable)
            if not durable:
                tally.unseen += before.unseen
                tally.first = before.first
                self._keep_unsaved(tally.profile, tally.session, work.messages)

        return Counted(work, moved.job, settle)

    def agent_wrote(self, profile: str, session: str) -> WorkPart | None:
        """The agent has committed something itself: its session counts from 0. None if it did already."""
        tally = self._tallies.get((profile, session))
        if tally is None or not tally.unseen:
            return None
        tally.unseen, tally.us = 0, self._clock()
        return WorkPart(tallies=[replace(tally)])

    def flushed(self, profile: str, session: str) -> TallyRecord:
        """A flush of the session is accepted: its turns are not fresh any more. Make what is returned durable with it."""
        tally = self._tally(profile, session)
        tally.fresh, tally.us = 0, self._clock()
        return replace(tally)

    def flush_failed(self, profile: str, session: str, fresh: int) -> None:
        """It could not be made durable: so many turns are fresh as before, and what came since."""
        self._tally(profile, session).fresh += fresh

    def demand(self, profile: str, session: str, rules: Rules, *, extend: JobRecord | None = None) -> Counted:
        """A person wants a review now of what no review has seen of a session (or of those that have ended), however little."""
        tally = self._tallies.get((profile, session))
        if tally is None or not (tally.ranges or _range(tally)):
            return NOTHING
        before = replace(tally, ranges=list(tally.ranges))
        job = self._job(tally, rules, extend, turn=tally.turn, endpoint=None)
        self._spend(tally, job)
        work = WorkPart(tallies=[replace(tally)], jobs=[job], messages=self._take_unsaved(profile, session))

        def settle(durable: bool) -> None:
            if not durable:
                self._restore(tally, before)
                self._keep_unsaved(profile, session, work.messages)

        return Counted(work, job, settle)

    def redact(self, mask: Callable[[str], str]) -> None:
        """Mask texts in what is only in memory."""
        for tally in self._tallies.values():
            tally.turn = tally.turn and mask(tally.turn)
        for kept in self._unsaved.values():
            for record in kept:
                record.text, record.withheld = mask(record.text), mask(record.withheld)
                record.turn = record.turn and mask(record.turn)

    # -- inside -------------------------------------------------------------------------------------------------

    def _tally(self, profile: str, session: str) -> TallyRecord:
        key = profile, session
        if key not in self._tallies:
            self._tallies[key] = TallyRecord(profile=profile, session=session, us=self._clock())
        return self._tallies[key]

    def _move(self, tally: TallyRecord, rules: Rules, extend: JobRecord | None) -> Counted:
        """Give what a session leaves to its profile; ``work`` is None if it leaves nothing that counts."""
        if not tally.unseen or not rules.interval:
            return NOTHING
        rest = self._tally(tally.profile, REST)
        before = replace(rest, ranges=list(rest.ranges))
        rest.us = self._clock()
        rest.unseen += tally.unseen
        rest.ranges = [*rest.ranges, *_range(tally)]
        job = None
        if rest.unseen >= rules.interval:
            job = self._job(rest, Rules(rules.interval), extend)
            self._spend(rest, job)
        work = WorkPart(tallies=[replace(rest)], jobs=[job] if job else [])

        def settle(durable: bool) -> None:
            if not durable:
                self._restore(rest, before)

        return Counted(work, job, settle)

    def _restore(self, tally: TallyRecord, before: TallyRecord) -> None:
        tally.unseen, tally.fresh, tally.ranges = before.unseen, before.fresh, before.ranges
        tally.first, tally.job = before.first, before.job

    def _job(
        self,
        tally: TallyRecord,
        rules: Rules,
        extend: JobRecord | None,
        *,
        turn: str | None = None,
        endpoint: str | None = None,
    ) -> JobRecord:
        """A review of everything in a tally: a new one, or one that waits with this added to it."""
        ranges = _joined([*(extend.ranges if extend else ()), *tally.ranges, *_range(tally)])
        kind = "review" if tally.session else "rest"
        key = f"{kind}:" + ",".join(f"{one.owner}:{one.first}-{one.last}" for one in ranges)
        if extend is not None:
            turns = extend.turns + tally.unseen
            return replace(extend, key=key, ranges=ranges, turns=turns, turn=turn or extend.turn)
        now = self._clock()
        return JobRecord(
            id=self._name(),
            profile=tally.profile,
            kind="review",
            session=tally.session or ranges[-1].owner,
            key=key,
            us=now,
            ranges=ranges,
            turns=tally.unseen,
            turn=turn,
            endpoint=endpoint,
            offered_us=now + rules.offer_us if rules.offer_us else 0,
        )

    def _spend(self, tally: TallyRecord, job: JobRecord) -> None:
        tally.unseen = tally.fresh = 0
        tally.first, tally.ranges, tally.job = tally.last + 1, [], job.id

    def _take_unsaved(self, profile: str, session: str) -> list[MessageRecord]:
        return self._unsaved.pop((profile, session), [])

    def _keep_unsaved(self, profile: str, session: str, messages: list[MessageRecord]) -> None:
        later = self._unsaved.get((profile, session), [])
        self._unsaved[profile, session] = [*messages, *later]


def is_of_rest(job: JobRecord) -> bool:
    """True for a review of sessions that have ended: its session is only the last of them."""
    return job.key.startswith("rest:")


def _range(tally: TallyRecord) -> list[RangeRecord]:
    if tally.last < tally.first:
        return []
    return [RangeRecord(tally.session, tally.first, tally.last)]


def _joined(ranges: Iterable[RangeRecord]) -> list[RangeRecord]:
    """The same messages in as few ranges as possible."""
    found: list[RangeRecord] = []
    for one in ranges:
        if found and found[-1].owner == one.owner and found[-1].last + 1 == one.first:
            found[-1] = RangeRecord(one.owner, found[-1].first, one.last)
        else:
            found.append(one)
    return found
