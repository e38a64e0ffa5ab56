"""A world of jobs in virtual time: a real journal, scripted reviewers, a commit that remembers what it did.

What comes in: scripts of what a reviewer does. What goes out: jobs that have come to an outcome. What must not be here: sockets, real
time, models. Use it with ``autojump_clock``.
"""

from __future__ import annotations

import shutil
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import trio
from msgspec.structs import replace

from memd.config import ProfileSettings
from memd.jobs.foreground import Foreground
from memd.jobs.lanes import Lanes
from memd.jobs.ledger import Ledger
from memd.jobs.ports import JobCommit
from memd.jobs.queue import JobQueue
from memd.jobs.runner import Runner
from memd.jobs.schedule import DAY_US, Schedule
from memd.jobs.working import Means
from memd.profile.entries import Document
from memd.profile.values import Limits, StoreState, usage_of
from memd.store.committer import Committer
from memd.store.jobs import JobJournal
from memd.store.journal import Journal
from memd.store.records import EventRecord, Part
from memd.store.threads import InlineRunner
from memd.store.work import DeskRecord, JobRecord, MessageRecord, RangeRecord, WorkPart

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence
    from pathlib import Path

    from memd.deferred import Ticket
    from memd.errors import ReviewFailed
    from memd.jobs.ports import Attempt, Found, JobProfile, Worker
    from memd.profile.values import Mutation, Target

START_US = 20_000 * DAY_US
URL = "http://model.test/v1"
TEA = DeskRecord("user", "add", "likes tea", evidence=[1])


class FakeEvents:
    """Keeps what was told, in order."""

    def __init__(self) -> None:
        self.told: list[EventRecord] = []
        self._expected: list[EventRecord] = []

    def expect(self, records: Iterable[EventRecord]) -> None:
        self._expected += records

    def release(self, records: Iterable[EventRecord]) -> None:
        for record in records:
            self._expected.remove(record)
            self.told.append(record)


class FakeProfile:
    """A profile as a job sees it."""

    def __init__(self, name: str = "p", **sections: Any) -> None:
        self.name = name
        self.settings = settings(name, **sections)
        self.events = FakeEvents()
        self.chars: dict[str, int] = {}  # how full its stores of 100 characters are
        self.documents: dict[Target, Document] = {}

    def state(self, target: Target) -> StoreState:
        chars = self.chars.get(target, 0)
        usage = usage_of(chars, Limits(100))
        document = self.documents.get(target) or Document()
        return StoreState(target=target, path="", document=document, revision=0, usage=usage)

    def submit(self, mutation: Mutation) -> Ticket:
        raise NotImplementedError(mutation)  # the commit's business, which is scripted too

    def answered(self, request_id: str, fingerprint: bytes) -> Ticket | None:
        raise NotImplementedError(request_id, fingerprint)  # as submit

    def told(self, topic: str) -> list[EventRecord]:
        return [event for event in self.events.told if event.topic == topic]


def settings(name: str = "p", **sections: Any) -> ProfileSettings:
    """Settings with some values changed: ``settings(review={"idle_s": 1})``."""
    return msgspec.convert({"name": name, "dir": "/nowhere", **sections}, ProfileSettings)


class ScriptedWorker:
    """A reviewer that does what it is told; ``attempts`` are the jobs it was asked about, ``most`` how many at the same time."""

    def __init__(self, kind: str = "openai", endpoint: str | None = URL, *, takes_s: float = 1.0) -> None:
        self.kind = kind
        self.endpoint = endpoint
        self.takes_s = takes_s
        self.attempts: list[Attempt] = []
        self.failing: ReviewFailed | Exception | None = None
        self.operations = [TEA]
        self.tokens = (100, 40, 10)
        self.at_work = 0
        self.most = 0
        self.then: ReviewFailed | None = None
        self.failures = 0

    async def attempt(self, profile: JobProfile, attempt: Attempt, found: Found) -> str:
        self.attempts.append(attempt)
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        try:
            return await self._attempt(found)
        finally:
            self.at_work -= 1

    async def _attempt(self, found: Found) -> str:
        if self.failing is not None:
            await trio.sleep(self.takes_s)
            raise self.failing
        found.used.model = "tiny"
        found.used.steps += 1
        found.used.input, found.used.cached, found.used.output = self.tokens
        found.operations += self.operations
        found.failures = self.failures
        await trio.sleep(self.takes_s)
        if self.then is not None:
            raise self.then
        return "what it found"


class Commits:
    """The commit: what was brought in, by job; a job that comes again is answered as it was. It outlives a crash."""

    def __init__(self) -> None:
        self.done: dict[str, JobCommit] = {}
        self.calls: list[str] = []
        self.failing: list[Exception] = []
        self.hold: trio.Event | None = None
        self.hold_after: trio.Event | None = None
        self.reached = trio.Event()

    async def __call__(self, profile: JobProfile, job: JobRecord) -> JobCommit:
        self.calls.append(job.id)
        if self.hold is not None:
            self.reached.set()
            await self.hold.wait()
        if self.failing:
            raise self.failing.pop(0)
        if job.id not in self.done:
            self.done[job.id] = JobCommit(committed=[len(self.done) + 1])
        if self.hold_after is not None:
            self.reached.set()
            await self.hold_after.wait()
        return self.done[job.id]


