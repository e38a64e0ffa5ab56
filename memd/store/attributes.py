"""Extended attributes, POSIX ACLs among them, of a file that is replaced.

What comes in: the old file's path, the new one's descriptor. What goes out: the new one with what people and programs put on
the old one, or ``OSError``. What must not be here: mode and owner (``files``).

An ACL that could not be read is no empty ACL: whoever was given or denied the file by it must not lose that unseen. What
the kernel or a security module keeps for itself may be copied or not.
"""

from __future__ import annotations

import errno
import os
from typing import Any

OURS_TO_KEEP = ("user.", "system.posix_acl_")
"""Names of attributes that somebody set on purpose."""
_NONE_HERE = frozenset({errno.ENOTSUP, errno.ENOSYS})
_GONE = frozenset({errno.ENODATA, errno.ENOENT})


def copy_attributes(source: str, descriptor: int, *, calls: Any = os) -> None:
    """Copy them, where the system has them. Blocks. ``calls`` has ``listxattr``, ``getxattr`` and ``setxattr`` as ``os`` does.

    Raises:
        OSError: One that has to be kept cannot be read or set; those before it are copied.
    """
    if not hasattr(calls, "listxattr"):
        return
    for name in _names(source, calls):
        try:
            calls.setxattr(descriptor, name, calls.getxattr(source, name, follow_symlinks=False))
        except OSError as error:
            if name.startswith(OURS_TO_KEEP) and error.errno not in _GONE:
                raise


def _names(source: str, calls: Any) -> list[str]:
    try:
        return list(calls.listxattr(source, follow_symlinks=False))
    except OSError as error:
        if error.errno in _NONE_HERE | _GONE:
            return []
        raise
