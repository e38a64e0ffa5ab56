"""The snapshot renderings of the shared vectors."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from support.vectors import by_name, load

from memd.profile.entries import Document, make_entry
from memd.profile.snapshot import join_blocks, render_block, snapshot_id
from memd.profile.values import TARGETS, Limits

SNAPSHOTS = load("snapshots")


@pytest.mark.parametrize("item", SNAPSHOTS, ids=by_name)
def test_byte_for_byte(item: dict[str, Any]) -> None:
    """Blocks, headers, text and id, and how many entries were left out."""
    withheld = {found["id"]: found["rule"] for found in item["withheld"]}
    blocks = {}
    for target in TARGETS:
        entries = tuple(
            replace(make_entry(text), id=f"{target[0]}{number}")
            for number, text in enumerate(item["entries"][target], 1)
        )
        document = Document(entries=entries, gaps=("\n§\n",) * (len(entries) - 1))
        blocks[target] = render_block(target, document, Limits(item["limits"][target]), withheld)
    text = join_blocks([blocks[target] for target in TARGETS])
    assert item["blocks"] == {target: block.text for target, block in blocks.items()}
    assert item["headers"] == {target: block.header for target, block in blocks.items()}
    assert item["left_out"] == {target: block.left_out for target, block in blocks.items()}
    assert item["text"] == text
    assert item["id"] == snapshot_id(text)
