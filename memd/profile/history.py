"""History: what was, who did it, what became of a text; answered from the journal.

What comes in: the stores of a profile and questions. What goes out: revisions with their stores, states of the past,
selections to undo. What must not be here: changing anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Concatenate, Literal, ParamSpec, TypeVar

import msgspec

from memd.errors import BlockedContent, InvalidParams, NoSuchRevision
from memd.profile.content import text_hash
from memd.profile.entries import Document
from memd.profile.inverse import Taken, difference, rewind, text_diff
from memd.profile.memory_store import document_from
from memd.profile.values import Change, TargetChange
from memd.store import queries
from memd.store.queries import RevisionFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from memd.profile.memory_store import MemoryStore
    from memd.profile.values import Target
    from memd.store.committer import Committer
    from memd.store.journal import Journal
    from memd.store.records import ChangeRecord, RevisionRecord

P = ParamSpec("P")
T = TypeVar("T")

PAGE = 200
MOST_LISTED = 1000
EXPLAIN_LIMIT = 50
NOT_UNDONE = frozenset({"undo", "redo", "compensate", "redact"})
"""Kinds that ``last: n`` skips: an undo is taken back with redo, and a redaction never."""


@dataclass(frozen=True, slots=True)
class Selector:
    """What to undo or redo: exactly one of these."""

    revision: int | None = None
    session: str | None = None
    job: str | None = None
    last: int | None = None

    @property
    def of_whom(self) -> str:
        """Whose changes are meant, in words."""
        if self.session is not None:
            return f" of session {self.session!r}"
        return f" of job {self.job!r}" if self.job is not None else ""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which revisions to list: those that fit all that is given."""

    session: str | None = None
    job: str | None = None
    origin: str | None = None
    entry: str | None = None


ANY = Chosen()


@dataclass(frozen=True, slots=True)
class RevisionRow:
    """A revision together with its store."""

    record: RevisionRecord
    target: Target


