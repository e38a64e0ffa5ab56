"""One client of the chaos test, as a process: mixed changes, each repeated until it is acknowledged.

What comes in: the socket, a name, how many changes, a seed. What goes out: one line of JSON on standard output for each
acknowledged change, at the end one with its entries in order. What must not be here: a judgement, but for one: a client reads its own writes.
"""

from __future__ import annotations

import json
import random
import sys
import time
from typing import TYPE_CHECKING

from support.chaos import line, owner_of

from memd_client import Client
from memd_client.errors import NotRunning

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 120
RETRY_S = 0.02
MOST_ENTRIES = 30  # sixteen such clients and the hand stay under the 1,000 entries of a store
READ_EVERY = 7
WORDS = ("naïve", "façade", "記憶", "ghi nhớ", "🐈‍⬛", "plain", "words", "§ 12", "of memory")


class Worker:
    """The client's own entries as it believes them to be, and its way of changing them."""

    def __init__(self, client: Client, name: str, seed: str) -> None:
        self.client = client
        self.name = name
        self.random = random.Random(seed)
        self.mine: list[str] = []
        self.before: list[str] | None = None
        self.number = 0
        self.revision = 0

    def step(self) -> None:
        """Make one change, wait for its acknowledgement, and say so."""
        before = list(self.mine)
        chosen = self._choose()
        revision = chosen()
        gone = [text for text in before if text not in self.mine]
        come = [text for text in self.mine if text not in before]
        print(json.dumps({"revision": revision, "gone": gone, "come": come}), flush=True)  # noqa: T201 - its product
        # A removed entry gets its place back by number, and others may have removed what stood before it meanwhile.
        self.before = before if chosen in (self._add, self._replace, self._edit) else None
        self.revision = revision
        if self.random.randrange(READ_EVERY) == 0:
            self.check()

    def check(self) -> None:
        """What was acknowledged is what is read, however often the daemon was killed since."""
        found = self.client.memory_read("memory").stores["memory"].entries
        mine = [entry.text for entry in found if owner_of(entry.text) == self.name]
        assert self.mine == mine, f"{self.name} expected {self.mine}, read {mine}"

    def _choose(self) -> Callable[[], int]:
        if len(self.mine) < 3:
            return self._add
        if len(self.mine) >= MOST_ENTRIES:
            return self._remove
        choices = [self._add, self._replace, self._edit, self._remove, self._apply]
        weights = [40, 20, 15, 10, 10]
        if self.before is not None:
            choices.append(self._undo)
            weights.append(5)
        return self.random.choices(choices, weights)[0]

    def _text(self, lines: int = 1) -> str:
        self.number += 1
        said = [" ".join(self.random.choices(WORDS, k=4)) for _ in range(lines)]
        return "\n".join(line(self.name, self.number, f"{index} {words}") for index, words in enumerate(said))

    def _add(self) -> int:
        text = self._text(self.random.choice((1, 1, 2)))
        self.mine.append(text)
        return self.client.memory_add("memory", text).revision

    def _replace(self) -> int:
        index = self.random.randrange(len(self.mine))
        old, self.mine[index] = self.mine[index], self._text()
        return self.client.memory_replace("memory", self.mine[index], old_text=old).revision

    def _edit(self) -> int:
        index = self.random.randrange(len(self.mine))
        old = self.random.choice(self.mine[index].split("\n"))
        new = self._text()
        self.mine[index] = self.mine[index].replace(old, new)
        return self.client.memory_edit("memory", old, new).revision

    def _remove(self) -> int:
        return self.client.memory_remove(
            "memory", old_text=self.mine.pop(self.random.randrange(len(self.mine)))
        ).revision

    def _apply(self) -> int:
        removed = self.mine.pop(self.random.randrange(len(self.mine)))
        index = self.random.randrange(len(self.mine))
        old, self.mine[index] = self.mine[index], self._text()
        self.mine.append(self._text())
        operations = [
            {"action": "remove", "old_text": removed},
            {"action": "replace", "old_text": old, "content": self.mine[index]},
            {"action": "add", "content": self.mine[-1]},
        ]
        return self.client.memory_apply("memory", operations).revision

    def _undo(self) -> int:
        assert self.before is not None
        done = self.client.history_undo(revision=self.revision)
        assert done.revision is not None, f"{self.name}: conflicts {done.conflicts}"
        self.mine = self.before
        return done.revision


def meet(client: Client) -> None:
    """Connect for the first time, which a client does not try again by itself if the daemon is being killed just now."""
    while True:
        try:
            client.rpc_ping()
        except NotRunning:
            time.sleep(RETRY_S)  # noqa: TID251 - no event loop here
        else:
            return


def main(socket: str, name: str, count: str, seed: str) -> None:
    """Make ``count`` changes."""
    with Client(socket, client_name=name, timeout=PATIENCE_S, autostart=False) as client:
        meet(client)
        worker = Worker(client, name, f"{seed} {name}")
        for _ in range(int(count)):
            worker.step()
        worker.check()
        print(json.dumps({"mine": worker.mine}), flush=True)  # noqa: T201 - its product


if __name__ == "__main__":
    main(*sys.argv[1:])
