"""The two kinds of lock files: ownership of a directory, and the lock shared with other programs.

What comes in: directories and memory file paths. What goes out: held locks, or who holds them. What must not be here:
waiting (everything is tried once), the memory files.

Both are flock locks through filelock. ``thread_local=False``: a lock taken in one thread is released from another.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import filelock

from memd.errors import Busy, ProfileOwned, from_oserror

OWNER_FILE = ".memd.lock"
LOCK_MODE = 0o600


class Ownership:
    """The claim of one daemon on one directory, held from start to stop.

    The lock file stays in place (removing it would let two daemons hold two inodes); it holds the owner's pid.
    """

    def __init__(self, directory: str, *, name: str = OWNER_FILE) -> None:
        self.path = f"{directory}/{name}"
        self._lock = _lock(self.path)
        self._inode = (0, 0)

    def __repr__(self) -> str:
        return f"<Ownership {self.path} {'held' if self._lock.is_locked else 'not held'}>"

    def claim(self) -> None:
        """Take the lock and write our pid into it. One that failed may be tried again.

        Raises:
            ProfileOwned: Another process has it; ``pid`` is in ``extra``.
            StoreError: The lock file cannot be made.
        """
        try:
            self._lock.release(force=True)  # what an earlier try could not give back
            self._lock.acquire()
        except filelock.Timeout:
            pid = self.holder()
            raise ProfileOwned(
                f"{os.path.dirname(self.path)} is owned by another memd"
                + (f", pid {pid}" if pid else "")
                + "; stop it first, or use its socket",
                path=self.path,
                pid=pid or None,
            ) from None
        except OSError as error:
            raise from_oserror(error, self.path, step="lock") from error
        with contextlib.suppress(OSError):  # the pid is a courtesy; the flock is the lock
            Path(self.path).write_text(f"{os.getpid()}\n", encoding="ascii")
        try:
            status = os.stat(self.path)
        except OSError as error:
            self.release()  # now, or at the next try
            raise from_oserror(error, self.path, step="lock") from error
        self._inode = (status.st_dev, status.st_ino)

    def holder(self) -> int:
        """The pid of the holder, 0 if it cannot be told."""
        return lock_holder(self.path) or _written_pid(self.path)

    def still_held(self) -> bool:
        """False once the path no longer leads to the inode we locked (directory replaced, file removed)."""
        try:
            status = os.stat(self.path)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._inode

    def release(self) -> None:
        """Give the lock back. Does nothing if it is not held."""
        with contextlib.suppress(OSError):
            self._lock.release(force=True)


class OutsideLock:
    """The lock file beside a memory file that other programs take before they write it."""

    def __init__(self, configured: str) -> None:
        self.path = f"{configured}.lock"
        self._lock = _lock(self.path)
        self.usable = True

    def __repr__(self) -> str:
        return f"<OutsideLock {self.path}{'' if self.usable else ' unusable'}>"

    def acquire(self) -> None:
        """Take the lock without waiting. Where it cannot be opened or locked at all, go on without (``usable``).

        Raises:
            Busy: Another program holds it; ``holder`` is its pid where that can be told.
        """
        try:
            self._take()
        except filelock.Timeout:
            pid = lock_holder(self.path)
            raise Busy(
                f"{self.path} is held by " + (f"pid {pid}" if pid else "another program") + "; try again",
                path=self.path,
                holder=pid or None,
            ) from None
        except (OSError, NotImplementedError, RuntimeError):
            self.usable = False

    def _take(self) -> None:
        try:
            self._lock.acquire()
        except RuntimeError:  # filelock's word for a release that failed: it has to be done before the next acquire
            self.release()
            self._lock.acquire()

    def release(self) -> None:
        """Give it back; the file stays for the others. What cannot be given back now is given back before the next use."""
        with contextlib.suppress(OSError):
            self._lock.release(force=True)


def lock_holder(path: str) -> int:
    """The pid that holds a flock on ``path``, from ``/proc/locks``; 0 where it cannot be told."""
    try:
        status = os.stat(path)
        table = Path("/proc/locks").read_text(encoding="ascii")
    except OSError:
        return 0
    wanted = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    for line in table.splitlines():
        fields = line.split()
        if "FLOCK" in fields and wanted in fields and "->" not in fields:
            return int(fields[4])
    return 0


def _written_pid(path: str) -> int:
    try:
        text = Path(path).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return 0
    return int(text) if text.isdigit() else 0


def _lock(path: str) -> filelock.BaseFileLock:
    return filelock.FileLock(
        path, timeout=0, mode=LOCK_MODE, thread_local=False, is_singleton=False, fallback_to_soft=False,
        preserve_lock_file=True,
    )  # fmt: skip
