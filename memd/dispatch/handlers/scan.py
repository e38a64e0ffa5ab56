"""``scan.check``: the rules on a text that is to enter a prompt some other way.

What comes in: a text. What goes out: findings and the verdict over them. What must not be here: the rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memd.dispatch import translate
from memd.dispatch.table import Method
from memd.errors import TooLarge
from memd.protocol import approval as p

if TYPE_CHECKING:
    from memd.dispatch.context import Context


async def check(context: Context, params: p.ScanCheck) -> p.Checked:
    """Scan a text by the profile's rules; it is not kept."""
    size = len(params.text)
    if size > p.SCAN_CHARS:
        msg = f"text: {size:,} characters, and at most {p.SCAN_CHARS:,} are scanned; send it in parts that overlap"
        raise TooLarge(msg, limit=p.SCAN_CHARS)
    findings, verdict = await context.profile.check(params.text)
    return p.Checked(findings=[translate.finding(one) for one in findings], verdict=verdict)


METHODS = (Method("scan.check", p.ScanCheck, p.Checked, "read", check, "task"),)
