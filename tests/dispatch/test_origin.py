"""The origin rule: a claim never raises."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from memd.dispatch.origin import TRUST, settle_origin
from memd.errors import InvalidParams

if TYPE_CHECKING:
    from memd.dispatch.access import Role


@pytest.mark.parametrize(
    ("claim", "role", "user_turn", "through_tool", "expected"),
    [
        (None, "agent", False, False, ("agent", False)),
        (None, "agent", True, False, ("agent", False)),
        (None, "operator", False, False, ("user", False)),
        (None, "operator", False, True, ("agent", False)),
        ("user", "agent", False, False, ("agent", True)),
        ("user", "agent", True, False, ("user", False)),
        ("user", "operator", False, False, ("user", False)),
        ("user", "agent", True, True, ("agent", True)),
        ("user", "operator", True, True, ("agent", True)),
        ("agent", "agent", False, False, ("agent", False)),
        ("agent", "operator", False, False, ("agent", False)),
        ("agent", "agent", True, True, ("agent", False)),
        ("tool", "agent", False, False, ("tool", False)),
        ("tool", "operator", True, False, ("tool", False)),
        ("tool", "agent", True, True, ("tool", False)),
    ],
)
def test_the_rule(
    claim: str | None, role: Role, *, user_turn: bool, through_tool: bool, expected: tuple[str, bool]
) -> None:
    """User only in a user's turn or on the operator socket, and never through a model's tool."""
    settled = settle_origin(claim, role=role, user_turn=user_turn, through_tool=through_tool)
    assert expected == settled


@pytest.mark.parametrize("claim", ["review", "flush", "import", "outside", "", "root"])
def test_what_cannot_be_claimed_is_refused(claim: str) -> None:
    """Lowering these to agent would raise them: policies trust a review less than an agent."""
    with pytest.raises(InvalidParams, match="origin: expected"):
        settle_origin(claim, role="operator", user_turn=True)


@given(st.sampled_from(["user", "agent", "tool"]), st.booleans(), st.booleans(), st.booleans())
def test_a_claim_never_raises(claim: str, operator: bool, user_turn: bool, through_tool: bool) -> None:
    """Whatever the facts, what comes out is trusted at most as much as what was claimed."""
    role: Role = "operator" if operator else "agent"
    origin, lowered = settle_origin(claim, role=role, user_turn=user_turn, through_tool=through_tool)
    assert TRUST[origin] <= TRUST[claim]
    assert lowered == (origin != claim)
