"""A scratch directory with a short path.

What comes in: nothing. What goes out: a directory for one test. What must not be here: anything else. pytest's own
``tmp_path`` carries user and test names, and a socket's path may have 108 bytes, on macOS 104.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def short_path() -> Iterator[Path]:
    """The body of a fixture."""
    with tempfile.TemporaryDirectory(prefix="memd-") as folder:
        yield Path(folder)
