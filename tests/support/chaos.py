"""Evidence of a run in which everything happens at once, and the judgement on it.

What comes in: what clients were told, what a hand did to the file, the file at the end, the history. What goes out:
sentences about what is wrong, none if nothing is. What must not be here: processes, sockets, files.

Every line of every text carries its own checksum, so that a torn or mixed one shows wherever it turns up.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

HAND = "hand"
BORDER = "\n§\n"
_LINE = re.compile(r"(?P<said>(?P<owner>\S+) \d{4} .*) #(?P<sum>[0-9a-f]{8})")


def line(owner: str, number: int, words: str) -> str:
    """One line that can be told from any damage of it."""
    said = f"{owner} {number:04} {words}"
    return f"{said} #{zlib.crc32(said.encode()):08x}"


def owner_of(text: str) -> str | None:
    """Who made this text; None if any line of it is damaged, or if lines of two makers are mixed."""
    owners = set()
    for each in text.split("\n"):
        found = _LINE.fullmatch(each)
        if found is None or f"{zlib.crc32(found['said'].encode()):08x}" != found["sum"]:
            return None
        owners.add(found["owner"])
    return owners.pop() if len(owners) == 1 else None


def entries(file: str) -> list[str]:
    """The entries of a file in which everybody writes borders the plain way."""
    return [text.strip() for text in file.split(BORDER) if text.strip()]


@dataclass(frozen=True)
class Change:
    """One revision, or one acknowledged call: the texts that went and those that came."""

    revision: int
    client: str
    gone: tuple[str, ...]
    come: tuple[str, ...]


@dataclass
class Evidence:
    """All that is known at the end. ``acknowledged``: per client, in order; ``expected``: per client, its entries in order."""

    acknowledged: dict[str, list[Change]]
    expected: dict[str, list[str]]
    hand_kept: list[str]
    hand_removed: list[str]
    file: str
    published: list[str]
    history: list[Change]
    seen: Iterable[str] = field(default_factory=list)


def problems(evidence: Evidence) -> list[str]:
    """Everything that is wrong, as sentences."""
    return [
        *_file_problems(evidence),
        *_hand_problems(evidence),
        *_order_problems(evidence.acknowledged),
        *_history_problems(evidence),
        *(f"somebody read a damaged entry: {text!r}" for text in evidence.seen),
    ]


def _file_problems(evidence: Evidence) -> Iterator[str]:
    found = entries(evidence.file)
    if found != evidence.published:
        yield f"file and memory.read differ: {sorted(set(found) ^ set(evidence.published))}"
    by_owner: dict[str | None, list[str]] = {}
    for text in found:
        by_owner.setdefault(owner_of(text), []).append(text)
    for text in by_owner.pop(None, []):
        yield f"damaged in the file: {text!r}"
    by_owner.pop(HAND, None)
    for client in sorted({*evidence.expected, *map(str, by_owner)}):
        yield from _compare(client, evidence.expected.get(client, []), by_owner.get(client, []))


def _compare(client: str, expected: Sequence[str], actual: Sequence[str]) -> Iterator[str]:
    missing, extra = Counter(expected) - Counter(actual), Counter(actual) - Counter(expected)
    for text in missing:
        yield f"{client}: acknowledged, but not in the file: {text!r}"
    for text in extra:
        yield f"{client}: in the file, but not as acknowledged: {text!r}"
    if not missing and not extra and list(expected) != list(actual):
        yield f"{client}: out of order: {actual}"


def _hand_problems(evidence: Evidence) -> Iterator[str]:
    lines = Counter(evidence.file.split("\n"))
    for text in evidence.hand_kept:
        if lines[text] != 1:
            yield f"by hand, and {lines[text]} times in the file: {text!r}"
    for text in evidence.hand_removed:
        if lines[text]:
            yield f"removed by hand, and back: {text!r}"


def _order_problems(acknowledged: Mapping[str, Sequence[Change]]) -> Iterator[str]:
    for client, changes in acknowledged.items():
        numbers = [change.revision for change in changes]
        if numbers != sorted(set(numbers)):
            yield f"{client}: revisions do not grow: {numbers}"


def _history_problems(evidence: Evidence) -> Iterator[str]:
    told = {change.revision: change for changes in evidence.acknowledged.values() for change in changes}
    kept = {change.revision: change for change in evidence.history}
    for revision in sorted(told.keys() - kept.keys()):
        yield f"acknowledged, but not in the history: {told[revision]}"
    for revision, change in sorted(kept.items()):
        if revision in told:
            if _essence(change) != _essence(told[revision]):
                yield f"history says {change}, {told[revision]} was acknowledged"
        elif change.client in evidence.acknowledged:
            yield f"in the history, but never acknowledged (done twice?): {change}"
        elif any(owner_of(text) in evidence.acknowledged for text in (*change.gone, *change.come)):
            yield f"what a client owns was changed from outside: {change}"


def _essence(change: Change) -> tuple[str, list[str], list[str]]:
    """A change without what the two sides may count differently: a text that both went and came."""
    gone, come = Counter(change.gone), Counter(change.come)
    return change.client, sorted((gone - come).elements()), sorted((come - gone).elements())
