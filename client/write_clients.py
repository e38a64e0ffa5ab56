"""Write the generated halves of the clients, or check that they are what ``schema.json`` says.

What comes in: ``client/schema.json``. What goes out: the files, or exit status 1 with ``--check``. What must not be here: what a
language looks like (``client/generate/``).

Run from the top of the repository: ``python client/write_clients.py [--check]``, after ``python client/write_protocol.py``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from generate import c, go, lua, rust, typescript
from generate.schema import load

HERE = Path(__file__).resolve().parent
LANGUAGES = {
    "c": c.files,
    "go": go.files,
    "neovim": lua.files,
    "rust": rust.files,
    "typescript": typescript.files,
}


def stale() -> dict[Path, str]:
    """The files that are not as they should be, and how they should."""
    description = load()
    wanted = {
        HERE / folder / name: text for folder, files in LANGUAGES.items() for name, text in files(description).items()
    }
    return {
        path: text for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text
    }


def main() -> int:
    """Write the files; with ``--check`` only say whether one is stale."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file is stale")
    arguments = parser.parse_args()
    found = stale()
    if arguments.check:
        return int(bool(found))
    for path, text in found.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
