"""The rest of a daemon in memory for tests of sessions and dispatch, and a world that puts it together.

What it is: a clock, a token source, a journal of sessions, a channel, the daemon's controls, and ``World``. What comes in:
calls by method name. What goes out: replies, decoded. What must not be here: sockets, files, real time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import trio.testing
from support.fake_jobs import MemoryJobJournal
from support.fake_profile import START_US, MemoryProfile

from memd.config import Settings
from memd.deferred import Ticket
from memd.dispatch import DaemonStatistics, Dispatcher, EventHub, Services, method_table
from memd.dispatch.ports import Redaction
from memd.jobs import Flushing, JobCommit, Jobs, Parts
from memd.protocol.messages import Request
from memd.protocol.results import Discovery
from memd.sessions import SessionRegistry
from memd.store.records import SessionRecord, SnapshotRecord, TurnRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memd.dispatch import Conversation, Flight, MethodTable
    from memd.dispatch.ports import Profile
    from memd.errors import WireError
    from memd.jobs.ports import JobProfile
    from memd.profile.values import Caller, Notice
    from memd.protocol.types import ErrorsForm, Role
    from memd.store.work import WorkPart


class FakeClock:
    """A clock that stands still until it is moved."""

    def __init__(self, now_us: int = START_US) -> None:
        self.now_us = now_us

    def __call__(self) -> int:
        return self.now_us

    def advance(self, seconds: float) -> None:
        self.now_us += int(seconds * 1_000_000)


class CountingToken:
    """Unguessable bytes that a test can guess."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, size: int) -> bytes:
        self.count += 1
        return self.count.to_bytes(size, "big")


class MemoryJournal:
    """Keeps sessions as the journal would. With ``hold`` on, tickets wait for ``commit``; ``error`` fails them."""

    def __init__(self) -> None:
        self.sessions: dict[str, SessionRecord] = {}
        self.snapshots: dict[str, SnapshotRecord] = {}
        self.turns: list[TurnRecord] = []
        self.jobs = MemoryJobJournal()
        self.commits = 0
        self.hold = False
        self.error: WireError | None = None
        self._waiting: list[Ticket] = []

    def put_session(
        self,
        record: SessionRecord,
        snapshot: SnapshotRecord | None = None,
        turns: Sequence[TurnRecord] = (),
        work: WorkPart | None = None,
    ) -> Ticket:
        ticket = Ticket()
        if self.error is not None:
            ticket.fail(self.error)
            return ticket
        self.sessions[record.id] = msgspec.convert(msgspec.to_builtins(record, builtin_types=(bytes,)), SessionRecord)
        if snapshot is not None:
            self.snapshots[snapshot.id] = snapshot
        self.turns.extend(turns)
        self.jobs.take(work)
        self._waiting.append(ticket)
        if not self.hold:
            self.commit()
        return ticket

    def commit(self) -> None:
        self.commits += 1
        waiting, self._waiting = self._waiting, []
        for ticket in waiting:
            ticket.finish(None)

    def fail(self, error: WireError) -> None:
        waiting, self._waiting = self._waiting, []
        for ticket in waiting:
            ticket.fail(error)

    def kept(self) -> list[SessionRecord]:
        return [record for record in self.sessions.values() if not record.closed]


class FakePeer:
    """Who is at the other end."""

    def __init__(self, role: Role = "agent") -> None:
        self.uid = 1000
        self.pid = 4242
        self.command = "fake"
        self.role = role


class FakeChannel:
    """Keeps what is sent, decoded, in order."""

    def __init__(self, role: Role = "agent") -> None:
        self.peer = FakePeer(role)
        self.errors_form: ErrorsForm = "map"
        self.on_lost: Callable[[], bytes] | None = None
        self.sent: list[list[Any]] = []

    def send(self, message: bytes) -> None:
        self.sent.append(msgspec.msgpack.decode(message))

    def notify(self, message: bytes) -> None:
        self.sent.append(msgspec.msgpack.decode(message))

    def close(self) -> None:
        self.sent.append([])


class FakeControl:
    """The daemon's controls, noted."""

    version = "0.0.test"
    pid = 77
    instance = "i-1"

    def __init__(self) -> None:
        self.figures = DaemonStatistics(START_US, acknowledged=5, fsyncs=3, groups=2, connections=1)
        self.done: list[str] = []
        self.error: WireError | None = None
        self.told: list[Notice] = []

    def statistics(self) -> DaemonStatistics:
        return self.figures

    def notices(self) -> Sequence[Notice]:
        return self.told

    async def reload(self) -> None:
        if self.error is not None:
            raise self.error
        self.done.append("reload")

    def stop(self) -> None:
        self.done.append("stop")

    def handover(self, version: str) -> bool:
        self.done.append(f"handover {version}")
        return True

    async def create_profile(self, name: str, directory: str | None) -> None:
        self.done.append(f"create {name} {directory}")

    async def redact(self, profile: str, caller: Caller, *, text: str | None, revision: int | None) -> Redaction:
        if self.error is not None:
            raise self.error
        self.done.append(f"redact {profile} {caller.origin} {text} {revision}")
        return Redaction({"revision": 2}, [7], self.told)


