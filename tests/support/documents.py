"""Documents for tests of the pure half of ``profile``.

What it is: short ways to a document with ids, and what operations need beside it. What comes in: texts. What goes out:
values. What must not be here: behaviour under test.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from hypothesis import strategies as st
from msgspec.structs import replace

from memd.profile.edits import apply_batch, apply_operation
from memd.profile.entries import Document, Entry, parse
from memd.profile.values import Applied, Limits, Operation, Stamp

if TYPE_CHECKING:
    from collections.abc import Callable

LIMITS = Limits(2_200)
STAMP = Stamp(2_000_000, "agent")
OUTSIDE = Stamp(3_000_000, "outside")


def named(document: Document, *, origin: str = "agent", prefix: str = "e") -> Document:
    """The document with ids ``e0``, ``e1``, … and times, as the store has it."""
    entries = tuple(
        replace(entry, id=f"{prefix}{index}", created_us=1_000_000, updated_us=1_000_000, origin=origin)
        for index, entry in enumerate(document.entries)
    )
    return replace(document, entries=entries)


def store(*texts: str, newline: str = "\n", end: str = "\n", origin: str = "agent") -> Document:
    """A store of these entries, as a file with this newline."""
    border = f"{newline}§{newline}"
    return named(
        parse(border.join(text.replace("\n", newline) for text in texts).encode() + end.encode()), origin=origin
    )


def texts(document: Document) -> list[str]:
    """The entries' texts."""
    return [entry.text for entry in document.entries]


def ids(document: Document) -> list[str]:
    """The entries' ids."""
    return [entry.id for entry in document.entries]


def raws(document: Document) -> list[str]:
    """The entries' raw texts."""
    return [entry.raw for entry in document.entries]


def entry_of(document: Document, entry_id: str) -> Entry:
    """The entry with this id."""
    return next(entry for entry in document.entries if entry.id == entry_id)


def new_ids(prefix: str = "n") -> Callable[[str], str]:
    """A source of ids ``n0``, ``n1``, …"""
    numbers = itertools.count()
    return lambda _: f"{prefix}{next(numbers)}"


def do(document: Document, action: str, /, **fields: str) -> Applied:
    """Apply one operation within the usual limits."""
    return do_within(LIMITS, document, action, **fields)


def do_within(limits: Limits, document: Document, action: str, /, **fields: str) -> Applied:
    """Apply one operation within these limits."""
    operation = Operation(action, **fields)  # type: ignore[arg-type]  # the tests' actions are literals
    return apply_operation(document, operation, limits=limits, stamp=STAMP, new_id=new_ids())


def do_all(document: Document, *operations: Operation, limits: Limits = LIMITS) -> Applied:
    """Apply a batch."""
    return apply_batch(document, operations, limits=limits, stamp=STAMP, new_id=new_ids())


def files() -> st.SearchStrategy[bytes]:
    """Arbitrary files, rich in what separates entries and in what only looks as if it did."""
    pieces = [
        *(
            b"a",
            b"b c",
            b"Port is 8080",
            "grüße".encode(),
            "世界".encode(),
            "👩‍👧".encode(),
            "§ 12".encode(),
            "§§".encode(),
        ),
        *("§".encode(), "§ ".encode(), "\ufeff".encode(), "\u2028".encode(), "\x85".encode(), b"\x0b", b"\x1c"),
        *(b"\n", b"\r\n", b"\r", b"\n\n", b" ", b"\t", b"\xe9", b"\xc2", b"\xa7", b"\x80", b"\0"),
        *("\n§\n".encode(), "\r\n§\r\n".encode(), "\r§\r".encode(), "\n\n§\n\n".encode(), "\n §\t\n".encode()),
    ]
    return st.lists(st.sampled_from(pieces), max_size=14).map(b"".join) | st.binary(max_size=30)


def stored_texts() -> st.SearchStrategy[str]:
    """Short entry texts of a small alphabet, so that equal ones and parts of others come up."""
    return st.sampled_from(["a", "b", "c", "d", "aa", "a b", "Port is 1", "Port is 2", "x\ny", "é"])
