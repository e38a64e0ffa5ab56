"""Views: the published states of a profile's stores with what its rules say about the entries.

What comes in: states as the stores publish them, the profile's guard. What goes out: the same with findings and with what is
kept out of prompts, and which of that is news. What must not be here: I/O, tasks, events.

A store may belong to several profiles, and the rules to each of them: hence a view for each profile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memd.profile.memory_store import MemoryStore
    from memd.profile.policy import Guard
    from memd.profile.values import StoreState, Target


@dataclass(frozen=True, slots=True)
class News:
    """How what is withheld in a store has changed: rules by entry id, and the ids of entries that may be shown again."""

    withheld: Mapping[str, str]
    released: tuple[str, ...]


class Views:
    """The views of one profile. ``version`` grows whenever what is withheld changes, or the rules do."""

    def __init__(self, guard: Guard, stores: Mapping[Target, MemoryStore]) -> None:
        self.version = 0
        self._guard = guard
        self._stores = stores
        self._sources: dict[Target, StoreState] = {target: store.state for target, store in stores.items()}
        self._views = dict(self._sources)

    def __repr__(self) -> str:
        withheld = sum(len(view.withheld) for view in self._views.values())
        return f"<Views of {self._guard.profile}, {withheld} entries withheld>"

    def state(self, target: Target) -> StoreState:
        """The view of a store; a new object after every change."""
        return self._views[target]

    def update(self, target: Target, *, anew: bool = False) -> News | None:
        """Take over what the store publishes now; what is news about it. ``anew``: rules or approvals changed."""
        store, before = self._stores[target], self._views[target]
        if store.state is self._sources[target] and not anew:
            return None
        self._sources[target] = store.state
        view = self._views[target] = self._view(store)
        if anew or view.withheld != before.withheld:
            self.version += 1
        if view.withheld == before.withheld:
            return None
        fresh = {entry: rule for entry, rule in view.withheld.items() if before.withheld.get(entry) != rule}
        there = {entry.id for entry in view.document.entries}
        released = tuple(entry for entry in before.withheld if entry not in view.withheld and entry in there)
        return News(fresh, released) if fresh or released else None

    def _view(self, store: MemoryStore) -> StoreState:
        state, guard = store.state, self._guard
        findings = {}
        outside = guard.approval["outside"] == "withhold"
        doubtful = []
        for entry in state.document.entries:
            found = guard.scans.findings(entry.text)
            if found:
                findings[entry.id] = found
            if found or (outside and entry.origin == "outside"):
                doubtful.append(entry)
        if not doubtful:
            return state
        rules = {entry.id: guard.withheld_by(entry.text, entry.origin, store.approved) for entry in doubtful}
        withheld = {entry: rule for entry, rule in rules.items() if rule is not None}
        return replace(state, findings=findings, withheld=withheld)
