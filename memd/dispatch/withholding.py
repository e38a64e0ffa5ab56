"""Errors without the texts that are kept out of prompts: a host hands to its model what an error says.

What comes in: an error, the connection that gets it. What goes out: the same, with a marker in the place of each such text. What must
not be here: which texts those are (the profile's views), results.

``memory.read`` alone shows an agent such a text, so that its user can see it; a person on the operator socket sees all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from memd.errors import WireError
from memd.profile.snapshot import withheld_marker
from memd.profile.values import TARGETS

if TYPE_CHECKING:
    from memd.dispatch.context import Context

E = TypeVar("E", bound=Exception)

LISTS = ("entries", "matches", "nearest")
"""Data of errors that lists entries: ``[{id, chars, text}]``."""
CURRENT = "current"
"""Data of a conflict: the text of an entry, or of a whole store."""


def hide(context: Context, error: E) -> E:
    """The error itself, its data changed: whatever else is made of it has none of those texts either."""
    if context.role == "operator" or not isinstance(error, WireError) or not {*LISTS, CURRENT} & error.extra.keys():
        return error
    states = [context.profile.state(target) for target in TARGETS]
    hidden = [
        (entry, state.withheld) for state in states for entry in state.document.entries if entry.id in state.withheld
    ]
    markers = {entry.id: withheld_marker(entry.id, rules[entry.id]) for entry, rules in hidden}
    for key in LISTS:
        if error.extra.get(key):
            error.extra[key] = [{**item, "text": markers.get(item["id"], item["text"])} for item in error.extra[key]]
    if error.extra.get(CURRENT):
        for entry, _ in hidden:
            error.extra[CURRENT] = error.extra[CURRENT].replace(entry.shown, markers[entry.id])
    return error
