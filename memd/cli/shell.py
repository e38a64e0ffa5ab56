"""What a verb may touch: streams, the environment, the clock.

What comes in: the process's own, or a test's. What goes out: lines, colour where it is wanted, JSON. What must not be
here: what is printed.
"""

from __future__ import annotations

import os
import sys
import time

from memd.cli.text import as_json

TYPE_CHECKING = False  # the typing module costs as much as a call
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping
    from typing import Any, Self, TextIO

COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
WIDTH = 80
NARROWEST = 20


class Shell:
    """The world around one run of the command."""

    def __init__(
        self,
        stdin: TextIO,
        stdout: TextIO,
        stderr: TextIO,
        env: Mapping[str, str],
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.env = env
        self.json = False
        self._clock_ns = clock_ns
        self._colour = "auto"

    @classmethod
    def of_process(cls) -> Self:
        """The process's own. What a stream cannot encode is escaped rather than an error."""
        for stream in (sys.stdout, sys.stderr):
            reconfigure = getattr(stream, "reconfigure", None)
            if reconfigure is not None:
                reconfigure(errors="backslashreplace")
        return cls(sys.stdin, sys.stdout, sys.stderr, os.environ)

    def configure(self, options: Namespace) -> None:
        """Take over the global options."""
        self.json = options.json
        self._colour = options.color

    def now_us(self) -> int:
        """The wall clock."""
        return self._clock_ns() // 1000

    def out(self, line: str = "") -> None:
        """A line of the answer."""
        self.stdout.write(line + "\n")

    def err(self, line: str) -> None:
        """A line beside the answer."""
        self.stderr.write(line + "\n")

    def out_json(self, value: Any) -> None:
        """The answer for programs."""
        self.stdout.write(as_json(value, 2) + "\n")

    def paint(self, text: str, colour: str, stream: TextIO | None = None) -> str:
        """The text in a colour, where colour is wanted."""
        return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if self.coloured(stream or self.stdout) else text

    def coloured(self, stream: TextIO) -> bool:
        """Whether to colour: as asked for, else on a terminal that does not forbid it (no-color.org)."""
        if self._colour != "auto":
            return self._colour == "always"
        return stream.isatty() and not self.env.get("NO_COLOR") and self.env.get("TERM") != "dumb"

    def attended(self) -> bool:
        """Whether a person runs this: an agent that runs a command captures at least one of the two."""
        return self.stdout.isatty() and self.stderr.isatty()

    def marks(self) -> str:
        """The two characters of a usage bar."""
        encoding = (self.stdout.encoding or "ascii").lower().replace("-", "")
        return "█░" if encoding == "utf8" else "#-"

    def width(self) -> int:
        """Columns of the terminal; ``COLUMNS`` counts more, and without a terminal it is 80."""
        columns = self.env.get("COLUMNS", "")
        if columns.isdecimal() and int(columns):
            return max(int(columns), NARROWEST)
        try:
            found = os.get_terminal_size(self.stdout.fileno()).columns
        except (OSError, ValueError):
            found = 0
        return max(found or WIDTH, NARROWEST)
