"""Policy: what happens to a change, by what the scan finds in it and by where it comes from.

What comes in: operations and what they would change, who asks, a profile's rules. What goes out: a ruling for each operation
(apply it, or have a person decide), or the typed refusal. What must not be here: how a change is made, proposals, I/O.

The scan comes first, so that what is refused is never kept anywhere; then the ``[approval]`` setting of the origin. On the
operator socket a person has decided by asking: there only what the scan refuses outright is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memd.errors import BlockedContent, PermissionDenied
from memd.profile.content import text_hash
from memd.profile.values import Notice
from memd.scan import verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from memd.profile.entries import Document
    from memd.profile.proposals import Proposals
    from memd.profile.scans import Findings, Scans
    from memd.profile.values import Action, Caller, Change, Operation, Step
    from memd.scan import Finding

JOBS = ("review", "flush")
OUTSIDE_RULE = "origin.outside"
"""Stands for a rule where an entry is withheld because another program wrote it (``approval.outside``)."""
JOB_SHARE = 4
"""A job may take away one part in so many of a store's text; more is a person's business."""


class Guard:
    """What holds for the changes of one profile.

    ``approval`` has the ``[approval]`` settings by their names. It and ``scans`` are exchanged when settings are reloaded.
    """

    def __init__(self, profile: str, approval: Mapping[str, Any], scans: Scans, proposals: Proposals) -> None:
        self.profile = profile
        self.approval = approval
        self.scans = scans
        self.proposals = proposals

    def __repr__(self) -> str:
        return f"<Guard of {self.profile}, {self.scans!r}>"

    def setting(self, origin: str, action: Action) -> tuple[str, str]:
        """The name and the value of the ``[approval]`` setting for an operation of this origin."""
        name = f"{origin}_{'add' if action == 'add' else 'change'}" if origin in JOBS else origin
        return name, self.approval[name]

    def withheld_by(self, text: str, origin: str, approved: Collection[bytes]) -> str | None:
        """The rule that keeps an entry out of prompts; None if it may enter them. ``approved``: SHA-256 of texts."""
        worst = gravest(self.scans.findings(text))
        if worst is not None and worst.severity == "refuse":
            return worst.rule
        foreign = origin == "outside" and self.approval["outside"] == "withhold"
        doubtful = worst is not None and worst.severity == "stage"
        if not (foreign or doubtful) or text_hash(text) in approved:
            return None
        return worst.rule if worst is not None and doubtful else OUTSIDE_RULE


@dataclass(frozen=True, slots=True)
class Ruling:
    """What is to happen to one operation.

    ``staged``: a person has to decide, ``why`` says for which reason. ``notices``: what is to be told about it if it is
    applied. ``approved``: new texts that a person let pass although the scan doubts them.
    """

    staged: bool
    findings: Findings = ()
    why: str = ""
    notices: tuple[Notice, ...] = ()
    approved: tuple[str, ...] = ()


def rule(
    guard: Guard, operation: Operation, step: Step, caller: Caller, approved: Collection[bytes] = frozenset()
) -> Ruling:
    """Decide about one operation that would do ``step``; one that changes nothing passes.

    Raises:
        BlockedContent: The scan refuses a text that it puts in; ``data.findings`` say why and where.
        PermissionDenied: The setting for its origin is ``refuse``.
    """
    if not step.changes:
        return Ruling(staged=False)
    return _rule(guard, operation.action, step.changes, caller, approved)


def rule_changes(
    guard: Guard, changes: Sequence[Change], caller: Caller, approved: Collection[bytes] = frozenset()
) -> Ruling:
    """Decide about changes that can be applied or refused and nothing else: undo, restore, import.

    Raises:
        BlockedContent, PermissionDenied: As ``rule``; also where an operation would wait for a person.
    """
    if not changes:
        return Ruling(staged=False)
    action: Action = "add" if all(change.action == "add" for change in changes) else "replace"
    ruling = _rule(guard, action, changes, caller, approved)
    if not ruling.staged:
        return ruling
    advice = "this cannot be staged, so ask the user to do it with the memd command"
    doubted = [one for one in ruling.findings if one.severity == "stage"]
    if doubted:
        raise blocked(doubted, advice)
    msg = f"{ruling.why}; {advice}"
    raise PermissionDenied(msg, origin=caller.origin)


def needs_person(before: Document, after: Document) -> bool:
    """True if a job's batch empties a store or takes away more than a quarter of its text."""
    if not before.entries:
        return False
    return not after.entries or before.chars - after.chars > before.chars // JOB_SHARE


