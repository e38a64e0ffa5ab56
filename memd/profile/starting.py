"""Starting: what the journal and the file say about a store, before its writer begins.

What comes in: a store that was located. What goes out: the same store with its head, and its file rolled forward where
a crash left an older state of ours. What must not be here: adoption of outside edits (the writer's first cycle).
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memd.errors import StoreError
from memd.profile.entries import Document
from memd.profile.memory_store import Foreign, document_from
from memd.store import queries
from memd.store.place import in_git_work_tree
from memd.store.proposals import approved_of
from memd.store.records import StoreRow
from memd.store.recovery import LastRun, classify, torn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memd.profile.memory_store import MemoryStore
    from memd.store.committer import Committer
    from memd.store.files import Image
    from memd.store.journal import Journal
    from memd.store.threads import Runner

RENDERINGS = 1000


async def recover(store: MemoryStore, committer: Committer, runner: Runner, last_run: LastRun) -> None:
    """Load a store's head and bring its file in line with it if a crash is why they differ.

    A file that cannot be read is left alone; the writer's first cycle deals with it and tells.
    """
    journal = committer.journal
    await committer.query(_load, journal, store)
    try:
        image = await runner.run(store.files.read, store.place)
    except StoreError:
        store.publish()
        return
    if store.moved:
        if image.data is None:
            store.publish()
            return
        await committer.query(_take_place, journal, store)
    if (image.data or b"") != (store.data or b"") and store.revision:
        known = await committer.query(_known, journal, store)
        finding = classify(
            image.data,
            known.renderings,
            last_run,
            before=known.before,
            synced=known.synced,
            in_place=image.in_place,
        )
        if finding == "roll_forward":
            image = await runner.run(_roll_forward, store, image)
    store.image = image
    store.in_work_tree = store.target == "user" and await runner.run(in_git_work_tree, store.place.directory)
    await _judge_leftovers(store, committer, runner, same_boot=last_run.same_boot)
    store.publish()


@dataclass(frozen=True, slots=True)
class Known:
    """Bytes the journal has for a store; see ``recovery.classify`` for the fields."""

    renderings: Sequence[bytes] = ()
    before: Sequence[bytes | None] = ()
    synced: int = 0


def _load(journal: Journal, store: MemoryStore) -> None:
    """Set the store up from the journal, or make it known there."""
    place = store.place
    row = journal.store(place.directory, place.name)
    if row is None:
        row = StoreRow(
            id=0, directory=place.directory, name=place.name, device=place.device, inode=place.inode, checkpoint=0
        )
        store.id = journal.put_store(row)
        return
    store.id = row.id
    store.checkpoint = row.checkpoint
    store.used_ids = journal.entry_ids(row.id)
    store.approved = approved_of(journal, row.id)
    store.take_rendering(journal.head(row.id))
    # Until a file is seen in it, another directory under the old name may be a disk that is not mounted.
    store.moved = (row.device, row.inode) != (place.device, place.inode) and bool(store.document.entries)


def _take_place(journal: Journal, store: MemoryStore) -> None:
    """The file is in another directory than it was, as after a restored backup."""
    place = store.place
    journal.put_store(
        StoreRow(
            id=store.id,
            directory=place.directory,
            name=place.name,
            device=place.device,
            inode=place.inode,
            checkpoint=store.checkpoint,
        )
    )
    store.moved = False


def _known(journal: Journal, store: MemoryStore) -> Known:
    """Everything a file that is not the head may be instead."""
    checkpoint = store.checkpoint
    found = queries.recent_renderings(journal, store.id, since_us=0, checkpoint=checkpoint, limit=RENDERINGS)
    records = [record for record in found if record.revision <= store.revision]
    previous = records[1] if len(records) > 1 else None
    last_group = previous.revision if previous else 0
    merged = [data for revision, _, data in queries.preimages(journal, store.id) if revision > last_group]
    return Known(
        [record.data for record in records if record.revision >= checkpoint or record.revision == store.revision],
        [previous.data if previous else None, *merged],
        synced=0 if not checkpoint else 1 if checkpoint < store.revision else 2,
    )


def _roll_forward(store: MemoryStore, image: Image) -> Image:
    """Put the head into the file. Blocks. A failure leaves the file; the writer's first cycle tells."""
    data = store.data or b""
    try:
        if image.in_place:
            store.files.rewrite(store.place, data)
        else:
            temp = store.files.write_temp(store.place, data, image)
            # What came between reading and swapping stays as a leftover, which is judged next.
            store.files.swap(store.place, temp, exists=image.data is not None, expected=image.data).close()
        return store.files.read(store.place)
    except StoreError:
        return image


async def _judge_leftovers(store: MemoryStore, committer: Committer, runner: Runner, *, same_boot: bool) -> None:
    """Take in what a crash left beside the file; what is known already is to be removed."""
    for path, data in await runner.run(store.files.leftovers, store.place):
        if data is None or path in store.held_paths():
            continue  # it cannot be read, and stays where it is; or it is looked after
        signature = await runner.run(store.files.signature, replace(store.place, name=os.path.basename(path)))
        foreign = await _judge_leftover(store, committer, data, signature.mtime_ns // 1000, same_boot=same_boot)
        if foreign is None:
            store.leftovers.append(path)
        else:
            foreign.path = path
            store.take_in(foreign)


async def _judge_leftover(
    store: MemoryStore, committer: Committer, data: bytes, written_us: int, *, same_boot: bool
) -> Foreign | None:
    """A temp file a crash left: bytes the journal does not know were displaced from the file and are an outside edit."""
    if not data or data in (store.data, store.image.data):
        return None
    journal = committer.journal
    digest = hashlib.sha256(data).digest()
    if await committer.query(queries.has_rendering, journal, store.id, digest):
        return None
    known = await committer.query(_known, journal, store)
    if not same_boot and any(torn(data, rendering) for rendering in known.renderings):
        return None  # a power loss made it of one of ours
    before = await committer.query(queries.rendering_then, journal, store.id, written_us)
    base = document_from(before) if before is not None else Document()
    return Foreign(base, data, written_us)