class JobWorld:
    """Everything around a runner."""

    def __init__(self, path: Path, *, commits: Commits | None = None, **sections: Any) -> None:
        self.path = path
        self.workers: list[Worker] = [ScriptedWorker()]
        self.commits = commits or Commits()
        self.bugs: list[str] = []
        self.tokens = 0
        self.profiles: dict[str, Any] = {"p": FakeProfile(**sections)}
        self.journal = Journal(path / "journal.db", boot_id="boot")

    @property
    def worker(self) -> ScriptedWorker:
        """The first reviewer."""
        found = self.workers[0]
        assert isinstance(found, ScriptedWorker)
        return found

    @property
    def profile(self) -> FakeProfile:
        """The only profile."""
        found: FakeProfile = self.profiles["p"]
        return found

    def clock(self) -> int:
        return START_US + int(trio.current_time() * 1_000_000)

    def token(self) -> str:
        self.tokens += 1
        return f"{self.path.name}-{self.tokens}"

    @asynccontextmanager
    async def running(self) -> AsyncIterator[JobWorld]:
        """The journal opened, what was in it taken over, the runner at work."""
        self.journal.open()
        self.committer = Committer(self.journal, InlineRunner(), next_revision=1, next_seq=self._next_seq())
        self.jobs = JobJournal(self.committer)
        self.lanes, self.foreground = Lanes(), Foreground()
        self.ledger = Ledger(clock=self.clock)
        self.queue = JobQueue(self.jobs, self.profiles, clock=self.clock)
        self.schedule = Schedule(
            workers=lambda _: self.workers,
            lanes=self.lanes,
            foreground=self.foreground,
            spent=self.ledger.spent,
            failures=self.queue.failures,
        )
        means = Means(
            queue=self.queue,
            journal=self.jobs,
            profiles=self.profiles,
            schedule=self.schedule,
            lanes=self.lanes,
            ledger=self.ledger,
            commit=self.commits,
            clock=self.clock,
            token=self.token,
            on_bug=lambda where, error: self.bugs.append(f"{where}: {error}"),
        )
        self.runner = Runner(means)
        async with trio.open_nursery() as outer:
            outer.start_soon(self.committer.run)
            self.ledger.load(await self.jobs.spent(self.ledger.today))
            self.queue.load(await self.jobs.live())
            async with trio.open_nursery() as inner:
                inner.start_soon(self.runner.run)
                yield self
                inner.cancel_scope.cancel()
            self.committer.close()
        self.journal.close(clean=True)

    def _next_seq(self) -> int:
        return self.journal.newest()[1] + 1

    async def accept(self, *jobs: JobRecord, say: str = "I like tea") -> None:
        """Jobs with a message each, durable and in the queue."""
        messages = [
            MessageRecord(owner=job.ranges[0].owner, number=1, profile=job.profile, us=job.us, role="user", text=say)
            for job in jobs
        ]
        await self.committer.commit(Part(work=WorkPart(jobs=list(jobs), messages=messages)))
        for job in jobs:
            self.queue.accept(job)

    async def ended(self, *jobs: str, within_s: float = 1e6) -> list[JobRecord]:
        """Jobs as they are once they have ended."""
        with trio.fail_after(within_s):
            for job in jobs:
                await self.queue.wait_ended(job)
        return [await self.queue.get("p", job) for job in jobs]

    def crashed(self, path: Path) -> JobWorld:
        """The world that starts after this one was killed now: with what of its journal was durable, and what it had committed."""
        path.mkdir()
        for file in self.path.iterdir():
            shutil.copy(file, path / file.name)
        world = JobWorld(path, commits=self.commits)
        world.profiles["p"].settings = self.profile.settings
        world.workers = [ScriptedWorker()]
        return world


def review(number: int = 1, **fields: object) -> JobRecord:
    """A review of one message of a session of its own."""
    record = JobRecord(
        id=f"j-{number}",
        profile="p",
        kind="review",
        session=f"s-{number}",
        key=f"review:s-{number}:1-1",
        us=START_US + number,
        ranges=[RangeRecord(f"s-{number}", 1, 1)],
        turns=10,
        turn=f"t-{number}",
    )
    return replace(record, **fields)


def flush(number: int = 1, **fields: object) -> JobRecord:
    """A flush of one message."""
    job = review(number)
    return replace(
        job,
        kind="flush",
        key=f"flush:{job.session}:{number}",
        epoch=str(number),
        ranges=[RangeRecord(job.id, 1, 1)],
        **fields,
    )


def outcomes(jobs: Sequence[JobRecord]) -> list[str | None]:
    """What they have come to."""
    return [job.outcome for job in jobs]
