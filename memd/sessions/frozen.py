"""Frozen snapshots: the bytes a session's prompt holds, and what has changed in the stores since.

What comes in: the published states of a profile's stores. What goes out: a ``FrozenSnapshot`` that never changes, its
stored form, and the text that tells a session what is different now. What must not be here: when to freeze (the
registry), files, wire types.

The stored form holds every entry's id and text beside the rendered bytes, because ``changes_text`` is cumulative: it
compares the snapshot with the live store and not with the history, which may have been pruned meanwhile.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec.structs import replace

from memd.profile.snapshot import changes_text, join_blocks, render_block, snapshot_id, withheld_marker
from memd.profile.values import TARGETS, Limits, StoreState, Target

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from memd.profile.snapshot import Block

CHANGES_LIMIT = 1000
"""Characters of ``changes_text``, the fence included; fixed by the protocol."""


class ProfileView(Protocol):
    """What sessions need of a profile: reads that never wait."""

    @property
    def name(self) -> str:
        """The profile's name."""

    def state(self, target: Target) -> StoreState:
        """The published state of a store."""

    def kept_out(self, target: Target, text: str) -> str | None:
        """The rule that keeps a text which is no longer in a store out of prompts; None if it may be told."""

    def head(self) -> tuple[int, ...]:
        """The revisions of both stores, and whatever else changes what they are to a reader."""


class Fence(msgspec.Struct, frozen=True):
    """The lines around recalled text; unguessable, so that stored text cannot fake or close them."""

    open: str
    close: str


class Withheld(msgspec.Struct, frozen=True):
    """An entry that is kept out of prompts, and the rule that does it."""

    target: Target
    id: str
    rule: str


class FrozenSnapshot(msgspec.Struct, frozen=True, weakref=True):
    """Both stores as a prompt has them. ``record_id`` identifies everything here, ``id`` only the text."""

    id: str
    text: str
    blocks: dict[str, str]
    headers: dict[str, str]
    revisions: dict[str, int]
    left_out: dict[str, int]
    withheld: list[Withheld]
    entries: dict[str, list[tuple[str, str]]]

    def encode(self) -> bytes:
        """The stored form."""
        return _ENCODER.encode(self)

    @property
    def record_id(self) -> str:
        """SHA-256 of the stored form: equal snapshots are stored once."""
        return hashlib.sha256(self.encode()).hexdigest()


def redact(frozen: FrozenSnapshot, mask: Callable[[str], str]) -> FrozenSnapshot:
    """The same snapshot with texts masked, under the id of what it says now. The usage in its headers stays."""
    text = mask(frozen.text)
    return replace(
        frozen,
        id=snapshot_id(text),
        text=text,
        blocks={target: mask(block) for target, block in frozen.blocks.items()},
        entries={target: [(entry, mask(said)) for entry, said in rows] for target, rows in frozen.entries.items()},
    )


_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_DECODER = msgspec.msgpack.Decoder(FrozenSnapshot)


def decode(body: bytes) -> FrozenSnapshot:
    """A snapshot from its stored form."""
    return _DECODER.decode(body)


def freeze(profile: ProfileView) -> FrozenSnapshot:
    """Render both stores as they are now."""
    states = {target: profile.state(target) for target in TARGETS}
    blocks = {target: _block(state) for target, state in states.items()}
    text = join_blocks(list(blocks.values()))
    return FrozenSnapshot(
        id=snapshot_id(text),
        text=text,
        blocks={target: block.text for target, block in blocks.items()},
        headers={target: block.header for target, block in blocks.items()},
        revisions={target: state.revision for target, state in states.items()},
        left_out={target: block.left_out for target, block in blocks.items()},
        withheld=[
            Withheld(target, entry.id, state.withheld[entry.id])
            for target, state in states.items()
            for entry in state.document.entries
            if entry.id in state.withheld
        ],
        entries={target: list(block.entries) for target, block in blocks.items()},
    )


def describe_changes(frozen: FrozenSnapshot, profile: ProfileView, fence: Fence) -> str:
    """What differs between the snapshot and the live stores, inside the fence; ``""`` if nothing does.

    What is gone is told with its text, and judged by the rules of now for that: they may be others than when it was frozen.
    """
    after: Mapping[Target, Block] = {target: _block(profile.state(target)) for target in TARGETS}
    return changes_text(
        {target: _tellable(frozen.entries[target], after[target], profile, target) for target in TARGETS},
        {target: block.entries for target, block in after.items()},
        fence_open=fence.open,
        fence_close=fence.close,
        limit=CHANGES_LIMIT,
    )


def _tellable(
    entries: Sequence[tuple[str, str]], after: Block, profile: ProfileView, target: Target
) -> tuple[tuple[str, str], ...]:
    """The entries of a snapshot, those that are gone without a text that must not be in a prompt any more."""
    there = dict(after.entries)
    texts = set(there.values())
    told = []
    for entry, said in entries:
        rule = None if entry in there or said in texts else profile.kept_out(target, said)
        told.append((entry, said if rule is None else withheld_marker(entry, rule)))
    return tuple(told)


def _block(state: StoreState) -> Block:
    return render_block(state.target, state.document, Limits(state.usage.limit), state.withheld)


EMPTY_SNAPSHOT = FrozenSnapshot(
    id=snapshot_id(""),
    text="",
    blocks=dict.fromkeys(TARGETS, ""),
    headers=dict.fromkeys(TARGETS, ""),
    revisions=dict.fromkeys(TARGETS, 0),
    left_out=dict.fromkeys(TARGETS, 0),
    withheld=[],
    entries={target: [] for target in TARGETS},
)
"""What a connection without any access gets."""
