"""Which texts survived a run with many kinds of writers, and the judgement on it.

What comes in: who wrote, removed and put back what, and when; the file and the history at the end. What goes out: sentences
about what is wrong, none if nothing is. What must not be here: processes, sockets, files, clocks.

Whoever puts an older version of the whole file back (``git checkout``, a sync client) means it: what that version lacks may
be gone afterwards, but only from the file, and not what was written less than five seconds before.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

UNSEEN_S = 4.0
"""What was written this short a time before a version was put back has to survive: five seconds, less what an answer takes."""


@dataclass(frozen=True)
class PutBack:
    """An older version of the whole file: when it was put back, and its lines."""

    at: float
    lines: frozenset[str]


@dataclass
class Diary:
    """What everybody did; each text is one line and is written once. Threads may write to it."""

    written: dict[str, float] = field(default_factory=dict)
    removed: dict[str, float] = field(default_factory=dict)
    put_back: list[PutBack] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def wrote(self, text: str, at: float) -> None:
        """It was acknowledged, or saved."""
        with self.lock:
            self.written[text] = at

    def took_out(self, text: str, at: float) -> None:
        """Its removal was acknowledged, or saved."""
        with self.lock:
            self.removed[text] = at


def losses(diary: Diary, file: Collection[str], shown: Collection[str], recorded: Collection[str]) -> list[str]:
    """Everything that is wrong. The three are lines: of the file, of what memd shows, of every revision."""
    return [
        *diary.trouble,
        *_missing(diary, frozenset(file), frozenset(recorded)),
        *_risen(diary, frozenset(file)),
        *_doubled(file),
        *(f"the file and memd differ: {text}" for text in sorted(set(file) ^ set(shown))),
        *(f"nobody wrote this: {text}" for text in sorted(set(file) - diary.written.keys())),
    ]


def _missing(diary: Diary, file: frozenset[str], recorded: frozenset[str]) -> Iterator[str]:
    for text, at in sorted(diary.written.items()):
        if text in file:
            continue
        if text not in recorded:
            yield f"written, and no revision has it: {text}"
        elif text not in diary.removed and not any(
            text not in version.lines and at < version.at - UNSEEN_S for version in diary.put_back
        ):
            yield f"written, and gone from the file: {text}"


def _risen(diary: Diary, file: frozenset[str]) -> Iterator[str]:
    for text, at in sorted(diary.removed.items()):
        if text in file and not any(text in version.lines and version.at > at for version in diary.put_back):
            yield f"removed, and back: {text}"


def _doubled(file: Collection[str]) -> Iterator[str]:
    seen = set()
    for text in file:
        if text in seen:
            yield f"there twice: {text}"
        seen.add(text)