ExplainState = Literal["stored", "refused", "staged", "withheld", "removed", "expired"]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What became of a text, once."""

    state: ExplainState
    target: Target
    us: int
    reason: str
    id: str | None = None
    revision: int | None = None
    rule: str | None = None


class History:
    """Questions about the stores of one profile. Every call is answered in the journal's thread, between groups."""

    def __init__(self, profile: str, stores: Sequence[MemoryStore], committer: Committer) -> None:
        self._profile = profile
        self._stores = {store.id: store for store in stores}
        self._committer = committer

    def __repr__(self) -> str:
        return f"<History of {self._profile}>"

    async def page(
        self, wanted: RevisionFilter, *, limit: int, entry: str | None = None
    ) -> tuple[list[RevisionRow], int | None]:
        """Revisions that fit, newest first, and the ``before`` of the next page (None at the end)."""
        limit = max(1, min(limit, MOST_LISTED))
        found: list[RevisionRow] = []
        while True:
            records = await self._query(queries.revisions, wanted, PAGE)
            for record in records:
                if entry is None or any(change.id == entry for change in record.changes):
                    found.append(self._row(record))
                if len(found) > limit:
                    return found[:limit], found[limit - 1].record.revision
            if len(records) < PAGE:
                return found, None
            wanted = _before(wanted, records[-1].revision)

    async def revision(self, number: int) -> RevisionRow:
        """One revision of this profile.

        Raises:
            NoSuchRevision: Unknown, pruned, or of another profile.
        """
        record = await self._query(queries.revision, number)
        if record is None or record.store not in self._stores:
            raise NoSuchRevision(number)
        return self._row(record)

    async def document_at(self, store: MemoryStore, number: int) -> Document:
        """A store as it was after a revision (of any store); empty before its first.

        Raises:
            NoSuchRevision: It was pruned.
        """
        newest: int = await self._query(queries.newest_of, store.id, number)
        if newest == 0:
            return Document()
        rendering = await self._query(queries.rendering_at, store.id, newest)
        if rendering is None:
            raise NoSuchRevision(number)
        document = document_from(rendering)
        if rendering.revision == newest:
            return document
        changes: list[Change] = []
        wanted = RevisionFilter(stores=(store.id,), after=newest + 1, before=rendering.revision + 1)
        for record in await self._query(queries.revisions, wanted, rendering.revision):
            changes.extend(reversed([change_from(change) for change in record.changes]))
        return Document(entries=rewind(document.entries, changes))

    async def diff(self, store: MemoryStore, from_: int, to: int) -> tuple[str, tuple[TargetChange, ...]]:
        """The difference between two states of a store, for people and for programs."""
        before = await self.document_at(store, from_)
        after = await self.document_at(store, to)
        changes = tuple(TargetChange(store.target, change) for change in difference(before, after))
        return text_diff(before, after), changes

    # -- undo ---------------------------------------------------------------------------------------------------

    async def select(self, selector: Selector, *, redo: bool) -> list[RevisionRecord]:
        """The revisions a selector means, newest first.

        Raises:
            InvalidParams: Not exactly one selector, or ``last`` is not positive.
            NoSuchRevision: The revision does not exist, or is not an undo (for redo).
        """
        given = [
            value for value in (selector.revision, selector.session, selector.job, selector.last) if value is not None
        ]
        if len(given) != 1:
            msg = "name exactly one of revision, job, session or last"
            raise InvalidParams(msg, field="revision")
        if selector.revision is not None:
            return await self._select_revision(selector.revision, redo=redo)
        if selector.last is not None and selector.last < 1:
            msg = "last: a positive number of changes"
            raise InvalidParams(msg, field="last")
        wanted = RevisionFilter(
            stores=tuple(self._stores),
            session=selector.session,
            job=selector.job,
            undone=False,
            kind="undo" if redo else None,
        )
        if redo and selector.last is None:
            return await self._select_undos_of(msgspec.structs.replace(wanted, kind=None, undone=True))
        return await self._collect(wanted, last=selector.last, redo=redo)

    async def taken(self, store: MemoryStore, record: RevisionRecord) -> Taken:
        """A revision as ``invert`` wants it: with the order of the entries before it, if it took some away."""
        changes = tuple(change_from(change) for change in record.changes)
        if all(change.after is not None for change in changes):
            return Taken(record.revision, changes)
        try:
            after = await self.document_at(store, record.revision)
        except NoSuchRevision:  # too old: the place that was recorded has to do
            return Taken(record.revision, changes)
        before = rewind(after.entries, reversed(changes))
        return Taken(record.revision, changes, tuple(entry.id for entry in before))

    async def exact_before(self, store: MemoryStore, number: int) -> Document | None:
        """A store just before a revision, with every byte of its file; None if that is not kept, or there was none."""
        newest: int = await self._query(queries.newest_of, store.id, number - 1)
        rendering = await self._query(queries.rendering_at, store.id, newest) if newest else None
        return document_from(rendering) if rendering is not None and rendering.revision == newest else None

    async def originals(self, undos: Iterable[RevisionRecord]) -> dict[int, int | None]:
        """The revisions that these undos took back: a redo takes their marks away."""
        return {number: None for undo in undos for number in undo.undoes}

    async def _select_revision(self, number: int, *, redo: bool) -> list[RevisionRecord]:
        record = (await self.revision(number)).record
        if not redo:
            if record.kind == "redact":
                msg = f"revision {number} took a text out of memory and history for good; that cannot be undone"
                raise InvalidParams(msg, field="revision")
            return [record]
        if record.kind != "undo" and record.undone_by is not None:
            record = (await self.revision(record.undone_by)).record
        if record.kind != "undo" or record.undone_by is not None:
            raise NoSuchRevision(number)
        return [record]

    async def _select_undos_of(self, wanted: RevisionFilter) -> list[RevisionRecord]:
        """The undos of a session's or a job's revisions, whoever made them; not those that took back others' with them."""
        undone = await self._collect(wanted, last=None, redo=True)
        theirs = {record.revision for record in undone}
        numbers = sorted({record.undone_by for record in undone if record.undone_by is not None}, reverse=True)
        undos = [(await self.revision(number)).record for number in numbers]
        return [
            undo for undo in undos if undo.kind == "undo" and undo.undone_by is None and theirs.issuperset(undo.undoes)
        ]

    async def _collect(self, wanted: RevisionFilter, *, last: int | None, redo: bool) -> list[RevisionRecord]:
        found: list[RevisionRecord] = []
        moments: list[int] = []  # the revisions of one undo share their time
        while True:
            records = await self._query(queries.revisions, wanted, PAGE)
            for record in records:
                if not redo and (record.kind in NOT_UNDONE or not record.changes):
                    continue
                if last is not None:
                    moment = record.us if redo else record.revision
                    if moment not in moments:
                        moments.append(moment)
                    if len(moments) > last:
                        return found
                found.append(record)
            if len(records) < PAGE:
                return found
            wanted = _before(wanted, records[-1].revision)

    # -- explain ------------------------------------------------------------------------------------------------

    async def explain(self, text: str) -> list[Explanation]:
        """What became of a text: stored (contained in an entry), refused (exactly this text), removed."""
        wanted = text.strip()
        found: list[Explanation] = []
        for store in self._stores.values():
            for entry in store.state.document.entries:
                if wanted in entry.text:
                    reason = f"stored by {entry.origin or 'unknown'}"
                    found.append(Explanation("stored", store.target, entry.updated_us, reason, entry.id))
        for refusal in await self._query(queries.refusals_of, self._profile, text_hash(text), EXPLAIN_LIMIT):
            target: Target = "user" if refusal.target == "user" else "memory"
            rule = refusal.reason.partition(", ")[0] if refusal.name == BlockedContent.wire_name else None
            found.append(Explanation("refused", target, refusal.us, f"refused: {refusal.name}", rule=rule))
        found.extend(await self._removed(wanted))
        return found[:EXPLAIN_LIMIT]

    async def _removed(self, wanted: str) -> list[Explanation]:
        found: list[Explanation] = []
        page = RevisionFilter(stores=tuple(self._stores))
        needle = wanted.encode("utf-8", "surrogateescape")
        while len(found) < EXPLAIN_LIMIT:
            records = await self._query(queries.revisions, page, PAGE)
            for record in records:
                found.extend(self._removals(record, needle))
            if len(records) < PAGE:
                break
            page = _before(page, records[-1].revision)
        return found

    def _removals(self, record: RevisionRecord, needle: bytes) -> Iterator[Explanation]:
        store = self._stores[record.store]
        for change in record.changes:
            gone = change.before is not None and needle in change.before and needle not in (change.after or b"")
            if gone:
                reason = f"{change.action} by {record.origin}" + (f": {record.reason}" if record.reason else "")
                yield Explanation("removed", store.target, record.us, reason, change.id, record.revision)

    # -- inside -------------------------------------------------------------------------------------------------

    def _row(self, record: RevisionRecord) -> RevisionRow:
        return RevisionRow(record, self._stores[record.store].target)

    async def _query(self, fn: Callable[Concatenate[Journal, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._committer.query(lambda: fn(self._committer.journal, *args, **kwargs))


def change_from(record: ChangeRecord) -> Change:
    """A change from its stored form."""
    return Change(
        record.action,  # type: ignore[arg-type]  # the journal holds what we wrote
        record.id,
        _text(record.before),
        _text(record.after),
        record.place,
        record.created_us,
        record.origin,
        record.redacted,
    )


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "surrogateescape")


def _before(wanted: RevisionFilter, number: int) -> RevisionFilter:
    return msgspec.structs.replace(wanted, before=number)
