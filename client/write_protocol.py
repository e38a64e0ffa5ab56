"""Write the generated parts of ``PROTOCOL.md``, or check that they are what the code says.

What comes in: the method table and the recorded transcripts. What goes out: the page, or exit status 1 with ``--check``.
What must not be here: the parts themselves (``memd/protocol/document.py``).

Run from the top of the repository: ``python client/write_protocol.py [--check]``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from memd.dispatch.handlers import method_table
from memd.protocol.document import blocks, fill

HERE = Path(__file__).resolve().parent
PAGE = HERE / "PROTOCOL.md"


def generated() -> str:
    """The page as it should be."""
    transcripts = json.loads((HERE / "vectors" / "transcripts.json").read_text(encoding="utf-8"))["transcripts"]
    return fill(PAGE.read_text(encoding="utf-8"), blocks(method_table(), transcripts))


def main() -> int:
    """Write the page; with ``--check`` only say whether it is stale."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the page is stale")
    arguments = parser.parse_args()
    text = generated()
    if text == PAGE.read_text(encoding="utf-8"):
        return 0
    if arguments.check:
        return 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
