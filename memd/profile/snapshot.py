"""What a session's prompt gets: the frozen block of each store, and what has changed since.

What comes in: documents, limits, what is withheld. What goes out: text, byte for byte as specified. What must not be
here: when a snapshot is taken, who it belongs to, scanning.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memd.profile.entries import COUNTED_BORDER
from memd.profile.values import TARGETS, usage_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memd.profile.entries import Document
    from memd.profile.values import Limits, Target, Usage

BAR = "═" * 46
TITLES: dict[Target, str] = {
    "memory": "MEMORY (your personal notes)",
    "user": "USER PROFILE (who the user is)",
}
CHANGES_LIMIT = 1_000
SHORTEST_CLIP = 80
"""Characters that a changed text keeps at least when not all changes fit; below that it can no longer be recognised."""

_SIGNS = {"changed": "~", "added": "+", "removed": "-"}


@dataclass(frozen=True, slots=True)
class Block:
    """One store as it is injected.

    ``header`` is the middle line of the head, ``""`` for an empty store. ``entries`` are the (id, text) pairs behind
    the block, a withheld one with the marker as its text; the last ``left_out`` of them did not fit. They are in it all
    the same, so that an entry which only stopped fitting is not told as removed.
    """

    text: str = ""
    header: str = ""
    left_out: int = 0
    entries: tuple[tuple[str, str], ...] = ()


def render_block(target: Target, document: Document, limits: Limits, withheld: Mapping[str, str]) -> Block:
    """Render one store.

    Args:
        target: Which store it is.
        document: Its entries.
        limits: Its bounds; a store over them is injected up to them, the newest entries left out first.
        withheld: Rule by entry id, for entries whose text must not be injected.
    """
    shown = _injectable(document, withheld)
    if not shown:
        return Block()
    usage = usage_of(document.chars, limits)
    kept = _fitting(shown, limits) if usage.chars > limits.chars else len(shown)
    left_out = len(shown) - kept
    header = header_line(target, usage)
    lines = [BAR, header, BAR]
    if kept:
        lines.append(COUNTED_BORDER.join([text for _, text in shown[:kept]]))
    if left_out:
        lines.append(f"[{left_out} newest entries left out: over the limit]")
    return Block("\n".join(lines), header, left_out, tuple(shown))


def header_line(target: Target, usage: Usage) -> str:
    """The line between the bars: the store and how full it is."""
    return f"{TITLES[target]} [{min(100, usage.percent)}% — {usage.chars:,}/{usage.limit:,} chars]"


def withheld_marker(entry_id: str, rule: str) -> str:
    """What stands in the place of a withheld entry."""
    return f"[BLOCKED: entry {entry_id} withheld, rule {rule}. Ask the user to review it.]"


def join_blocks(blocks: Sequence[Block]) -> str:
    """The snapshot's text from its blocks, memory first."""
    return "\n\n".join([block.text for block in blocks if block.text])


def snapshot_id(text: str) -> str:
    """The id of a snapshot: 64 hex digits that follow from its text alone."""
    return hashlib.sha256(text.encode()).hexdigest()


def changes_text(
    before: Mapping[Target, Sequence[tuple[str, str]]],
    after: Mapping[Target, Sequence[tuple[str, str]]],
    *,
    fence_open: str,
    fence_close: str,
    limit: int = CHANGES_LIMIT,
) -> str:
    """What is different now from what a snapshot shows, for a model to read; ``""`` if nothing is.

    Args:
        before: The (id, text) pairs of the snapshot's blocks, by store.
        after: Those of the blocks as they would be now.
        fence_open: The line that opens the session's fence.
        fence_close: The line that closes it; neither can occur inside.
        limit: The most characters that come out, the fence's own included.
    """
    found = [
        change for target in TARGETS for change in _differences(before.get(target, ()), after.get(target, ()), target)
    ]
    if not found:
        return ""
    title = "Memory has changed since the snapshot in this prompt (~ changed, + added, - removed):"
    room = limit - len(fence_open) - len(fence_close) - len(title) - 3
    lines = _lines_within(found, room, (fence_open, fence_close))
    return "\n".join([fence_open, title, *lines, fence_close])


def _injectable(document: Document, withheld: Mapping[str, str]) -> list[tuple[str, str]]:
    """What can be shown, in file order: equal entries once, undecodable ones never."""
    seen: set[str] = set()
    shown: list[tuple[str, str]] = []
    for entry in document.entries:
        if entry.text in seen or entry.undecodable:
            continue
        seen.add(entry.text)
        rule = withheld.get(entry.id)
        shown.append((entry.id, entry.text if rule is None else withheld_marker(entry.id, rule)))
    return shown


def _fitting(shown: Sequence[tuple[str, str]], limits: Limits) -> int:
    """How many of them fit into the limit when the last are left out first."""
    chars = -len(COUNTED_BORDER)
    for index, (_, text) in enumerate(shown):
        chars += len(COUNTED_BORDER) + len(text)
        if chars > limits.chars:
            return index
    return len(shown)


def _differences(
    before: Sequence[tuple[str, str]], after: Sequence[tuple[str, str]], target: Target
) -> list[tuple[str, str]]:
    """(kind and store, text) pairs: what changed, what is new, what is gone."""
    old, new = dict(before), dict(after)
    changed = [("changed", text) for key, text in after if key in old and old[key] != text]
    added = [("added", text) for key, text in after if key not in old and text not in old.values()]
    removed = [("removed", text) for key, text in before if key not in new and text not in new.values()]
    return [(f"{_SIGNS[kind]} {target}: ", text) for kind, text in changed + added + removed]


def _lines_within(found: Sequence[tuple[str, str]], room: int, fence: tuple[str, str]) -> list[str]:
    """One line for each difference, clipped and counted off such that they fit the room."""
    lines = [_without_fence(prefix + text.replace("\n", " / "), fence) for prefix, text in found]
    if sum(map(len, lines)) + len(lines) <= room + 1:
        return lines
    room -= len(_more(len(lines))) + 1
    width = max(SHORTEST_CLIP, room // len(lines) - 1)
    kept: list[str] = []
    for line in lines:
        clipped = line if len(line) <= width else line[: width - 1] + "…"
        room -= len(clipped) + 1
        if room < 0:
            break
        kept.append(clipped)
    left = len(lines) - len(kept)
    return [*kept, _more(left)] if left else kept


def _more(count: int) -> str:
    return f"… and {count} more changes"


def _without_fence(line: str, fence: tuple[str, str]) -> str:
    """The line with the session's own fence taken out, over and over: what is left may join to another."""
    while any(mark in line for mark in fence):
        for mark in fence:
            line = line.replace(mark, "")
    return line
