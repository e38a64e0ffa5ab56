"""The three-way merge by entry: what others wrote into the file, and what memd had, as one document.

What comes in: the file as parsed (theirs), the head (ours), and the rendering that the writer of the file started from
(base). What goes out: the merged document, what changed against the head, what was dropped or kept. What must not be
here: when bytes may be believed (``adoption``), I/O.

The rules: delete against change, the change stays; change against change, both stay and the file's text keeps place and
id; what was added or changed in ours after base stays; identical entries stay separate and are matched in order, and no text
is there more often than in either side; the file's order wins; the file is written again only if its own entries are not the merged ones.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace
from rapidfuzz.distance import LCSseq

from memd.profile import layout
from memd.profile.entries import Document, Entry, parse, render
from memd.profile.inverse import difference
from memd.profile.matching import describe
from memd.profile.values import Change, Notice, Stamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


@dataclass(frozen=True, slots=True)
class Merged:
    """The outcome of a merge.

    ``dropped`` are entries of ours that the file no longer has and that are gone; ``kept`` those that stay although
    the file does not have them. ``lossy`` says that the file has a text which the document has not, so that its bytes
    are worth keeping. ``rewrite`` says that the file has to be written; if not, the document renders to its bytes.
    """

    document: Document
    changes: tuple[Change, ...]
    dropped: tuple[Entry, ...]
    kept: tuple[Entry, ...]
    notices: tuple[Notice, ...]
    lossy: bool
    rewrite: bool


@dataclass(slots=True)
class _State:
    """A merge under way: lookups that do not change, and the result as it grows."""

    base: dict[str, Entry]
    ours: dict[str, Entry]
    stamp: Stamp
    new_id: Callable[[str], str]
    protect: frozenset[str]
    result: list[Entry] = field(default_factory=list)
    placed: set[str] = field(default_factory=set)
    kept: list[Entry] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)

    def put(self, entry: Entry) -> None:
        self.result.append(entry)
        self.placed.add(entry.id)


def differences(theirs: Document, candidates: Sequence[Document]) -> list[tuple[int, int]]:
    """By how many entries candidates differ from the file, each with its index; one more counts like one less.

    Left out are those whose length alone says that another differs less, and what follows one without difference.
    """
    texts = Counter(entry.text for entry in theirs.entries)
    found: list[tuple[int, int]] = []
    least = -1
    for index, candidate in enumerate(candidates):
        if least >= 0 and abs(len(candidate.entries) - len(theirs.entries)) >= least:
            continue
        distance = _distance(texts, candidate)
        found.append((distance, index))
        least = distance if least < 0 else min(least, distance)
        if least == 0:
            break
    return found


def split_appended(rendering: Document, data: bytes) -> Document | None:
    """The file as the rendering and, behind it, entries of their own; None if it does not begin with the rendering.

    What a shell appends has no border before it and perhaps not even a newline. Such a gap stays in the document as it
    is, without a border, so that it renders to the file's bytes; ``merge`` puts the border in.
    """
    known = render(rendering)
    if not rendering.entries or len(data) <= len(known) or not data.startswith(known):
        return None
    rest = parse(data[len(known) :])
    if not rest.entries:
        return None
    gap = rendering.tail + rest.head
    return Document(
        rendering.head,
        tuple(replace(entry, id="") for entry in (*rendering.entries, *rest.entries)),
        (*rendering.gaps, gap, *rest.gaps),
        rest.tail,
        rendering.newline,
    )


def merge(
    base: Document,
    theirs: Document,
    ours: Document,
    *,
    stamp: Stamp,
    new_id: Callable[[str], str],
    protect: frozenset[str] = frozenset(),
) -> Merged:
    """Merge a file into the head.

    Args:
        base: The document that the file's writer started from, with ids.
        theirs: The file, without ids.
        ours: The head, with ids.
        stamp: Time and origin for entries that are new or changed in the file.
        new_id: Makes the id of a new entry from its text.
        protect: Ids of ours that the file may neither drop nor change.
    """
    state = _State(
        {entry.id: entry for entry in base.entries},
        {entry.id: entry for entry in ours.entries},
        stamp,
        new_id,
        protect,
    )
    owners = _owners(base, theirs, ours)
    file_entries = _place_theirs(state, theirs, owners)
    dropped = _place_ours(state, ours)
    _leave_out_doubles(state, theirs, ours)
    if [entry.text for entry in theirs.entries] == [entry.text for entry in base.entries]:
        # The file brings nothing, so that its order is no news either.
        found = {entry.id: entry for entry in state.result}
        state.result = [found.get(entry.id, entry) for entry in ours.entries]
    return _finished(state, replace(theirs, entries=file_entries), ours, dropped)


def _owners(base: Document, theirs: Document, ours: Document) -> list[str | None]:
    """For each entry of the file the id of the entry that it is, or None for a new one."""
    owners: list[str | None] = [None] * len(theirs.entries)
    now = {entry.id: entry.text for entry in ours.entries}
    unchanged = {at for at, entry in enumerate(base.entries) if now.get(entry.id) == entry.text}
    for mine, other in _same_texts(base.entries, theirs.entries, unchanged):
        owners[other] = base.entries[mine].id
    taken = {owner for owner in owners if owner is not None}
    free: defaultdict[str, deque[str]] = defaultdict(deque)
    for entry in ours.entries:
        if entry.id not in taken:
            free[entry.text].append(entry.id)
    for index, entry in enumerate(theirs.entries):
        if owners[index] is None and free[entry.text]:
            owners[index] = free[entry.text].popleft()
    _own_altered(base, owners)
    return owners


def _same_texts(base: Sequence[Entry], theirs: Sequence[Entry], unchanged: set[int]) -> list[tuple[int, int]]:
    """Pairs of entries with equal text: those in a common order first, then what was moved; identical ones in order.

    Which of several identical ones a file left out nobody can tell. If one was removed or changed here (it is not among
    the ``unchanged`` of base), it was that one: were it another, the text would be gone although both sides have it.
    """
    # Numbers for texts: alignment compares hashes, and those of small numbers are exact.
    number: dict[str, int] = {}
    old, new = ([number.setdefault(entry.text, len(number)) for entry in side] for side in (base, theirs))
    by_text: defaultdict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for at, to in _aligned(old, new):
        by_text[old[at]][0].append(at)
        by_text[old[at]][1].append(to)
    spare: defaultdict[int, deque[int]] = defaultdict(deque)
    for at, text in enumerate(old):
        if at not in by_text[text][0]:
            spare[text].append(at)
    for to, text in enumerate(new):
        if spare[text] and to not in by_text[text][1]:
            by_text[text][0].append(spare[text].popleft())
            by_text[text][1].append(to)
    for text, (left, _) in by_text.items():
        _prefer(unchanged, left, spare[text])
    return [pair for left, right in by_text.values() for pair in zip(sorted(left), sorted(right), strict=True)]


def _prefer(wanted: set[int], chosen: list[int], others: Iterable[int]) -> None:
    """Exchange what is chosen and not wanted for others that are wanted, as far as there are any."""
    spare = [at for at in others if at in wanted]
    for place, at in enumerate(chosen):
        if spare and at not in wanted:
            chosen[place] = spare.pop(0)


def _own_altered(base: Document, owners: list[str | None]) -> None:
    """Give an altered entry its id: the only one without owner in its gap, where base has only one too.

    A gap is known by either neighbour, since the other may have been moved away.
    """
    taken = {owner for owner in owners if owner is not None}
    ids = [entry.id for entry in base.entries]
    gone = _lone([entry_id if entry_id in taken else None for entry_id in ids])
    pairs = [
        (index, old)
        for index, left, right in _lone(owners)
        for old, *sides in gone
        if left == sides[0] or right == sides[1]
    ]
    for index, old in pairs:
        if sum(1 for pair in pairs if pair[0] == index or pair[1] == old) == 1:
            owners[index] = ids[old]


def _lone(owners: Sequence[str | None]) -> list[tuple[int, str, str]]:
    """Index and both neighbours of each None that stands between two owners; the ends of the file are owners too."""
    padded = ["<", *owners, ">"]
    return [
        (index, left, right)
        for index, (left, owner, right) in enumerate(zip(padded, padded[1:], padded[2:], strict=False))
        if owner is None and left is not None and right is not None
    ]


def _aligned(one: Sequence[int], two: Sequence[int]) -> list[tuple[int, int]]:
    """Index pairs of a longest common subsequence."""
    return [
        pair
        for part in LCSseq.opcodes(one, two)
        if part.tag == "equal"
        for pair in zip(range(part.src_start, part.src_end), range(part.dest_start, part.dest_end), strict=True)
    ]


def _place_theirs(state: _State, theirs: Document, owners: Sequence[str | None]) -> tuple[Entry, ...]:
    """Put what the file has into the result; returned are the file's entries with their ids."""
    named: list[Entry] = []
    for entry, owner in zip(theirs.entries, owners, strict=True):
        if owner is None:
            named.append(_fresh(state, entry))
            state.put(named[-1])
            continue
        named.append(_settle(state, replace(entry, id=owner)))
    return tuple(named)


