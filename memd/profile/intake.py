"""Intake: what others left in the files of a group's stores becomes part of its drafts, before anything is planned on them.

What comes in: drafts of stores whose files may be believed. What goes out: the same drafts with outside revisions, events
and notices. What must not be here: when bytes may be believed (``preparing``), what they become (``adoption``).

Finding out what a writer started from means comparing a file with a thousand others, tens of milliseconds for a large one:
that is done in a thread. Recording what came of it is done by the writer's task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

from memd.errors import StoreError
from memd.profile.adoption import Believed, Older, adopt, needs_base
from memd.profile.values import OUTSIDE
from memd.profile.work import notice

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from memd.profile.draft import Draft
    from memd.profile.entries import Document
    from memd.profile.memory_store import Foreign, MemoryStore
    from memd.profile.merge import Merged
    from memd.profile.swapping import Swapper
    from memd.store.files import Image
    from memd.store.threads import Runner

FOREIGN_AGE_US = 2_000_000
"""What a swap displaced comes to light within this time, the second look and its slack, unless it is known better."""


@dataclass(frozen=True, slots=True)
class Taken:
    """One adoption: the merge, the bytes it is of, whether these have to be kept whatever it says, what it makes of the file."""

    merged: Merged
    data: bytes
    keep: bool = False
    believed: Believed | None = None


class Intake:
    """Takes in for one writer."""

    def __init__(self, swapper: Swapper, runner: Runner) -> None:
        self._swapper = swapper
        self._runner = runner

    def __repr__(self) -> str:
        return f"<Intake with {self._runner!r}>"

    async def older_renderings(
        self, images: Mapping[MemoryStore, Image], failed: dict[MemoryStore, StoreError]
    ) -> dict[MemoryStore, list[Older]]:
        """What is needed to adopt; a store for which the journal cannot tell joins the ``failed``."""
        found: dict[MemoryStore, list[Older]] = {}
        for store, image in images.items():
            changed = _says_something(store, image) and needs_base(store.document, image.data)
            if changed or any(needs_base(foreign.base, foreign.data) for foreign in store.foreign):
                try:
                    found[store] = await self._swapper.older_renderings(store)
                except StoreError as error:
                    error.outcome = "none"
                    failed[store] = error
                    store.postpone(trio.current_time())
        return found

    async def take(self, drafts: Mapping[MemoryStore, Draft], older: Mapping[MemoryStore, Sequence[Older]]) -> None:
        """Take in what came to light after earlier swaps, then what the files hold now."""
        for store, draft in drafts.items():
            if store.foreign or _says_something(store, draft.image):
                for taken in await self._runner.run(_adoptions, draft, older.get(store, ()), trio.current_time()):
                    _record(draft, taken)


def _says_something(store: MemoryStore, image: Image) -> bool:
    """True if the file is not as we left it, and is to be believed."""
    return not store.unfinished and (image.data or b"") != (store.data or b"")


def _adoptions(draft: Draft, older: Sequence[Older], now: float) -> list[Taken]:
    """All adoptions of one store, each on top of the one before. Takes long; only reads the draft, but for the ids it gives out."""
    return list(_each(draft, older, now))


def _each(draft: Draft, older: Sequence[Older], now: float) -> Iterator[Taken]:
    store, head = draft.store, draft.document
    for foreign in store.foreign:
        merged = _merge_foreign(draft, head, foreign, older)
        if merged.changes:
            head = merged.document
            # A crash before its file is removed must not have it adopted once more, from another base.
            yield Taken(merged, foreign.data, keep=True)
    found = draft.image.data or b""
    if _says_something(store, draft.image):
        inode, before = draft.image.signature.inode, draft.believed
        revive = before.wrongly(inode, found, now) if before else frozenset()
        merged = adopt(
            head,
            found,
            older=older,
            changed_us=draft.image.signature.ctime_ns // 1000 or draft.now_us,
            stamp=draft.stamp("outside"),
            new_id=draft.new_id,
            last=store.document,
            revive=revive,
        )
        dropped = revive.union(entry.id for entry in merged.dropped)
        yield Taken(merged, found, believed=Believed(inode, found, now, dropped))


def _merge_foreign(draft: Draft, head: Document, foreign: Foreign, older: Sequence[Older]) -> Merged:
    """What a swap displaced. Whoever wrote it may have read what was displaced or anything older, but nothing that came after.

    Where it is not known when it was displaced, it may have been the head.
    """
    store, after_us = draft.store, foreign.after_us
    if not after_us:
        older = [Older(store.data or b"", store.document), *older]
    return adopt(
        head,
        foreign.data,
        older=[rendering for rendering in older if not after_us or rendering.us < after_us],
        changed_us=foreign.after_us or draft.now_us - FOREIGN_AGE_US,
        stamp=draft.stamp("outside"),
        new_id=draft.new_id,
        last=foreign.base,
        written_us=foreign.written_us,
        revive=foreign.revive,
    )


def _record(draft: Draft, taken: Taken) -> None:
    merged = taken.merged
    draft.record("outside", merged.document, merged.changes, OUTSIDE)
    draft.adopted = True
    draft.believed = taken.believed or draft.believed
    if merged.lossy or taken.keep:
        draft.keep(taken.data)
    dropped = [entry.id for entry in merged.dropped]
    kept = [entry.id for entry in merged.kept]
    draft.emit("outside.adopted", data={"dropped": dropped, "kept": kept, "changes": len(merged.changes)})
    draft.notices.extend(merged.notices)
    draft.notices.append(
        notice(
            "outside_adopted",
            f"{draft.store.place.name} was changed by another program; that was taken in first ({_count(merged)}).",
            revision=draft.revision,
            dropped=dropped,
            kept=kept,
        )
    )


def _count(merged: Merged) -> str:
    """How much it changed, and what stayed although the file did not have it: who meant to delete it has to hear."""
    count, kept = len(merged.changes), len(merged.kept)
    text = "no entry changed" if not count else "1 change" if count == 1 else f"{count} changes"
    stay = "1 entry written since it was read stays" if kept == 1 else f"{kept} entries written since it was read stay"
    return f"{text}; {stay}" if kept else text
