"""Drafts: the next state of a store while a group is planned.

What comes in: a store's head, adopted bytes, planned changes. What goes out: records for the journal and the bytes for
the file. What must not be here: I/O, tasks, tickets. A draft that is thrown away leaves the store as it was.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from memd.profile.content import text_hash
from memd.profile.entries import render
from memd.profile.memory_store import entry_records
from memd.profile.proposals import to_record
from memd.profile.values import Caller, Notice, Stamp, Usage, usage_of
from memd.store.records import ChangeRecord, EventRecord, Part, PreimageRecord, RenderingRecord, RevisionRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from memd.profile.entries import Document
    from memd.profile.memory_store import MemoryStore
    from memd.profile.proposals import Proposal, Proposals
    from memd.profile.values import Change, Target
    from memd.store.files import Image
    from memd.store.records import ProposalRecord

ID_LENGTH = 6
"""Characters of an entry id: 30 bits, which a store of a thousand entries fills without trouble."""
PREIMAGE_LIMIT = 1024 * 1024


class Draft:
    """One store's tentative next state.

    ``document`` and ``revision`` run ahead of the store's while operations are planned on top of each other.
    """

    def __init__(self, store: MemoryStore, image: Image, now_us: int, take_revision: Callable[[], int]) -> None:
        self.store = store
        self.image = image
        self.now_us = now_us
        self.document: Document = store.document
        self.revision = store.revision
        self.part = Part()
        self.notices: list[Notice] = []
        self.data: bytes | None = None
        self.adopted = False
        self.unfinished = store.unfinished  # the file is put aside by the swap, not adopted
        self.believed = store.believed
        self._take_revision = take_revision
        self.staged: list[Proposal] = []
        self.proposals_before: list[ProposalRecord] = []
        self.marks_before: list[tuple[int, int | None]] = []
        self.when_settled: list[Callable[[], None]] = []
        self._new_ids: set[str] = set()
        self._was_near = store.state.usage.near_limit

    def __repr__(self) -> str:
        return f"<Draft of {self.store.place.name} at {self.revision}, {len(self.part.revisions)} revisions>"

    @property
    def target(self) -> Target:
        """The store's target."""
        return self.store.target

    @property
    def usage(self) -> Usage:
        """How full the draft is."""
        return usage_of(self.document.chars, self.store.limits)

    @property
    def approved(self) -> Collection[bytes]:
        """SHA-256 of the texts that a person lets into prompts."""
        added = {digest for _, digest, _ in self.part.approved}
        return self.store.approved | added if added else self.store.approved

    def stamp(self, origin: str) -> Stamp:
        """Time and origin for what is planned now."""
        return Stamp(self.now_us, origin)

    def new_id(self, text: str) -> str:
        """An id that this store has never given out, derived from the text so that it does not depend on chance."""
        number = 0
        while True:
            seed = f"{text}\0{number}" if number else text
            digest = hashlib.sha256(seed.encode("utf-8", "surrogateescape")).digest()
            found = base64.b32encode(digest).decode().lower()[:ID_LENGTH]
            if found not in self.store.used_ids and found not in self._new_ids:
                self._new_ids.add(found)
                return found
            number += 1

    def claim_id(self, entry_id: str) -> bool:
        """True if the id (not ``""``) was never given out here; then it is now, and never again."""
        if not entry_id or entry_id in self.store.used_ids or entry_id in self._new_ids:
            return False
        self._new_ids.add(entry_id)
        return True

    def give_back(self, entry_ids: Iterable[str]) -> None:
        """These ids were given out for entries that were not made after all."""
        self._new_ids.difference_update(entry_ids)

    def approve(self, texts: Iterable[str]) -> None:
        """A person lets these texts into prompts."""
        self.part.approved.extend((self.store.id, text_hash(text), self.now_us) for text in texts)

    def stage(self, proposal: Proposal, proposals: Proposals) -> None:
        """Have a proposal wait for a person; it is in the table once it is durable."""
        record = to_record(proposal)
        self.staged.append(proposal)
        self.part.proposals.append(record)
        # If the group is taken back nobody was told of it: no such proposal may be there then.
        self.proposals_before.append(replace(record, state="withdrawn", settled_us=self.now_us))
        self.when_settled.append(lambda: proposals.put(proposal))
        rules = sorted({one.rule for one in proposal.findings})
        data = {"origin": proposal.origin, "client": proposal.client, "operations": len(proposal.operations)}
        self.emit(
            "approval.staged", session=proposal.session, job=proposal.job, id=proposal.id, data=data | {"rules": rules}
        )

    def settle_proposal(self, before: Proposal, after: Proposal, proposals: Proposals) -> None:
        """Note that a proposal is approved; the table has it once it is durable."""
        self.part.proposals.append(to_record(after))
        self.proposals_before.append(to_record(before))
        self.when_settled.append(lambda: proposals.put(after))
        data = {"state": after.state, "revision": after.revision, **after.settled}
        self.emit("approval.settled", session=after.session, job=after.job, id=after.id, data=data)

    def mark(self, undone: Iterable[tuple[int, int | None]], before: Mapping[int, int | None]) -> None:
        """Mark revisions as undone by another, or by none again; ``before`` has the marks they had."""
        for number, by in undone:
            self.part.undone.append((number, by))
            self.marks_before.insert(0, (number, before.get(number)))

    def record(
        self, kind: str, document: Document, changes: Sequence[Change], caller: Caller, *, undoes: Sequence[int] = ()
    ) -> int:
        """Make ``document`` the draft's state under a new revision and return its number."""
        self.revision = self._take_revision()
        self.document = document
        self.part.revisions.append(
            RevisionRecord(
                revision=self.revision,
                store=self.store.id,
                us=self.now_us,
                kind=kind,
                origin=caller.origin,
                client=caller.client,
                uid=caller.uid,
                pid=caller.pid,
                session=caller.session,
                turn=caller.turn,
                job=caller.job,
                reason=caller.reason,
                changes=[change_record(change) for change in changes],
                undoes=list(undoes),
            )
        )
        self.emit(
            "memory.changed",
            session=caller.session,
            job=caller.job,
            data=change_data(kind, caller, changes),
        )
        return self.revision

    def emit(
        self,
        topic: str,
        *,
        session: str | None = None,
        job: str | None = None,
        id: str | None = None,  # noqa: A002 - the event's own field name
        data: dict[str, Any],
    ) -> None:
        """Add an event about this store, for every profile that has it."""
        for profile in self.store.profiles:
            self.part.events.append(
                EventRecord(
                    us=self.now_us,
                    topic=topic,
                    profile=profile,
                    target=self.target,
                    revision=self.revision,
                    session=session,
                    job=job,
                    id=id,
                    data=data,
                )
            )

    def keep(self, data: bytes) -> None:
        """Keep bytes that a merge would lose, once for each content and up to 1 MiB."""
        if data and len(data) <= PREIMAGE_LIMIT:
            digest = hashlib.sha256(data).digest()
            self.part.preimages.append(
                PreimageRecord(store=self.store.id, revision=self.revision, us=self.now_us, hash=digest, data=data)
            )

    def finish(self) -> bytes | None:
        """Complete the part. Returns the bytes the file has to get, or None if it is to stay as it is."""
        if not self.part.revisions:
            return None
        data = render(self.document)
        self.part.renderings.append(
            RenderingRecord(
                store=self.store.id,
                revision=self.revision,
                us=self.now_us,
                data=data,
                entries=entry_records(self.document),
            )
        )
        self.part.entry_ids.extend((self.store.id, entry) for entry in sorted(self._new_ids))
        usage = self.usage
        if usage.near_limit and not self._was_near:
            self.emit("memory.near_limit", data={"percent": usage.percent, "chars": usage.chars, "limit": usage.limit})
        if data == (self.image.data or b""):
            return None  # a missing file and an empty one are the same store
        if self.adopted or self.image.in_place:
            # A crash before the swap leaves these bytes, which are no rendering: recovery has to know them as ours.
            self.keep(self.image.data or b"")
        return data

    def settle(self) -> None:
        """The draft is durable: make it the store's head."""
        store = self.store
        if self.adopted and store.document.entries and not self.document.entries:
            store.emptied_after = store.revision
        if any(change.before is not None for record in self.part.revisions for change in record.changes):
            now = {entry.text for entry in self.document.entries}
            store.forget_not(entry.text for entry in store.document.entries if entry.text not in now)
        store.document = self.document
        store.revision = self.revision
        store.used_ids |= self._new_ids
        store.believed = self.believed
        store.approved.update(digest for _, digest, _ in self.part.approved)
        if self.part.renderings:
            store.data = self.part.renderings[-1].data
        for tell in self.when_settled:
            tell()


def change_data(kind: str, caller: Caller, changes: Sequence[Change]) -> dict[str, Any]:
    """What the event ``memory.changed`` tells."""
    return {
        "kind": kind,
        "origin": caller.origin,
        "client": caller.client,
        "changes": [{"action": change.action, "id": change.id} for change in changes],
    }


def change_record(change: Change) -> ChangeRecord:
    """A change as the journal stores it."""
    return ChangeRecord(
        change.action,
        change.id,
        _bytes(change.before),
        _bytes(change.after),
        change.place,
        change.created_us,
        change.origin,
        change.redacted,
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogateescape")
