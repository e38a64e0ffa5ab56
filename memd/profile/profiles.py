"""All profiles of the daemon: which files they are, who owns them, what the journal says about them.

What comes in: settings, an open journal. What goes out: profiles with their writers, ready to run. What must not be
here: sockets, wire types, the daemon's life cycle.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import trio

from memd.errors import Busy, OwnedElsewhere, ProfileOwned, StoreError, StoreUnreadable
from memd.profile.claims import Claims
from memd.profile.events import EventStream
from memd.profile.means import Means
from memd.profile.memory_store import MemoryStore
from memd.profile.opening import Opening, Openings
from memd.profile.policy import Guard
from memd.profile.profile import Profile
from memd.profile.proposals import Proposals
from memd.profile.requests import KEEP_US, Requests
from memd.profile.scans import ScanPool
from memd.profile.starting import recover
from memd.profile.values import FILE_NAMES, TARGETS, Limits, Target
from memd.profile.writer import Writer
from memd.store.files import Files
from memd.store.place import Place, locate, make_directory
from memd.store.proposals import proposals_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from memd.config import ProfileSettings
    from memd.store.clock import Clock
    from memd.store.committer import Committer
    from memd.store.recovery import LastRun
    from memd.store.threads import Runner


class WriterStatistics(msgspec.Struct, frozen=True):
    """Sums over all writers since start."""

    acknowledged: int
    file_fsyncs: int
    waiting: int


class Profiles:
    """Builds profiles and keeps them by name. ``problems`` are profiles that cannot be served, and why."""

    def __init__(
        self,
        *,
        committer: Committer,
        runner: Runner,
        clock: Clock,
        last_run: LastRun,
        roots: tuple[str, ...] = (),
        files: Files | None = None,
    ) -> None:
        self.by_name: dict[str, Profile] = {}
        self.problems: dict[str, StoreError] = {}
        self.requests = Requests()
        self._committer = committer
        self._runner = runner
        self._clock = clock
        self._last_run = last_run
        self._roots = roots
        self._files = files or Files()
        self._streams: dict[str, EventStream] = {}
        self._stores: dict[tuple[int, int, str], MemoryStore] = {}
        self._claims = Claims(runner)
        self._writers: dict[MemoryStore, Writer] = {}
        self._nursery: trio.Nursery | None = None
        self._refused: dict[str, ProfileSettings] = {}
        self._openings = Openings(self._open)
        self._joined: list[str] = []
        self._closing = False
        self._scans = ScanPool()
        self._compiled = trio.Event()

    def __repr__(self) -> str:
        return f"<Profiles {sorted(self.by_name)}, problems {sorted(self.problems)}>"

    def writers(self) -> set[Writer]:
        """Every writer, each once."""
        return set(self._writers.values())

    def statistics(self) -> WriterStatistics:
        """Sums over all writers."""
        writers = self.writers()
        return WriterStatistics(
            sum(writer.answered for writer in writers),
            sum(writer.file_fsyncs for writer in writers),
            sum(writer.waiting for writer in writers),
        )

    async def load_requests(self) -> None:
        """Take over the remembered answers of the last 24 hours."""
        since = self._clock.now_us() - KEEP_US
        self.requests.load(await self._committer.query(self._committer.journal.requests, since))

    async def open_all(self, settings: Iterable[ProfileSettings], nursery: trio.Nursery) -> None:
        """Open every profile, recover it, adopt what was edited meanwhile, start its writer.

        One whose disk does not answer is among the ``problems`` until it does; the others do not wait for it.

        Raises:
            OwnedElsewhere: Every profile is owned by another daemon.
        """
        self._nursery = nursery
        nursery.start_soon(self._compile)
        wanted = list(settings)
        await self._open_these(wanted)
        owned = [error for error in self.problems.values() if isinstance(error, ProfileOwned)]
        if wanted and len(owned) == len(wanted):
            raise OwnedElsewhere(owned[0].message)

    async def open(self, settings: ProfileSettings) -> None:
        """Open one profile; a failure is kept in ``problems`` and the others go on."""
        await self._open_these([settings])

    async def open_refused(self) -> list[str]:
        """Try again those that could not be opened, in the same order; the names of those that are served now.

        Among them are those whose disk answered only after somebody had stopped waiting for it.
        """
        refused = list(self._refused.values())
        await self._open_these(refused)
        opened = [settings.name for settings in refused if settings.name in self.by_name]
        joined, self._joined = dict.fromkeys([*opened, *self._joined]), []
        for name in joined:
            for target, store in self.by_name[name].stores.items():
                state = store.state
                data = {"state": state.condition, "detail": state.detail, "path": state.path}
                self.by_name[name].emit("store.state", target=target, data=data)
        return list(joined)

    def keep_refused(self, wanted: Container[str]) -> None:
        """Go on trying these only: the others are not configured any more."""
        for name in [name for name in (*self._refused, *self._openings.under_way) if name not in wanted]:
            self.forget_refused(name)

    def forget_refused(self, name: str) -> StoreError | None:
        """Do not try this one again; why it could not be opened, if it could not."""
        self._openings.give_up(name)
        self._refused.pop(name, None)
        return self.problems.pop(name, None)

    async def _open_these(self, wanted: Iterable[ProfileSettings]) -> None:
        missing = [settings for settings in wanted if settings.name not in self.by_name]
        if missing:
            if self._nursery is None:
                msg = "open_all comes first"
                raise RuntimeError(msg)
            for opening in await self._openings.all(missing, self._nursery):
                self.problems[opening.settings.name] = _still_opening(opening.settings)

    async def _open(self, opening: Opening) -> None:
        """Open one profile, or note why that is not possible."""
        settings = opening.settings
        with opening.looking:
            try:
                with opening.on_disk():
                    places = await self._runner.ask(_find, settings, self._roots)
            except StoreError as error:
                self._refuse(settings, error)
                return
        if opening.looking.cancelled_caught:
            return  # nobody wants it any more
        with self._openings.turn((place.device, place.inode) for place in places.values()) as turn:
            with opening.on_disk():
                await turn()
            if settings.name not in self.by_name:
                await self._open_at(places, opening)

    def _refuse(self, settings: ProfileSettings, error: StoreError) -> None:
        self.problems[settings.name] = error
        self._refused[settings.name] = settings

    async def _open_at(self, places: Mapping[Target, Place], opening: Opening) -> None:
        settings = opening.settings
        try:
            with opening.on_disk():
                await self._runner.run(self._take, settings, places)
            guard = await self._guard(settings)
            stores, fresh = await self._stores_at(places, opening)
        except StoreError as error:
            self._refuse(settings, error)
            return
        self.forget_refused(settings.name)
        stream = EventStream(settings.name, self._committer, seq=self._committer.seq)
        self._streams[settings.name] = stream
        for store in stores.values():
            self._stores[(store.place.device, store.place.inode, store.place.name)] = store
            store.profiles.append(settings.name)
            store.guards.append(guard)
        if any(store.document.entries or store.image.data for store in fresh):
            await self._compiled.wait()  # or it would be done twice at the same time
        with opening.on_disk():
            writer = await self._writer_of(stores, fresh)
        profile = Profile(settings, Means(stores, guard, writer, stream, self.requests, self._clock))
        await profile.scan(guard.scans)
        profile.begin()
        self.by_name[settings.name] = profile
        self.problems.pop(settings.name, None)
        if opening.late:
            self._joined.append(settings.name)

    async def _stores_at(
        self, places: Mapping[Target, Place], opening: Opening
    ) -> tuple[Mapping[Target, MemoryStore], list[MemoryStore]]:
        """The stores at these places, and those among them that nobody had yet: they are recovered."""
        stores: dict[Target, MemoryStore] = {}
        fresh: list[MemoryStore] = []
        for target, place in places.items():
            known = self._stores.get((place.device, place.inode, place.name))
            stores[target] = known or self._new_store(opening.settings, target, place)
            if known is None:
                with opening.on_disk():
                    await recover(stores[target], self._committer, self._runner, self._last_run)
                fresh.append(stores[target])
        return stores, fresh

    async def reconfigure(self, profile: Profile, settings: ProfileSettings) -> None:
        """Have a profile use other settings; what its entries are under other rules is found out before."""
        scans = self._scans.scans(settings.scan.off, settings.scan.warn)
        await profile.scan(scans)
        profile.reconfigure(settings, scans)

    async def tend(self) -> None:
        """What comes by itself in time: proposals that fit no longer, or that nobody decided about."""
        for profile in list(self.by_name.values()):
            profile.approvals.expire()
            await profile.approvals.recheck()

    async def check_ownership(self) -> list[str]:
        """Directories that were taken by another memd; their stores stop writing."""
        await self._claims.check()
        lost = dict(self._claims.lost)
        for store in self._stores.values():
            key = (store.place.device, store.place.inode)
            if key in lost and store.broken is None:
                store.broken = lost[key]
        return [self._claims.directory(key) for key in lost]

    @property
    def consistent(self) -> bool:
        """False if some file could neither be brought in line with the journal nor the journal with it: no clean stop."""
        return all(store.broken is None for store in self._stores.values())

    def close(self) -> None:
        """Let every writer end once its queue is empty."""
        self._closing = True
        for name in self._openings.under_way:
            self._openings.give_up(name)
        for writer in self.writers():
            writer.close()

    def release(self) -> None:
        """Give the directories back."""
        self._claims.release()

    # -- inside -------------------------------------------------------------------------------------------------

    async def _compile(self) -> None:
        """Compile the rules. A pattern that few texts need is compiled for the first of them: all would be much memory."""
        await self._runner.run(self._scans.compile)
        self._compiled.set()

    async def _guard(self, settings: ProfileSettings) -> Guard:
        """The profile's rules, and what waits for a person."""
        records = await self._committer.query(proposals_of, self._committer.journal, settings.name)
        scans = self._scans.scans(settings.scan.off, settings.scan.warn)
        return Guard(settings.name, msgspec.to_builtins(settings.approval), scans, Proposals(records))

    def _take(self, settings: ProfileSettings, places: Mapping[Target, Place]) -> None:
        """Claim a profile's files. Blocks."""
        for target, place in places.items():
            self._claims.claim(place)
            self._require_equal_limits(settings, target, place)
        self._require_one_writer(places)

    def _require_equal_limits(self, settings: ProfileSettings, target: Target, place: Place) -> None:
        shared = self._stores.get((place.device, place.inode, place.name))
        if shared is not None and shared.limits != _limits(settings, target):
            msg = f"{place.path} also belongs to profile {shared.profiles[0]}, with another limit: give both the same [limits]"
            raise StoreUnreadable(
                msg,
                path=place.path,
            )

    def _require_one_writer(self, places: Mapping[Target, Place]) -> None:
        shared = [self._stores.get((place.device, place.inode, place.name)) for place in places.values()]
        writers = {self._writers[store] for store in shared if store is not None}
        if len(writers) > 1:
            msg = (
                f"{places['memory'].path} and {places['user'].path} belong to two other profiles: a change to both could not "
                "be made as one"
            )
            raise StoreUnreadable(
                msg,
                path=places["memory"].path,
            )

    def _new_store(self, settings: ProfileSettings, target: Target, place: Place) -> MemoryStore:
        return MemoryStore(
            target=target,
            place=place,
            limits=_limits(settings, target),
            files=self._files,
            roots=self._roots,
            enabled=getattr(settings.stores, target),
        )

    async def _writer_of(self, stores: Mapping[Target, MemoryStore], fresh: list[MemoryStore]) -> Writer:
        """The writer of these stores: a known one if a store is shared, else a new one."""
        known = {self._writers[store] for store in stores.values() if store in self._writers}
        if len(known) == 1 and not fresh:
            return known.pop()
        if known:  # one store shared, the other its own: the shared store's writer takes it too
            writer = known.pop()
        else:
            writer = Writer(
                fresh,
                committer=self._committer,
                runner=self._runner,
                clock=self._clock,
                requests=self.requests,
                streams=self._streams,
            )
        for store in fresh:
            self._writers[store] = writer
        await writer.start(fresh)
        if self._nursery is not None and not writer.running:
            writer.running = True
            self._nursery.start_soon(writer.run)
        if self._closing:
            writer.close()
        return writer


def _find(settings: ProfileSettings, roots: tuple[str, ...]) -> Mapping[Target, Place]:
    """Find a profile's files. Blocks."""
    make_directory(Path(settings.dir))
    places: dict[Target, Place] = {target: locate(settings.dir, FILE_NAMES[target], roots=roots) for target in TARGETS}
    if places["memory"].path == places["user"].path:
        msg = f"both stores of {settings.name} are {places['user'].path}"
        raise StoreUnreadable(msg, path=places["user"].path)
    return places


def _still_opening(settings: ProfileSettings) -> StoreError:
    message = (
        f"profile {settings.name} is still being opened: {settings.dir} does not answer (a disk that hangs, or a network "
        "file system that is away); it is served as soon as it does, try again then"
    )
    return Busy(message, path=settings.dir)


def _limits(settings: ProfileSettings, target: Target) -> Limits:
    return Limits(getattr(settings.limits, target), settings.limits.near_percent)
