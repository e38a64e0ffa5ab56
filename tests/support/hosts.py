"""The durable half of a daemon on a scratch host: journal, committer and profiles, without sockets.

What it is: ``Host``, whose files outlive any number of ``Life``s. What comes in: a scratch directory and the faults to
inject. What goes out: profiles to work with, ended in order or by a crash. What must not be here: expectations.

Lives run under virtual time with calls inline; the files and the SQLite journal are real. File times are the machine's, so
``lag_s`` sets the host's clock back where entries have to be older than the file that a person writes next.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Literal

import trio

from memd.config import ProfileSettings
from memd.profile.profiles import Profiles
from memd.profile.values import Caller, Mutation, Operation
from memd.settings import Limits
from memd.store import schema
from memd.store.clock import Clock
from memd.store.committer import Committer
from memd.store.files import Files
from memd.store.journal import Journal
from memd.store.recovery import LastRun
from memd.store.threads import InlineRunner

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping
    from pathlib import Path

    from memd.deferred import Ticket
    from memd.profile.memory_store import MemoryStore
    from memd.profile.profile import Profile
    from memd.profile.values import Action, Committed, Target
    from memd.store.records import EventRecord
    from memd.store.reserve import Reserve
    from memd.store.threads import Runner

CALLER = Caller(client="test", uid=1, pid=2, origin="agent")
Ending = Literal["stop", "crash"]


class Crash(Exception):
    """The process ends here, as far as its files are concerned."""


def relaxed(path: Path) -> sqlite3.Connection:
    """The real journal without waiting for the disk: a crash of the process loses nothing by that."""
    connection = schema.connect(path)
    connection.execute("PRAGMA synchronous=OFF")
    return connection


class Host:
    """A machine: a journal, profile directories, a boot id, and the faults of the next life."""

    def __init__(
        self,
        root: Path,
        *,
        profiles: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        connect: Callable[[Path], sqlite3.Connection] = relaxed,
    ) -> None:
        self.root = root
        self.boot = "boot-1"
        self.lag_s = 0.0
        self.files = Files()
        self.connect = connect
        self.runner: Runner = InlineRunner()
        self.reserve: Reserve | None = None
        self.roots: tuple[str, ...] = ()
        limits = limits or Limits(memory=20_000, user=20_000)
        names = profiles or {"p": "p"}
        self.settings = [ProfileSettings(name=name, dir=str(root / at), limits=limits) for name, at in names.items()]
        (root / "state").mkdir(exist_ok=True)

    @property
    def directory(self) -> Path:
        """The first profile's directory."""
        return self.root / "p"

    @property
    def memory(self) -> Path:
        """The first profile's ``MEMORY.md``."""
        return self.directory / "MEMORY.md"

    @property
    def journal_path(self) -> Path:
        """Where the journal is."""
        return self.root / "state" / "journal.db"

    def write(self, text: str | bytes) -> None:
        """Write ``MEMORY.md`` as a person does, in place."""
        self.directory.mkdir(exist_ok=True)
        self.memory.write_bytes(text if isinstance(text, bytes) else text.encode())

    def append(self, text: str) -> None:
        """Append to ``MEMORY.md`` as a shell does."""
        with self.memory.open("ab") as file:
            file.write(text.encode())

    def read(self) -> str:
        """The text of ``MEMORY.md``."""
        return self.memory.read_bytes().decode()

    def temps(self) -> list[str]:
        """Names in the profile's directory that only a commit under way may leave."""
        return sorted(name for name in os.listdir(self.directory) if ".memd-" in name)

    @asynccontextmanager
    async def life(self, ending: Ending = "stop") -> AsyncIterator[Life]:
        """Start, serve while the body runs, and end: in order, or as if killed. ``Crash`` raised anywhere kills, too."""
        journal = Journal(self.journal_path, connect=self.connect, boot_id=self.boot)
        opened = journal.open()
        clock = Clock(lambda: time.time_ns() - int(self.lag_s * 1e9) + int(trio.current_time() * 1e9))
        revision, seq, newest_us = journal.newest()
        clock.raise_floor(newest_us)
        committer = Committer(journal, self.runner, next_revision=revision + 1, next_seq=seq + 1, reserve=self.reserve)
        profiles = Profiles(
            committer=committer,
            runner=self.runner,
            clock=clock,
            last_run=LastRun(opened.clean, opened.same_boot),
            roots=self.roots,
            files=self.files,
        )
        clean = False
        try:
            async with trio.open_nursery() as services:
                services.start_soon(committer.run)
                await profiles.load_requests()
                async with trio.open_nursery() as writers:
                    await profiles.open_all(self.settings, writers)
                    yield Life(self, profiles, committer, clock)
                    if ending == "crash":
                        services.cancel_scope.cancel()
                    else:
                        profiles.close()
                        for writer in profiles.writers():
                            await writer.ended.wait()
                        clean = profiles.consistent
                committer.close()
        except* Crash:
            clean = False
        finally:
            _bury(profiles, journal, clean=clean)


