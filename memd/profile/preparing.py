"""Preparing: lock a store's file, read it, and decide whether what it holds may be believed now.

What comes in: the stores a cycle is about. What goes out: images whose outside locks are held; stores postponed or found
unreadable. What must not be here: planning, writing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

from memd.errors import Busy, Conflict, StoreError, StoreUnreadable
from memd.profile.adoption import Unsettled, looks_cut, would_drop
from memd.profile.foreign import conflict_markers
from memd.profile.memory_store import RETRY_S, UNREADABLE_S
from memd.profile.starting import recover
from memd.store.recovery import LastRun

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from memd.profile.conditions import Conditions
    from memd.profile.draft import Draft
    from memd.profile.memory_store import MemoryStore
    from memd.profile.requests import Requests
    from memd.profile.work import Work
    from memd.store.committer import Committer
    from memd.store.files import Image
    from memd.store.threads import Runner

PLACE_CHECK_S = 1.0
"""Between checks that the directory is still the one that was opened."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A store that is locked and read. ``as_guessed``: its draft holds, and ``temp`` is its temp file if it needs one."""

    image: Image
    as_guessed: bool = False
    temp: str | None = None


class Preparer:
    """Prepares the stores of one writer. A file of a store that is starting is believed without standing still."""

    def __init__(self, committer: Committer, runner: Runner, conditions: Conditions, requests: Requests) -> None:
        self._requests = requests
        self._committer = committer
        self._runner = runner
        self._conditions = conditions
        self._waiting: Iterable[Work] = ()

    def __repr__(self) -> str:
        return f"<Preparer for {self._committer!r}>"

    async def prepare(
        self,
        wanted: Sequence[MemoryStore],
        prepared: dict[MemoryStore, Prepared],
        drafts: Mapping[MemoryStore, Draft],
        queue: Iterable[Work],
    ) -> None:
        """Lock and read stores; those whose files may be believed now join ``prepared``, their locks held.

        The others are postponed (the work that waits for them learns why) or noted as unreadable. Where there is a draft
        that was planned on the file as we left it, and the file is so, its temp file is written in the same hop.
        """
        self._waiting = queue
        if len(wanted) == 1:
            await self._prepare_one(wanted[0], prepared, drafts)
            return
        async with trio.open_nursery() as nursery:
            for store in wanted:
                nursery.start_soon(self._prepare_one, store, prepared, drafts)

    async def _prepare_one(
        self, store: MemoryStore, prepared: dict[MemoryStore, Prepared], drafts: Mapping[MemoryStore, Draft]
    ) -> None:
        now = trio.current_time()
        try:
            if store.reload:
                await self._reload(store)
            # What is missing or has lost entries may be another directory: before that is believed, one looks.
            check_place = now - store.place_checked >= PLACE_CHECK_S or store.unsettled is not None
            found = await self._runner.run(_prepare_in_thread, store, check_place, drafts.get(store))
        except Busy as error:
            self._postpone(store, error, now + RETRY_S)
            return
        except StoreError as error:
            self._note_unreadable(store, error, now)
            return
        if check_place:
            store.place_checked = now
        store.read_at = now
        try:
            ready = self._may_believe(store, found.image, now)
        except StoreUnreadable as error:
            store.lock.release()
            self._note_unreadable(store, error, now)
            return
        if ready:
            prepared[store] = found
            store.failing_since = None
            store.failure = None
        else:
            store.lock.release()

    async def _reload(self, store: MemoryStore) -> None:
        """After a commit of unknown outcome: the journal says what the head is and which requests are done.

        If the group is in it, the file is as a crash before the swap would have left it.
        """
        await recover(store, self._committer, self._runner, LastRun(clean=False, same_boot=True))
        self._requests.load(await self._committer.query(self._committer.journal.requests, 0))
        self._requests.settle_doubts()
        for work in self._waiting:
            self._answer_known(work)
            work.ticket.doubtful = False
        store.reload = False

    def _answer_known(self, work: Work) -> None:
        """A call that was repeated because nobody knew, and is done after all."""
        if work.request_id is None or work.ticket.done:
            return
        try:
            known = self._requests.answered(work.profile, work.request_id, work.fingerprint, 0)
        except Conflict as error:
            work.ticket.fail(error)
            return
        if known is not None:
            work.ticket.finish(known.result)

    def _postpone(self, store: MemoryStore, error: StoreError, retry_at: float) -> None:
        store.retry_at = retry_at
        for work in self._waiting:
            if store in work.plan.stores:
                work.ticket.blocked_by = error

    def _note_unreadable(self, store: MemoryStore, error: StoreError, now: float) -> None:
        """Retry an unreadable file for a moment; then its callers hear of it and the last good state is served."""
        if store.failing_since is None:
            store.failing_since = now
        if now - store.failing_since < UNREADABLE_S:
            self._postpone(store, error, now + RETRY_S)
            return
        store.failure = error
        store.attention = False
        store.unsettled = None
        self._conditions.publish(store)

    def _may_believe(self, store: MemoryStore, image: Image, now: float) -> bool:
        """True if the file is as we left it, or what is in it may be adopted now (or is ``unfinished``: put aside)."""
        found = image.data or b""
        store.unfinished = False
        if found == (store.data or b""):
            store.unsettled = None
            store.attention = bool(store.foreign)
            store.image = image
            return True
        if conflict_markers(found.decode("utf-8", "surrogateescape")):
            msg = f"{store.place.path} has Git conflict markers in it: resolve them; until then the last good state is served"
            raise StoreUnreadable(
                msg,
                path=store.place.path,
            )
        if store.believed is not None:
            store.believed = store.believed.observe(image.signature.inode, found, now)
        if store.starting or not would_drop(store.document, image.data, store.gone):
            store.unsettled = None
            return True
        return self._has_settled(store, image, now)

    def _has_settled(self, store: MemoryStore, image: Image, now: float) -> bool:
        """True if a file that would drop entries has stood still, or its commits have waited long enough.

        If it is still growing they go on without it: the swap puts it aside, and it is adopted once it is complete.
        """
        if store.unsettled is None:
            store.unsettled = Unsettled(image.data, now, now)
        store.unsettled.observe(image.data, now)
        store.unsettled.cut = looks_cut(store.document, image.data, store.gone)
        settles_at = store.unsettled.settles_at()
        if now >= settles_at:
            store.unsettled = None
            return True
        store.attention = True
        store.retry_at = min(settles_at, now + RETRY_S)
        store.unfinished = store.unsettled.overdue(now) and not image.in_place
        return store.unfinished


def _prepare_in_thread(store: MemoryStore, check_place: bool, draft: Draft | None) -> Prepared:
    """Lock, read, compare, and write what was planned on the file as we left it. Blocks."""
    image = store.prepare(check_place=check_place)
    if draft is None or image.in_place or (image.data or b"") != (store.data or b""):
        return Prepared(image)
    if draft.data is None:
        return Prepared(image, as_guessed=True)
    try:
        return Prepared(image, as_guessed=True, temp=store.files.write_temp(store.place, draft.data, image))
    except StoreError:
        return Prepared(image)  # planned anew: the failure is met again where it is dealt with
