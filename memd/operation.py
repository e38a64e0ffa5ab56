"""Operation: the daemon's running chores and what an operator may ask of it.

What comes in: signals, timers, ``daemon.*`` calls. What goes out: a reload, a stop, notices, counters, watchdog ticks. What
must not be here: start and end themselves (``daemon``), what a layer does.
"""

from __future__ import annotations

import os
import secrets
import signal
import time
from typing import TYPE_CHECKING

import msgspec
import trio

from memd import __version__, config
from memd.dispatch.ports import DaemonStatistics, Redaction
from memd.errors import InvalidParams, IoFailure, SettingsError, StoreError
from memd.profile.erasing import Erasing
from memd.profile.values import Notice
from memd.store import redaction, retention
from memd.store.clock import DAY_US

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memd.daemon import Daemon
    from memd.dispatch.context import Services
    from memd.dispatch.dispatcher import Dispatcher
    from memd.profile.profiles import Profiles
    from memd.profile.values import Caller
    from memd.store.committer import Committer
    from memd.store.journal import Opened
    from memd.transport.notify import Notifier
    from memd.transport.server import Server

TICK_S = 1.0
EXTEND_S = 5.0
"""A start that takes longer than this asks the service manager for more time, again and again."""
PRUNE_S = 600.0
ANNOUNCE_S = 2.0
"""At the end the journal has this long to take the news, without which nobody connected hears it. A busy disk needs more than
half a second for a sync; the whole end may take five."""


