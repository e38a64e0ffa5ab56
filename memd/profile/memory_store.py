"""One memory file as the daemon knows it: its head, its bytes, its locks and its worries.

What comes in: a ``Place``, the journal's head, images of the file. What goes out: the published ``StoreState`` that reads
are answered from. What must not be here: tasks, groups, the meaning of operations. Only the writer task changes it.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memd.errors import StoreDisabled, StoreError, StoreUnreadable
from memd.profile.adoption import mark
from memd.profile.entries import Document, parse
from memd.profile.foreign import is_foreign
from memd.profile.values import Limits, Notice, StoreCondition, StoreState, Target, usage_of
from memd.store.files import Displaced, Files, Image
from memd.store.locks import OutsideLock
from memd.store.place import Place, identity, locate
from memd.store.records import EntryRecord, RenderingRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from memd.profile.adoption import Believed, Unsettled
    from memd.profile.entries import Entry
    from memd.profile.policy import Guard

RETRY_S = 0.05
"""Between attempts at a file that is locked or cannot be read."""
FAILED_S = 1.0
"""Between attempts to adopt what could not be committed (a full disk, a journal that failed)."""
UNREADABLE_S = 0.3
"""How long an unreadable file is retried before its callers hear of it (sync clients lock files briefly)."""
SECOND_LOOK_S = 1.0
"""How long a displaced file is kept open: a shell that had it open may still write to it."""

GONE_LIMIT = 10_000
"""Texts that were taken away and are remembered as such: as many as the thousand renderings can tell of, roughly."""


@dataclass(slots=True)
class Foreign:
    """Bytes that came to light after a swap.

    ``base`` is what was in the file before them, ``written_us`` when they were written (0: unknown; a sync client may set
    it), ``path`` where they still are until they are adopted (``""``: nowhere), ``after_us`` the time of the commit before
    whose swap they were not in the file (0: unknown). ``revive``: ids that were dropped when only the beginning was there.
    """

    base: Document
    data: bytes
    written_us: int = 0
    path: str = ""
    after_us: int = 0
    revive: frozenset[str] = frozenset()


@dataclass(slots=True)
class Lingering:
    """A displaced file kept open for a second look: when, what we saw of it, and the time of the commit that displaced it.

    ``building``: what was in the file before, if somebody was still building this one; it is adopted when it stands still,
    or at ``until``. ``revive``: what was dropped when it was believed; see ``Foreign``.
    """

    due: float
    displaced: Displaced
    seen: bytes
    after_us: int = 0
    building: Document | None = None
    until: float = 0.0
    revive: frozenset[str] = frozenset()


@dataclass(eq=False)
class MemoryStore:
    """The live state of one memory file. Identity is object identity; profiles that share the file share this."""

    target: Target
    place: Place
    limits: Limits
    files: Files
    roots: tuple[str, ...] = ()
    enabled: bool = True
    id: int = 0
    profiles: list[str] = field(default_factory=list)

    document: Document = field(default_factory=Document)
    revision: int = 0
    data: bytes | None = None
    image: Image = field(default_factory=lambda: Image(None))
    used_ids: set[str] = field(default_factory=set)
    checkpoint: int = 0

    unsettled: Unsettled | None = None
    unfinished: bool = False
    believed: Believed | None = None
    foreign: deque[Foreign] = field(default_factory=deque)
    lingering: deque[Lingering] = field(default_factory=deque)
    attention: bool = False
    retry_at: float = 0.0
    failing_since: float | None = None
    failure: StoreError | None = None
    broken: StoreError | None = None
    reload: bool = False
    starting: bool = False
    moved: bool = False
    last_commit: float = 0.0
    first_unsynced: float | None = None
    unsynced: int = 0
    place_checked: float = 0.0
    read_at: float = 0.0
    read_only: StoreError | None = None
    leftovers: list[str] = field(default_factory=list)
    in_work_tree: bool = False
    emptied_after: int = 0
    approved: set[bytes] = field(default_factory=set)
    guards: list[Guard] = field(default_factory=list)
    watchers: list[Callable[[], None]] = field(default_factory=list)
    gone: dict[int, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lock = OutsideLock(self.place.configured)
        self.state = self.describe()

    def __repr__(self) -> str:
        return f"<MemoryStore {self.place.path} revision {self.revision}, {len(self.document.entries)} entries>"

    # -- published ----------------------------------------------------------------------------------------------

    def describe(self) -> StoreState:
        """The state to publish now."""
        condition: StoreCondition = "ok"
        detail = ""
        problem = self.broken or self.failure or self.read_only
        if not self.enabled:
            condition, detail = "disabled", "switched off in the settings"
        elif problem is not None:
            read_only = problem.wire_name == "read_only"
            known = self.revision or self.document.entries
            condition = "read_only" if read_only else "stale" if known else "unreadable"
            detail = problem.message
        elif is_foreign(self.document):
            condition, detail = "foreign", "Markdown without borders: all of it is one entry"
        return StoreState(
            self.target,
            self.place.configured,
            self.document,
            self.revision,
            usage_of(self.document.chars, self.limits),
            condition,
            detail,
            tuple(self._standing()),
        )

    def _standing(self) -> Iterator[Notice]:
        """What every session should be told for as long as it is so."""
        if self.emptied_after and not self.document.entries:
            yield Notice(
                "store_emptied",
                f"{self.place.configured} was emptied or deleted by another program; `memd restore {self.target} "
                f"{self.emptied_after}` brings its entries back",
                {"target": self.target, "revision": self.emptied_after},
            )
        if self.image.in_place:
            yield Notice(
                "written_in_place",
                f"{self.place.path} has several links or is a mount point: it is rewritten where it is, not replaced",
                {"target": self.target, "path": self.place.path},
            )
        if not self.lock.usable:
            yield Notice(
                "lock_unusable",
                f"{self.lock.path} cannot be opened or locked: other programs may write at the same time as memd",
                {"target": self.target, "path": self.lock.path},
            )
        if self.in_work_tree:
            yield Notice(
                "in_git_work_tree",
                f"{self.place.path} says who the user is and lies in a Git work tree: it may be pushed",
                {"target": self.target, "path": self.place.path},
            )

    def held_paths(self) -> set[str]:
        """Displaced files that somebody looks after: to be looked at again, to be adopted, or to be removed."""
        held = {lingering.displaced.path for lingering in self.lingering}
        return held | {foreign.path for foreign in self.foreign} | set(self.leftovers)

    def take_in(self, foreign: Foreign) -> None:
        """Foreign bytes that the writer's next cycle adopts."""
        self.foreign.append(foreign)
        self.attention = True

    def linger(self, displaced: Lingering) -> None:
        """Keep a displaced file open until it is due; the next one due comes first."""
        insort(self.lingering, displaced, key=lambda item: item.due)

    def postpone(self, now: float) -> None:
        """What was to be adopted could not be committed: not again at once."""
        if self.attention:
            self.retry_at = now + FAILED_S

    def forget_not(self, texts: Iterable[str]) -> None:
        """Remember that these texts were taken away, up to a bound (``adoption.would_drop``)."""
        for text in texts:
            self.gone[mark(text)] = None
        while len(self.gone) > GONE_LIMIT:
            del self.gone[next(iter(self.gone))]

    def publish(self) -> bool:
        """Publish the present state and tell the profiles that have it; True if its condition changed."""
        before = self.state.condition
        self.state = self.describe()
        for tell in self.watchers:
            tell()
        return before != self.state.condition

    # -- from the journal ---------------------------------------------------------------------------------------

    def take_rendering(self, record: RenderingRecord | None) -> None:
        """Make a journaled rendering the head; None is a store that was never written."""
        if record is None:
            self.document, self.revision, self.data = Document(), 0, None
        else:
            self.document = document_from(record)
            self.revision = record.revision
            self.data = record.data

    # -- in a thread --------------------------------------------------------------------------------------------

    def prepare(self, *, check_place: bool) -> Image:
        """Take the outside lock and read the file. The lock is held on return, and released on any error.

        Raises:
            Busy: Another program holds the lock.
            StoreUnreadable: The file, its directory or its link is not what it was.
        """
        if check_place:
            self._check_place()
        self.lock.acquire()
        try:
            image = self.files.read(self.place)
            self._require_moved_file(image)
        except BaseException:
            self.lock.release()
            raise
        return image

    def looks_unchanged(self) -> bool:
        """True if a stat of the file is the one of the image we have."""
        return self.files.signature(self.place) == self.image.signature

    def _require_moved_file(self, image: Image) -> None:
        """A file that is missing in another directory than the one it was in is not a deleted file."""
        if self.moved and image.data is None:
            msg = (
                f"{self.place.directory} is not the directory that {self.place.name} was in (not mounted, or made anew), and "
                "the file is not in it: bring the old one back, or put a file there"
            )
            raise StoreUnreadable(msg, path=self.place.path)
        self.moved = False

    def _check_place(self) -> None:
        if identity(self.place.directory) != (self.place.device, self.place.inode):
            msg = (
                f"the directory {self.place.directory} is not the one memd started with (missing, replaced or mounted "
                "over): bring it back, or restart memd to take the new one"
            )
            raise StoreUnreadable(
                msg,
                path=self.place.path,
            )
        found = locate(
            self.place.configured.rpartition("/")[0], self.place.configured.rpartition("/")[2], roots=self.roots
        )
        if found.path != self.place.path:
            msg = f"{self.place.configured} now leads to {found.path}, not to {self.place.path}: restart memd to follow it"
            raise StoreUnreadable(
                msg,
                path=self.place.configured,
            )

    # -- small questions ----------------------------------------------------------------------------------------

    def require_usable(self) -> None:
        """Refuse a write to a store that is switched off or has stopped writing.

        Raises:
            StoreDisabled, StoreError: With ``outcome`` "none".
        """
        if not self.enabled:
            msg = f"the {self.target} store is switched off ([stores] {self.target} = false)"
            raise StoreDisabled(msg, outcome="none")
        if self.broken is not None:
            raise self.broken


def document_from(record: RenderingRecord) -> Document:
    """The document of a rendering, entries with the ids and times the journal has for them.

    Where the journal is damaged and has another number of them, ids are made of the rendering's revision and the place.
    """
    document = parse(record.data)
    metas = record.entries
    if len(metas) != len(document.entries):
        places = range(len(document.entries))
        metas = [EntryRecord(f"{record.revision:x}.{place}", record.us, record.us, "outside") for place in places]
    entries: list[Entry] = []
    for entry, meta in zip(document.entries, metas, strict=True):
        entries.append(
            replace(entry, id=meta.id, created_us=meta.created_us, updated_us=meta.updated_us, origin=meta.origin)
        )
    return replace(document, entries=tuple(entries))


def entry_records(document: Document) -> list[EntryRecord]:
    """What the journal keeps of a document's entries."""
    return [EntryRecord(e.id, e.created_us, e.updated_us, e.origin) for e in document.entries]
