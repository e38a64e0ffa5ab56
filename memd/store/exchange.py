"""Atomic exchange of two directory entries, which Python has no call for.

What comes in: two paths in one directory. What goes out: the names swapped, or ``OSError``. What must not be here:
any notion of what the files are.

Linux: ``renameat2`` (https://man7.org/linux/man-pages/man2/rename.2.html, flags from ``linux/fs.h``).
macOS: ``renamex_np`` (``sys/stdio.h``).
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_RENAME_EXCHANGE = 2
_RENAME_SWAP_MAC = 2
_RENAME_EXCL_MAC = 4

UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTTY})
"""errno values that say the file system or kernel cannot exchange (NFS, FUSE, old kernels)."""


def exchange(first: str, second: str) -> None:
    """Swap the two names atomically. Both must exist and be on one file system.

    Raises:
        OSError: From the system; one of ``UNSUPPORTED`` where exchanging is not possible at all.
    """
    _rename(first, second, _RENAME_EXCHANGE, _RENAME_SWAP_MAC)


def rename_new(source: str, target: str) -> None:
    """Rename ``source`` to ``target`` unless ``target`` exists (``FileExistsError``)."""
    _rename(source, target, _RENAME_NOREPLACE, _RENAME_EXCL_MAC)


def _load() -> Callable[[bytes, bytes, int, int], int]:
    library: Any = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "darwin":
        mac = library.renamex_np
        return lambda source, target, _, flag: int(mac(source, target, ctypes.c_uint(flag)))
    call = getattr(library, "renameat2", None)  # glibc 2.28, musl 1.2.? : absent before
    if call is None:
        return _missing
    return lambda source, target, flag, _: int(call(_AT_FDCWD, source, _AT_FDCWD, target, ctypes.c_uint(flag)))


def _missing(_source: bytes, _target: bytes, _flag: int, _flag_mac: int) -> int:
    ctypes.set_errno(errno.ENOSYS)
    return -1


_call = _load()


def _rename(source: str, target: str, flag: int, flag_mac: int) -> None:
    if _call(os.fsencode(source), os.fsencode(target), flag, flag_mac) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), source, None, target)
