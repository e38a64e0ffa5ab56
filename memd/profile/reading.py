"""Reading: everything about a profile that changes nothing in its stores.

What comes in: what the stores publish, questions. What goes out: states with what the rules say about them, history, events. What
must not be here: changes (``profile``), wire types.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from memd.profile.approvals import Approvals
from memd.profile.history import ANY, EXPLAIN_LIMIT, Chosen, Explanation, History, RevisionRow
from memd.profile.prescan import Prescan
from memd.profile.scans import verdict
from memd.profile.views import Views
from memd.store.queries import RevisionFilter
from memd.store.records import EventRecord, Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from memd.config import ProfileSettings
    from memd.profile.entries import Entry
    from memd.profile.means import Means
    from memd.profile.memory_store import MemoryStore
    from memd.profile.scans import Findings, Scans, Verdict
    from memd.profile.values import StoreState, Target, TargetChange

LOOK_EVERY_S = 0.01
"""A look for outside edits this recent is good enough for a read: a stat on every read costs a quarter of throughput."""
LOOK_WAIT_S = 0.5
"""How long a read waits for outside edits that are there to be taken in; then it answers from what is published."""


class Reading:
    """The reading half of a profile."""

    def __init__(self, settings: ProfileSettings, means: Means) -> None:
        self.name = settings.name
        self.dir = settings.dir
        self.settings = settings
        self.guard = means.guard
        self.stores = means.stores
        self.events = means.events
        self.writer = means.writer
        self._requests = means.requests
        self._clock = means.clock
        self._history = History(self.name, list(self.stores.values()), means.writer.committer)
        self._views = Views(means.guard, means.stores)
        self.approvals = Approvals(means, view=self.state, refreshed=self._refresh)
        self._looked_at = float("-inf")
        self._looking = False  # a thread looks at the files; on a disk that hangs it may do so for long

    def state(self, target: Target) -> StoreState:
        """The published state of a store with what the rules say about it; never waits."""
        return self._views.state(target)

    def head(self) -> tuple[int, int, int]:
        """What changes when something that is read changes: the revisions of both stores, and what is withheld."""
        views = self._views
        return (views.state("memory").revision, views.state("user").revision, views.version)

    def kept_out(self, target: Target, text: str) -> str | None:
        """The rule that keeps a text which is no longer in a store out of prompts, whoever wrote it; None if none does."""
        return self.guard.withheld_by(text, "", self.stores[target].approved)

    def mask(self, text: str) -> str:
        """The text with its secrets masked, for wherever the past is shown."""
        return self.guard.scans.masked(text)

    def masking_is_slow(self, texts: Sequence[str]) -> bool:
        """True if masking all of these would hold up the event loop."""
        return self.guard.scans.is_slow(texts)

    def mask_all(self, texts: Sequence[str]) -> list[str]:
        """Texts with their secrets masked, for copies of conversations: nothing of them is remembered here."""
        return self.guard.scans.mask_all(texts)

    async def masked(self, texts: Sequence[str]) -> list[str]:
        """The same in a thread."""
        return await self.writer.runner.run(self.guard.scans.mask_all, texts)

    async def check(self, text: str) -> tuple[Findings, Verdict]:
        """What the rules say about a text that is not in memory; nothing of it is kept."""
        scans = self.guard.scans
        run = self.writer.runner.run if scans.is_slow((text,)) else None
        found = (await run(scans.scan_all, (text,)) if run else scans.scan_all((text,)))[text]
        return found, verdict(found)

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

    async def scan(self, scans: Scans) -> None:
        """Find out what some rules say about every entry, in a thread if that takes long."""
        texts = [entry.text for store in self.stores.values() for entry in store.document.entries]
        await Prescan(self.writer.runner).texts(scans, scans.unknown(texts))

    async def _scan_past(self, rows: Sequence[RevisionRow], entries: Iterable[Entry] = ()) -> None:
        """Scan what is about to be shown with its secrets masked, in a thread if that takes long."""
        stored = [text for row in rows for change in row.record.changes for text in (change.before, change.after)]
        texts = [text.decode("utf-8", "surrogateescape") for text in stored if text is not None]
        texts += [row.record.reason for row in rows if row.record.reason]
        scans = self.guard.scans
        found = [*texts, *(entry.text for entry in entries)]
        await Prescan(self.writer.runner).texts(scans, scans.unknown(found))

    def begin(self) -> None:
        """Follow what the stores publish from now on, and tell what is withheld."""
        for store in self.stores.values():
            store.watchers.append(partial(self._update, store))
            self._refresh(store)

    def attach(self) -> None:
        """A client is connected: its files are polled, and its first read looks at them.

        A command that runs once has just connected, and whoever typed it may have edited the file a moment before.
        """
        self.writer.attached += 1
        self._looked_at = float("-inf")

    def detach(self) -> None:
        """A client is gone."""
        self.writer.attached -= 1

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
        rows, following = await self._history.page(wanted, limit=limit, entry=chosen.entry)
        await self._scan_past(rows)
        return rows, following

    async def show_revision(self, revision: int) -> tuple[RevisionRow, dict[Target, tuple[Entry, ...]]]:
        """A revision and what stood in both stores after it.

        Raises:
            NoSuchRevision: Unknown or pruned.
        """
        row = await self._history.revision(revision)
        entries: dict[Target, tuple[Entry, ...]] = {}
        for target, store in self.stores.items():
            entries[target] = (await self._history.document_at(store, revision)).entries
        await self._scan_past((row,), (entry for found in entries.values() for entry in found))
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
        text, changes = await self._history.diff(self.stores[target], from_, upto)
        said = [one for item in changes for one in (item.change.before, item.change.after) if one is not None]
        scans = self.guard.scans
        await Prescan(self.writer.runner).texts(scans, scans.unknown([text, *said]))
        return text, changes

    async def explain(self, text: str) -> list[Explanation]:
        """What became of a text, newest first within each kind."""
        await self.writer.committer.settle()  # refusals ride with a group that nobody waits for
        found = [*self.approvals.explain(text.strip()), *await self._history.explain(text)][:EXPLAIN_LIMIT]
        scans = self.guard.scans
        await Prescan(self.writer.runner).texts(scans, scans.unknown(one.reason for one in found))
        return found

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

    def _refresh(self, store: MemoryStore) -> None:
        """What the rules or a person say about the entries of a store is another."""
        self._update(store, anew=True)

    def _update(self, store: MemoryStore, *, anew: bool = False) -> None:
        """A store has published: look at its entries, and tell the user what is kept out of prompts."""
        news = self._views.update(store.target, anew=anew)
        self.approvals.changed(store.target)
        if news is not None:
            withheld = [{"id": entry, "rule": rule} for entry, rule in news.withheld.items()]
            data = {"entries": withheld, "released": list(news.released)}
            self.emit("memory.withheld", target=store.target, data=data)
