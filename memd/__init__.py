"""memd: one writer for the curated memory files of every agent session on a host."""

from __future__ import annotations

__version__ = "0.1.0"
