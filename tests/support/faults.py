"""Named faults of the disk and of SQLite, as arguments for the parts that do I/O.

What it is: subclasses of ``Files`` and a connection that fail where they are told to. What comes in: where. What goes out:
the errors that the real things raise. What must not be here: expectations.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from typing import TYPE_CHECKING, Any, cast

from support.hosts import Crash, relaxed

from memd.errors import IoFailure, from_oserror
from memd.store.files import Displaced, Files, Image

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from memd.store.place import Place

FULL = "SQLITE_FULL"
FSYNC = "SQLITE_IOERR_FSYNC"
READ = "SQLITE_IOERR_READ"
_CODES = {FULL: 13, FSYNC: 1034, READ: 266}


def sqlite_error(name: str) -> sqlite3.OperationalError:
    """The error Python raises for an extended result code."""
    text = "database or disk is full" if name == FULL else "disk I/O error"
    error = sqlite3.OperationalError(text)
    error.sqlite_errorname = name
    error.sqlite_errorcode = _CODES[name]
    return error


class FailingJournal:
    """Opens journals whose connection fails at given statements, one after the other."""

    def __init__(self, connect: Callable[[Path], sqlite3.Connection] = relaxed) -> None:
        self.name = FSYNC
        self.done = False
        self.crash = False
        self.opened = 0
        self.begun = 0
        self._statements: list[str] = []
        self._skip = 0
        self._opening = 0
        self._connect = connect

    def fail(
        self,
        *statements: str,
        name: str = FSYNC,
        done: bool = False,
        crash: bool = False,
        opening: int = 0,
        skip: int = 0,
    ) -> None:
        """Fail at the next statement that begins like the first of these, then at the next like the second, and so on.

        ``done``: it is carried out and raises all the same. ``crash``: the process ends there. ``opening``: how often
        opening fails after the last of them. ``skip``: how many that fit work before.
        """
        self._statements = list(statements)
        self.name, self.done, self.crash, self._opening, self._skip = name, done, crash, opening, skip

    def heal(self) -> None:
        """Fail no more."""
        self.fail()

    def connect(self, path: Path) -> sqlite3.Connection:
        """The ``connect`` argument of a journal."""
        self.opened += 1
        if self._opening and not self._statements:
            self._opening -= 1
            raise sqlite_error(READ)
        return cast("sqlite3.Connection", FaultyConnection(self._connect(path), self))

    def strikes(self, sql: str) -> bool:
        """Whether this statement fails."""
        if not self._statements or not sql.startswith(self._statements[0]):
            return False
        if self._skip:
            self._skip -= 1
            return False
        del self._statements[0]
        return True


class FaultyConnection:
    """An SQLite connection with a fault plan."""

    def __init__(self, real: sqlite3.Connection, plan: FailingJournal) -> None:
        self._real = real
        self._plan = plan

    def execute(self, sql: str, values: Any = ()) -> sqlite3.Cursor:
        """Carry it out, or fail."""
        plan = self._plan
        plan.begun += sql.startswith("BEGIN")
        if not plan.strikes(sql):
            return self._real.execute(sql, values)
        if plan.done:
            self._real.execute(sql, values)
        if plan.crash:
            raise Crash
        raise sqlite_error(plan.name)

    def executemany(self, sql: str, values: Any) -> sqlite3.Cursor:
        """As the real one."""
        return self._real.executemany(sql, values)

    def close(self) -> None:
        """As the real one."""
        self._real.close()


class FullDisk(Files):
    """No room for a new version of a file while ``full``."""

    def __init__(self) -> None:
        super().__init__()
        self.full = True
        self.asked = 0

    def write_temp(self, place: Place, data: bytes, like: Image) -> str:
        """Fails as ``open`` and ``write`` do."""
        self.asked += 1
        if self.full:
            raise from_oserror(OSError(errno.ENOSPC, "full"), place.path, step="write a new version beside")
        return super().write_temp(place, data, like)


class TornSwap(Files):
    """A swap that fails after the journal's commit, ``times`` times, for files whose name contains ``only``."""

    def __init__(self, times: int = 1, *, only: str = "") -> None:
        super().__init__()
        self.times = times
        self.only = only

    def swap(self, place: Place, temp: str, *, exists: bool, expected: bytes | None = None) -> Displaced:
        """Fails with the target as it was."""
        if self.times and self.only in place.name:
            self.times -= 1
            self.discard(temp)
            raise from_oserror(OSError(errno.EIO, "I/O error"), place.path, step="replace")
        return super().swap(place, temp, exists=exists, expected=expected)


class TornRewrite(Files):
    """A rewrite in place that stops half-way, ``times`` times."""

    def __init__(self, times: int = 1) -> None:
        super().__init__()
        self.times = times

    def rewrite(self, place: Place, data: bytes) -> None:
        """Half of the bytes get there."""
        if self.times:
            self.times -= 1
            with open(place.path, "r+b") as file:
                file.write(data[: len(data) // 2])
            raise from_oserror(OSError(errno.EIO, "I/O error"), place.path, step="rewrite")
        super().rewrite(place, data)


class FailingSync(Files):
    """A file checkpoint that fails ``times`` times."""

    def __init__(self, times: int = 1) -> None:
        super().__init__()
        self.times = times
        self.asked = 0

    def checkpoint(self, place: Place) -> None:
        """Fails as ``fsync`` does."""
        self.asked += 1
        if self.times:
            self.times -= 1
            msg = "fsync: I/O error"
            raise IoFailure(msg, path=place.path, errno=errno.EIO)
        super().checkpoint(place)


class CrashingFiles(Files):
    """Kills the process once at a step: ``after_temp``, ``before_swap``, ``mid_swap`` or ``after_swap``."""

    def __init__(self, at: str) -> None:
        super().__init__()
        self.at = at

    def write_temp(self, place: Place, data: bytes, like: Image) -> str:
        """The temp file stays."""
        path = super().write_temp(place, data, like)
        self._maybe("after_temp")
        return path

    def swap(self, place: Place, temp: str, *, exists: bool, expected: bytes | None = None) -> Displaced:
        """Before: journaled and not in the file. After: in the file and not answered."""
        self._maybe("before_swap")
        displaced = super().swap(place, temp, exists=exists, expected=expected)
        try:
            self._maybe("after_swap")
        except Crash:
            displaced.close()
            raise
        return displaced

    def discard(self, path: str) -> None:
        """A process that is gone removes nothing."""
        if self.at != "gone":
            super().discard(path)

    def _take_out(self, place: Place, kept: str, expected: bytes | None) -> Displaced:
        self._maybe("mid_swap")
        return super()._take_out(place, kept, expected)

    def _maybe(self, step: str) -> None:
        if self.at == step:
            self.at = "gone"
            raise Crash


class RacingHand(Files):
    """A person who changes the file just before each swap, while there are ``edits``."""

    def __init__(self, *edits: Callable[[str], None]) -> None:
        super().__init__()
        self.edits = list(edits)

    def swap(self, place: Place, temp: str, *, exists: bool, expected: bytes | None = None) -> Displaced:
        """Faster than we are."""
        if self.edits:
            self.edits.pop(0)(place.path)
        return super().swap(place, temp, exists=exists, expected=expected)


class NoExchange(Files):
    """A file system that cannot exchange names."""

    def exchange(self, first: str, second: str) -> None:
        """As NFS answers."""
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), first, None, second)

    def rename_new(self, source: str, target: str) -> None:
        """As NFS answers."""
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), source, None, target)
