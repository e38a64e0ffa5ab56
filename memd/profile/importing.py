"""Import: exported entries, Markdown text and foreign files as a plan for the writer.

What comes in: the data of a ``profile.import``, drafts. What goes out: one revision a store, and in words what could not
be taken over. What must not be here: I/O, paths, wire types.

What becomes of an export: entries keep their ids where those are free, when they were made, and by whom. When they were
last changed stays only in a store that never held anything: elsewhere they are new, and have to be, since whoever puts an
old file back within seconds has not seen them (``adoption.RECENT_US``). Exported revisions are read and counted and not
taken over: their numbers belong to another journal, and what they say happened did not happen here.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec.structs import replace

from memd.errors import BlockedContent, InvalidParams, OverLimit, PermissionDenied
from memd.profile.content import accept, accept_edited, display
from memd.profile.edits import check_limits
from memd.profile.entries import Entry, has_border, make_entry, parse
from memd.profile.foreign import foreign_entry, split_foreign
from memd.profile.inverse import replace_all
from memd.profile.values import TARGETS, Notice, TargetChange, Undone
from memd.profile.work import Quiet, require_revision, ruled

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from memd.profile.draft import Draft
    from memd.profile.entries import Document
    from memd.profile.memory_store import MemoryStore
    from memd.profile.policy import Guard
    from memd.profile.scans import Scans
    from memd.profile.values import Caller, Change, Target

    Drafts = Mapping[MemoryStore, Draft]

KINDS = ("entries", "markdown", "foreign")
"""What data can be imported: one of these at a time."""
ORIGINS = ("user", "agent", "tool", "review", "flush", "import", "outside")
_ID = re.compile(r"[0-9A-Za-z._-]{1,64}")


@dataclass(frozen=True, slots=True)
class Source:
    """What one store is to take in. ``repeats``: identical entries are wanted as often as they are there.

    ``foreign``: not ``entries`` are wanted, but the foreign ones of the store in pieces.
    """

    entries: tuple[Entry, ...] = ()
    repeats: bool = True
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class Sources:
    """What a whole import is to do, and what is already known to be lost."""

    stores: Mapping[Target, Source]
    notices: tuple[Notice, ...] = ()


@dataclass(slots=True)
class _Outcome:
    """What a store would hold, and what was not taken over as it is in the data."""

    entries: list[Entry] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    undecodable: int = 0
    split: int = 0


@dataclass(frozen=True, eq=False)
class Import(Quiet):
    """Take in what is not there yet. All stores or none; with ``preview`` what is too much is told rather than refused."""

    sources: Mapping[MemoryStore, Source]
    caller: Caller
    revisions: Mapping[Target, int] = field(default_factory=dict)
    preview: bool = False
    notices: tuple[Notice, ...] = ()
    guard: Guard | None = None

    @property
    def stores(self) -> tuple[MemoryStore, ...]:
        """Every store there is something for."""
        return tuple(self.sources)

    @property
    def operations(self) -> int:
        """As many as there are entries."""
        return max(1, sum(len(source.entries) for source in self.sources.values()))

    def texts(self) -> tuple[Scans, Iterable[str]] | None:
        """Those of the data, or what the foreign entries of the stores hold."""
        if self.guard is None:
            return None
        wanted = [entry.text for source in self.sources.values() for entry in source.entries]
        foreign = [store for store, source in self.sources.items() if source.foreign]
        return self.guard.scans, [*wanted, *(text for store in foreign for text in _pieces(store.document))]

    def plan(self, drafts: Drafts) -> Undone:
        """Take in what is not there yet, with its id where that is free.

        Raises:
            Conflict: A store is not at the revision that the caller knows.
            InvalidContent, OverLimit, BlockedContent, PermissionDenied: Nothing of the import is done.
        """
        notices = list(self.notices)
        planned: list[tuple[Draft, Document, tuple[Change, ...]]] = []
        for store, source in self.sources.items():
            draft = drafts[store]
            require_revision(draft, self.revisions.get(draft.target))
            outcome = _converted(draft) if source.foreign else _added(draft, source)
            document, changes = replace_all(draft.document, outcome.entries)
            notices.extend(_told(draft.target, outcome, source))
            notices.extend(self._limited(draft, document))
            notices.extend(self._ruled(draft, changes))
            planned.append((draft, document, changes))
        numbers = [
            draft.record("import", document, changes, self.caller) for draft, document, changes in planned if changes
        ]
        return Undone(
            tuple(numbers),
            tuple(TargetChange(draft.target, change) for draft, _, changes in planned for change in changes),
            (),
            {draft.target: draft.usage for draft, _, _ in planned},
            notices=tuple(notices),
        )

    def _ruled(self, draft: Draft, changes: Sequence[Change]) -> Sequence[Notice]:
        """What the scan and the settings say, entry by entry, so that the refusal can name the entry."""
        notices: list[Notice] = []
        for change in changes:
            try:
                notices += ruled(self.guard, draft, (change,), self.caller).notices
            except (BlockedContent, PermissionDenied) as error:
                if isinstance(error, PermissionDenied) or not self.preview:
                    message = f"{draft.target}, entry {change.place + 1}: {error.message}"
                    raise type(error)(message, **error.extra, target=draft.target, place=change.place) from None
                told = f"{draft.target}, entry {change.place + 1}: {error.message}; this would be refused"
                notices.append(Notice("blocked", told, {"target": draft.target, "place": change.place, **error.extra}))
        return notices

    def _limited(self, draft: Draft, document: Document) -> list[Notice]:
        try:
            check_limits(draft.document, document, draft.store.limits)
        except OverLimit as error:
            if not self.preview:
                raise
            data = {"target": draft.target, "excess": error.extra["excess"]}
            return [
                Notice("over_limit", f"{draft.target}: {error.message.partition(';')[0]}; this would be refused", data)
            ]
        return []


def sources(data: Mapping[str, Any]) -> Sources:
    """What the data of a ``profile.import`` asks for.

    Raises:
        InvalidParams: It is damaged, or none or several of entries, markdown and foreign are in it; ``field`` and the
            message say where.
    """
    kinds = [kind for kind in KINDS if data.get(kind) is not None]
    if len(kinds) != 1:
        _refuse("", "one of entries (an export), markdown or foreign is expected" + " and not several" * bool(kinds))
    if kinds[0] == "foreign":
        return Sources({target: Source(foreign=True) for target in _targets(data["foreign"])})
    stores = data[kinds[0]]
    if not isinstance(stores, dict):
        _refuse(kinds[0], "a map from memory and user is expected")
    _targets(list(stores))
    if kinds[0] == "markdown":
        found = {target: _from_markdown(stores[target], target) for target in TARGETS if stores.get(target) is not None}
        return Sources(found)
    entries = {target: Source(_from_export(stores.get(target), target)) for target in TARGETS}
    return Sources({target: source for target, source in entries.items() if source.entries}, _history(data))


def _targets(value: Any) -> list[Target]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item in TARGETS for item in value):
        _refuse("", f"the stores are memory and user, not {value!r}")
    return [target for target in TARGETS if target in value]


def _from_markdown(text: Any, target: Target) -> Source:
    """A text with borders is a memory file and has its entries already; any other is split as a foreign file is."""
    if not isinstance(text, str):
        _refuse(f"markdown.{target}", "a text is expected")
    document = parse(text.encode("utf-8", "surrogatepass"))
    if has_border(document):
        texts = [entry.text for entry in document.entries]
    else:
        texts = [piece for entry in document.entries for piece in split_foreign(entry.text)]
    return Source(tuple(make_entry(piece) for piece in texts), repeats=False)


def _from_export(items: Any, target: Target) -> tuple[Entry, ...]:
    if items is None:
        return ()
    if not isinstance(items, list):
        _refuse(f"entries.{target}", "a list of entries is expected")
    return tuple(_entry(item, f"entries.{target}[{position}]") for position, item in enumerate(items))


def _entry(item: Any, place: str) -> Entry:
    """One entry of an export: a text, or a map that has one; everything else in the map may be left out."""
    if isinstance(item, str):
        return make_entry(item)
    text = item.get("text") if isinstance(item, dict) else None
    if not isinstance(text, str):
        _refuse(place, "a map with a text expected, as profile.export gives it")
    entry_id, origin = item.get("id"), item.get("origin")
    if entry_id is not None and not (isinstance(entry_id, str) and _ID.fullmatch(entry_id)):
        _refuse(f"{place}.id", f"{entry_id!r} is no id; leave it out to have one made")
    if origin is not None and origin not in ORIGINS:
        _refuse(f"{place}.origin", f"{origin!r} is none of {', '.join(ORIGINS)}; it may be left out")
    entry = make_entry(text)
    if item.get("hash") is not None and item["hash"] != entry.hash:
        _refuse(place, "the text is not the one that was exported (its hash differs); leave hash out if that is meant")
    created, updated = (_time(item.get(name), f"{place}.{name}") for name in ("created_us", "updated_us"))
    return replace(entry, id=entry_id or "", origin=origin or "", created_us=created, updated_us=updated)


def _time(value: Any, place: str) -> int:
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**53:
        _refuse(place, f"microseconds since 1970 are expected, got {value!r}; it may be left out")
    return value


def _history(data: Mapping[str, Any]) -> tuple[Notice, ...]:
    revisions = data.get("revisions")
    if revisions is None or revisions == []:
        return ()
    if not isinstance(revisions, list) or not all(isinstance(row, dict) for row in revisions):
        _refuse("revisions", "a list of maps is expected, as profile.export gives it")
    message = f"the export's history of {len(revisions):,} revisions stays in its file: here it begins with this import"
    return (Notice("history_not_imported", message, {"revisions": len(revisions)}),)


def _refuse(place: str, problem: str) -> NoReturn:
    where = f"data.{place}" if place else "data"
    msg = f"{where}: {problem}"
    raise InvalidParams(msg, field=where)


def _added(draft: Draft, source: Source) -> _Outcome:
    """The store's entries, and behind them those of the source that it does not have (as often as the source has them)."""
    found = _Outcome(list(draft.document.entries))
    have = Counter(entry.text for entry in draft.document.entries)
    for entry in source.entries:
        text = accept(entry.text)
        if have[text] > 0:
            have[text] -= source.repeats
            found.repeated.append(text)
            continue
        have[text] += not source.repeats
        found.undecodable += "\ufffd" in text
        entry_id = entry.id if draft.claim_id(entry.id) else draft.new_id(text)
        if entry.id and entry_id != entry.id:
            found.renamed[entry.id] = entry_id
        found.entries.append(_stamped(draft, replace(entry, raw=text, text=text, id=entry_id)))
    return found


