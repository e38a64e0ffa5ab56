"""The labelled corpora of the scan, as tests and the benchmark read them.

What comes in: ``tests/data/scan/``. What goes out: attacks and notes, each with its half, and the standard emoji ZWJ sequences.
Texts that are written as templates (secrets, hidden carriers) are expanded here, the same way every time. What must not be
here: rules, expectations, obfuscation.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
from functools import cache
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

CORPORA = Path(__file__).resolve().parents[1] / "data" / "scan"
Half = Literal["rules", "report"]
HALVES: tuple[Half, ...] = ("rules", "report")
Severity = Literal["refuse", "stage"]

ALPHABETS = {
    "base32": string.ascii_lowercase + "234567",
    "base62": string.ascii_letters + string.digits,
    "base64": string.ascii_letters + string.digits + "+/",
    "base64url": string.ascii_letters + string.digits + "-_",
    "bech32": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
    "digits": string.digits,
    "hex": string.digits + "abcdef",
    "letters": string.ascii_letters,
    "password": string.ascii_letters + string.digits + "!#%+-_=",
    "upper36": string.ascii_uppercase + string.digits,
}
TEMPLATE = re.compile(r"\{(rand|lit|tags|vs):([^{}]+)\}|\{(jwt|basic)\}")


class Attack(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One text that must not enter a prompt unseen; ``severity`` is the least that a scan should find in it."""

    id: str
    category: Literal[1, 2, 3, 4, 5, 6] = msgspec.field(name="class")
    lang: str
    severity: Severity
    note: str
    text: str
    half: Half = "rules"


class Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One text as people keep it, which a scan should leave alone."""

    id: str
    lang: str
    topic: str
    text: str
    half: Half = "rules"


Item = TypeVar("Item", Attack, Note)


@cache
def attacks(half: Half | None = None) -> tuple[Attack, ...]:
    """The attacks of one half, or of both, in the order of their files."""
    return tuple(it for h in HALVES if half in (None, h) for it in _items(h, "attacks", Attack))


@cache
def notes(half: Half | None = None) -> tuple[Note, ...]:
    """The benign notes of one half, or of both, in the order of their files."""
    return tuple(it for h in HALVES if half in (None, h) for it in _items(h, "notes", Note))


@cache
def emoji_zwj_sequences() -> tuple[str, ...]:
    """Every ZWJ sequence that Unicode recommends for general interchange, fully qualified."""
    lines = (CORPORA / "emoji-zwj.txt").read_text(encoding="ascii").splitlines()
    codes = [line.split() for line in lines if line and not line.startswith("#")]
    return tuple("".join(chr(int(code, 16)) for code in line) for line in codes)


def expand(template: str, seed: str) -> str:
    """Fill in ``{rand:ALPHABET:N}`` (random characters), ``{lit:X}`` (X), ``{jwt}``, ``{basic}`` and hidden carriers.

    ``{tags:X}`` is X in tag characters, ``{vs:X}`` X in variation selectors. The same seed gives the same text.
    """
    rng = random.Random(seed)
    return TEMPLATE.sub(lambda found: _filled(found, rng), template)


def _filled(found: re.Match[str], rng: random.Random) -> str:
    kind, argument = found[1] or found[3], found[2]
    if kind == "rand":
        alphabet, count = argument.split(":")
        return "".join(rng.choices(ALPHABETS[alphabet], k=int(count)))
    if kind == "tags":
        return "".join(chr(0xE0000 + ord(char)) for char in argument)
    if kind == "vs":
        return "".join(chr(0xFE00 + b if b < 16 else 0xE0100 + b - 16) for b in argument.encode())
    return {"jwt": _jwt, "basic": _basic}[kind](rng) if argument is None else argument


def _jwt(rng: random.Random) -> str:
    claims = {"sub": f"user-{rng.randrange(10**6)}", "iat": 1700000000 + rng.randrange(10**7), "scope": "all"}
    parts = [json.dumps(part).encode() for part in ({"alg": "HS256", "typ": "JWT"}, claims)]
    signature = "".join(rng.choices(ALPHABETS["base64url"], k=43))
    return ".".join([*(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts), signature])


def _basic(rng: random.Random) -> str:
    password = "".join(rng.choices(ALPHABETS["base62"], k=16))
    return base64.b64encode(f"deploy:{password}".encode()).decode()


def _items(half: Half, prefix: str, struct: type[Item]) -> list[Item]:
    found = []
    for path in sorted((CORPORA / half).glob(f"{prefix}-*.jsonl")):
        for line in path.read_bytes().splitlines():
            it = msgspec.json.decode(line, type=struct)
            found.append(msgspec.structs.replace(it, half=half, text=expand(it.text, it.id)))
    return found