def blocked(
    findings: Sequence[Finding], advice: str = "nothing was stored; leave that out, or say it in other words"
) -> BlockedContent:
    """The refusal of a text. It holds no part of it."""
    worst = gravest(findings)
    first = worst or findings[0]
    more = f" and {len(findings) - 1} more" if len(findings) > 1 else ""
    msg = f"the scan stopped this text: {describe(first)}{more}. {advice[0].upper()}{advice[1:]}"
    return BlockedContent(msg, findings=[finding_map(one) for one in findings])


def gravest(findings: Iterable[Finding]) -> Finding | None:
    """The first of the gravest findings, None if there is none."""
    found = tuple(findings)
    worst = verdict(found)
    return next((one for one in found if one.severity == worst), None)


def describe(finding: Finding) -> str:
    """A finding in a few words, without the text."""
    return f"{finding.reason} (rule {finding.rule}, characters {finding.start} to {finding.end})"


def finding_map(finding: Finding) -> dict[str, Any]:
    """A finding as error data."""
    return {
        "rule": finding.rule,
        "class": finding.class_,
        "severity": finding.severity,
        "start": finding.start,
        "end": finding.end,
        "reason": finding.reason,
    }


def new_texts(changes: Iterable[Change]) -> list[str]:
    """The texts that changes put in."""
    return [change.after for change in changes if change.after is not None and change.after != change.before]


def _rule(
    guard: Guard, action: Action, changes: Sequence[Change], caller: Caller, approved: Collection[bytes]
) -> Ruling:
    texts = [(text, guard.scans.findings(text)) for text in new_texts(changes)]
    findings = tuple(one for _, found in texts for one in found)
    refused = [one for one in findings if one.severity == "refuse"]
    if refused:
        raise blocked(refused)
    doubted = [text for text, found in texts if verdict(found) == "stage" and text_hash(text) not in approved]
    name, value = guard.setting(caller.origin, action)
    if value == "refuse":
        msg = f"writes of origin {caller.origin!r} are refused by the setting approval.{name}; ask the user"
        raise PermissionDenied(msg, origin=caller.origin, setting=f"approval.{name}")
    why = _why(findings, caller.origin, name, doubted=bool(doubted), policy=value)
    if not why and any(_of_others(guard, change, approved) for change in changes):
        why = "another program wrote the entry, and nobody has approved it yet (approval.outside)"
    staged = bool(why) and not caller.person
    return Ruling(staged, findings, why, tuple(_notices(findings, why)), tuple(doubted) if caller.person else ())


def _of_others(guard: Guard, change: Change, approved: Collection[bytes]) -> bool:
    """True for an edit of a withheld entry: the rest of it would come into prompts as if it were the editor's own."""
    text = change.before if change.action == "edit" else None
    return text is not None and guard.withheld_by(text, change.origin, approved) == OUTSIDE_RULE


def _why(findings: Findings, origin: str, name: str, *, doubted: bool, policy: str) -> str:
    """Why a person has to decide, ``""`` if nobody has to."""
    if doubted:
        worst = gravest(findings)
        return f"the scan wants a person to look: {describe(worst)}" if worst is not None else ""
    return f"writes of origin {origin!r} wait for a person (approval.{name})" if policy == "stage" else ""


def _notices(findings: Findings, why: str) -> Iterable[Notice]:
    """What is told about an operation that is applied."""
    for one in findings:
        if one.severity == "warn":
            yield Notice("scan_warning", f"kept, and worth a look: {describe(one)}", finding_map(one))
    if why:
        data = {"findings": [finding_map(one) for one in findings]}
        yield Notice("approved", f"elsewhere this would have waited; you asked for it, so it is approved: {why}", data)
