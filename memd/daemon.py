"""The daemon: every layer put together, its start, its signals and its end.

What comes in: the command line, the environment, signals. What goes out: an exit status. What must not be here: what any
layer does; this is the one module that knows all of them.

Start: settings, ownership, journal, profiles (recovered, outside edits adopted), sockets, READY. Stop: no new
connections, what is in flight answered within the grace period, writers drained, files checkpointed, journal closed clean,
locks released. Whatever is stuck after that (a hung disk) is left to the kernel: the process ends within 5 seconds.
"""

from __future__ import annotations

import functools
import gc
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from memd import __version__, config, logs
from memd.dispatch.context import Services
from memd.dispatch.dispatcher import Dispatcher
from memd.dispatch.handlers import method_table
from memd.dispatch.hub import EventHub
from memd.errors import NoSpace, OwnedElsewhere, ProfileOwned, StartupError, StoreError
from memd.jobs import Flushing, Jobs, Parts
from memd.jobs.committing import Committing
from memd.jobs.reviewing import workers_for
from memd.limits import raise_descriptor_limit
from memd.operation import Operation, extend_start
from memd.profile.profiles import Profiles
from memd.protocol.discover import discovery
from memd.sessions.registry import SessionRegistry
from memd.store.clock import Clock
from memd.store.committer import Committer
from memd.store.jobs import JobJournal
from memd.store.journal import Journal, Opened
from memd.store.locks import Ownership
from memd.store.place import make_directory
from memd.store.recovery import LastRun
from memd.store.reserve import Reserve
from memd.store.threads import ThreadRunner
from memd.transport.ancestry import lineage_of
from memd.transport.listener import adopt, claim
from memd.transport.notify import Notifier, watchdog_s
from memd.transport.server import Server, ServerOptions

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from memd.config import Settings
    from memd.logs import Logger
    from memd.store.work import JobRecord
    from memd.transport.listener import Listener

OWNER_LOCK = "daemon.lock"
FILE_THREADS = 32
"""Threads for file calls."""
SPARE_THREADS = 512
"""In place of those that a hung disk holds: two or three for each profile on it."""
SWITCH_INTERVAL_S = 0.0005
"""How soon a busy thread gives the interpreter up: the default of 5 ms would be longer than most fsyncs."""
FAREWELL_S = 0.5
"""For the last replies to leave, once nothing is in flight."""
HARD_STOP_S = 4.8
"""From the signal to the end, whatever hangs; longer only for a ``grace_s`` that asks for it."""


def main(options: argparse.Namespace) -> int:
    """Run ``memd serve`` and return its exit status."""
    env = dict(os.environ)
    log = logs.open_log(sys.stderr, env, form=options.log_format, level=options.log_level)
    try:
        settings = config.load(options.config, env)
        state = Path(config.state_dir(env))
        make_directory(state)
        owner = _claim_state(state)
    except (StartupError, StoreError) as error:
        return _refuse(log, error)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is somebody to reload: its default would be the end
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    connections = raise_descriptor_limit(settings.wire.connections)
    if connections < settings.wire.connections:
        log.warning(
            "connections_lowered", wanted=settings.wire.connections, allowed=connections, reason="RLIMIT_NOFILE"
        )
    daemon = Daemon(settings, env, log, options=options, state=state, connections=connections)
    try:
        status = trio.run(daemon.run)
    except* (StartupError, StoreError) as group:
        status = _refuse(log, _first(group))
    finally:
        owner.release()
    return status


