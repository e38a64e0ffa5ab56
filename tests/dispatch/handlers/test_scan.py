"""scan.check: the rules on text that enters a prompt some other way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.judged import ATTACK, DOUBTFUL, SECRET

if TYPE_CHECKING:
    from support.fake_daemon import Client


@pytest.mark.parametrize(
    ("text", "verdict", "rules"),
    [
        ("Server is Debian 12", "ok", []),
        (DOUBTFUL, "stage", ["invisible.zero-width"]),
        (ATTACK, "refuse", ["override.earlier-orders"]),
        (SECRET, "refuse", ["secret.git-hosting"]),
        (f'"{ATTACK}" is a classic example of a prompt injection attack.', "warn", None),
        ("", "ok", []),
    ],
)
async def test_the_verdict_is_the_gravest_finding(
    client: Client, text: str, verdict: str, rules: list[str] | None
) -> None:
    """Each finding has rule and span, and nothing of the text."""
    told = await client.done("scan.check", text=text, where="context")
    assert verdict == told["verdict"]
    if rules is not None:
        assert rules == [one["rule"] for one in told["findings"]]
    assert all(0 <= one["start"] < one["end"] <= len(text) for one in told["findings"])


async def test_where_it_goes_may_be_left_out(client: Client) -> None:
    """Nothing else than memory and context is known."""
    assert "ok" == (await client.done("scan.check", text="x"))["verdict"]
    assert "where" == (await client.refused("invalid_params", "scan.check", text="x", where="mail"))["data"]["field"]


async def test_what_is_too_long_is_not_scanned(client: Client) -> None:
    """The size is looked at first."""
    assert "ok" == (await client.done("scan.check", text="x" * 1_048_576))["verdict"]
    error = await client.refused("too_large", "scan.check", text="x" * 1_048_577)
    assert 1_048_576 == error["data"]["limit"]
