"""What a connection or a session is told about its stores.

What comes in: published states. What goes out: notices. What must not be here: wire types, how a state came to be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memd.profile.values import TARGETS, Notice

if TYPE_CHECKING:
    from memd.dispatch.ports import Profile
    from memd.profile.values import StoreState
    from memd.sessions import FrozenSnapshot

_ADVICE = {
    "foreign": "it has no borders (§) between entries, so that all of it is one; edit changes parts of it, `memd import --foreign` "
    "makes entries of its headings and list items, after a preview",
    "stale": "its file cannot be read now, the last good state is served",
    "read_only": "its file cannot be written, reading goes on",
    "unreadable": "its file cannot be read and there is no earlier state",
    "disabled": "it is switched off in the settings",
}

SHOWN = 5
"""Withheld entries that a notice names in words; its data has them all."""

_SAYS_WHY = {"stale", "read_only", "unreadable"}
"""Conditions whose advice needs the detail beside it; that of the others says the same."""


def store_notices(profile: Profile) -> list[Notice]:
    """One notice for each thing that is not as usual with the stores."""
    found = []
    for target in TARGETS:
        state = profile.state(target)
        if state.condition != "ok":
            found.append(_condition(state))
        found.extend(state.notices)
        undecodable = [entry.id for entry in state.document.entries if entry.undecodable]
        if undecodable:
            count = "1 entry" if len(undecodable) == 1 else f"{len(undecodable)} entries"
            message = f"{count} of {state.path} with bytes that are not UTF-8: shown, kept, and never injected"
            found.append(Notice("undecodable", message, {"target": target, "ids": undecodable}))
        if state.withheld:
            found.append(_withheld(state))
    return found


def snapshot_notices(frozen: FrozenSnapshot, *, redacted: bool = False) -> list[Notice]:
    """What a snapshot does not show although it is in the store, and whether it is no longer what it was."""
    changed = "a text in this snapshot was redacted: put the new one into the prompt, also where the old one stands"
    return [Notice("snapshot_redacted", changed)] * redacted + [
        Notice(
            "left_out",
            f"{count} newest {'entry' if count == 1 else 'entries'} of {target} left out: over the limit",
            {"target": target, "count": count},
        )
        for target, count in frozen.left_out.items()
        if count
    ]


def _withheld(state: StoreState) -> Notice:
    """Which entries no prompt gets, why, and what can be done about it."""
    rows = []
    for entry, rule in state.withheld.items():
        found = next((one for one in state.findings.get(entry, ()) if one.rule == rule), None)
        reason = found.reason if found is not None else "another program wrote it, and approval.outside is withhold"
        rows.append({"id": entry, "rule": rule, "reason": reason, "approvable": _approvable(state, entry)})
    count = "1 entry" if len(rows) == 1 else f"{len(rows)} entries"
    said = "; ".join(f"{row['id']}: {row['reason']} (rule {row['rule']})" for row in rows[:SHOWN])
    more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
    hints = []
    if any(row["approvable"] for row in rows):
        hints.append("`memd approve ID` lets one in that you trust")
    if not all(row["approvable"] for row in rows):
        hints.append("what the scan refuses has to be reworded or removed (`memd read` shows it)")
    message = f"{count} of {state.path} kept out of prompts: {said}{more}. {'; '.join(hints).capitalize()}"
    return Notice("withheld", message, {"target": state.target, "entries": rows})


def _approvable(state: StoreState, entry: str) -> bool:
    return all(one.severity != "refuse" for one in state.findings.get(entry, ()))


def _condition(state: StoreState) -> Notice:
    message = f"{state.path} is {state.condition.replace('_', '-')}: {_ADVICE[state.condition]}"
    if state.condition in _SAYS_WHY and state.detail:
        message += f" ({state.detail})"
    return Notice(f"store_{state.condition}", message, {"target": state.target, "path": state.path})