class Operation:
    """``Control`` of the handlers, and the tasks beside serving."""

    def __init__(self, daemon: Daemon, profiles: Profiles, committer: Committer, opened: Opened) -> None:
        self.stopping = trio.Event()
        self.instance = secrets.token_hex(8)
        self._daemon = daemon
        self._profiles = profiles
        self._committer = committer
        self._server: Server | None = None
        self._dispatcher: Dispatcher | None = None
        self._services: Services | None = None
        self._started_us = daemon.clock.now_us()
        self._notices: dict[str, Notice] = {}
        self._created: dict[str, str] = {}  # profiles made at run time, and their directories
        self._heard: set[str] = set()  # profiles whose events jobs listen to
        self._redacting = trio.Lock()
        self._wall_offset_us = self._offset_us()
        if opened.damaged:
            self._notices["journal_damaged"] = Notice(
                "journal_damaged",
                f"the journal was damaged and set aside as {opened.damaged}; history and undo before now are lost, the "
                "memory files are intact",
                {"path": opened.damaged},
            )

    def __repr__(self) -> str:
        return f"<Operation {self.instance}>"

    def attach(self, server: Server, dispatcher: Dispatcher, services: Services) -> None:
        """Everything is built: listen to the profiles' events and say what a person should know."""
        self._server = server
        self._dispatcher = dispatcher
        self._services = services
        for name in self._profiles.by_name:
            self._attach(name)
        self._tell_weakened()

    # -- Control ------------------------------------------------------------------------------------------------

    @property
    def version(self) -> str:
        """This memd's version."""
        return __version__

    @property
    def pid(self) -> int:
        """This process."""
        return os.getpid()

    def statistics(self) -> DaemonStatistics:
        """Counters of the layers below dispatch."""
        commits = self._committer.statistics()
        writers = self._profiles.statistics()
        calls = self._dispatcher.statistics() if self._dispatcher else None
        return DaemonStatistics(
            started_us=self._started_us,
            acknowledged=writers.acknowledged,
            fsyncs=commits.fsyncs + writers.file_fsyncs,
            groups=commits.groups,
            connections=self._server.statistics().open if self._server else 0,
            requests=calls.requests if calls else 0,
            request_errors=calls.errors if calls else 0,
            bugs=calls.bugs if calls else 0,
        )

    def notices(self) -> Sequence[Notice]:
        """What a person should know about the daemon, and which profiles it cannot serve."""
        problems = [
            Notice("profile_unavailable", f"{name}: {error.message}", {"profile": name, "error": error.wire_name})
            for name, error in self._profiles.problems.items()
        ]
        jobs = self._services.jobs.notices() if self._services is not None else ()
        return [*self._notices.values(), *problems, *jobs]

    async def reload(self) -> None:
        """Read the settings again; a bad file keeps the old ones.

        Raises:
            InvalidParams: The file cannot be used; the message has path, line and key.
        """
        daemon = self._daemon
        daemon.notifier.reloading(time.monotonic_ns() // 1000)
        try:
            settings = config.load(daemon.options.config, daemon.env)
        except SettingsError as error:
            daemon.log.error("reload_refused", reason=str(error))  # noqa: TRY400 - the reason says it all, no traceback
            self._notices["settings"] = Notice("settings_refused", f"the old settings are kept: {error}")
            msg = f"the old settings are kept: {error}"
            raise InvalidParams(msg) from error
        finally:
            daemon.notifier.ready()
        self._notices.pop("settings", None)
        daemon.settings = settings
        await self._apply(settings.profiles)
        if self._server is not None:
            self._server.reconfigure(daemon.server_options())
        if self._services is not None:
            self._services.sessions.keep_days = settings.sessions.keep_days
        daemon.log.info("reloaded", path=settings.path)
        self._tell_weakened()

    def stop(self) -> None:
        """Begin to stop."""
        self.stopping.set()

    def handover(self, version: str) -> bool:
        """Drain for a newer daemon; False if the caller is not newer."""
        if _numbers(version) > _numbers(__version__):
            self.stop()
            return True
        return False

    async def create_profile(self, name: str, directory: str | None) -> None:
        """Add a profile beside those of the settings file; it is there again after a restart.

        Raises:
            InvalidParams: Not a possible name.
            StoreError: Its directory cannot be used.
        """
        problem = config.profile_name_problem(name)
        if problem is not None:
            msg = f"name: {problem}"
            raise InvalidParams(msg, field="name")
        if directory is not None and not os.path.isabs(directory):
            msg = f"dir: an absolute path expected, got {directory!r}"
            raise InvalidParams(msg, field="dir")
        where = directory or config.profile_dir(self._daemon.env, name)
        await self._open_created(name, where)
        problem_now = self._profiles.forget_refused(name)
        if problem_now is not None:
            raise problem_now
        await self._committer.query(self._committer.journal.remember_profile, name, where)

    async def redact(self, profile: str, caller: Caller, *, text: str | None, revision: int | None) -> Redaction:
        """Take a text out of the memory files, then the sessions, then the journal; one at a time.

        Raises:
            WireError: It is not done, or not all of it; it can be run again.
        """
        async with self._redacting:
            erasing = Erasing(self._profiles, self._committer, self._daemon.file_runner)
            with erasing.as_one():
                await erasing.choose(profile, text=text, revision=revision)
                masked = await erasing.from_files(caller)
                sessions = await self._redact_sessions(self._services, erasing) if self._services else 0
                if self._services is not None:
                    self._services.jobs.redact(erasing.mask)
                tables = (await erasing.from_journal()).tables
            tables["session"] += sessions
            return Redaction(tables, [item.revision for item in masked], list(erasing.notices()))

    async def _redact_sessions(self, services: Services, erasing: Erasing) -> int:
        sessions, tickets = services.sessions.redact(erasing.mask.text)
        erasing.changed |= bool(tickets)
        for ticket in tickets:
            await ticket.wait()
        for session in sessions:
            profile = self._profiles.by_name.get(session.profile)
            if profile is not None:
                profile.emit("snapshot.stale", session=session.id, data={"reason": "redacted"})
        return len(tickets)

    async def open_created(self) -> None:
        """Open the profiles that were created at run time and are not in the settings."""
        created: Mapping[str, str] = await self._committer.query(self._committer.journal.created_profiles)
        for name, where in created.items():
            if name not in self._profiles.by_name:
                await self._open_created(name, where)

    # -- tasks --------------------------------------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Signals, watchdog, ownership, pruning, idle exit; until cancelled. Started once signals are listened to."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self._signals)
            task_status.started()
            nursery.start_soon(self._tick)
            nursery.start_soon(self._prune)
            if self._daemon.watchdog_s is not None:
                nursery.start_soon(self._watchdog, self._daemon.watchdog_s)

    async def announce_closing(self) -> None:
        """Tell everybody that the daemon is about to end, and return when that is on its way to them.

        With a journal that takes nothing it is on its way to nobody, and the end does not wait for it.
        """
        told = [profile.events.published("daemon.closing") for profile in self._profiles.by_name.values()]
        for profile in self._profiles.by_name.values():
            profile.emit("daemon.closing", data={"pid": self.pid})
        self._committer.flush()
        with trio.move_on_after(ANNOUNCE_S):
            for event in told:
                await event.wait()
            if self._services is not None:
                await self._services.hub.wait_handed_on()

    async def _signals(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as received:
            task_status.started()
            async for number in received:
                if number == signal.SIGHUP:
                    try:
                        await self.reload()
                    except InvalidParams:
                        continue  # said in the log and in the notices
                else:
                    self.stop()

    async def _tick(self) -> None:
        idle_since = trio.current_time()
        while True:
            await trio.sleep(TICK_S)
            await self._check_possession()
            for name in await self._profiles.open_refused():
                self._attach(name)
                self._daemon.log.info("profile_served", profile=name)
            await self._profiles.tend()
            self._check_clock()
            now = trio.current_time()
            connected = self._server is not None and self._server.statistics().open
            if connected or (self._services is not None and self._services.jobs.at_work):
                idle_since = now
            limit = self._daemon.settings.daemon.idle_exit_s
            if limit and now - idle_since >= limit:
                self._daemon.log.info("idle_exit", after_s=limit)
                self.stop()

    async def _check_possession(self) -> None:
        """The directories and the journal must still be the ones we locked and opened."""
        for directory in await self._profiles.check_ownership():
            self._notices[f"lost:{directory}"] = Notice(
                "ownership_lost", f"another memd took over {directory}; its stores are no longer written from here"
            )
        journal = self._committer.journal
        if not await self._daemon.file_runner.run(journal.is_ours):
            message = f"the journal {journal.path} was removed or replaced: nothing is written until memd is restarted"
            if "journal_replaced" not in self._notices:
                self._daemon.log.error("journal_replaced", path=str(journal.path))
            self._notices["journal_replaced"] = Notice("journal_replaced", message)
            self._committer.block(IoFailure(message, path=str(journal.path), outcome="none"))

    def _offset_us(self) -> int:
        return time.time_ns() // 1000 - time.monotonic_ns() // 1000

    def _check_clock(self) -> None:
        jump = abs(self._offset_us() - self._wall_offset_us)
        if jump > DAY_US or self._daemon.clock.behind_us > DAY_US:
            self._notices["clock"] = Notice(
                "clock_jumped", "the clock jumped by more than a day: nothing is pruned until memd is restarted"
            )

    async def _finish_redaction(self) -> None:
        """See through what a crash or a full disk kept a redaction from."""
        try:
            await self._committer.query(redaction.complete, self._committer.journal)
        except StoreError as error:
            message = f"a redacted text may still be in the journal's file: {error.message}; memd tries again"
            self._notices["redaction"] = Notice("redaction_unfinished", message)
        else:
            self._notices.pop("redaction", None)

    async def _prune(self) -> None:
        """Prune in small batches, so that commits come in between."""
        while True:
            await self._finish_redaction()
            history = self._daemon.settings.history
            policy = retention.Policy(history.keep_days, history.keep_revisions, history.max_mb)
            deleted = 1
            while deleted and "clock" not in self._notices and not self.stopping.is_set():
                try:
                    now_us = self._daemon.clock.now_us()
                    deleted = await self._committer.query(retention.prune, self._committer.journal, policy, now_us)
                except StoreError:
                    break  # the journal is being reopened; the next round prunes
            reserve = self._committer.reserve
            if reserve is not None:
                await self._committer.query(reserve.keep)
            await trio.sleep(PRUNE_S)

    async def _watchdog(self, period_s: float) -> None:
        """Tick only if both the event loop and the committer's thread are alive."""
        while True:
            await self._committer.query(int)
            self._daemon.notifier.watchdog()
            await trio.sleep(period_s / 2)

    # -- inside -------------------------------------------------------------------------------------------------

    async def _apply(self, wanted: Mapping[str, config.ProfileSettings]) -> None:
        """Open new profiles; known ones get their settings where these can change while they run."""
        self._profiles.keep_refused({*wanted, *self._created})
        for name, settings in wanted.items():
            known = self._profiles.by_name.get(name)
            if known is None:
                await self._profiles.open(settings)
                self._attach(name)
            elif known.dir != settings.dir:
                text = f"profile {name}: a changed dir takes effect after a restart"
                self._notices[f"dir:{name}"] = Notice("restart_needed", text)
            else:
                await self._profiles.reconfigure(known, settings)
        for name in self._created.keys() - wanted.keys():
            created = self._profiles.by_name.get(name)
            if created is not None:
                await self._profiles.reconfigure(created, self._general(name))

    async def _open_created(self, name: str, where: str) -> None:
        self._created[name] = where
        await self._profiles.open(self._general(name))
        self._attach(name)

    def _general(self, name: str) -> config.ProfileSettings:
        """The settings of a profile that the settings file does not name: what the general sections say."""
        base = config.ProfileSettings(name=name, dir=self._created[name])
        general = self._daemon.settings
        shared = {
            field: getattr(general, field)
            for field in config.ProfileSettings.__struct_fields__
            if hasattr(general, field)
        }
        return msgspec.structs.replace(base, **shared)

    def _attach(self, name: str) -> None:
        if self._services is not None and name in self._profiles.by_name:
            profile = self._profiles.by_name[name]
            self._services.hub.attach(profile)
            if name not in self._heard:
                self._heard.add(name)
                profile.events.subscribe(self._services.jobs.heard)

    def _tell_weakened(self) -> None:
        keys = config.weakened(self._daemon.settings)
        if keys:
            message = f"settings let more through than the defaults: {', '.join(keys)}"
            self._notices["weakened"] = Notice("config.changed", message, {"keys": keys})
            for profile in self._profiles.by_name.values():
                profile.emit("config.changed", data={"keys": keys})
        else:
            self._notices.pop("weakened", None)


async def extend_start(notifier: Notifier, ready: trio.Event) -> None:
    """While a long recovery goes on, have the service manager wait."""
    while not ready.is_set():
        with trio.move_on_after(EXTEND_S):
            await ready.wait()
        if not ready.is_set():
            notifier.extend_timeout(int(4 * EXTEND_S * 1_000_000))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
