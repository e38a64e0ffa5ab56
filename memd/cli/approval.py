"""Verbs of approval: pending, approve, reject.

What comes in: the shell and the options. What goes out: what waits for a person, readable; what became of it. What must not be here:
what an approval does.
"""

from __future__ import annotations

from memd.cli.changes import show_changes
from memd.cli.exits import OK, REFUSED, USAGE
from memd.cli.memory import done
from memd.cli.problems import tell
from memd.cli.reach import operator, writer
from memd.cli.text import age, one_line, plural, safe, wrap
from memd_client.errors import MemdError
from memd_client.types import Change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from memd.cli.shell import Shell
    from memd_client import types
    from memd_client.client import Client
    from memd_client.proposals import Op, Proposal

    Texts = dict[str, dict[str, str]]

S_US = 1_000_000
MOST_NAMED = 8  # characters of a run that are named one by one


def pending(shell: Shell, options: Namespace) -> int:
    """``memd pending``: what waits, oldest first; with ``--walk`` one by one, with a key for each."""
    options.origin = None
    if options.walk:
        from memd.cli.walking import walk  # noqa: PLC0415 - only where it was asked for

        return walk(shell, options)
    with writer(shell, options) as client:
        listed = client.approval_list()
        if shell.json:
            shell.out_json(listed.as_dict())
            return OK
        texts = texts_of(client) if listed.proposals else {}
        withheld = withheld_of(client)
    for proposal in listed.proposals:
        show_proposal(shell, proposal, texts, full=options.full)
        shell.out()
    for row in withheld:
        show_withheld(shell, row)
    if listed.proposals:
        waits = f"{plural(listed.count, 'proposal')}, the oldest {_ago(listed.oldest_s)}"
        hint = "`memd pending --walk` goes through them, `memd approve ID` and `memd reject ID` settle one"
        shell.out(f"{shell.paint(waits, 'bold')}: {hint}")
    elif not withheld:
        shell.out("nothing waits for you")
    return OK


def approve(shell: Shell, options: Namespace) -> int:
    """``memd approve``: by ids, or all of them; those that cannot be applied are told, and the others go on."""
    if bool(options.ids) == options.all or (options.content is not None and len(options.ids) != 1):
        shell.err("memd: name what to approve, or --all; --content goes with one ID")
        return USAGE
    content = shell.stdin.read() if options.content == "-" else options.content
    with operator(shell, options) as client:
        ids = [one.id for one in client.approval_list().proposals] if options.all else options.ids
        if not ids and not shell.json:
            shell.out("nothing waits for you")
        return _each(shell, ids, lambda one: client.approval_approve(one, content, reason=options.reason))


def reject(shell: Shell, options: Namespace) -> int:
    """``memd reject``."""
    if not options.ids:
        shell.err("memd: name what to reject")
        return USAGE
    with operator(shell, options) as client:
        return _each(shell, options.ids, lambda one: client.approval_reject(one, reason=options.reason))


def show_proposal(shell: Shell, proposal: Proposal, texts: Texts, *, full: bool = False) -> None:
    """A proposal: whose it is and from when, what it would change, what the scan says, and what stands in its way."""
    who = f"{proposal.origin}{f' through {one_line(proposal.client)}' if proposal.client else ''}"
    shell.out(f"{shell.paint(proposal.id, 'bold')}  {proposal.target}  by {who}, {_ago(proposal.age_s)}")
    if proposal.proposed:
        for line in wrap(one_line(f"because: {proposal.proposed}"), shell.width() - 2):
            shell.out(f"  {shell.paint(line, 'dim')}")
    changes = changes_of(proposal, texts)
    show_changes(shell, changes, full=full)
    for finding in proposal.findings:
        unseen = _code_points(changes, finding) if finding.class_ == "invisible" else ""
        _tell(shell, f"scan: {finding.reason} (rule {finding.rule}, {finding.severity}){unseen}", "yellow")
    if proposal.reason:
        _tell(shell, f"cannot be applied as it is: {proposal.reason}", "red")


