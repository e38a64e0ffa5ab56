"""Rules on text: what must not enter a prompt unseen, what a person should look at, and which secrets have to be masked.

What comes in: any text. What goes out: findings with rule, class, severity and span. What must not be here: I/O, settings,
decisions about what happens to a text with findings.
"""

from __future__ import annotations

from memd.scan.engine import RULES_VERSION, Scanner, unknown_rules
from memd.scan.findings import Finding, Severity, Verdict, mask, verdict
from memd.scan.rules import CLASSES, Rule, packaged

__all__ = [
    "CLASSES",
    "RULES_VERSION",
    "Finding",
    "Rule",
    "Scanner",
    "Severity",
    "Verdict",
    "mask",
    "packaged",
    "unknown_rules",
    "verdict",
]
