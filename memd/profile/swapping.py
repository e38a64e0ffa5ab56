"""Swapping: the file half of a group commit, and what comes to light after it.

What comes in: a planned group. What goes out: temp files, swapped files, foreign bytes to adopt, compensating revisions.
What must not be here: the queue, planning. Only the writer task uses it; blocking calls go through the runner.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import trio
from msgspec.structs import replace

from memd.errors import IoFailure, NoSpace, StoreError
from memd.profile.adoption import BUILDING_MOST_S, Older, identify, would_drop
from memd.profile.draft import change_data, change_record
from memd.profile.entries import Document, parse
from memd.profile.inverse import difference
from memd.profile.memory_store import SECOND_LOOK_S, Foreign, Lingering, document_from, entry_records
from memd.profile.values import OUTSIDE
from memd.store import queries
from memd.store.files import Displaced
from memd.store.records import EventRecord, Part, RenderingRecord, RevisionRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from memd.profile.conditions import Conditions
    from memd.profile.draft import Draft
    from memd.profile.group import Group
    from memd.profile.memory_store import MemoryStore
    from memd.store.clock import Clock
    from memd.store.committer import Committer
    from memd.store.files import Image, Signature
    from memd.store.journal import Journal
    from memd.store.threads import Runner

OLDER_LIMIT = 1000
OLDER_US = 86_400_000_000
"""An outside writer is taken to have started from one of this many renderings, this old at most."""
_Looked = tuple[bytes | None, int]
"""What a second look finds: the bytes, and when they were written."""
BUILDING_LOOK_S = 2.0
"""A file that somebody was still building when it was displaced is complete if it has not changed for this long."""
LINGERING_LIMIT = 512
"""Displaced files kept open per store; beyond that the oldest gets its second look early."""


class Swapper:
    """Writes temp files, swaps them in, and takes back what could not be swapped."""

    def __init__(self, committer: Committer, runner: Runner, clock: Clock, conditions: Conditions) -> None:
        self._committer = committer
        self._conditions = conditions
        self._runner = runner
        self._clock = clock

    def __repr__(self) -> str:
        return f"<Swapper for {self._committer!r}>"

    # -- before the journal -------------------------------------------------------------------------------------

    async def write_temps(self, group: Group) -> tuple[dict[MemoryStore, str], dict[MemoryStore, StoreError]]:
        """Write the temp file of every draft that changes its file.

        Returns:
            The temp files, or the stores that failed; after a failure no temp file is left.
        """
        temps: dict[MemoryStore, str] = {}
        failures: dict[MemoryStore, StoreError] = {}
        for store, draft in group.drafts.items():
            draft.data = draft.finish()
            if draft.data is None or draft.image.in_place:
                continue
            try:
                temps[store] = await self._write_temp(store, draft, draft.data)
            except StoreError as error:
                error.outcome = "none"
                failures[store] = error
        if failures:
            await self.discard(temps)
        return temps, failures

    async def _write_temp(self, store: MemoryStore, draft: Draft, data: bytes) -> str:
        """Write it; on a full disk the reserve is spent if the draft only removes."""
        reserve = self._committer.reserve
        try:
            return await self._runner.run(store.files.write_temp, store.place, data, draft.image)
        except NoSpace:
            if not draft.part.only_removes or reserve is None or not await self._runner.run(reserve.spend):
                raise
        return await self._runner.run(store.files.write_temp, store.place, data, draft.image)

    async def discard(self, temps: Mapping[MemoryStore, str]) -> None:
        """Remove temp files whose group did not become durable."""
        for store, path in temps.items():
            await self._runner.run(store.files.discard, path)

    async def older_renderings(self, store: MemoryStore) -> list[Older]:
        """What an outside writer may have started from, newest first, without the head.

        That is what memd wrote, and what others saved that memd merged with something else at once.
        """
        since = self._clock.now_us() - OLDER_US
        journal = self._committer.journal
        records, saved = await self._committer.query(_recent, journal, store.id, since, store.checkpoint)
        return await self._runner.run(_as_older, records, store.revision, saved)

    # -- after the journal --------------------------------------------------------------------------------------

    async def swap_all(self, group: Group, temps: Mapping[MemoryStore, str]) -> dict[MemoryStore, StoreError]:
        """Swap every file of the group in; returns the stores whose swap failed and was taken back."""
        failures: dict[MemoryStore, StoreError] = {}
        for store, draft in group.drafts.items():
            if draft.data is None:
                if draft.part.revisions:
                    store.image = draft.image
                continue
            try:
                displaced, signature = await self._runner.run(_swap, store, temps.get(store), draft)
            except StoreError as error:
                if error.outcome == "unknown":
                    store.broken = failures[store] = error
                else:
                    failures[store] = await self._compensate(store, draft, group, error)
            else:
                store.image = replace(draft.image, data=draft.data, signature=signature)
                self._judge(store, draft, displaced)
        return failures

    def _judge(self, store: MemoryStore, draft: Draft, displaced: Displaced) -> None:
        """Compare what was displaced with what was expected, and keep it for a second look."""
        now = trio.current_time()
        if displaced.data is None:
            return
        seen, believed = draft.image.data or b"", draft.believed
        revive = believed.wrongly(draft.image.signature.inode, seen, now) if believed else frozenset()
        if draft.unfinished:
            until = now + BUILDING_MOST_S
            due = now + BUILDING_LOOK_S
            store.linger(Lingering(due, displaced, displaced.data, draft.now_us, store.document, until, revive))
            return
        if displaced.data != seen:
            base = identify(parse(seen), draft.document)
            if not would_drop(
                base, displaced.data, store.gone
            ):  # else: what it is meant to become shows at the second look
                store.take_in(
                    Foreign(base, displaced.data, displaced.written_us(), displaced.path, draft.now_us, revive)
                )
                seen = displaced.data
                displaced.path = ""  # the name goes once this is durable; what comes later has the descriptor only
        store.linger(Lingering(now + SECOND_LOOK_S, displaced, seen, draft.now_us, revive=revive))

    async def second_looks(self, store: MemoryStore, now: float) -> None:
        """Look once more at the displaced files that are due, in one hop; bytes that came since are outside edits.

        One that has changed is still being written: it is looked at again a second later, for as long as it changes.
        """
        due: list[Lingering] = []
        while store.lingering and (store.lingering[0].due <= now or len(store.lingering) > LINGERING_LIMIT):
            due.append(store.lingering.popleft())
        if due:
            found = await self._runner.run(_look, due, True)
            for lingering, (data, written_us) in zip(due, found, strict=True):
                still_built = lingering.building is not None and data != lingering.seen and now < lingering.until
                if not still_built:
                    self._note_late(store, lingering, data, written_us)
                if data is not None and lingering.displaced.descriptor >= 0:
                    store.linger(_once_more(lingering, data, now, still_built))

    def last_looks(self, store: MemoryStore) -> None:
        """At the end: look at every displaced file now and close it."""
        due = list(store.lingering)
        store.lingering.clear()
        for lingering, (data, written_us) in zip(due, _look(due, False), strict=True):
            self._note_late(store, lingering, data, written_us)

    def _note_late(self, store: MemoryStore, lingering: Lingering, data: bytes | None, written_us: int) -> None:
        """What a displaced file turned out to be: an edit to adopt, or of no use any longer."""
        path = lingering.displaced.path
        if data is None:
            return  # it cannot be read now: if it still has a name the next start judges it
        if lingering.building is not None:
            store.take_in(Foreign(lingering.building, data, written_us, path, lingering.after_us, lingering.revive))
        elif data != lingering.seen:
            base = identify(parse(lingering.seen), store.document)
            revive = lingering.revive if data.startswith(lingering.seen) else frozenset()
            store.take_in(Foreign(base, data, written_us, path, lingering.after_us, revive))
        elif path:
            store.leftovers.append(path)

    async def discard_leftovers(self, store: MemoryStore) -> None:
        """Remove displaced files that were kept by name and are of no use any longer."""
        leftovers, store.leftovers = store.leftovers, []
        for path in leftovers:
            await self._runner.run(store.files.discard, path)

    async def _compensate(self, store: MemoryStore, draft: Draft, group: Group, error: StoreError) -> StoreError:
        """Take a journaled group back for one store whose file could not be swapped in.

        Returns the error for its callers: definite if the compensating revision is durable; otherwise the store stops
        writing, since memory and file can no longer be told to agree.
        """
        revision = self._committer.take_revision()
        changes = difference(draft.document, store.document)
        now_us = self._clock.now_us()
        part = Part(
            revisions=[
                RevisionRecord(
                    revision=revision,
                    store=store.id,
                    us=now_us,
                    kind="compensate",
                    origin="outside",
                    reason=error.message,
                    changes=[change_record(change) for change in changes],
                    undoes=[record.revision for record in draft.part.revisions],
                )
            ],
            renderings=[
                RenderingRecord(
                    store=store.id,
                    revision=revision,
                    us=now_us,
                    data=store.data or b"",
                    entries=entry_records(store.document),
                )
            ],
            events=[
                EventRecord(
                    us=now_us, topic=topic, profile=profile, target=store.target, revision=revision, id=about, data=data
                )
                for profile in store.profiles
                for topic, about, data in _taken_back(draft, change_data("compensate", OUTSIDE, changes))
            ],
            proposals=draft.proposals_before,
            undone=[*draft.marks_before, *((record.revision, revision) for record in draft.part.revisions)],
            forget=[(a.work.profile, a.work.request_id) for a in group.answers_about(store) if a.work.request_id],
        )
        try:
            await self._committer.commit(part, lambda: self._conditions.expect(part.events))
        except StoreError:
            store.broken = IoFailure(
                f"{store.place.path} could not be replaced and the change could not be taken back either: restart memd, "
                "which recovers from the journal",
                path=store.place.path,
                outcome="unknown",
            )
            return store.broken
        self._conditions.release(part.events)  # they come behind those of the group
        store.revision = revision
        store.used_ids.update(entry for _, entry in draft.part.entry_ids)
        error.outcome = "none"
        return error

    async def checkpoint(self, store: MemoryStore) -> int:
        """Fsync the file and its directory, then record it. Returns the number of fsyncs."""
        revision = store.revision
        try:
            await self._runner.run(store.files.checkpoint, store.place)
        except StoreError:
            # Never the same descriptor: the next try, after the idle time, opens it anew.
            store.first_unsynced = store.last_commit = trio.current_time()
            return 1
        store.checkpoint = revision
        self._committer.add(Part(checkpoints=[(store.id, revision)]))
        return 2


def _swap(store: MemoryStore, temp: str | None, draft: Draft) -> tuple[Displaced, Signature]:
    image, data = draft.image, draft.data or b""
    if temp is None:
        _rewrite(store, data, image)
        displaced = Displaced(None)
    else:
        expected = None if draft.unfinished else image.data  # what is not in the journal keeps its name
        displaced = store.files.swap(store.place, temp, exists=image.data is not None, expected=expected)
    return displaced, store.files.signature(store.place)


def _rewrite(store: MemoryStore, data: bytes, image: Image) -> None:
    """Rewrite the file where it is; half a rewrite is put back, or told as ``outcome`` "unknown"."""
    try:
        store.files.rewrite(store.place, data)
    except StoreError as error:
        try:
            store.files.rewrite(store.place, image.data or b"")
        except StoreError:
            error.outcome = "unknown"
        raise


def _taken_back(draft: Draft, change: dict[str, Any]) -> Iterator[tuple[str, str | None, dict[str, Any]]]:
    """What is told of a group that was taken back: topic, id and data of each event."""
    yield "memory.changed", None, change
    for record in draft.proposals_before:
        yield "approval.settled", record.id, {"state": record.state}


def _look(due: Sequence[Lingering], keep_changing: bool) -> list[_Looked]:
    """What the displaced files hold now; closed, but for those that have changed and are to be kept. Blocks."""
    found = []
    for item in due:
        data = item.displaced.look_again()
        found.append((data, item.displaced.written_us()))
        if data is None or data == item.seen or not keep_changing:
            item.displaced.close()
    return found


def _once_more(lingering: Lingering, data: bytes, now: float, still_built: bool) -> Lingering:
    """The same file, to be looked at again; its name went with what was noted, if anything was."""
    if still_built:
        lingering.due, lingering.seen = now + BUILDING_LOOK_S, data
        return lingering
    displaced = Displaced(data, lingering.displaced.descriptor)
    return Lingering(now + SECOND_LOOK_S, displaced, data, lingering.after_us, revive=lingering.revive)


def _recent(
    journal: Journal, store: int, since_us: int, checkpoint: int
) -> tuple[list[RenderingRecord], list[tuple[int, int, bytes]]]:
    """Renderings and pre-images since a time, but for those of groups that were taken back.

    What such a group adopted is still in the file, and has to be adopted again. Were its pre-image a base, the file would
    look like one that brings nothing, and what a person saved would go.
    """
    back = queries.taken_back(journal, store)
    records = queries.recent_renderings(journal, store, since_us=since_us, checkpoint=checkpoint, limit=OLDER_LIMIT)
    saved = queries.preimages(journal, store)
    return (
        [record for record in records if record.revision not in back],
        [found for found in saved if found[1] >= since_us and found[0] not in back],
    )


def _as_older(records: Sequence[RenderingRecord], head: int, saved: Sequence[tuple[int, int, bytes]]) -> list[Older]:
    """``saved`` are revisions, times and the bytes that were adopted then; both newest first."""
    found: list[Older] = []
    waiting = deque(saved)
    after = Document()
    for record in records:
        document = document_from(record)
        while waiting and waiting[0][0] > record.revision:
            _, us, data = waiting.popleft()
            found.append(Older(None, identify(parse(data), after, document), us))
        if record.revision != head:
            found.append(Older(record.data, document, record.us))
        after = document
    found.extend(Older(None, identify(parse(data), after), us) for _, us, data in waiting)
    return found
