"""A profile: the view of its two stores, its history and its events that the layers above work with.

What comes in: mutations, selectors, questions. What goes out: tickets and answers. What must not be here: tasks, I/O
of its own, wire types. The work itself is queued with the writer that owns the stores.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import trio
from msgspec.structs import replace

from memd.deferred import Ticket
from memd.errors import Conflict, NoSuchRevision, WireError
from memd.profile.draft import Draft
from memd.profile.history import ANY, Chosen, Explanation, History, RevisionRow, Selector
from memd.profile.importing import Import, sources
from memd.profile.redacting import without_stubs
from memd.profile.values import Caller, Limits, Mutation, StoreState, Target, TargetChange, Undone
from memd.profile.work import Edit, Invert, SetEntries, Work, shown
from memd.store.queries import RevisionFilter
from memd.store.records import EventRecord, Part

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memd.config import ProfileSettings
    from memd.profile.entries import Entry
    from memd.profile.events import EventStream
    from memd.profile.inverse import Taken
    from memd.profile.memory_store import MemoryStore
    from memd.profile.requests import Requests
    from memd.profile.values import Committed
    from memd.profile.work import Plan
    from memd.profile.writer import Writer
    from memd.store.clock import Clock

EMPTY: Mapping[Target, int] = MappingProxyType({})
LOOK_EVERY_S = 0.01
"""A look for outside edits this recent is good enough for a read: a stat on every read costs a quarter of throughput."""
LOOK_WAIT_S = 0.5
"""How long a read waits for outside edits that are there to be taken in; then it answers from what is published."""


class Profile:
    """One profile. ``dir`` is the configured directory; profiles that resolve to the same files share a writer."""

    def __init__(
        self,
        settings: ProfileSettings,
        stores: Mapping[Target, MemoryStore],
        *,
        writer: Writer,
        events: EventStream,
        requests: Requests,
        clock: Clock,
    ) -> None:
        self.name = settings.name
        self.dir = settings.dir
        self.settings = settings
        self.events = events
        self.writer = writer
        self.stores = dict(stores)
        self._requests = requests
        self._clock = clock
        self._history = History(self.name, list(self.stores.values()), writer.committer)
        self._looked_at = float("-inf")
        self._looking = False  # a thread looks at the files; on a disk that hangs it may do so for long

    def __repr__(self) -> str:
        return f"<Profile {self.name} in {self.dir}: revisions {self.head()}>"

    # -- reads --------------------------------------------------------------------------------------------------

    def state(self, target: Target) -> StoreState:
        """The published state of a store; never waits."""
        return self.stores[target].state

    def head(self) -> tuple[int, int]:
        """The published revisions of both stores, for cache keys."""
        return (self.stores["memory"].state.revision, self.stores["user"].state.revision)

    def look_due(self) -> bool:
        """True if ``look`` would look at the files now."""
        return trio.current_time() - self._looked_at >= LOOK_EVERY_S

    async def look(self) -> None:
        """Have outside edits made until now taken in, in half a second at most; ``look_due`` says whether it is worth it.

        As long as the files' times are those we left, this is a stat in a thread; the writer is not waited for. There is
        one such thread for a profile: the reads of one whose disk hangs must not take those of the others.
        """
        self._looked_at = trio.current_time()
        with trio.move_on_after(LOOK_WAIT_S):
            while self._looking:  # noqa: ASYNC110 - the thread that ends it cannot set an event
                await trio.sleep(LOOK_EVERY_S)
            self._looking = True
            if not await self.writer.runner.ask(self._looks_unchanged):
                await self.writer.look().wait()

    def _looks_unchanged(self) -> bool:
        try:
            return all(store.looks_unchanged() for store in self.stores.values() if store.enabled)
        finally:
            self._looking = False

    def reconfigure(self, settings: ProfileSettings) -> None:
        """Use other settings from now on: limits and which stores are on; the directory stays."""
        self.settings = settings
        for target, store in self.stores.items():
            store.limits = Limits(getattr(settings.limits, target), settings.limits.near_percent)
            store.enabled = getattr(settings.stores, target)
            store.publish()

    def attach(self) -> None:
        """A client is connected: its files are polled, and its first read looks at them.

        A command that runs once has just connected, and whoever typed it may have edited the file a moment before.
        """
        self.writer.attached += 1
        self._looked_at = float("-inf")

    def detach(self) -> None:
        """A client is gone."""
        self.writer.attached -= 1

    # -- changes ------------------------------------------------------------------------------------------------

    def submit(self, mutation: Mutation) -> Ticket:
        """Queue a change to one store. The ticket's result is ``Committed``."""
        return self._queue(
            Edit(self.stores[mutation.target], mutation), mutation.caller, mutation.request_id, mutation.fingerprint
        )

    def wipe(
        self,
        target: Target,
        caller: Caller,
        *,
        request_id: str | None = None,
        fingerprint: bytes = b"",
        if_revision: int | None = None,
    ) -> Ticket:
        """Empty a store; undo brings it back. The ticket's result is ``Committed``."""
        return self._queue(
            SetEntries(self.stores[target], "wipe", (), caller, if_revision), caller, request_id, fingerprint
        )

    async def undo(
        self,
        selector: Selector,
        caller: Caller,
        *,
        redo: bool = False,
        request_id: str | None = None,
        fingerprint: bytes = b"",
        if_revision: int | None = None,
    ) -> Undone:
        """Take back changes, or take back undos.

        Raises:
            NoSuchRevision: The revision is unknown, or there is nothing to undo or redo.
            InvalidParams: ``if_revision`` with changes of both stores: it names the head of one.
            WireError: As for any change; nothing was done.
        """
        repeated = self._repeat(request_id, fingerprint)
        if repeated is not None:
            return await repeated.wait()  # type: ignore[no-any-return]  # an Undone under an undo's fingerprint
        plan = await self._inversion(selector, caller, redo=redo, if_revision=if_revision)
        return await self._queue(plan, caller, request_id, fingerprint).wait()  # type: ignore[no-any-return]  # Undone

    async def preview_undo(
        self, selector: Selector, caller: Caller, *, redo: bool = False, if_revision: int | None = None
    ) -> Undone:
        """What ``undo`` would do now, or what stands in its way; nothing is done.

        Raises:
            WireError: As ``undo`` would.
        """
        return self._planned(await self._inversion(selector, caller, redo=redo, if_revision=if_revision))

    async def _inversion(
        self, selector: Selector, caller: Caller, *, redo: bool, if_revision: int | None = None
    ) -> Invert:
        records = await self._history.select(selector, redo=redo)
        if not records:
            what, end = ("undo", "redone") if redo else ("change", "undone")
            raise NoSuchRevision(message=f"there is no {what}{selector.of_whom} that could be {end}")
        by_store: dict[MemoryStore, list[Taken]] = {}
        for record in records:
            store = next(store for store in self.stores.values() if store.id == record.store)
            by_store.setdefault(store, []).append(await self._history.taken(store, record))
        before = {}
        for store, taken in by_store.items():
            exact = await self._history.exact_before(store, min(one.number for one in taken))
            if exact is not None:
                before[store] = exact
        originals = await self._history.originals(records) if redo else {}
        return Invert("redo" if redo else "undo", caller, by_store, originals, if_revision, before)

    async def restore(
        self,
        target: Target,
        revision: int,
        caller: Caller,
        *,
        request_id: str | None = None,
        fingerprint: bytes = b"",
        if_revision: int | None = None,
    ) -> Undone:
        """Make a store what it was after a revision, as a new revision.

        Raises:
            NoSuchRevision: Unknown or pruned.
        """
        repeated = self._repeat(request_id, fingerprint)
        if repeated is None:
            plan = await self._restoration(target, revision, caller, if_revision)
            repeated = self._queue(plan, caller, request_id, fingerprint)
        return _as_undone(await repeated.wait())

    async def preview_restore(
        self, target: Target, revision: int, caller: Caller, *, if_revision: int | None = None
    ) -> Undone:
        """What ``restore`` would do now; nothing is done.

        Raises:
            WireError: As ``restore`` would.
        """
        return self._planned(await self._restoration(target, revision, caller, if_revision))

    async def _restoration(self, target: Target, revision: int, caller: Caller, if_revision: int | None) -> SetEntries:
        await self._history.revision(revision)
        document = without_stubs(await self._history.document_at(self.stores[target], revision))
        return SetEntries(self.stores[target], "restore", document.entries, caller, if_revision)

    def _planned(self, plan: Invert | SetEntries | Import) -> Undone:
        """What a plan comes to on the published state. Its drafts are thrown away, and so are their numbers."""
        for store in plan.stores:
            store.require_usable()
        now_us = self._clock.now_us()
        done = plan.plan({store: Draft(store, store.image, now_us, lambda: 0) for store in plan.stores})
        return replace(done if isinstance(done, Undone) else _as_undone(done), revisions=())

    async def import_entries(
        self,
        data: Mapping[str, Any],
        caller: Caller,
        *,
        request_id: str | None = None,
        fingerprint: bytes = b"",
        if_revisions: Mapping[Target, int] = EMPTY,
    ) -> Undone:
        """Add the entries of an export or a text that are not there yet, or split foreign ones; all in one transaction.

        Raises:
            InvalidParams: Not an export.
            Conflict: A store is not at the revision that ``if_revisions`` says.
            WireError: As for any change; nothing was done.
        """
        repeated = self._repeat(request_id, fingerprint)
        if repeated is None:
            repeated = self._queue(self._importing(data, caller, if_revisions), caller, request_id, fingerprint)
        return await repeated.wait()  # type: ignore[no-any-return]  # an Undone under an import's fingerprint

    def preview_import(
        self, data: Mapping[str, Any], caller: Caller, *, if_revisions: Mapping[Target, int] = EMPTY
    ) -> Undone:
        """What ``import_entries`` would do to the published state; what would be over a limit is a notice.

        Raises:
            WireError: As ``import_entries`` would otherwise.
        """
        return self._planned(self._importing(data, caller, if_revisions, preview=True))

    def _importing(
        self, data: Mapping[str, Any], caller: Caller, if_revisions: Mapping[Target, int], *, preview: bool = False
    ) -> Import:
        wanted = sources(data)
        stores = {self.stores[target]: source for target, source in wanted.stores.items()}
        return Import(stores, caller, if_revisions, preview, wanted.notices)

    # -- history ------------------------------------------------------------------------------------------------

    async def list_revisions(
        self,
        chosen: Chosen = ANY,
        *,
        target: Target | None = None,
        limit: int = 50,
        before: int | None = None,
    ) -> tuple[list[RevisionRow], int | None]:
        """Revisions, newest first (at most 1,000), and where the next page begins (None: nowhere)."""
        stores = [self.stores[target]] if target else list(self.stores.values())
        wanted = RevisionFilter(
            stores=tuple(store.id for store in stores),
            session=chosen.session,
            job=chosen.job,
            origin=chosen.origin,
            before=before,
        )
        return await self._history.page(wanted, limit=limit, entry=chosen.entry)

    async def show_revision(self, revision: int) -> tuple[RevisionRow, dict[Target, tuple[Entry, ...]]]:
        """A revision and what stood in both stores after it.

        Raises:
            NoSuchRevision: Unknown or pruned.
        """
        row = await self._history.revision(revision)
        entries: dict[Target, tuple[Entry, ...]] = {}
        for target, store in self.stores.items():
            entries[target] = (await self._history.document_at(store, revision)).entries
        return row, entries

    async def diff(self, target: Target, from_: int, to: int | None = None) -> tuple[str, tuple[TargetChange, ...]]:
        """The difference between two revisions of a store; ``to`` defaults to its head.

        Raises:
            NoSuchRevision: Either is unknown or pruned (0 is the empty store).
        """
        upto = self.state(target).revision if to is None else to
        for number in (from_, upto):
            if number:
                await self._history.revision(number)
        return await self._history.diff(self.stores[target], from_, upto)

    async def explain(self, text: str) -> list[Explanation]:
        """What became of a text, newest first within each kind."""
        await self.writer.committer.settle()  # refusals ride with a group that nobody waits for
        return await self._history.explain(text)

    # -- events -------------------------------------------------------------------------------------------------

    def emit(
        self,
        topic: str,
        *,
        target: Target | None = None,
        session: str | None = None,
        id: str | None = None,  # noqa: A002 - the event's own field name
        data: Mapping[str, Any] | None = None,
    ) -> None:
        """Journal an event with the next group, then publish it. Nobody waits for it."""
        event = EventRecord(
            us=self._clock.now_us(),
            topic=topic,
            profile=self.name,
            target=target,
            session=session,
            id=id,
            data=dict(data or {}),
        )

        def committed() -> None:
            self.events.expect((event,))
            self.events.release((event,))

        self.writer.committer.add(Part(events=[event]), committed)

    # -- inside -------------------------------------------------------------------------------------------------

    def _repeat(self, request_id: str | None, fingerprint: bytes) -> Ticket | None:
        if request_id is None:
            return None
        return self._requests.repeat(self.name, request_id, fingerprint, self._clock.now_us())

    def _queue(self, plan: Plan, caller: Caller, request_id: str | None, fingerprint: bytes) -> Ticket:
        try:
            for store in plan.stores:
                store.require_usable()
            repeated = self._repeat(request_id, fingerprint)
        except WireError as error:
            if isinstance(error, Conflict) and plan.stores:
                error.extra["current"] = shown(plan.stores[0].state.document)
            ticket = Ticket()
            ticket.fail(error)
            return ticket
        if repeated is not None:
            return repeated
        work = Work(plan, self.name, caller, request_id, fingerprint)
        if request_id is not None:
            work.ticket.doubtful = self._requests.doubtful(self.name, request_id)
            self._requests.start(self.name, request_id, fingerprint, work.ticket)
        return self.writer.submit(work)


def _as_undone(done: Committed) -> Undone:
    """What setting a store came to, as an undo tells it."""
    changes = tuple(TargetChange(done.target, change) for change in done.changes)
    return Undone((done.revision,) if done.changed else (), changes, (), {done.target: done.usage}, done.replayed)
