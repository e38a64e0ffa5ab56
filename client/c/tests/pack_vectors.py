"""The vectors as MessagePack, which the C tests can read: what is ``hex`` there is bytes here.

What comes in: ``client/vectors/*.json``. What goes out: one file. What must not be here: expectations.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgpack

VECTORS = Path(__file__).resolve().parents[2] / "vectors"


def prepared(value: Any) -> Any:
    """The value with its bytes as bytes, and without numbers that MessagePack has not."""
    if isinstance(value, dict):
        return {
            key: bytes.fromhex(item) if key == "hex" else prepared(item)
            for key, item in value.items()
            if key != "value"
        }
    return [prepared(item) for item in value] if isinstance(value, list) else value


def main() -> None:
    """Write the file that is named."""
    names = ("messages", "errors", "scrubber")
    found = {name: json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))[name] for name in names}
    found["fenced"] = json.loads((VECTORS / "scrubber.json").read_text(encoding="utf-8"))["fenced"]
    Path(sys.argv[1]).write_bytes(msgpack.packb(prepared(found)))


if __name__ == "__main__":
    main()
