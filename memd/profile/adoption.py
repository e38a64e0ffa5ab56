"""Adoption: when to believe what another program left in a memory file, and what it becomes.

What comes in: the head of a store and the bytes found in its file. What goes out: when they may be believed, and the
merged document. What must not be here: I/O, clocks (times are arguments), tasks.

A program that rewrites a file passes through states nobody means: empty after the truncation, half after the first
write. So bytes that only add are believed at once; bytes that would drop entries only when they have stood still.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, replace as dataclass_replace
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memd.profile.entries import Document, Entry, parse
from memd.profile.merge import differences, merge, split_appended
from memd.profile.rewording import Rewordings

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from memd.profile.merge import Merged
    from memd.profile.values import Stamp

SETTLE_S = 0.1
"""A file that would drop entries is believed after this long without change."""
SETTLE_EMPTY_S = 0.5
"""An empty or missing file takes longer (`: > file; sleep; cat >> file` is how people restore), and so does one that grows, or
that ends in the middle of what there was: so does a file that a script builds line by line."""
SETTLE_MOST_S = 2.0
"""No commit waits longer than this, however busily a file is rewritten."""
BUILDING_MOST_S = 60.0
"""And a file that keeps growing is believed as it is after this long: it may be a log by now."""
RECENT_US = 5_000_000
"""An entry that memd put into the file this short a time before an outside restore survives it."""

GOES_ON_S = 5.0
"""Who writes a file piece by piece does not pause for longer than this."""

CLOCK_US = 20_000
"""File times come from a coarser clock than ours: a tick of it, and some room."""


@dataclass(slots=True)
class Unsettled:
    """Foreign bytes under observation. Times are trio's, in seconds.

    ``grows``: what came last went on from what was there before it, as in a file that a script builds line by line. What it
    does not have yet it has not dropped. ``cut``: it looks as if it had not come to its end (``looks_cut``).
    """

    data: bytes | None
    first_seen: float
    last_changed: float
    grows: bool = False
    cut: bool = False

    def observe(self, data: bytes | None, now: float) -> None:
        """Note the bytes found now."""
        if data != self.data:
            self.grows = bool(data) and (data or b"").startswith(self.data or b"")
            self.data = data
            self.last_changed = now

    def settles_at(self) -> float:
        """When the bytes may be believed if they do not change again."""
        if self.grows and self.cut:
            quiet = SETTLE_MOST_S  # somebody builds it, and is held up
        elif self.grows or self.cut or not self.data or not self.data.strip():
            quiet = SETTLE_EMPTY_S
        else:
            quiet = SETTLE_S
        most = BUILDING_MOST_S if self.grows else SETTLE_MOST_S
        return min(self.last_changed + quiet, self.first_seen + most)

    def overdue(self, now: float) -> bool:
        """True if nobody has to wait any longer, whether the bytes may be believed or not."""
        return now >= self.first_seen + SETTLE_MOST_S


@dataclass(frozen=True, slots=True)
class Older:
    """What an outside writer may have started from: an older rendering, its bytes and its document with ids.

    ``data`` is None for what a person saved and memd merged: having it back would not mean to restore it.
    """

    data: bytes | None
    document: Document
    us: int = 0


@dataclass(frozen=True, slots=True)
class Believed:
    """What was last believed of a file that others wrote: its inode, its bytes, when, and the ids that were dropped by it.

    Times are trio's, in seconds; ``at`` is when it was believed, or was last seen to go on.
    If the same file goes on soon after, it was not complete then, and what it has after all was not meant to be dropped.
    """

    inode: int
    data: bytes
    at: float
    dropped: frozenset[str]

    def observe(self, inode: int, data: bytes, now: float) -> Believed:
        """The same, seen to go on if it does."""
        return dataclass_replace(self, at=now) if self._goes_on(inode, data, now) else self

    def wrongly(self, inode: int, data: bytes, now: float) -> frozenset[str]:
        """What may have been dropped by mistake, judging from what the file holds now (its own bytes: nothing was seen yet)."""
        return self.dropped if self._goes_on(inode, data, now) else frozenset()

    def _goes_on(self, inode: int, data: bytes, now: float) -> bool:
        return inode == self.inode and data.startswith(self.data) and now - self.at <= GOES_ON_S


def would_drop(head: Document, data: bytes | None, gone: Container[int] = ()) -> bool:
    """True if adopting these bytes would take an entry away, or bring one back that was taken away (``mark`` in ``gone``).

    Who writes an old version line by line and then something new passes through the old version as it was, which would
    be a deliberate restore if it stayed like that.
    """
    if data is None:
        return bool(head.entries)
    theirs = split_appended(head, data) or parse(data)
    missing = Counter(entry.text for entry in head.entries)
    missing.subtract(Counter(entry.text for entry in theirs.entries))
    return any(count > 0 or (count < 0 and mark(text) in gone) for text, count in missing.items())


def looks_cut(head: Document, data: bytes | None, gone: Container[int] = ()) -> bool:
    """True if the file ends with an entry that stood, or stands, in the middle of the store, or with half of one."""
    entries = parse(data or b"").entries
    if not entries or not head.entries:
        return False
    last = entries[-1].text
    if last == head.entries[-1].text:
        return False
    return mark(last) in gone or any(entry.text.startswith(last) for entry in head.entries)


def mark(text: str) -> int:
    """What is remembered of a text that was taken away: of no use in another process, and nobody can read it."""
    return hash(text)


def needs_base(head: Document, data: bytes | None) -> bool:
    """True if the head need not be what the writer of these bytes started from.

    Not even bytes that only add can do without: what they seem to add may be what was removed meanwhile.
    """
    if not data or not data.strip():
        return False
    return split_appended(head, data) is None or _begins_with(parse(data), head)


def adopt(  # noqa: PLR0913 - a three-way merge with its circumstances, each of them one fact
    head: Document,
    data: bytes,
    *,
    older: Sequence[Older],
    changed_us: int,
    stamp: Stamp,
    new_id: Callable[[str], str],
    last: Document | None = None,
    written_us: int = 0,
    revive: frozenset[str] = frozenset(),
) -> Merged:
    """Merge the bytes of a file into the head.

    Args:
        head: The store as memd has it.
        data: The file's bytes; ``b""`` for a missing file.
        older: The renderings before ``last`` that the writer may have started from, newest first.
        changed_us: When the file was changed, in microseconds since the epoch.
        stamp: Time and origin for what is new.
        new_id: Gives out an unused id for a text.
        last: What was in the file before these bytes, where that is not the head.
        written_us: When the bytes were written, where that is long ago; nothing newer can be what they started from.
        revive: Ids of what was dropped when ``last`` was believed, which was only the beginning of these bytes.
    """
    last = head if last is None else last
    if written_us:
        older = [rendering for rendering in older if rendering.us <= written_us + CLOCK_US]
    theirs = parse(data)
    if not theirs.entries:  # whoever empties a file means what is in it now, whatever else it once had
        return merge(last, theirs, head, stamp=stamp, new_id=new_id)
    if any(rendering.data is not None and _same(rendering.document, theirs) for rendering in older):
        # A deliberate restore, also if it has another final newline or other borders than we once wrote. It is one of what
        # was in the file then: where that came to light late, what was changed here since stays.
        protect = frozenset(entry.id for entry in head.entries if entry.updated_us > changed_us - RECENT_US)
        return merge(last, theirs, head, stamp=stamp, new_id=new_id, protect=protect)
    # The beginning of a file is nothing that anybody started from.
    first = [] if revive and older else [last]
    candidates = [*first, *(rendering.document for rendering in older)]
    for candidate in candidates:  # an older one: by a program that held it open
        appended = split_appended(candidate, data) if _may_go_on(theirs, candidate) else None
        if appended is not None and not _begins_with(theirs, candidate):
            return merge(candidate, appended, head, stamp=stamp, new_id=new_id)
    cut = (
        None
        if _is_beginning(theirs, last)
        else next((one.document for one in older if _is_beginning(theirs, one.document)), None)
    )
    if cut is not None:
        # An older version, and not all of it: more of it is still to come, or never came. Versions before it look more like
        # that than it does itself; what it has not is not dropped, and what it has is nothing new.
        base = replace(cut, entries=cut.entries[: len(theirs.entries)])
        return merge(base, theirs, head, stamp=stamp, new_id=new_id)
    texts = {entry.text for entry in theirs.entries}
    if not any(entry.text in texts for candidate in candidates for entry in candidate.entries):
        # Nothing tells of an older version: the file is a new one, written instead of the last.
        known = [entry for entry in last.entries if not _recent(entry, changed_us)]
        return merge(Document(entries=tuple(known)), theirs, head, stamp=stamp, new_id=new_id)
    base = find_base(theirs, candidates, changed_us)
    rest = tuple(entry for entry in base.entries if entry.id not in revive)
    return merge(replace(base, entries=rest), theirs, head, stamp=stamp, new_id=new_id)


def find_base(theirs: Document, candidates: Sequence[Document], changed_us: int) -> Document:
    """The version that the writer of a file started from: the one that differs least, where a rewording is one difference.

    Were it two, an edit of the newest entry would look like an addition to the version before it; the old wording would
    stay beside the new one.

    What memd put in moments before nobody has reworded, however alike it is to what they added; who did see it that soon
    finds both wordings. Against any but the last version it has to be clear that a text is a rewording, and not one more of
    its kind: there it is as likely that the writer read before the old wording came, and then nothing may go.

    Where two versions are as near, it is the one without what memd put in moments before: who read earlier is more likely than
    who took that out again at once.
    """
    texts = [entry.text for entry in theirs.entries]
    there, new = set(texts), set(texts)
    for candidate in candidates:
        new.difference_update([entry.text for entry in candidate.entries])
    rewordings = Rewordings(texts, new)
    found = differences(theirs, candidates)  # as a rewording is no change of length, none that is left out can be it

    def less(distance: int, index: int) -> tuple[int, int, int]:
        entries = candidates[index].entries
        old = [entry.text for entry in entries if entry.text in there or not _recent(entry, changed_us)]
        return distance - rewordings.count(old, clearly=index > 0), len(entries) - len(old), index

    best = less(*min(found))
    for distance, index in found:
        most = min(distance // 2, len(new)) if index else distance // 2
        if (distance - most, 0, index) < best:
            best = min(best, less(distance, index))
    return candidates[best[2]]


def _same(one: Document, two: Document) -> bool:
    pairs = zip(one.entries, two.entries, strict=False)
    return len(one.entries) == len(two.entries) and all(mine.text == other.text for mine, other in pairs)


def _is_beginning(theirs: Document, candidate: Document) -> bool:
    """True if the file has the candidate's first entries, and not all of them."""
    count = len(theirs.entries)
    if count >= len(candidate.entries) or theirs.entries[0].text != candidate.entries[0].text:
        return False
    return _begins_with(candidate, theirs)


