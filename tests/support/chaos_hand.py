"""A person who edits a memory file by hand while everybody else is at it, as a process; and one who only looks.

What comes in: the file, the socket, a seed; the end of standard input is the end of the day. What goes out: one line of
JSON about each edit, before it is made. What must not be here: locks, or any other courtesy towards the daemon.

``edit`` has three styles: an editor (read, think, write the whole anew, rename), ``sed -i`` (the same without thinking)
and a shell (``>>``). It touches nothing a second time before memd has shown it to have arrived and others have written
since: a file that lacks the newest entry could as well come from somebody who never saw it.
"""

from __future__ import annotations

import json
import os
import random
import select
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from support.chaos import BORDER, HAND, entries, line, owner_of
from support.chaos_client import meet

from memd_client import Client

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST_THOUGHT_S = 0.15
LONGEST_PAUSE_S = 0.1
PATIENCE_S = 120
WRITTEN_SINCE = 5


class Hand:
    """What the person has in the file, and what may be touched again."""

    def __init__(self, file: Path, client: Client, seed: str) -> None:
        self.file = file
        self.client = client
        self.random = random.Random(seed)
        self.number = 0
        self.fresh: list[str] = []
        self.settled: dict[str, frozenset[str]] = {}

    def act(self) -> None:
        """One edit in one of the three styles."""
        style = self.random.choice((self._append, self._append, self._edit, self._edit, self._substitute))
        style()
        _pause(self.random.random() * LONGEST_PAUSE_S)

    def _new(self, words: str) -> str:
        self.number += 1
        text = line(HAND, self.number, words)
        self.fresh.append(text)
        return text

    def _append(self) -> None:
        """``printf '\\n§\\n…\\n' >> MEMORY.md``."""
        text = self._new("appended by a shell")
        _tell(kept=text)
        with self.file.open("ab") as out:
            out.write(f"{BORDER}{text}\n".encode())

    def _edit(self) -> None:
        """Add an entry somewhere, and perhaps remove one of ours."""
        self._learn()
        found = entries(self.file.read_text(encoding="utf-8"))
        _pause(self.random.random() * LONGEST_THOUGHT_S)
        found.insert(self.random.randrange(len(found) + 1), self._new("written in an editor"))
        told = {"kept": found[found.index(self.fresh[-1])]}
        if self.random.randrange(3) == 0 and (ours := self._touchable(found)):
            found.remove(ours)
            told["removed"] = ours
        self._save(found, told)

    def _substitute(self) -> None:
        """``sed -i s/ours/other/ MEMORY.md``."""
        self._learn()
        found = entries(self.file.read_text(encoding="utf-8"))
        if ours := self._touchable(found):
            new = self._new("substituted")
            found[found.index(ours)] = new
            self._save(found, {"kept": new, "removed": ours})

    def _touchable(self, found: Sequence[str]) -> str | None:
        """One of ours that has arrived and is in what we read; it is not touched again."""
        now = frozenset(found)
        ours = [text for text, then in self.settled.items() if text in now and len(then ^ now) >= WRITTEN_SINCE]
        if not ours:
            return None
        chosen = self.random.choice(ours)
        del self.settled[chosen]
        return chosen

    def _learn(self) -> None:
        """What memd shows has arrived."""
        shown = frozenset(entry.text for entry in self.client.memory_read("memory").stores["memory"].entries)
        self.settled |= {text: shown for text in self.fresh if text in shown}
        self.fresh = [text for text in self.fresh if text not in shown]

    def _save(self, found: Sequence[str], told: dict[str, str]) -> None:
        _tell(**told)
        temp = self.file.with_name("MEMORY.md~")
        temp.write_text(BORDER.join(found) + "\n", encoding="utf-8")
        temp.rename(self.file)


def edit(file: Path, socket: str, seed: str) -> None:
    """Edit until standard input ends."""
    with Client(socket, client_name=HAND, timeout=PATIENCE_S, autostart=False) as client:
        meet(client)
        hand = Hand(file, client, seed)
        while not _day_is_over():
            hand.act()


def watch(file: Path) -> None:
    """Read until standard input ends; print every damaged entry, and at the end how often the file was read."""
    reads, last = 0, b""
    while not _day_is_over():
        for _ in range(50):
            reads += 1
            data = file.read_bytes()
            if data != last:
                last = data
                for text in entries(data.decode("utf-8", "backslashreplace")) or [""]:
                    if owner_of(text) is None:
                        print(json.dumps({"damaged": text}), flush=True)  # noqa: T201 - its product
            _pause(0.001)
    print(json.dumps({"reads": reads}), flush=True)  # noqa: T201 - its product


def _pause(seconds: float) -> None:
    time.sleep(seconds)  # noqa: TID251 - a person is no event loop


def _tell(**said: str) -> None:
    print(json.dumps(said), flush=True)  # noqa: T201 - its product


def _day_is_over() -> bool:
    return bool(select.select([0], [], [], 0)[0]) and not os.read(0, 1)


if __name__ == "__main__":
    if sys.argv[1] == "edit":
        edit(Path(sys.argv[2]), *sys.argv[3:])
    else:
        watch(Path(sys.argv[2]))