def _stamped(draft: Draft, entry: Entry) -> Entry:
    created = min(entry.created_us or draft.now_us, draft.now_us)
    first = not draft.store.revision
    updated = min(entry.updated_us or draft.now_us, draft.now_us) if first else draft.now_us
    return replace(entry, created_us=created, updated_us=updated, origin=entry.origin or "import")


def _converted(draft: Draft) -> _Outcome:
    """The store's entries with the foreign ones in pieces, in their places."""
    found = _Outcome()
    have = {entry.text for entry in draft.document.entries if not foreign_entry(entry)}
    for entry in draft.document.entries:
        if not foreign_entry(entry):
            found.entries.append(entry)
            continue
        found.split += 1
        for piece in map(accept_edited, split_foreign(entry.text)):
            if piece in have:
                found.repeated.append(piece)
            elif piece:
                have.add(piece)
                new = replace(make_entry(piece), id=draft.new_id(piece), origin="import")
                found.entries.append(replace(new, created_us=draft.now_us, updated_us=draft.now_us))
    return found


def _pieces(document: Document) -> list[str]:
    return [piece for entry in document.entries if foreign_entry(entry) for piece in split_foreign(entry.text)]


def _told(target: Target, outcome: _Outcome, source: Source) -> Sequence[Notice]:
    """What was not taken over as it is in the data."""
    notices = []
    if outcome.repeated:
        count = len(outcome.repeated)
        message = (
            f"{target}: {'1 text is' if count == 1 else f'{count:,} texts are'} there already, and stay there once"
        )
        notices.append(
            Notice("duplicates", message, {"target": target, "texts": [display(text) for text in outcome.repeated]})
        )
    if outcome.renamed:
        ids = ", ".join(f"{old} is now {new}" for old, new in outcome.renamed.items())
        message = f"{target}: ids that other entries have or had are not given out again: {ids}"
        notices.append(Notice("ids_not_kept", message, {"target": target, "ids": outcome.renamed}))
    if outcome.undecodable:
        message = (
            f"{target}: {outcome.undecodable:,} entries hold U+FFFD, perhaps in place of bytes that were not UTF-8"
        )
        notices.append(Notice("undecodable", message, {"target": target, "count": outcome.undecodable}))
    if source.foreign and not outcome.split:
        notices.append(Notice("nothing_foreign", f"{target}: there is no foreign Markdown in it", {"target": target}))
    return notices
