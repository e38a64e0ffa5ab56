"""A profile: its two stores, their history and events as the layers above work with them.

What comes in: mutations, selectors, questions. What goes out: tickets and answers. What must not be here: tasks, I/O
of its own, wire types. Reading is ``reading``; the work itself is queued with the writer that owns the stores.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins
from msgspec.structs import replace

from memd.deferred import Ticket
from memd.errors import Conflict, NoSuchRevision, WireError
from memd.profile.draft import Draft
from memd.profile.editing import Edit
from memd.profile.importing import Import, sources
from memd.profile.reading import Reading
from memd.profile.redacting import without_stubs
from memd.profile.values import Caller, Limits, Mutation, Target, TargetChange, Undone
from memd.profile.work import Invert, SetEntries, Work, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memd.config import ProfileSettings
    from memd.profile.history import Selector
    from memd.profile.inverse import Taken
    from memd.profile.memory_store import MemoryStore
    from memd.profile.scans import Scans
    from memd.profile.values import Committed
    from memd.profile.work import Plan

EMPTY: Mapping[Target, int] = MappingProxyType({})


class Profile(Reading):
    """One profile. ``dir`` is the configured directory; profiles that resolve to the same files share a writer."""

    def __repr__(self) -> str:
        return f"<Profile {self.name} in {self.dir}: revisions {self.head()[:2]}>"

    def reconfigure(self, settings: ProfileSettings, scans: Scans) -> None:
        """Use other settings from now on: limits, rules, and which stores are on; the directory stays."""
        self.settings = settings
        self.guard.approval, self.guard.scans = to_builtins(settings.approval), scans
        for target, store in self.stores.items():
            store.limits = Limits(getattr(settings.limits, target), settings.limits.near_percent)
            store.enabled = getattr(settings.stores, target)
            store.publish()
            self._refresh(store)

    # -- changes ------------------------------------------------------------------------------------------------

    def submit(self, mutation: Mutation) -> Ticket:
        """Queue a change to one store. The ticket's result is ``Committed``."""
        return self._queue(
            Edit(self.stores[mutation.target], mutation, self.guard),
            mutation.caller,
            mutation.request_id,
            mutation.fingerprint,
        )

    def answered(self, request_id: str, fingerprint: bytes) -> Ticket | None:
        """The answer of a change that was asked for under this id before; None if none was.

        Raises:
            Conflict: Something else was asked for under it.
        """
        return self._repeat(request_id, fingerprint)

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
            SetEntries(self.stores[target], "wipe", (), caller, if_revision, self.guard),
            caller,
            request_id,
            fingerprint,
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
        marks = {record.revision: record.undone_by for record in records}
        if redo:
            marks.update((number, record.revision) for record in records for number in record.undoes)
        kind = "redo" if redo else "undo"
        return Invert(kind, caller, by_store, originals, if_revision, before, self.guard, marks)

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
        return SetEntries(self.stores[target], "restore", document.entries, caller, if_revision, self.guard)

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
        return Import(stores, caller, if_revisions, preview, wanted.notices, self.guard)

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