def _settle(state: _State, entry: Entry) -> Entry:
    """Decide between the file's entry and ours of the same id; returned is the file's, with what is known of it."""
    base, mine, stamp = state.base.get(entry.id), state.ours.get(entry.id), state.stamp
    if mine is not None and mine.text == entry.text:
        named = replace(mine, raw=entry.raw)
        state.put(named)
        return named
    if mine is None:
        if base is not None and entry.text == base.text:
            return entry
        # Deleted here, changed there: the change stays, as an entry of its own since ids are never given out again.
        named = _fresh(state, entry)
        state.put(named)
        return named
    named = replace(mine, raw=entry.raw, text=entry.text, updated_us=stamp.us, origin=stamp.origin)
    if (base is not None and entry.text == base.text) or mine.id in state.protect:
        state.put(mine)
        state.kept.append(mine)
        return named
    state.put(named)
    if base is None or mine.text != base.text:
        _keep_beside(state, mine, named)
    return named


def _keep_beside(state: _State, mine: Entry, named: Entry) -> None:
    """Change against change: ours stays too, behind the file's, under an id of its own."""
    copy = replace(mine, id=state.new_id(mine.text))
    state.put(copy)
    state.kept.append(copy)
    message = f"The entry {named.id} was changed in the file and here; both texts stay, ours as {copy.id}."
    state.notices.append(Notice("outside_conflict", message, {"id": named.id, "kept": describe(copy)}))


