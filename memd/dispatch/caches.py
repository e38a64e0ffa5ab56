"""Encoded answers that many ask for and that seldom change.

What comes in: published states, sessions. What goes out: ``msgspec.Raw`` to put into a reply. What must not be here:
deciding whether an answer may be given.

A published state is a new object after every change and a frozen snapshot never changes, so identity is the cache key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import msgspec

from memd.dispatch import translate
from memd.protocol import results

if TYPE_CHECKING:
    from memd.dispatch.ports import Profile
    from memd.profile.values import StoreState, Target
    from memd.sessions import FrozenSnapshot, Session, SessionRegistry

_encode = msgspec.msgpack.Encoder().encode


class AnswerCache:
    """Encoded stores and snapshots. Holds one answer for each store and each session."""

    def __init__(self) -> None:
        self._stores: dict[tuple[str, Target], tuple[StoreState, msgspec.Raw]] = {}
        self._sessions: WeakKeyDictionary[Session, tuple[FrozenSnapshot, tuple[int, int], msgspec.Raw]] = (
            WeakKeyDictionary()
        )

    def __repr__(self) -> str:
        return f"<AnswerCache {len(self._stores)} stores, {len(self._sessions)} sessions>"

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
        known = self._sessions.get(session)
        if known is not None and known[0] is frozen and known[1] == head:
            return known[2]
        changes = registry.changes(session, profile)
        shown = results.SessionShown(snapshot=translate.snapshot(frozen), stale=bool(changes), changes_text=changes)
        raw = msgspec.Raw(_encode(shown))
        self._sessions[session] = (frozen, head, raw)
        return raw
