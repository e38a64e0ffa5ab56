"""Encoded answers that many ask for and that seldom change.

What comes in: published states, sessions. What goes out: ``msgspec.Raw`` to put into a reply. What must not be here:
deciding whether an answer may be given.

A published state is a new object after every change and a frozen snapshot never changes, so identity is the cache key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from memd.dispatch import translate
from memd.protocol import results

if TYPE_CHECKING:
    from memd.dispatch.ports import Profile
    from memd.profile.values import StoreState, Target
    from memd.sessions import FrozenSnapshot, Session, SessionRegistry

_encode = msgspec.msgpack.Encoder().encode


class AnswerCache:
    """Encoded stores and snapshots: one answer for each store, and one for each session, kept in the session itself."""

    def __init__(self) -> None:
        self._stores: dict[tuple[str, Target], tuple[StoreState, msgspec.Raw]] = {}

    def __repr__(self) -> str:
        return f"<AnswerCache {len(self._stores)} stores>"

    def store(self, profile: Profile, target: Target) -> msgspec.Raw:
        """A store as ``memory.read`` shows it."""
        state = profile.state(target)
        known = self._stores.get((profile.name, target))
        if known is not None and known[0] is state:
            return known[1]
        raw = msgspec.Raw(_encode(translate.store_content(state)))
        self._stores[profile.name, target] = (state, raw)
        return raw

    def snapshot(
        self, profile: Profile, session: Session, frozen: FrozenSnapshot, registry: SessionRegistry
    ) -> msgspec.Raw:
        """The whole result of ``session.snapshot``."""
        head = profile.head()
        known: tuple[FrozenSnapshot, tuple[int, ...], msgspec.Raw] | None = session.answer
        if known is not None and known[0] is frozen and known[1] == head:
            return known[2]
        changes = registry.changes(session, profile)
        shown = results.SessionShown(snapshot=translate.snapshot(frozen), stale=bool(changes), changes_text=changes)
        raw = msgspec.Raw(_encode(shown))
        session.answer = (frozen, head, raw)
        return raw
