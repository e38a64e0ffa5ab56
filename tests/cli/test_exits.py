"""memd.cli.exits: every error has a status."""

from __future__ import annotations

import pytest

from memd.cli import exits
from memd_client import errors

EXPECTED = {
    exits.REFUSED: [
        *("invalid_content", "blocked_content", "over_limit", "not_found", "ambiguous_match", "conflict"),
        *("turn_budget_exhausted", "store_disabled", "store_unreadable", "cancelled", "no_such_profile"),
        *("no_such_session", "no_such_job", "no_such_revision", "no_such_proposal"),
    ],
    exits.USAGE: ["invalid_request", "method_not_found", "invalid_params", "too_large"],
    exits.UNAVAILABLE: ["unsupported_version"],
    exits.INTERNAL: ["internal"],
    exits.TEMPORARY: [
        *("too_many_requests", "deadline_exceeded", "shutting_down", "no_space", "busy", "io_error", "profile_owned")
    ],
    exits.PERMISSION: ["permission_denied", "read_only"],
}


def test_every_wire_error_has_its_status() -> None:
    actual: dict[int, list[str]] = {}
    for name, cls in errors.BY_NAME.items():
        actual.setdefault(exits.status_of(cls("x")), []).append(name)
    assert {key: sorted(names) for key, names in EXPECTED.items()} == {k: sorted(v) for k, v in actual.items()}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (errors.NotRunning("x"), exits.UNAVAILABLE),
        (errors.Untrusted("x"), exits.PERMISSION),
        (errors.ConnectionLost("x"), exits.TEMPORARY),
        (errors.Timeout("x"), exits.TEMPORARY),
        (errors.MemdError("of a newer daemon"), exits.REFUSED),
    ],
)
def test_what_happens_to_a_connection_has_one_too(error: errors.MemdError, expected: int) -> None:
    assert expected == exits.status_of(error)


def test_help_has_them_all() -> None:
    for status in (exits.OK, *EXPECTED, exits.SETTINGS):
        assert f" {status}  " in exits.table()
