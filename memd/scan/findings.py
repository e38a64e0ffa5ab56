"""What a scan says about a text: findings, the verdict over them, and the text with its secrets masked.

What comes in: findings and the text that they belong to. What goes out: values. What must not be here: patterns, rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

Severity = Literal["refuse", "stage", "warn"]
Verdict = Literal["ok", "warn", "stage", "refuse"]

RANK: dict[Verdict, int] = {"ok": 0, "warn": 1, "stage": 2, "refuse": 3}
SECRETS = "secrets"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a rule found; ``start`` and ``end`` are code points of the text as it was given."""

    rule: str
    class_: str
    severity: Severity
    start: int
    end: int
    reason: str


def verdict(findings: Iterable[Finding]) -> Verdict:
    """The gravest severity, ``ok`` without a finding."""
    worst: Verdict = "ok"
    for it in findings:
        if RANK[it.severity] > RANK[worst]:
            worst = it.severity
    return worst


def mask(text: str, findings: Iterable[Finding]) -> str:
    """The text with each secret replaced by ``[secret:RULE]``, so that it may be shown or logged.

    Secrets that touch or overlap become one mark with the first one's rule. Other findings change nothing.
    """
    pieces, done = [], 0
    spans = sorted((it.start, -it.end, it.rule) for it in findings if it.class_ == SECRETS)
    for start, minus_end, rule in spans:
        if -minus_end <= done:
            continue
        if start >= done:
            pieces += [text[done:start], f"[secret:{rule}]"]
        done = -minus_end
    return "".join([*pieces, text[done:]])
