"""A disk whose power may go at any moment: what it can hold then, from a record of the calls that changed it.

What comes in: the record that ``tests/faults/every_call.c`` writes. What goes out: for each moment the states that a power
cut can leave, as files and directories. What must not be here: a real disk, expectations.

The model is harsher than any file system in use. What was written to a file since its last fsync is there, is not, is torn
in its last write, or is zeros of the right length; each file by itself. What happened to the names in a directory since its
last fsync is there up to some point, each directory by itself: an fsync of a file says nothing of its name. Only the
exchange and the rename of names are atomic, and an fsync that has returned holds.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Sequence

How = Literal["none", "all", "torn", "zeros"]
HOWS: tuple[How, ...] = ("none", "all", "torn", "zeros")
MIXES = 4


@dataclass(frozen=True)
class Step:
    """One change, in the order made. ``words`` as in the record; ``data`` of a write."""

    kind: str
    words: tuple[str, ...]
    data: bytes = b""


@dataclass(frozen=True)
class State:
    """What the disk holds: directories, and files with all their names."""

    directories: frozenset[str]
    files: tuple[tuple[tuple[str, ...], bytes], ...]


@dataclass
class Inode:
    """A file: what is durable of it, and what was done to it since."""

    durable: bytes = b""
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def content(self, how: How) -> bytes:
        """Its bytes after a power cut. A pending item is (offset, bytes), or (length, None) for a truncation."""
        data = bytearray(self.durable)
        for number, (at, written) in enumerate(self.pending):
            if how == "none":
                break
            if written is None:
                del data[at:]
                data.extend(bytes(at - len(data)))
                continue
            part = written
            if how == "torn" and number == len(self.pending) - 1:
                part = written[: len(written) // 2]
            elif how == "zeros":
                part = bytes(len(written))
            data.extend(bytes(max(0, at - len(data))))
            data[at : at + len(part)] = part
        return bytes(data)


def parse(record: bytes) -> list[Step]:
    """The steps of a record."""
    steps: list[Step] = []
    at = 0
    while at < len(record):
        end = record.index(b"\n", at)
        kind, _, rest = record[at:end].decode().partition(" ")
        at = end + 1
        if kind == "write":
            inode, offset, size = rest.split(" ")
            steps.append(Step(kind, (inode, offset), record[at : at + int(size)]))
            at += int(size)
        elif kind in {"rename", "exchange", "link"}:
            steps.append(Step(kind, tuple(rest.split("\t"))))
        elif kind in {"create", "truncate", "sync"}:
            steps.append(Step(kind, tuple(rest.split(" ", 1))))
        else:
            steps.append(Step(kind, (rest,)))
    return steps


class Disk:
    """The disk while a record is played. ``directories`` are those that were there before."""

    def __init__(self, directories: Sequence[str] = ()) -> None:
        self.notes: list[str] = []
        self._inodes: dict[str, Inode] = {}
        self._names: dict[str, Inode | None] = dict.fromkeys(["", *directories])  # None: a directory
        self._pending: dict[str, list[Step | tuple[str, Inode]]] = defaultdict(list)

    def play(self, step: Step) -> None:
        """Carry one step out."""
        _PLAYS.get(step.kind, Disk._name)(self, step)

    def states(self, rng: random.Random) -> Iterator[State]:
        """What a power cut now can leave, each state once."""
        seen: set[State] = set()
        for choose, upto in self._choices(rng):
            state = self._state(choose, upto)
            if state not in seen:
                seen.add(state)
                yield state

    # -- steps --------------------------------------------------------------------------------------------------

    def _note(self, step: Step) -> None:
        self.notes.append(step.words[0])

    def _create(self, step: Step) -> None:
        inode = self._inodes[step.words[0]] = Inode()  # numbers are given out again
        self._pending[_parent(step.words[1])].append((step.words[1], inode))

    def _write(self, step: Step) -> None:
        self._inodes[step.words[0]].pending.append((int(step.words[1]), step.data))

    def _truncate(self, step: Step) -> None:
        self._inodes[step.words[0]].pending.append((int(step.words[1]), None))

    def _sync(self, step: Step) -> None:
        number, path = step.words if len(step.words) == 2 else (step.words[0], "")
        if path in self._pending or self._names.get(path, self) is None:
            names = dict(self._names)
            for item in self._pending.pop(path, []):
                _rename(names, item)
            self._names = names
            return
        inode = self._inodes[number]
        inode.durable = inode.content("all")
        inode.pending.clear()

    def _name(self, step: Step) -> None:
        self._pending[_parent(step.words[-1])].append(step)

    # -- states -------------------------------------------------------------------------------------------------

    def _choices(self, rng: random.Random) -> Iterator[tuple[Callable[[Inode], How], Callable[[int], int]]]:
        for how in HOWS:
            for share in (0.0, 0.5, 1.0):
                yield partial(_always, how), partial(_share, share)
        for _ in range(MIXES):
            yield partial(_mixed, {}, rng), partial(rng.randint, 0)

    def _state(self, choose: Callable[[Inode], How], upto: Callable[[int], int]) -> State:
        names = dict(self._names)
        for _, pending in sorted(self._pending.items()):
            for item in pending[: upto(len(pending))]:
                _rename(names, item)
        there = {path for path, inode in names.items() if inode is None}
        whole = {path for path in there if all(parent in there for parent in _parents(path))}
        links: dict[int, list[str]] = defaultdict(list)
        found: dict[int, Inode] = {}
        for path, inode in sorted(names.items()):
            if inode is not None and _parent(path) in whole:
                links[id(inode)].append(path)
                found[id(inode)] = inode
        files = [(tuple(paths), found[key].content(choose(found[key]))) for key, paths in links.items()]
        return State(frozenset(whole), tuple(files))


def _always(how: How, _: Inode) -> How:
    return how


def _mixed(chosen: dict[int, How], rng: random.Random, inode: Inode) -> How:
    return chosen.setdefault(id(inode), rng.choice(HOWS))


def _share(share: float, count: int) -> int:
    return round(count * share)


_PLAYS: dict[str, Callable[[Disk, Step], None]] = {
    "note": Disk._note,
    "create": Disk._create,
    "write": Disk._write,
    "truncate": Disk._truncate,
    "sync": Disk._sync,
}


def _rename(names: dict[str, Inode | None], item: Step | tuple[str, Inode]) -> None:
    """Carry a change of names out on what is known of them."""
    if isinstance(item, tuple):
        names[item[0]] = item[1]
        return
    first, last = item.words[0], item.words[-1]
    if item.kind == "mkdir":
        names[last] = None
    elif item.kind == "unlink":
        names.pop(last, None)
    elif item.kind == "exchange":
        if first in names and last in names:
            names[first], names[last] = names[last], names[first]
    elif first in names:
        names[last] = names[first] if item.kind == "link" else names.pop(first)


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _parents(path: str) -> Iterator[str]:
    while path:
        path = _parent(path)
        yield path