def show_withheld(shell: Shell, row: dict[str, Any]) -> None:
    """An entry that no prompt gets."""
    entry = safe(str(row.get("id")))
    way = f"`memd approve {entry}` lets it in" if row.get("approvable") else "reword it, or `memd remove` it"
    told = f"kept out of prompts: {row.get('reason')} (rule {row.get('rule')}); {way}"
    shell.out(f"{shell.paint(entry, 'bold')}  {safe(str(row.get('target')))}")
    _tell(shell, told, "yellow")


def changes_of(proposal: Proposal, texts: Texts) -> list[types.Change]:
    """What a proposal would change, each operation on what those before it leave of the texts that the entries have now."""
    now = dict(texts.get(proposal.target, {}))
    return [Change(_change(proposal, op, now)) for op in proposal.operations]


def texts_of(client: Client) -> Texts:
    """The texts of all entries, by store and id."""
    stores = client.memory_read().stores
    return {target: {entry.id: entry.text for entry in store.entries} for target, store in stores.items()}


def withheld_of(client: Client) -> list[dict[str, Any]]:
    """The entries that are kept out of prompts, with rule and reason, as the daemon told when we connected."""
    found = [notice.data for notice in client.hello.notices if notice.name == "withheld"]
    return [{**row, "target": data.get("target")} for data in found for row in data.get("entries") or ()]


def _change(proposal: Proposal, op: Op, texts: dict[str, str]) -> dict[str, Any]:
    """One operation as a change; ``texts`` is afterwards what it leaves."""
    entry, before = op.id, None
    if op.action == "add":
        entry = f"new {len(texts)}"
    else:
        said = op.old_text or ""
        entry = entry or next((found for found, text in texts.items() if said in text), None)
        before = texts.get(entry or "", op.old_text)
    after = op.content
    if op.action == "edit" and before is not None:
        if (
            op.old_text is not None and op.old_text not in before
        ):  # it does not fit any more: what it would change is shown alone
            before = op.old_text
        after = before.replace(op.old_text or "", op.new_text or "", 1)
    elif op.action == "remove":
        after = None
    if entry is not None:
        texts[entry] = after or ""
    shown = "new" if op.action == "add" else entry or "?"
    return {"action": op.action, "target": proposal.target, "id": shown, "before": before, "after": after}


def _code_points(changes: list[types.Change], finding: types.Finding) -> str:
    """Which characters nobody sees, where the change is one text so that it is clear which one is meant."""
    text = changes[0].after if len(changes) == 1 else None
    found = [f"U+{ord(char):04X}" for char in (text or "")[finding.start : finding.end][:MOST_NAMED]]
    return f": {' '.join(found)}" if found else ""


def _each(shell: Shell, ids: list[str], decide: Any) -> int:
    """Decide about each, telling what became of it; a refusal of one is no reason to leave out the others."""
    told, failed = [], False
    for one in ids:
        try:
            result = decide(one)
        except MemdError as error:
            if len(ids) == 1 or error.name in ("permission_denied", "not_running"):
                raise
            failed = True
            told.append({"id": one, "error": error.as_dict()})
            if not shell.json:
                shell.err(f"{shell.paint(one, 'bold', shell.stderr)}")
                tell(shell, error, hint=False)
            continue
        told.append({"id": one, "result": result.as_dict()})
        if not shell.json:
            settled(shell, one, result)
    if shell.json:
        shell.out_json(told[0]["result"] if len(ids) == 1 else {"results": told})
    return REFUSED if failed else OK


def settled(shell: Shell, proposal: str, result: types.Mutation | Proposal) -> None:
    """What became of a proposal."""
    if hasattr(result, "usage"):
        done(shell, result)  # type: ignore[arg-type]  # only a mutation has it
    else:
        shell.out(f"{shell.paint('rejected', 'yellow')}  {proposal}")


def _tell(shell: Shell, text: str, colour: str) -> None:
    for line in wrap(one_line(text), shell.width() - 2):
        shell.out(f"  {shell.paint(line, colour)}")


def _ago(seconds: int) -> str:
    said = age(0, seconds * S_US)
    return "just now" if said == "now" else f"{said} ago"
