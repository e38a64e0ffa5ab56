"""The vectors that all clients share, as tests read them.

What comes in: ``client/vectors/*.json``. What goes out: their items. What must not be here: expectations.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).resolve().parents[2] / "client" / "vectors"


def load(name: str) -> list[dict[str, Any]]:
    """The items of ``NAME.json``."""
    document = json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))
    items: list[dict[str, Any]] = document[name]
    return items


def by_name(item: dict[str, Any]) -> str:
    """The id of a parametrised test."""
    return str(item["name"]).replace(" ", "-")
