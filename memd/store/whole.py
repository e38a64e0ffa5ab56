"""Whole files through an open descriptor.

What comes in: a descriptor, bytes. What goes out: all bytes of a file, or a file that has all of them. What must not be here: names,
what the bytes are.
"""

from __future__ import annotations

import errno
import os

READ_LIMIT = 1024 * 1024
"""Largest memory file that is read, in bytes; a larger one is left untouched (limits count a few thousand)."""
CHUNK = 65_536


def read_all(descriptor: int) -> bytes:
    """The file's bytes, wherever the descriptor stands. Blocks.

    Raises:
        OSError: Also if the file is larger than ``READ_LIMIT`` now.
    """
    data = os.pread(descriptor, CHUNK, 0)
    if len(data) < CHUNK:  # nearly always: a buffer of the whole limit would be mapped and unmapped for each read
        return data
    parts = [data]
    size = len(data)
    while part := os.pread(descriptor, CHUNK, size):
        parts.append(part)
        size += len(part)
        if size > READ_LIMIT:
            raise OSError(errno.EOVERFLOW, "grew over the read limit")  # EFBIG would say that our own file is too large
    return b"".join(parts)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of it where the descriptor stands, however little the system takes at a time. Blocks.

    Raises:
        OSError: Some of it may be written.
    """
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