class World:
    """A daemon in memory: profiles, sessions, a dispatcher. ``bugs`` are the exceptions it was told of.

    Run ``dispatcher.run`` in a nursery for whatever is not answered at once.
    """

    def __init__(
        self,
        *names: str,
        table: MethodTable | None = None,
        flight: Flight | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.clock = FakeClock()
        self.journal = MemoryJournal()
        self.memory = {name: MemoryProfile(name) for name in names or ("default",)}
        self.profile = next(iter(self.memory.values()))
        self.profiles: dict[str, Profile] = dict(self.memory)
        self.sessions = SessionRegistry(self.journal, clock=self.clock, token=CountingToken())
        self.control = FakeControl()
        self.settings = settings or Settings(profiles={name: item.settings for name, item in self.memory.items()})
        self.problems: dict[str, WireError] = {}
        self.bugs: list[tuple[str, Exception]] = []
        self.hub = EventHub(self.sessions)
        self.job_profiles: dict[str, JobProfile] = {}
        self.jobs = Jobs(
            Parts(
                journal=self.journal.jobs,
                profiles=self.job_profiles,
                workers=lambda _: (),
                commit=_commit_nothing,
                clock=self.clock,
                token=CountingToken(),
                on_bug=lambda name, bug: self.bugs.append((name, bug)),
            )
        )
        self.services = Services(
            jobs=self.jobs,
            profiles=self.profiles,
            sessions=self.sessions,
            flushing=Flushing(self.jobs, clock=self.clock),
            hub=self.hub,
            control=self.control,
            settings=lambda: self.settings,
            clock=self.clock,
            problems=self.problems,
            describe=lambda: Discovery(methods=[], errors=[], events=[]),
        )
        self.dispatcher = Dispatcher(
            table or method_table(),
            self.services,
            on_bug=lambda name, bug: self.bugs.append((name, bug)),
            flight=flight,
        )

    def client(self, role: Role = "agent", **hello: Any) -> Client:
        """A connection; with a ``hello`` if anything is to be said in it."""
        client = Client(self.dispatcher, role)
        if hello:
            client.ok("hello", **hello)
        return client


async def _commit_nothing(profile: object, job: object) -> JobCommit:
    """No job is run in this world."""
    raise NotImplementedError(profile, job)


class Client:
    """One connection, spoken to in plain values."""

    def __init__(self, dispatcher: Dispatcher, role: Role = "agent") -> None:
        self.channel = FakeChannel(role)
        self.conversation: Conversation = dispatcher.open_conversation(self.channel)
        self._msgid = 0

    def send(self, method: str, **params: Any) -> int:
        """Send a request; its msgid."""
        self._msgid += 1
        self.send_raw(self._msgid, method, [params] if params else [])
        return self._msgid

    def send_raw(self, msgid: int, method: str, params: Any) -> None:
        """Send a request with these params, whatever they are."""
        self.conversation.handle(Request(msgid, method, msgspec.Raw(msgspec.msgpack.encode(params))))

    def reply(self, msgid: int) -> Any:
        """(error, result) of a request, None if it is not answered."""
        found = [message for message in self.channel.sent if message[:2] == [1, msgid]]
        assert len(found) <= 1, "answered twice"
        return (found[0][2], found[0][3]) if found else None

    def answer(self, msgid: int) -> Any:
        """The result of a request that has to be answered and well."""
        reply = self.reply(msgid)
        assert reply is not None, "not answered"
        error, result = reply
        assert error is None, error
        return result

    def error(self, msgid: int) -> Any:
        """The error of a request that has to be answered and refused."""
        reply = self.reply(msgid)
        assert reply is not None, "not answered"
        error, result = reply
        assert result is None
        assert error is not None
        return error

    def ok(self, method: str, **params: Any) -> Any:
        """The result of a call that is answered at once."""
        return self.answer(self.send(method, **params))

    def fails(self, name: str, method: str, **params: Any) -> Any:
        """The error of a call that is refused at once, under this name."""
        error = self.error(self.send(method, **params))
        assert name == error["name"], error
        return error

    async def done(self, method: str, **params: Any) -> Any:
        """The result of a call that runs as a task."""
        msgid = self.send(method, **params)
        await trio.testing.wait_all_tasks_blocked()
        return self.answer(msgid)

    async def refused(self, name: str, method: str, **params: Any) -> Any:
        """The error of a call that runs as a task, under this name."""
        msgid = self.send(method, **params)
        await trio.testing.wait_all_tasks_blocked()
        error = self.error(msgid)
        assert name == error["name"], error
        return error

    @property
    def events(self) -> list[dict[str, Any]]:
        """What came as notifications."""
        return [message[2][0] for message in self.channel.sent if message[0] == 2]
