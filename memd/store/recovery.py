"""Recovery: what a difference between file and journal means at the start.

What comes in: the file's bytes, the journal's renderings, and how the last daemon ended. What goes out: one word.
What must not be here: I/O. The rules are those of a store whose file is swapped after its group is journaled and
fsynced only at a file checkpoint:

* after a clean stop any difference is an outside edit;
* after a crash on the same boot the file is the head or the state before the last group (or, where it is rewritten in
  place, a mixture of just these two); anything else is outside;
* only after another boot it may be any rendering since its file checkpoint, or torn: a prefix of one, NULs, empty, or
  missing if it never was file-checkpointed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

Finding = Literal["same", "roll_forward", "outside"]


class LastRun(msgspec.Struct, frozen=True):
    """How the last daemon ended, and whether the machine was restarted since."""

    clean: bool
    same_boot: bool


def classify(
    data: bytes | None,
    renderings: Sequence[bytes],
    last_run: LastRun,
    *,
    before: Sequence[bytes | None],
    synced: int = 0,
    in_place: bool = False,
) -> Finding:
    """Say what the file is.

    Args:
        data: The file's bytes, None if it is missing.
        renderings: The head first, then the ones before it back to the file checkpoint.
        last_run: How the last daemon ended.
        before: What the file may have held before the last group: the rendering then (None: no file), and what the group
            found in it and merged.
        synced: The file checkpoint: 0 for never, 1 for an older revision, 2 for the head.
        in_place: True if the file is rewritten where it is.

    Returns:
        ``same``: the head; ``roll_forward``: an older state of ours that the head replaces; ``outside``: an edit.
    """
    if not renderings:
        return "same" if data is None else "outside"
    head = renderings[0]
    if data == head:
        return "same"
    if last_run.clean:
        return "outside"
    if last_run.same_boot:
        ours = any((data or b"") == (state or b"") for state in before)  # no file and an empty one are the same
        return (
            "roll_forward" if ours or (in_place and any(_mixture(data, head, state) for state in before)) else "outside"
        )
    if data is None:
        return "outside" if synced else "roll_forward"
    possible = [*renderings] if synced == 2 else [*renderings, *(state for state in before if state is not None)]
    return "roll_forward" if any(torn(data, state) for state in possible) else "outside"


def torn(data: bytes, rendering: bytes) -> bool:
    """True if a power loss can have made ``data`` out of a file that held ``rendering``."""
    return rendering.startswith(data.rstrip(b"\0"))


def _mixture(data: bytes | None, head: bytes, previous: bytes | None) -> bool:
    """True if ``data`` is the head written over the previous bytes and not cut to length yet."""
    return data is not None and previous is not None and data == head + previous[len(head) :]
