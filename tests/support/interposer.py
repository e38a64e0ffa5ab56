"""The library that fails or ends a process at any one of its system calls, as an object.

What comes in: a directory below which calls count, and which of them fails how. What goes out: how many there were, and
which one was struck. What must not be here: expectations. ``tests/faults/every_call.c`` says what is met.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(__file__).parents[1] / "faults" / "every_call.c"
NEVER = 1 << 40


def build(folder: Path) -> Path:
    """Compile the library; needs ``cc``."""
    library = folder / "every_call.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, SOURCE, "-ldl"], check=True)
    return library


class Calls:
    """The calls of this process, which was started with the library in ``LD_PRELOAD``."""

    def __init__(self, root: Path) -> None:
        self._library: Any = ctypes.CDLL(None)
        self._library.fault_struck.restype = ctypes.c_char_p
        self._library.fault_disarm.restype = ctypes.c_long
        self._library.fault_arm.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_int]
        self._library.fault_root(os.fsencode(root))

    def arm(self, number: int, error: int, times: int = 1) -> None:
        """Let the call of this number, counted from now, and those after it fail; an error of 0 ends the process."""
        self._library.fault_arm(number, error, times)

    def record(self, path: Path) -> None:
        """Write every change below the root down, from now on."""
        self._library.fault_record(os.fsencode(path))

    def note(self, line: str) -> None:
        """Write something else down between them; one line."""
        self._library.fault_note(line.encode())

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What others do meanwhile neither counts nor fails."""
        self._library.fault_pause(1)
        try:
            yield
        finally:
            self._library.fault_pause(0)

    def disarm(self) -> int:
        """Let everything work again; the number of calls since ``arm``."""
        return int(self._library.fault_disarm())

    @property
    def struck(self) -> str:
        """The first call that failed, as ``fsync /p/MEMORY.md``; ``""`` if none did."""
        return os.fsdecode(self._library.fault_struck())
