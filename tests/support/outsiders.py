"""Eight kinds of outside writers of one memory file, each the way it is done, and clients beside them.

What comes in: a file, a socket, a diary. What goes out: the diary, filled. What must not be here: the judgement
(``survival``), starting a daemon.

Outside writers take turns: a second one would overwrite the first before anybody else could have seen it, which nobody can
prevent. A turn is over when memd shows what it brought. What they write is read long before, as it is in life, but not in the
middle of another one's writing: whoever reads half a file and saves it with a line more has thrown the other half away, also
where there is no memd, and nobody can tell it from a person who did so on purpose.
"""

from __future__ import annotations

import random
import subprocess
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from support.survival import PutBack

from memd_client import Client
from memd_client.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.survival import Diary

BORDER = "\n§\n"
STALE_S = 3.0
TURN_S = 60.0
POLL_S = 0.02
BUILDING_S = 0.5
MOST_ENTRIES = 20  # of a client: a store has a thousand at most
PUT_BACK_EVERY_S = 3.0
GIT_TRIES = 5


class Outsiders:
    """All of them over one file. ``run`` returns after ``seconds``, when everybody has finished their turn."""

    def __init__(self, file: Path, socket: Path, diary: Diary, seed: str) -> None:
        self.file = file
        self.socket = str(socket)
        self.diary = diary
        self.seed = seed
        self.numbers = iter(range(1, 10**9))
        self.turn = threading.Lock()
        self.writing = threading.Lock()  # held within a turn, until all is written
        self.over = threading.Event()

    def run(self, seconds: float, clients: int) -> None:
        """Let everybody write at the same time, into a file that has a few entries already.

        A file that shares no text with any older one is taken for a new one; whoever read it empty could only write such.
        """
        self.file.write_text(BORDER.join(self._wrote(self._text("seed")) for _ in range(5)) + "\n", encoding="utf-8")
        with Client(self.socket, client_name="looks", timeout=60, autostart=False) as client:
            self._seen(client, list(self.diary.written))
        kinds = (
            self.editor, self.shell, self.sed, self.stale_editor, self.checkout, self.sync, self.stale_script, self.builder,
        )  # fmt: skip
        jobs = [(kind.__name__, self._outsider(kind)) for kind in kinds]
        jobs += [(f"client{number}", self._client(f"client{number}")) for number in range(clients)]
        threads = [threading.Thread(target=self._guarded, args=job) for job in jobs]
        for thread in threads:
            thread.start()
        self.over.wait(seconds)
        self.over.set()
        for thread in threads:
            thread.join()

    def _guarded(self, name: str, job: Callable[[], None]) -> None:
        try:
            job()
        except Exception as error:  # noqa: BLE001 - whatever it is, the judge has to hear of it
            self.diary.trouble.append(f"{name}: {error!r}")
            self.over.set()

    # -- clients ------------------------------------------------------------------------------------------------

    def _client(self, name: str) -> Callable[[], None]:
        def job() -> None:
            mine: list[str] = []
            chance = random.Random(f"{self.seed} {name}")
            with Client(self.socket, client_name=name, timeout=60, autostart=False) as client:
                while not self.over.is_set():
                    text = self._text(name)
                    client.memory_add("memory", text)
                    self.diary.wrote(text, time.monotonic())
                    mine.append(text)
                    if len(mine) > MOST_ENTRIES or (len(mine) > 5 and chance.randrange(2)):
                        self._remove(client, mine.pop(chance.randrange(len(mine))))
                    self.over.wait(chance.random() * 0.1)

        return job

    def _remove(self, client: Client, text: str) -> None:
        begun = time.monotonic()  # a version put back before the answer is here may well be the later of the two
        try:
            client.memory_remove("memory", old_text=text)
        except NotFound:  # an older version of the file was put back meanwhile
            return
        self.diary.took_out(text, begun)

    def _text(self, owner: str) -> str:
        return f"{owner} wrote number {next(self.numbers)}."

    # -- outside writers ----------------------------------------------------------------------------------------

    def _outsider(self, kind: Callable[[random.Random], Iterator[str]]) -> Callable[[], None]:
        """A job that does one kind over and over: each is a generator that reads before its ``yield`` and writes after it."""

        def job() -> None:
            chance = random.Random(f"{self.seed} {kind.__name__}")
            with Client(self.socket, client_name="looks", timeout=60, autostart=False) as client:
                while not self.over.is_set():
                    work = kind(chance)
                    next(work)
                    with self.turn:
                        if self.over.is_set():
                            break
                        with self.writing:
                            brought = [text for text in work if text]
                        self._seen(client, brought)
                    self.over.wait(chance.random())

        return job

    def _seen(self, client: Client, brought: list[str]) -> None:
        """Wait until memd shows what was written."""
        end = time.monotonic() + TURN_S
        while time.monotonic() < end:
            found = client.memory_read("memory").stores["memory"].entries
            lines = {line for entry in found for line in entry.text.split("\n")}
            if lines.issuperset(brought):
                return
            time.sleep(POLL_S)  # noqa: TID251 - a thread, no event loop
        self.diary.trouble.append(f"not shown within {TURN_S} s: {brought}")

    def _read(self) -> list[str]:
        with self.writing:
            content = self.file.read_text(encoding="utf-8")
        return [text.strip() for text in content.split(BORDER) if text.strip()]

    def _wrote(self, text: str) -> str:
        self.diary.wrote(text, time.monotonic())
        return text

    def editor(self, chance: random.Random) -> Iterator[str]:
        """Read, think, save by rename: an entry more somewhere, and perhaps one of its own less."""
        found = self._read()
        self.over.wait(0.1)
        yield ""
        text = self._text("editor")
        ours = [one for one in found[:-5] if one.startswith("editor wrote") and "\n" not in one]
        if ours and chance.randrange(2):
            self.diary.took_out(ours[0], time.monotonic())
            found.remove(ours[0])
        found.insert(chance.randrange(len(found) + 1), text)
        self._rename(BORDER.join(found) + "\n")
        yield self._wrote(text)

    def shell(self, chance: random.Random) -> Iterator[str]:
        """``echo … >> file``, without a border, a few times."""
        yield ""
        texts = [self._text("shell") for _ in range(chance.randrange(1, 4))]
        for text in texts:
            with self.file.open("ab") as file:
                file.write(f"{text}\n".encode())
            yield self._wrote(text)

    def sed(self, chance: random.Random) -> Iterator[str]:
        """``sed -i``: one of its own reworded; first there has to be one."""
        found = [one for one in self._read()[:-5] if one.startswith("sed wrote") and "\n" not in one]
        yield ""
        text = self._text("sed")
        if not found:
            with self.file.open("ab") as file:
                file.write(f"{BORDER}{text}\n".encode())
            yield self._wrote(text)
            return
        old = chance.choice(found)
        command = ["sed", "-i", f"s/^{old}$/{text}/w /dev/stdout", str(self.file)]
        if subprocess.run(
            command, check=True, capture_output=True
        ).stdout:  # else an older version was put back meanwhile
            self.diary.took_out(old, time.monotonic())
            yield self._wrote(text)

    def stale_editor(self, chance: random.Random) -> Iterator[str]:
        """An editor that read the file long ago, and saves what it has with a line more."""
        found = self._read()
        self.over.wait(STALE_S * (0.5 + chance.random()))
        yield ""
        text = self._text("stale_editor")
        self._rename(BORDER.join([*found, text]) + "\n")
        yield self._wrote(text)

    def stale_script(self, chance: random.Random) -> Iterator[str]:
        """The same, written in place: truncated, then written."""
        found = self._read()
        self.over.wait(STALE_S * chance.random())
        yield ""
        text = self._text("stale_script")
        self.file.write_text(BORDER.join([text, *found]) + "\n", encoding="utf-8")
        yield self._wrote(text)

    def builder(self, chance: random.Random) -> Iterator[str]:
        """The same, line by line, within a second: a file that is rewritten for more than two is believed as it is then."""
        found = self._read()
        self.over.wait(chance.random())
        yield ""
        text = self._text("builder")
        with self.file.open("w", encoding="utf-8") as file:
            lines = BORDER.join([*found, text]).split("\n")
            for line in lines:
                file.write(line + "\n")
                file.flush()
                time.sleep(BUILDING_S / len(lines))  # noqa: TID251 - a thread, no event loop
        yield self._wrote(text)

    def checkout(self, chance: random.Random) -> Iterator[str]:
        """``git commit``, and later ``git checkout`` of that version."""
        with self.turn:  # nobody commits while somebody writes
            version = self.file.read_bytes()
            for command in (["init", "-q"], ["add", self.file.name], ["commit", "-q", "--allow-empty", "-m", "x"]):
                self._git(*command)
        self.over.wait(PUT_BACK_EVERY_S * (0.5 + chance.random()))
        yield ""
        committed = self._git("show", f"HEAD:{self.file.name}")
        self._git("checkout", "-q", "HEAD", "--", self.file.name)
        yield self._put_back(committed or version)

    def _git(self, *command: str) -> bytes:
        """Git fails where the file is exchanged between its look and its read, or there again when it makes it: ask again."""
        git = ["git", "-C", str(self.file.parent), "-c", "user.name=x", "-c", "user.email=x@example.org", *command]
        for _ in range(GIT_TRIES - 1):
            with suppress(subprocess.CalledProcessError):
                return subprocess.run(git, check=True, capture_output=True).stdout
        return subprocess.run(git, check=True, capture_output=True).stdout

    def sync(self, chance: random.Random) -> Iterator[str]:
        """A sync client that puts the other machine's older version in place by rename."""
        with self.turn:
            version = self.file.read_bytes()
        self.over.wait(PUT_BACK_EVERY_S * (0.5 + chance.random()))
        yield ""
        self._rename(version.decode())
        yield self._put_back(version)

    def _put_back(self, version: bytes) -> str:
        lines = frozenset(line for line in version.decode().split("\n") if line not in {"", "§"})
        self.diary.put_back.append(PutBack(time.monotonic(), lines))
        time.sleep(1.0)  # noqa: TID251 - a thread; until it is believed, and nothing new tells of that
        return ""

    def _rename(self, content: str) -> None:
        temp = self.file.with_name(".MEMORY.md.new")
        temp.write_text(content, encoding="utf-8")
        temp.rename(self.file)