def _recent(entry: Entry, changed_us: int) -> bool:
    """True for an entry that memd put into the file so short a time before that the writer need not have seen it."""
    return entry.origin != "outside" and entry.updated_us > changed_us - RECENT_US


def _may_go_on(theirs: Document, candidate: Document) -> bool:
    """False if the file cannot be the candidate with something appended: a look at one entry, for a thousand candidates."""
    last = len(candidate.entries) - 1
    return 0 <= last < len(theirs.entries) and theirs.entries[last].text.startswith(candidate.entries[last].text)


def _begins_with(theirs: Document, candidate: Document) -> bool:
    """True if the file's first entries are the candidate's: what follows has a border before it, like in any longer file."""
    count = len(candidate.entries)
    return [entry.text for entry in theirs.entries[:count]] == [entry.text for entry in candidate.entries]


def identify(document: Document, *heads: Document) -> Document:
    """A parsed document with the ids that entries of equal text have in other documents, the first that has them.

    Entries that none of them has get an id that is nobody's, so that a merge takes them as gone from the head.
    """
    known: defaultdict[str, deque[Entry]] = defaultdict(deque)
    for head in heads:
        for entry in head.entries:
            known[entry.text].append(entry)
    taken: set[str] = set()
    entries: list[Entry] = []
    for index, entry in enumerate(document.entries):
        queue = known[entry.text]
        while queue and queue[0].id in taken:
            queue.popleft()
        match = replace(queue.popleft(), raw=entry.raw) if queue else replace(entry, id=f"?{index}")
        taken.add(match.id)
        entries.append(match)
    return replace(document, entries=tuple(entries))
