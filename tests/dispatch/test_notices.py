"""What is told about stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.fake_profile import MemoryProfile

from memd.dispatch.notices import snapshot_notices, store_notices
from memd.profile.entries import parse
from memd.sessions import EMPTY_SNAPSHOT

if TYPE_CHECKING:
    from memd.profile.values import StoreCondition

CONDITIONS: list[StoreCondition] = ["foreign", "stale", "read_only", "unreadable", "disabled"]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_every_condition_is_told_with_path_and_reason(condition: StoreCondition) -> None:
    """And what it means; of what a person chose or wrote, the advice itself is the reason."""
    profile = MemoryProfile()
    profile.put("memory", condition=condition, detail="mode 0444, owner 0")
    (notice,) = store_notices(profile)
    assert f"store_{condition}" == notice.name
    assert profile.state("memory").path in notice.message
    assert (condition in {"stale", "read_only", "unreadable"}) == ("(mode 0444, owner 0)" in notice.message)
    assert {"target": "memory", "path": profile.state("memory").path} == notice.data


def test_nothing_is_told_of_what_is_well() -> None:
    """No notice is noise."""
    assert [] == store_notices(MemoryProfile())
    assert [] == snapshot_notices(EMPTY_SNAPSHOT)


def test_undecodable_entries_are_told() -> None:
    """By id."""
    profile = MemoryProfile()
    profile.put("user", document=parse(b"caf\xe9"))
    (notice,) = store_notices(profile)
    assert ("undecodable", "user") == (notice.name, notice.data["target"])


def test_a_snapshot_that_was_redacted_says_so() -> None:
    """The prompt that has the old one is to be changed."""
    assert [] == snapshot_notices(EMPTY_SNAPSHOT)
    assert ["snapshot_redacted"] == [notice.name for notice in snapshot_notices(EMPTY_SNAPSHOT, redacted=True)]