class Life:
    """What works while the host is up."""

    def __init__(self, host: Host, profiles: Profiles, committer: Committer, clock: Clock) -> None:
        self.host = host
        self.profiles = profiles
        self.committer = committer
        self.journal = committer.journal
        self.clock = clock
        self.events: list[EventRecord] = []
        for profile in profiles.by_name.values():
            profile.events.subscribe(self.events.append)

    @property
    def profile(self) -> Profile:
        """The first profile."""
        return self.profiles.by_name[self.host.settings[0].name]

    @property
    def store(self) -> MemoryStore:
        """Its memory store."""
        return self.profile.stores["memory"]

    def texts(self, target: Target = "memory") -> list[str]:
        """The published entries."""
        return [entry.text for entry in self.profile.state(target).document.entries]

    def ids(self, target: Target = "memory") -> dict[str, str]:
        """The published entries' ids, by text."""
        return {entry.text: entry.id for entry in self.profile.state(target).document.entries}

    def topics(self) -> list[str]:
        """The topics of the events published so far."""
        return [event.topic for event in self.events]

    def submit(self, mutation: Mutation) -> Ticket:
        """Queue a change."""
        return self.profile.submit(mutation)

    async def do(self, mutation: Mutation) -> Committed:
        """Make a change and wait for its answer."""
        return await self.profile.submit(mutation).wait()  # type: ignore[no-any-return]  # a Committed for a mutation

    async def add(self, *texts: str) -> Committed:
        """Add entries one by one; the last answer."""
        done = [await self.do(add(text)) for text in texts]
        return done[-1]

    async def look(self) -> None:
        """Have outside edits taken in, however long they take to be believed."""
        for _ in range(80):
            await self.profile.writer.look().wait()
            if not any(store.attention for store in self.profile.stores.values()):
                return
            await trio.sleep(0.05)

    async def kinds(self) -> list[str]:
        """The kinds of all revisions, oldest first."""
        rows, _ = await self.profile.list_revisions(limit=1000)
        return [row.record.kind for row in reversed(rows)]


def change(
    action: Action,
    *,
    content: str | None = None,
    old_text: str | None = None,
    new_text: str | None = None,
    target: Target = "memory",
    request_id: str | None = None,
    if_revision: int | None = None,
) -> Mutation:
    """A change by one operation."""
    operation = Operation(action, content=content, old_text=old_text, new_text=new_text)
    fingerprint = repr((target, operation)).encode()
    return Mutation(
        target, (operation,), CALLER, request_id=request_id, fingerprint=fingerprint, if_revision=if_revision
    )  # fmt: skip


def add(content: str, *, target: Target = "memory", request_id: str | None = None) -> Mutation:
    """Add an entry."""
    return change("add", content=content, target=target, request_id=request_id)


def remove(old_text: str, *, request_id: str | None = None) -> Mutation:
    """Remove an entry of ``MEMORY.md``."""
    return change("remove", old_text=old_text, request_id=request_id)


def replace(old_text: str, content: str, *, request_id: str | None = None) -> Mutation:
    """Replace an entry of ``MEMORY.md``."""
    return change("replace", old_text=old_text, content=content, request_id=request_id)


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the flock that another program would hold: it belongs to the open file, not to the process."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _bury(profiles: Profiles, journal: Journal, *, clean: bool) -> None:
    """What the kernel does for a process that is gone; a clean stop has marked the journal before."""
    for profile in profiles.by_name.values():
        for store in profile.stores.values():
            for lingering in store.lingering:
                lingering.displaced.close()
            store.lingering.clear()
            store.lock.release()
    if clean:
        journal.close(clean=True)
    elif journal._connection is not None:
        journal._connection.close()
    profiles.release()
