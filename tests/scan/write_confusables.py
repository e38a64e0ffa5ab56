"""``python tests/scan/write_confusables.py TABLE``: writes ``memd/scan/confusables.txt``.

What comes in: Unicode's ``confusables.txt`` of UTS #39, or ``tables.rs`` of the Rust crate ``unicode-security``, which is made from it.
What goes out: the characters that look like ASCII letters and that compatibility folding leaves as they are, one line for each
look. What must not be here: characters chosen by hand.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import defaultdict
from pathlib import Path

TARGET = Path(__file__).parents[2] / "memd" / "scan" / "confusables.txt"
HEAD = """# Characters that look like ASCII letters: UTS #39 confusables, Unicode {version}. Copyright Unicode, Inc., under the Unicode
# License v3 (https://www.unicode.org/license.txt). Written by tests/scan/write_confusables.py: do not edit.
"""
RUST_TABLE = re.compile(r"const CONFUSABLES: .*?= &\[(.*?)\n    \];", re.DOTALL)
RUST_ENTRY = re.compile(r"\('\\u\{(\w+)\}',\s*&\[([^\]]*)\]\)")
RUST_VERSION = re.compile(r"UNICODE_VERSION: \(u64, u64, u64\) = \((\d+), (\d+), (\d+)\)")
TEXT_ENTRY = re.compile(r"^([0-9A-F]+) ;\t([0-9A-F ]+) ;", re.MULTILINE)
TEXT_VERSION = re.compile(r"# Version: ([\d.]+)")


def read(source: str) -> tuple[str, dict[str, str]]:
    """Version and prototypes of all characters, from either form of the table."""
    if table := RUST_TABLE.search(source):
        version = RUST_VERSION.search(source)
        entries = ((it[1], re.findall(r"\\u\{(\w+)\}", it[2])) for it in RUST_ENTRY.finditer(table[1]))
        name = ".".join(version.groups()) if version else "unknown"
    else:
        found = TEXT_VERSION.search(source)
        entries = ((it[1], it[2].split()) for it in TEXT_ENTRY.finditer(source))
        name = found[1] if found else "unknown"
    return name, {chr(int(code, 16)): "".join(chr(int(it, 16)) for it in to) for code, to in entries}


def letters(prototypes: dict[str, str]) -> dict[str, str]:
    """Each non-ASCII character whose prototype is the one of ASCII letters, with those letters.

    The prototype of ``I`` is ``l``; an upper-case character gets the upper-case letter.
    """
    looks = {}
    for char, look in prototypes.items():
        bare = "".join(it for it in unicodedata.normalize("NFKD", look) if not unicodedata.combining(it))
        folded = unicodedata.normalize("NFKD", char)
        if char.isascii() or folded.isascii() or not (bare.isascii() and bare.isalpha() and len(bare) <= 2):
            continue
        if unicodedata.category(char)[0] == "M":
            continue
        looks[char] = "I" if bare == "l" and char.isupper() else bare.replace("rn", "m")
    return looks


def render(version: str, looks: dict[str, str]) -> str:
    """The data file."""
    lines = defaultdict(list)
    for char, look in looks.items():
        lines[look].append(f"{ord(char):04X}")
    body = "\n".join(
        f"{look} {' '.join(sorted(codes, key=lambda it: int(it, 16)))}" for look, codes in sorted(lines.items())
    )
    return HEAD.format(version=version) + body + "\n"


if __name__ == "__main__":
    version, prototypes = read(Path(sys.argv[1]).read_text(encoding="utf-8-sig"))
    TARGET.write_text(render(version, letters(prototypes)), encoding="ascii")
