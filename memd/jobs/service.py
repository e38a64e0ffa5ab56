"""Jobs as the rest of the daemon sees them: what turns and sessions bring about, and what people and clients ask.

What comes in: turns that begin and end, sessions that close, an agent's own writes, the passing of time; questions and wishes about jobs.
What goes out: parts that become durable in one with what brought them about, jobs. What must not be here: wire types, who may ask
(dispatch), what a reviewer does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import trio

from memd.errors import NoSuchJob, NoSuchProfile, StoreError
from memd.jobs.clients import Clients
from memd.jobs.counting import REST, Counting, Rules, TurnEnd
from memd.jobs.foreground import Foreground
from memd.jobs.lanes import Lanes
from memd.jobs.ledger import Ledger
from memd.jobs.queue import JobQueue
from memd.jobs.runner import Runner
from memd.jobs.schedule import DAY_US, Schedule
from memd.jobs.working import Means
from memd.profile.stored import Part, WorkPart
from memd.profile.values import Notice

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from memd.jobs.counting import Counted
    from memd.jobs.lanes import Down
    from memd.jobs.ports import JobCommit, JobProfile, Journal, Masking, Named, Worker
    from memd.profile.stored import EventRecord, JobRecord, MessageRecord, TurnRecord

CHORES_S = 60.0
"""Between looks for sessions that idle."""
EXPIRE_US = 3600 * 1_000_000
"""Between looks for copies past keeping: each is a commit."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What jobs are put together from: the journal, the profiles that are served, who reviews, how it is committed."""

    journal: Journal
    profiles: Mapping[str, JobProfile]
    workers: Callable[[JobProfile], Sequence[Worker]]
    commit: Callable[[JobProfile, JobRecord], Awaitable[JobCommit]]
    clock: Callable[[], int]
    token: Callable[[int], bytes]
    on_bug: Callable[[str, Exception], None]
    on_ended: Callable[[JobRecord], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class JobStatistics:
    """How jobs are: living ones by state, ended ones since the start by outcome, tokens of today by profile, endpoints that are down."""

    states: Mapping[str, int]
    outcomes: Mapping[str, int]
    tokens: Mapping[str, tuple[int, int, int]]
    down: Mapping[str, Down] = field(default_factory=dict)


class Jobs:
    """Everything about reviews and flushes. Call ``load`` before anything else, and ``run`` in a nursery."""

    def __init__(self, parts: Parts) -> None:
        self.journal = parts.journal
        self._profiles = parts.profiles
        self._clock = parts.clock
        self._token = parts.token
        self._expire_us = 0
        self.counting = Counting(clock=parts.clock, name=self.new_id)
        self.queue = JobQueue(parts.journal, parts.profiles, clock=parts.clock)
        self.queue.on_ended = parts.on_ended
        self._lanes, self._foreground = Lanes(), Foreground()
        self._ledger = Ledger(clock=parts.clock)
        schedule = Schedule(
            workers=parts.workers,
            lanes=self._lanes,
            foreground=self._foreground,
            spent=self._ledger.spent,
            failures=self.queue.failures,
        )
        means = Means(
            queue=self.queue,
            journal=parts.journal,
            profiles=parts.profiles,
            schedule=schedule,
            lanes=self._lanes,
            ledger=self._ledger,
            commit=parts.commit,
            clock=parts.clock,
            token=self.new_lease,
            on_bug=parts.on_bug,
        )
        self.runner = Runner(means)
        self.clients = Clients(self.queue, clock=parts.clock, token=self.new_lease)

    def __repr__(self) -> str:
        return f"<Jobs {self.queue!r}>"

    # -- life ---------------------------------------------------------------------------------------------------

    async def load(self, open_turns: Iterable[TurnRecord] = ()) -> None:
        """Take over what the journal kept: jobs, counts, what was spent today, and the turns that are open.

        Raises:
            StoreError: The journal cannot be read.
        """
        self.queue.load(await self.journal.live())
        self.counting.load(await self.journal.tallies(), await self.journal.last_agent_writes())
        self._ledger.load(await self.journal.spent(self._ledger.today))
        for turn in open_turns:
            self._foreground.begin(turn.session, turn.us)

    async def run(self, *, alive: Callable[[str], bool]) -> None:
        """Work until cancelled. ``alive``: whether a session still is."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.runner.run)
            while True:
                self._chores(alive)
                await trio.sleep(CHORES_S)

    def statistics(self) -> JobStatistics:
        """Figures for status and metrics."""
        states = dict.fromkeys(("queued", "leased", "running", "waiting"), 0)
        for job in self.queue.live():
            states[job.state] = states.get(job.state, 0) + 1
        spent = {name: self._ledger.of_today(name) for name in self._profiles}
        return JobStatistics(
            states=states,
            outcomes=dict(self.queue.outcomes),
            tokens={name: (it.input, it.cached, it.output) for name, it in spent.items()},
            down=self._lanes.all_down(),
        )

    @property
    def at_work(self) -> bool:
        """True if there is something that only time, or nothing at all, stands in the way of."""
        return any(job.state != "waiting" for job in self.queue.live())

    def notices(self) -> list[Notice]:
        """What a person should know: endpoints that do not answer, and how many jobs wait."""
        waiting = len(self.queue.live())
        return [
            Notice(
                "reviewer_down",
                f"{lane} does not answer ({down.reason}): {waiting} reviews and flushes wait, nothing of them is lost",
                {"endpoint": lane, "failures": down.failures, "waiting": waiting},
            )
            for lane, down in self._lanes.all_down().items()
            if waiting
        ]

    def redact(self, mask: Masking) -> None:
        """Mask texts in everything that is only in memory; the journal's rows are its owner's business."""
        self.counting.redact(mask.text)
        self.queue.redact(mask)

    def new_id(self) -> str:
        """A job's id."""
        return f"j-{self._token(8).hex()}"

    def new_lease(self) -> str:
        """What the holder of a job proves itself by: 128 random bits."""
        return self._token(16).hex()

    # -- turns and sessions -------------------------------------------------------------------------------------

    def turn_began(self, session: str, endpoint: str | None) -> None:
        """A turn begins: reviews of its session wait, and one on the same endpoint is given up for it."""
        self._foreground.begin(session, self._clock())
        self.runner.give_up(session, endpoint)

    def turn_over(self, session: str) -> None:
        """It has ended, whatever it counts for."""
        self._foreground.end(session, self._clock())
        self.runner.wake()

    def keeps_messages(self, profile: Named) -> bool:
        """True if copies of a turn's messages are wanted."""
        return bool(self.rules(profile).interval)

    def turn_ended(
        self, profile: Named, ended: TurnEnd, messages: Sequence[MessageRecord] = (), *, repeated: bool = False
    ) -> Counted:
        """Count a turn's end; make the work durable with it, then call ``settle``."""
        rules, extend = self.rules(profile), self.queue.extendable(profile.name, ended.session)
        if repeated:
            counted = self.counting.turn_repeated(ended, rules, extend=extend)
        else:
            counted = self.counting.turn_ended(ended, messages, rules, extend=extend)
        return self._reserved(counted)

    def session_closed(self, profile: Named, session: str) -> Counted:
        """A session is over; make the work durable with that, then call ``settle``."""
        self._foreground.forget(session)
        extend = self.queue.extendable(profile.name, REST)
        return self._reserved(self.counting.session_closed(profile.name, session, self.rules(profile), extend=extend))

    def settle(self, counted: Counted, *, durable: bool) -> None:
        """What was counted is durable now, or could not be made so."""
        counted.settle(durable)
        if counted.job is not None and durable:
            self.queue.accept(counted.job)
        elif counted.job is not None:
            self.queue.withdraw(counted.job)

    def placement(self, job: str) -> Literal["daemon", "client"]:
        """Who has the first go at a job: ``client`` while it is offered to its own, else ``daemon``."""
        found = self.queue.find(job)
        return "client" if found is not None and found.offered_us > self._clock() else "daemon"

    def heard(self, record: EventRecord) -> None:
        """An event of a profile: a write that the agent itself committed has its session count from 0."""
        if (
            record.topic == "memory.changed"
            and record.session
            and not record.job
            and record.data.get("origin") == "agent"
        ):
            work = self.counting.agent_wrote(record.profile, record.session)
            if work is not None:
                self.journal.add(Part(work=work))

    def profile(self, name: str) -> JobProfile:
        """A profile that is served, as jobs see it.

        Raises:
            NoSuchProfile: There is none.
        """
        found = self._profiles.get(name)
        if found is None:
            msg = f"the profile {name!r} is not served at the moment"
            raise NoSuchProfile(msg, profiles=sorted(self._profiles))
        return found

    def rules(self, profile: Named) -> Rules:
        """The settings that counting goes by."""
        review = profile.settings.review
        if review.reviewer == "off":
            return Rules(0)
        return Rules(review.interval, review.lease_s * 1_000_000 if review.reviewer == "client" else 0)

    # -- people -------------------------------------------------------------------------------------------------

    async def put(self, job: JobRecord, work: WorkPart) -> None:
        """Accept a job, in one with what belongs to it (its messages, its compaction). Durable on return.

        Raises:
            StoreError: It could not be made durable; there is no such job.
        """
        self.queue.reserve(job)
        work.jobs.append(job)
        try:
            await self._durable(work)
        except StoreError:
            self.queue.withdraw(job)
            raise
        self.queue.accept(job)

    async def keep(self, work: WorkPart) -> None:
        """Make something durable that is no job's.

        Raises:
            StoreError: It could not be made durable.
        """
        await self._durable(work)

    async def run_now(self, profile: Named, *, job: str | None = None, session: str | None = None) -> JobRecord:
        """Do something now: a job that waits, or a review of what none has seen of a session (or of those that have ended).

        Raises:
            NoSuchJob: There is none of this id, or nothing to review.
            Conflict: The job is at work or has ended.
            StoreError: It could not be made durable.
        """
        if job is not None:
            return self.queue.hurry(await self.queue.get(profile.name, job))
        where = session or REST
        extend = self.queue.extendable(profile.name, where)
        rules = Rules(self.rules(profile).interval)
        counted = self._reserved(self.counting.demand(profile.name, where, rules, extend=extend))
        if counted.job is None or counted.work is None:
            if extend is not None:
                return self.queue.hurry(extend)
            msg = f"of session {session}" if session else "of the sessions that have ended"
            raise NoSuchJob(message=f"there is nothing {msg} that no review has seen")
        try:
            await self._durable(counted.work)
        except StoreError:
            self.settle(counted, durable=False)
            raise
        self.settle(counted, durable=True)
        return self.queue.find(counted.job.id) or counted.job

    async def wait(self, profile: str, job: str, timeout_s: float) -> JobRecord:
        """A job once it has ended, or as it is when the time is over.

        Raises:
            NoSuchJob: There is none of this id.
        """
        await self.queue.get(profile, job)
        with trio.move_on_after(timeout_s):
            await self.queue.wait_ended(job)
        return await self.queue.get(profile, job)

    async def cancel(self, profile: str, job: str, *, reason: str) -> JobRecord:
        """A job is not wanted any more; one that has ended stays as it is.

        Raises:
            NoSuchJob: There is none of this id.
        """
        return await self.runner.cancel(await self.queue.get(profile, job), reason=reason)

    # -- inside -------------------------------------------------------------------------------------------------

    def _reserved(self, counted: Counted) -> Counted:
        if counted.job is not None:
            self.queue.reserve(counted.job)
        return counted

    def _chores(self, alive: Callable[[str], bool]) -> None:
        now_us = self._clock()
        self._foreground.trim(now_us)
        for profile in self._profiles.values():
            rules = self.rules(profile)
            busy = lambda session: self._foreground.in_turn(session, now_us)  # noqa: E731 - used here alone
            for tally in self.counting.idle(profile.name, rules, busy=busy):
                extend = self.queue.extendable(profile.name, REST)
                self._put(self._reserved(self.counting.session_idles(tally, rules, extend=extend)))
        for name, session in self.counting.sessions():
            gone = self._profiles.get(name) if not alive(session) else None
            if gone is not None:
                self._put(self.session_closed(gone, session))
        if now_us >= self._expire_us:
            self._expire_us = now_us + EXPIRE_US
            keep_us = {one.name: one.settings.review.keep_messages_days * DAY_US for one in self._profiles.values()}
            expired = [(name, now_us - longest) for name, longest in keep_us.items()]
            self.journal.add(Part(work=WorkPart(expired=expired)))

    def _put(self, counted: Counted) -> None:
        if counted.work is None:
            return
        part = Part(work=counted.work)
        self.journal.put(
            part,
            lambda: self.settle(counted, durable=True),
            lambda _: self.settle(counted, durable=False),
        )

    async def _durable(self, work: WorkPart) -> None:
        done = trio.Event()
        failed: list[StoreError] = []

        def fail(error: StoreError) -> None:
            failed.append(error)
            done.set()

        self.journal.put(Part(work=work), done.set, fail)
        with trio.CancelScope(shield=True):
            await done.wait()
        if failed:
            raise failed[0]
