"""Recovery: what a difference between file and journal means at the start.

What comes in: the file's bytes, the journal's renderings, and how the last daemon ended. What goes out: one word.
What must not be here: I/O. The rules are those of a store whose file is swapped after its group is journaled and
fsynced only at a file checkpoint:

* after a clean stop any difference is an outside edit;
* after a crash on the same boot the file is the head or the state before the last group (or, where it is rewritten in
  place, a mixture of just these two); anything else is outside;
* only after another boot it may be any rendering since its file checkpoint, or torn: a prefix of one, NULs, empty, or
  missing if it never was file-checkpointed; where it is rewritten in place, any mixture of the last two and NULs.
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
    if data == renderings[0]:
        return "same"
    if last_run.clean:
        return "outside"
    ours = _after_a_crash if last_run.same_boot else _after_another_boot
    return "roll_forward" if ours(data, renderings, before, synced=synced, in_place=in_place) else "outside"


def _after_a_crash(
    data: bytes | None, renderings: Sequence[bytes], before: Sequence[bytes | None], *, synced: int, in_place: bool
) -> bool:
    """True if the file is what a process that ended in the middle can have left. What is synced plays no part."""
    del synced
    if any((data or b"") == (state or b"") for state in before):  # no file and an empty one are the same
        return True
    return in_place and any(_mixture(data, renderings[0], state) for state in before)


def _after_another_boot(
    data: bytes | None, renderings: Sequence[bytes], before: Sequence[bytes | None], *, synced: int, in_place: bool
) -> bool:
    """True if the file is what a power loss can have left."""
    if data is None:
        return not synced
    if in_place and any(_mixture(data, renderings[0], state, torn=True) for state in before):
        return True
    possible = [*renderings] if synced == 2 else [*renderings, *(state for state in before if state is not None)]
    return any(torn(data, state) for state in possible)


def torn(data: bytes, rendering: bytes) -> bool:
    """True if a power loss can have made ``data`` out of a file that held ``rendering``."""
    return rendering.startswith(data.rstrip(b"\0"))


def _mixture(data: bytes | None, head: bytes, previous: bytes | None, *, torn: bool = False) -> bool:
    """True if ``data`` is the head and the previous bytes written over each other, as far as either got; or NULs if ``torn``."""
    if data is None or previous is None or len(data) > max(len(head), len(previous)):
        return False
    if not torn and len(data) < min(len(head), len(previous)):
        return False  # nothing is cut before the head is written: somebody else did that
    return all(
        byte in (head[at : at + 1] + previous[at : at + 1]) or (torn and byte == 0) for at, byte in enumerate(data)
    )
