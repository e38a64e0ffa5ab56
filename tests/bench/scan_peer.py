"""The published peer's scanner, in a Python of its own.

What comes in: texts. What goes out: the names of the patterns that the peer finds at its strictest scope, and how long it took.
It is driven over pipes, in lines of JSON, so that nothing of it is imported here. What must not be here: judgement.
"""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

REQUIREMENT = "hermes-agent==0.19.0"
PROGRAM = """
import json, sys, time
from tools.threat_patterns import scan_for_threats
for line in sys.stdin:
    text = json.loads(line)
    start = time.perf_counter()
    found = scan_for_threats(text, scope="strict")
    took = time.perf_counter() - start
    print(json.dumps([[str(it) for it in found], took]), flush=True)
"""


class Answer(NamedTuple):
    """What the peer said about one text; ``seconds`` is None if it was stopped for taking too long."""

    found: tuple[str, ...]
    seconds: float | None


def environment(folder: Path) -> Path:
    """The Python of the peer's environment in the folder, made there if it is missing (needs the package index)."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        # Its scanner needs the standard library only, so none of the dependencies is installed.
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--no-deps", REQUIREMENT], check=True)
    return python


class Peer:
    """A peer that answers; it is started again after a text that took too long."""

    def __init__(self, command: Sequence[str], *, deadline_s: float = 20.0) -> None:
        self._command = list(command)
        self._deadline_s = deadline_s
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str] = queue.Queue()

    @classmethod
    def of(cls, python: Path, *, deadline_s: float = 20.0) -> Self:
        """The peer that is installed beside this Python."""
        return cls([str(python), "-I", "-c", PROGRAM], deadline_s=deadline_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def ask(self, text: str) -> Answer:
        """What the peer finds in the text.

        Raises:
            ChildProcessError: The peer ended by itself, for instance since it is not installed.
        """
        process = self._process or self._start()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(text) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            self._ended(process)
        try:
            line = self._lines.get(timeout=self._deadline_s)
        except queue.Empty:
            self._stop()
            return Answer((), None)
        if not line:
            self._ended(process)
        found, seconds = json.loads(line)
        return Answer(tuple(found), seconds)

    def _ended(self, process: subprocess.Popen[str]) -> None:
        self._stop()
        msg = f"the peer ended with status {process.returncode}"
        raise ChildProcessError(msg)

    def _start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        lines: queue.Queue[str] = queue.Queue()
        self._process, self._lines = process, lines
        threading.Thread(target=_read, args=(process, lines), daemon=True).start()
        return process

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # what was not read yet is of no use any more
                self._process.stdin.close()
            self._process = None


def _read(process: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            lines.put(line)
    lines.put("")