class Daemon:
    """One run of the daemon."""

    def __init__(
        self,
        settings: Settings,
        env: Mapping[str, str],
        log: Logger,
        *,
        options: argparse.Namespace,
        state: Path,
        connections: int,
    ) -> None:
        self.settings = settings
        self.env = env
        self.log = log
        self.options = options
        self.connections = connections
        self.state = state
        self.clock = Clock()
        self.reserve = Reserve(state / "reserve")
        self.journal_runner = ThreadRunner("journal")
        self.file_runner = ThreadRunner("files", size=FILE_THREADS, spare=SPARE_THREADS)
        self.notifier = Notifier.from_environ(os.environ)
        self.watchdog_s = watchdog_s(os.environ, pid=os.getpid())
        self._ready = trio.Event()

    def __repr__(self) -> str:
        return f"<Daemon {self.state}>"

    async def run(self) -> int:
        """Serve until stopped. Returns the exit status.

        Raises:
            StartupError, StoreError: It could not start; nothing was changed.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(extend_start, self.notifier, self._ready)
            await self._run()
            nursery.cancel_scope.cancel()
        self.log.info("stopped")
        return 0

    async def _run(self) -> None:
        journal = Journal(self.state / "journal.db")
        opened = await self.journal_runner.run(_open, journal, self.reserve)
        committer = await self._committer(journal, opened)
        async with trio.open_nursery() as services:
            services.start_soon(committer.run)
            profiles = Profiles(
                committer=committer,
                runner=self.file_runner,
                clock=self.clock,
                last_run=LastRun(opened.clean, opened.same_boot),
                roots=self.settings.daemon.symlink_roots,
            )
            operation = Operation(self, profiles, committer, opened)
            await profiles.load_requests()
            try:
                async with trio.open_nursery() as writers:
                    await profiles.open_all(self.settings.profiles.values(), writers)
                    await operation.open_created()
                    await self._serve(operation, profiles, committer)
                    await self._drain(profiles)
            finally:
                committer.close()
        await self.journal_runner.run(_close, journal, profiles.consistent)
        profiles.release()
        self.journal_runner.close()
        self.file_runner.close()

    # -- start --------------------------------------------------------------------------------------------------

    async def _committer(self, journal: Journal, opened: Opened) -> Committer:
        revision, seq, newest_us = await self.journal_runner.run(journal.newest)
        self.clock.raise_floor(newest_us)
        # Numbers begin at the time in milliseconds: none that another journal gave out (a lost one, one newer than a
        # restored backup) may ever mean something else here.
        base = self.clock.now_us() // 1000
        await self.journal_runner.run(journal.begin_numbers, max(seq + 1, base))
        if opened.damaged:
            self.log.error("journal_damaged", set_aside=opened.damaged, lost="history, undo, remembered request ids")
        if not await self.journal_runner.run(self.reserve.keep):
            self.log.warning("no_reserve", path=str(self.reserve.path), reason="the disk has no 4 MiB left")
        return Committer(
            journal,
            self.journal_runner,
            next_revision=max(revision + 1, base),
            next_seq=max(seq + 1, base),
            reserve=self.reserve,
        )

    def _listeners(self) -> list[Listener]:
        inherited = adopt(os.environ, pid=os.getpid())
        roles = {listener.role for listener in inherited}
        if "agent" not in roles:
            inherited.append(claim(config.agent_sockets(self.env, self.options.socket)[0], "agent"))
        if "operator" not in roles:
            inherited.append(claim(config.operator_sockets(self.env, self.options.operator_socket)[0], "operator"))
        return inherited

    async def _serve(self, operation: Operation, profiles: Profiles, committer: Committer) -> None:
        """Listen and serve until stopped."""
        sessions = SessionRegistry(
            committer, clock=self.clock.now_us, token=os.urandom, keep_days=self.settings.sessions.keep_days
        )
        records, snapshots, turns = await committer.query(committer.journal.sessions)
        for lost in sessions.load(records, snapshots):
            self.log.warning("session_damaged", session=lost)
        table = method_table()
        describe = functools.cache(lambda: discovery(table))
        jobs = self._jobs(profiles, committer)
        await jobs.load(turns)
        services = Services(
            profiles=profiles.by_name,
            sessions=sessions,
            jobs=jobs,
            flushing=Flushing(jobs, clock=self.clock.now_us),
            hub=EventHub(sessions),
            control=operation,
            settings=lambda: self.settings,
            clock=self.clock.now_us,
            describe=describe,
            problems=profiles.problems,
            lineage=lineage_of,
        )
        dispatcher = Dispatcher(table, services, on_bug=self._log_bug)
        server = Server(dispatcher.open_conversation, self.server_options(), self.log)
        operation.attach(server, dispatcher, services)
        listeners = self._listeners()
        async with trio.open_nursery() as nursery:
            await nursery.start(dispatcher.run)
            await nursery.start(operation.run)
            nursery.start_soon(functools.partial(jobs.run, alive=sessions.__contains__))
            async with trio.open_nursery() as serving:
                await serving.start(server.run, listeners)
                self._announce(profiles, listeners)
                serving.start_soon(self.file_runner.run, describe)  # 50 ms that no client should wait for
                await operation.stopping.wait()
                self._begin_stop(server)
                dispatcher.drain()
                with trio.move_on_after(self.settings.daemon.grace_s):
                    await operation.announce_closing()
                    await dispatcher.wait_idle()
                dispatcher.abandon()
                server.close()
                serving.cancel_scope.deadline = trio.current_time() + FAREWELL_S
            nursery.cancel_scope.cancel()

    def _jobs(self, profiles: Profiles, committer: Committer) -> Jobs:
        journal = JobJournal(committer)
        return Jobs(
            Parts(
                journal=journal,
                profiles=profiles.by_name,
                workers=workers_for,
                commit=Committing(journal.messages, self.file_runner).commit,
                clock=self.clock.now_us,
                token=os.urandom,
                on_bug=self._log_bug,
                on_ended=self._log_job,
            )
        )

    def server_options(self) -> ServerOptions:
        """Bounds of the server under the present settings."""
        uids = {os.geteuid(), 0} if self.settings.daemon.allow_root else {os.geteuid()}
        return ServerOptions(self.settings.wire.message_bytes, self.connections, frozenset(uids))

    def _announce(self, profiles: Profiles, listeners: list[Listener]) -> None:
        for name, error in profiles.problems.items():
            self.log.error("profile_unavailable", profile=name, reason=error.message)
        for listener in listeners:
            self.log.info("listening", role=listener.role, path=listener.path)
        # What is there now lives as long as the process: the collector need not look at it again, and a request makes
        # few cycles. Collections in the middle of a group are what the slowest percent is made of.
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        count = len(profiles.by_name)
        self._ready.set()
        self.notifier.ready(f"{count} {'profile' if count == 1 else 'profiles'} served")
        self.log.info("ready", version=__version__, pid=os.getpid(), profiles=sorted(profiles.by_name))

    # -- stop ---------------------------------------------------------------------------------------------------

    def _begin_stop(self, server: Server) -> None:
        """No new connections, and an end in any case."""
        patience = max(HARD_STOP_S, self.settings.daemon.grace_s + FAREWELL_S)
        killer = threading.Timer(patience, self._give_up)
        killer.daemon = True
        killer.start()
        self.notifier.stopping()
        self.log.info("stopping")
        server.stop_listening()

    def _give_up(self) -> None:
        """A disk or a lock hangs: what is acknowledged is durable, and the next start recovers like after a crash."""
        self.log.error("stop_forced")
        os._exit(0)

    async def _drain(self, profiles: Profiles) -> None:
        """Let the writers finish what is queued and checkpoint their files."""
        profiles.close()
        for writer in profiles.writers():
            await writer.ended.wait()

    def _log_job(self, job: JobRecord) -> None:
        say = self.log.warning if job.outcome in ("partial", "failed") else self.log.info
        say("job_ended", job=job.id, profile=job.profile, kind=job.kind, outcome=job.outcome, reviewer=job.reviewer)

    def _log_bug(self, method: str, error: Exception) -> None:
        self.log.error("bug", method=method, exc_info=error)


def _claim_state(state: Path) -> Ownership:
    """One daemon on one journal: the lock is taken before anything is opened."""
    owner = Ownership(str(state), name=OWNER_LOCK)
    try:
        owner.claim()
    except ProfileOwned as error:
        pid = error.extra.get("pid")
        message = f"another memd serves {state}" + (f": pid {pid}" if pid else "")
        raise OwnedElsewhere(message) from None
    return owner


def _open(journal: Journal, reserve: Reserve) -> Opened:
    """Open the journal; on a full disk with the room that was kept for such a day."""
    try:
        return journal.open()
    except NoSpace:
        journal.close(clean=False)  # its lock would keep the next attempt out
        if not reserve.spend():
            raise
    return journal.open()


def _close(journal: Journal, clean: bool) -> None:
    journal.close(clean=clean)


def _refuse(log: Logger, error: StartupError | StoreError) -> int:
    """Say why the daemon does not start, and with which exit status."""
    status = error.exit_status if isinstance(error, StartupError) else os.EX_IOERR
    log.error("not_started", reason=str(error), exit_status=status)
    return status


def _first(group: BaseExceptionGroup[StartupError | StoreError]) -> StartupError | StoreError:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error  # type: ignore[return-value]  # the leaves of a group that except* matched