def _place_ours(state: _State, ours: Document) -> tuple[Entry, ...]:
    """Put what must stay of ours behind the entry it stood behind; returned is what is dropped."""
    dropped: list[Entry] = []
    previous: str | None = None
    for entry in ours.entries:
        if entry.id not in state.placed:
            base = state.base.get(entry.id)
            if base is not None and base.text == entry.text and entry.id not in state.protect:
                dropped.append(entry)
                continue
            at = next((at for at, other in enumerate(state.result) if other.id == previous), -1)
            state.result.insert(at + 1, entry)
            state.placed.add(entry.id)
            state.kept.append(entry)
        previous = entry.id
    return tuple(dropped)


def _leave_out_doubles(state: _State, theirs: Document, ours: Document) -> None:
    """Where an entry was changed here into what the file has added, the two are one: no text is there more often than in either."""
    most = Counter(entry.text for entry in theirs.entries) | Counter(entry.text for entry in ours.entries)
    found = Counter(entry.text for entry in state.result)
    for at in reversed(range(len(state.result))):
        entry = state.result[at]
        if found[entry.text] > most[entry.text] and entry.id not in state.ours:
            found[entry.text] -= 1
            del state.result[at]


def _finished(state: _State, theirs: Document, ours: Document, dropped: tuple[Entry, ...]) -> Merged:
    file = parse(render(theirs))
    texts = [entry.text for entry in state.result]
    rewrite = texts != [entry.text for entry in file.entries]
    if not rewrite:
        document = replace(file, entries=_with_raw(state.result, file.entries))
    else:
        document = layout.arrange(theirs, state.result, ours)
    missing = Counter(entry.text for entry in theirs.entries)
    missing.subtract(Counter(texts))
    return Merged(
        document,
        difference(ours, document),
        dropped,
        tuple(state.kept),
        tuple(state.notices),
        lossy=any(count > 0 for count in missing.values()),
        rewrite=rewrite,
    )


def _with_raw(entries: Iterable[Entry], like: Iterable[Entry]) -> tuple[Entry, ...]:
    """The entries with the raw texts of others that say the same."""
    return tuple(replace(entry, raw=other.raw) for entry, other in zip(entries, like, strict=True))


def _fresh(state: _State, entry: Entry) -> Entry:
    stamp = state.stamp
    return replace(entry, id=state.new_id(entry.text), created_us=stamp.us, updated_us=stamp.us, origin=stamp.origin)


def _distance(texts: Counter[str], candidate: Document) -> int:
    """How many entries the two do not share, identical ones counted each."""
    others = [entry.text for entry in candidate.entries]
    distinct = set(others)
    if len(distinct) == len(others) and len(texts) == texts.total():
        # A thousand renderings may have to be looked at; counting is only needed where a text repeats.
        shared = len(distinct.intersection(texts))
    else:
        shared = (texts & Counter(others)).total()
    return texts.total() + len(others) - 2 * shared
