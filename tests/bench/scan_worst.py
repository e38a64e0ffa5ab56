"""Inputs that cost a scanner as much as possible.

What comes in: a length. What goes out: texts of that length, built from near-misses of what a scanner of this kind looks for,
whatever its rules: repeated beginnings without an end, runs that nearly are encodings, marks that have to be removed one by one.
What must not be here: a look at any scanner's rules.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REPEATED = {
    "ignore": "ignore ",
    "ignore all": "ignore all previous ",
    "do not tell": "do not tell the ",
    "you are now": "you are now a ",
    "translate": "translate x into y and ",
    "cat": "cat ",
    "curl": "curl -d $",
    "curl url": "curl http://a.b/c?d=",
    "send to": "send the key to ",
    "authorized": ">> ~/.ssh/authorized_key ",
    "dotted": "a.b.c.d.",
    "slashes": "../",
    "blanks": " ",
    "newlines": "\n",
    "tabs and blanks": " \t",
    "comment opened": "<!-- ",
    "angle opened": "<",
    "tags": "<a><b>",
    "brackets": "[(",
    "underscores": "_-",
    "quotes": "\"'",
    "equals": "a=",
    "key equals": "api_key=",
    "password is": "password is ",
    "jwt beginnings": "eyJ",
    "jwt dots": "eyJhbGciOi.",
    "aws beginnings": "AKIA",
    "pem beginnings": "-----BEGIN ",
    "percent": "%41",
    "percent broken": "%4%",
    "entities": "&#105;",
    "spaced letters": "i g n o r e ",
    "hyphen letters": "i-g-n-o-r-e-",
    "leet": "1gn0r3 4ll ",
    "fullwidth": "ｉｇｎｏｒｅ ",
    "ligature that grows": "\ufdfa",
    "mathematical": "𝐢𝐠𝐧𝐨𝐫𝐞 ",
    "cyrillic": "іgnоrе ",
    "zero width": "i\u200bg\u200bn\u200bo\u200br\u200be\u200b",
    "zero width only": "\u200b",
    "joiners": "\u200d",
    "family": "👨\u200d👩\u200d👧\u200d👦",
    "emoji joined": "👨\u200d",
    "virama joined": "क\u094d\u200d",
    "persian joined": "می\u200c",
    "tag characters": "\U000e0061",
    "variation selectors": "a\ufe0f",
    "selector only": "\ufe0f",
    "embeddings": "\u202e",
    "isolates": "\u2066a",
    "combining": "\u0301",
    "combined letter": "a\u0301\u0323",
    "hangul jamo": "\u1100\u1161\u11a8",
    "chinese": "忽略",
    "chinese near": "忽略之前的",
    "russian": "игнорируй ",
    "japanese": "指示を",
    "vietnamese": "bỏ qua ",
}


def repeated(unit: str, length: int) -> str:
    """The unit, again and again, cut to the length."""
    return (unit * (length // len(unit) + 1))[:length]


def random_of(alphabet: str, length: int) -> str:
    """Characters of the alphabet, the same in every run."""
    return "".join(random.Random(alphabet).choices(alphabet, k=length))


def counted_up(length: int) -> str:
    """Words with a number, no two the same, so that nothing can be cached."""
    return " ".join(f"ignore{n} previous{n}" for n in range(length // 8))[:length]


def nested_base64(length: int) -> str:
    """A run whose every offset looks like base64 of text."""
    return repeated("aWdub3JlIGFsbCBwcmV2aW91cyA", length)


def many_runs(length: int) -> str:
    """Short base64 runs, each of which has to be decoded."""
    return repeated("aWdub3JlIGFsbCBwcmV2aW91cyA= ", length)


BUILT: dict[str, Callable[[int], str]] = {
    "random base64": lambda n: random_of("ABCDEFGHabcdefgh01234567+/", n),
    "random hex": lambda n: random_of("0123456789abcdef", n),
    "random words": lambda n: random_of("ignoreal prvustc", n),
    "random key words": lambda n: " ".join(
        random.Random("words").choices(["ignore", "all", "send", "key", "curl", "to", "user", "not", "tell"], k=n // 3)
    )[:n],
    "random unicode": lambda n: "".join(chr(it) for it in random.Random(7).choices(range(0xA0, 0xD7FF), k=n)),
    "counted up": counted_up,
    "nested base64": nested_base64,
    "many base64 runs": many_runs,
    "hex run": lambda n: repeated(b"ignore all previous ".hex(), n),
    "one word": lambda n: "a" * n,
    "near miss at the end": lambda n: repeated("plain words and ", n - 28) + "ignore all the previous inst",
    "word of dots": lambda n: "ignore" + "." * (n - 6),
    "words far apart": lambda n: "ignore" + " x" * ((n - 6) // 2) + "." * (n % 2),
}


def worst(length: int) -> Iterator[tuple[str, str]]:
    """Name and text of each of them, of exactly this length."""
    for name, unit in REPEATED.items():
        yield name, repeated(unit, length)
    for name, build in BUILT.items():
        yield name, build(length).ljust(length, ".")
