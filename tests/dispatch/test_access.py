"""The access matrix: every method of the table, at every level, on both sockets."""

from __future__ import annotations

import pytest

from memd.dispatch import method_table
from memd.dispatch.access import RANK, Access, Level, Role, lower, rank_of, require
from memd.errors import PermissionDenied

LEVELS: list[Access] = ["none", "read", "add", "full"]

MATRIX: dict[Level, set[str]] = {
    "none": {
        "hello",
        "rpc.ping",
        "rpc.cancel",
        "rpc.discover",
        *(f"rpc.certify.{step}" for step in ("start", "flag", "ints", "texts", "lists", "maps", "error", "end")),
        "memory.tool_schema",
        "session.open",
    },
    "read": {
        "memory.read",
        "memory.explain",
        "session.snapshot",
        "session.refresh",
        "session.close",
        "turn.begin",
        "turn.end",
        "history.list",
        "history.show",
        "history.diff",
        "events.subscribe",
        "events.unsubscribe",
        "events.wait",
        "approval.list",
        "jobs.list",
        "jobs.show",
        "jobs.wait",
        "scan.check",
        "daemon.status",
        "daemon.metrics",
        "profile.list",
    },
    "add": {
        "memory.add",
        "memory.apply",
        "memory.tool",
        "jobs.cancel",
        "jobs.run",
        "jobs.claim",
        "jobs.renew",
        "jobs.submit",
        "compaction.begin",
        "compaction.end",
    },
    "full": {
        "memory.replace",
        "memory.edit",
        "memory.remove",
        "history.undo",
        "history.redo",
        "history.restore",
        "profile.export",
    },
    "operator": {
        "approval.approve",
        "approval.reject",
        "history.redact",
        "memory.wipe",
        "profile.create",
        "profile.import",
        "daemon.reload",
        "daemon.stop",
        "daemon.handover",
    },
}


def test_every_method_has_the_level_of_the_matrix() -> None:
    """Written down a second time, as the protocol has it."""
    assert MATRIX == {level: {row.name for row in method_table() if row.access == level} for level in RANK}


@pytest.mark.parametrize("role", ["agent", "operator"])
@pytest.mark.parametrize("access", LEVELS)
@pytest.mark.parametrize("row", list(method_table()), ids=lambda row: row.name)
def test_a_call_is_allowed_at_its_level_and_above(row: object, access: Access, role: Role) -> None:
    """The operator's methods only on the operator socket and with full access there."""
    level: Level = row.access  # type: ignore[attr-defined]  # a row of the table
    allowed = access == "full" and role == "operator" if level == "operator" else RANK[level] <= RANK[access]
    if allowed:
        require("m", level, access=access, role=role)
    else:
        with pytest.raises(PermissionDenied) as caught:
            require("m", level, access=access, role=role)
        assert {"needs": level, "access": access} == caught.value.extra


@pytest.mark.parametrize("given", LEVELS)
@pytest.mark.parametrize("claimed", [None, *LEVELS])
def test_a_claim_only_lowers(given: Access, claimed: Access | None) -> None:
    """Asking for more gives no more."""
    result = lower(given, claimed)
    assert RANK[result] <= RANK[given]
    assert result in {given, claimed}
    if claimed is not None:
        assert RANK[result] <= RANK[claimed]


def test_an_operator_who_asked_for_less_has_less() -> None:
    """The socket adds to full access only."""
    assert rank_of("read", "operator") == rank_of("read", "agent")
    assert rank_of("full", "operator") > rank_of("full", "agent")
