"""The reserve: a few preallocated megabytes, so that removing and stopping work on a full disk.

What comes in: a path beside the journal. What goes out: the room, once, when it is needed. What must not be here: who
may use it (the committer gives it to changes that only remove).
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from memd.store.place import let_go

if TYPE_CHECKING:
    from pathlib import Path

RESERVE_BYTES = 4 * 1024 * 1024


class Reserve:
    """A file of ``RESERVE_BYTES`` whose blocks are allocated. Every call blocks."""

    def __init__(self, path: Path, *, size: int = RESERVE_BYTES) -> None:
        self.path = path
        self._size = size

    def __repr__(self) -> str:
        return f"<Reserve {self.path} {'kept' if self.kept else 'spent'}>"

    @property
    def kept(self) -> bool:
        """True while the room is there."""
        try:
            return self.path.stat().st_size >= self._size
        except OSError:
            return False

    def keep(self) -> bool:
        """Allocate the room if it is not there; False if the disk has none."""
        if self.kept:
            return True
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError:
            return False
        try:
            os.fchmod(descriptor, 0o600)  # whatever the umask
            self._allocate(descriptor)
        except OSError:
            self.spend()  # half a reserve is room that others need more
            return False
        finally:
            let_go(descriptor)
        return True

    def spend(self) -> bool:
        """Give the room back to the disk; False if there was none."""
        spent = self.kept
        with contextlib.suppress(OSError):
            self.path.unlink()
        return spent

    def _allocate(self, descriptor: int) -> None:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, self._size)
            return
        chunk = b"\0" * 65_536  # macOS has no posix_fallocate; zeros written are blocks allocated
        for _ in range(self._size // len(chunk)):
            os.write(descriptor, chunk)
