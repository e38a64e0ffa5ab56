"""Write the generated parts of ``PROTOCOL.md`` and ``schema.json``, or check that they are what the code says.

What comes in: the method table and the recorded transcripts. What goes out: both files, or exit status 1 with ``--check``.
What must not be here: the parts themselves (``memd/protocol/document.py``, ``memd/protocol/discover.py``).

Run from the top of the repository: ``python client/write_protocol.py [--check]``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import msgspec

from memd.dispatch.handlers import method_table
from memd.protocol.discover import discovery
from memd.protocol.document import blocks, fill
from memd.protocol.types import PROTOCOL_VERSION

HERE = Path(__file__).resolve().parent
PAGE = HERE / "PROTOCOL.md"
SCHEMA = HERE / "schema.json"


def page() -> str:
    """The page as it should be."""
    transcripts = json.loads((HERE / "vectors" / "transcripts.json").read_text(encoding="utf-8"))["transcripts"]
    return fill(PAGE.read_text(encoding="utf-8"), blocks(method_table(), transcripts))


def schema() -> str:
    """What ``rpc.discover`` answers, as the file should have it."""
    described = {"protocol": PROTOCOL_VERSION, **msgspec.to_builtins(discovery(method_table()))}
    return json.dumps(described, ensure_ascii=False, indent=1) + "\n"


def main() -> int:
    """Write the files; with ``--check`` only say whether one is stale."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file is stale")
    arguments = parser.parse_args()
    stale = {path: text for path, text in ((PAGE, page()), (SCHEMA, schema())) if _old(path) != text}
    if arguments.check:
        return int(bool(stale))
    for path, text in stale.items():
        path.write_text(text, encoding="utf-8")
    return 0


def _old(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    raise SystemExit(main())
