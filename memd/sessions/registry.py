"""All agent sessions of the daemon: found by id or key, kept over restarts, gone when idle too long.

What comes in: opens, closes, turns; the profile they belong to; the journal, the clock and the source of random bytes
as arguments. What goes out: sessions, and tickets that are done when a change is durable. What must not be here: who may
call (dispatch), rendering, tasks: everything is a plain call.

A change holds in memory at once, so that pipelined calls see it; the caller is answered after the ticket. A session
whose first record never became durable is forgotten again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from weakref import WeakValueDictionary

import msgspec

from memd.errors import InvalidParams, NoSuchSession
from memd.profile.stored import SessionRecord, SnapshotRecord, TurnRecord
from memd.sessions.frozen import Fence, FrozenSnapshot, decode, describe_changes, freeze
from memd.sessions.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from memd.deferred import Ticket
    from memd.sessions.frozen import ProfileView
    from memd.sessions.session import TurnStatus
    from memd.store.work import WorkPart

NAME_BYTES = 200
"""Longest key, turn id and parent: a host's own id with its prefix, not a text."""

ENDPOINT_BYTES = 2000
"""Longest endpoint: what programs commonly take as a URL."""

MAX_SESSIONS = 10_000
STORE_SEEN_US = 3600 * 1_000_000
"""How far the stored time of last use may lag behind: expiry is in days, and each update costs a commit."""

SEEN_AGAIN_US = 1_000_000
"""How exact the time of last use is: within a second it is not noted again."""

DAY_US = 86_400 * 1_000_000


class SessionJournal(Protocol):
    """Where sessions are made durable."""

    def put_session(
        self,
        record: SessionRecord,
        snapshot: SnapshotRecord | None = None,
        turns: Sequence[TurnRecord] = (),
        work: WorkPart | None = None,
    ) -> Ticket:
        """Write with the next group commit, all of it or nothing. ``work`` is the jobs' business."""


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """How a client asks for a session: by id, by its own key, by both, or for a new one."""

    session: str | None = None
    key: str | None = None
    parent: str | None = None
    endpoint: str | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """An open session; ``resumed`` if it was there before."""

    session: Session
    resumed: bool


@dataclass(frozen=True, slots=True)
class SessionStatistics:
    """How many sessions there are, and how many of them have an open turn."""

    sessions: int
    open_turns: int


class SessionRegistry:
    """Every session of every profile.

    Args:
        journal: Where changes go.
        clock: Microseconds since the epoch.
        token: That many random bytes, unguessable.
        keep_days: Sessions idle for longer are gone.
        maximum: Beyond this the longest unused are gone.
    """

    def __init__(
        self,
        journal: SessionJournal,
        *,
        clock: Callable[[], int],
        token: Callable[[int], bytes],
        keep_days: int = 30,
        maximum: int = MAX_SESSIONS,
    ) -> None:
        self.keep_days = keep_days
        self._journal = journal
        self._clock = clock
        self._token = token
        self._maximum = maximum
        self._sessions: dict[str, Session] = {}  # least recently used first
        self._by_key: dict[tuple[str, str], Session] = {}
        self._untold: dict[str, set[Session]] = {}
        self._snapshots: WeakValueDictionary[str, FrozenSnapshot] = WeakValueDictionary()

    def __repr__(self) -> str:
        return f"<SessionRegistry {len(self._sessions)} sessions>"

    def __contains__(self, session_id: str) -> bool:
        return session_id in self._sessions

    def statistics(self) -> SessionStatistics:
        """Counts for status and metrics."""
        return SessionStatistics(
            len(self._sessions), sum(1 for item in self._sessions.values() if item.turn is not None)
        )

    def load(self, records: Iterable[SessionRecord], snapshots: Mapping[str, SnapshotRecord]) -> list[str]:
        """Take over what the journal kept, at start; the ids of those that are damaged and gone."""
        damaged = []
        for record in sorted(records, key=lambda item: item.seen_us):
            stored = snapshots.get(record.snapshot)
            try:
                frozen = self._share(decode(stored.body)) if stored is not None else None
                self._put(Session.from_record(record, frozen))
            except msgspec.DecodeError:
                damaged.append(record.id)
        self._expire()
        return damaged

    # -- sessions -----------------------------------------------------------------------------------------------

    def open(self, profile: ProfileView, request: OpenRequest, *, may_read: bool) -> Opened:
        """Find the session or make one; ``session.saved`` is done once it is durable.

        Its snapshot is frozen the first time that a connection which may read opens it.

        Raises:
            InvalidParams: A name is empty or too long, or id and key belong to different sessions.
            NoSuchSession: The id is unknown, closed or expired.
        """
        _check_name("key", request.key)
        _check_name("parent", request.parent)
        _check_name("endpoint", request.endpoint, ENDPOINT_BYTES)
        found = self._find(profile, request)
        session = found if found is not None else self._create(profile, request)
        fresh = may_read and session.frozen is None
        if fresh:
            self._freeze(session, profile)
        moved = request.endpoint is not None and request.endpoint != session.endpoint
        if moved:
            session.endpoint = request.endpoint
        if found is None or fresh or moved or _save_failed(session):
            ticket = self._save(session, with_snapshot=fresh)
            if found is None:
                ticket.on_done(lambda done: self._drop(session) if done.error is not None else None)
        return Opened(session, resumed=found is not None)

    def get(self, profile: str, session_id: str) -> Session:
        """The session with this id, now used.

        Raises:
            NoSuchSession: Unknown, closed, expired, or of another profile.
        """
        session = self._sessions.get(session_id)
        now = self._clock()
        if session is not None and now - session.seen_us < SEEN_AGAIN_US and session.profile == profile:
            return session
        self._expire()
        session = self._sessions.get(session_id)
        if session is None or session.profile != profile:
            raise NoSuchSession(session_id)
        session.seen_us = now
        self._sessions[session_id] = self._sessions.pop(session_id)
        if now - session.stored_us > STORE_SEEN_US:
            self._save(session)
        return session

    def refresh(self, session: Session, profile: ProfileView) -> Ticket:
        """Freeze the stores anew; the old snapshot stays if that cannot be made durable."""
        before = session.frozen
        self._freeze(session, profile)
        if session.frozen == before and session.saved is not None and not _save_failed(session):
            return session.saved
        ticket = self._save(session, with_snapshot=True)

        def settle(done: Ticket) -> None:
            if done.error is not None:
                session.replace_snapshot(before)

        ticket.on_done(settle)
        return ticket

    def close(self, session: Session, work: WorkPart | None = None) -> Ticket:
        """Forget the session and free its key; it comes back if that cannot be made durable, ``work`` with it."""
        self._drop(session)
        ticket = self._journal.put_session(session.record(closed=True), work=work)

        def settle(done: Ticket) -> None:
            if done.error is not None and (session.profile, session.key) not in self._by_key:
                self._put(session)

        ticket.on_done(settle)
        return ticket

    def redact(self, mask: Callable[[str], str]) -> tuple[list[Session], list[Ticket]]:
        """Mask texts in every session. Returns those whose snapshots are others now, and what to wait for."""
        changed: list[Session] = []
        tickets: list[Ticket] = []
        for session in list(self._sessions.values()):
            found = session.redact(mask)
            if session.key is not None and mask(session.key) != session.key:
                self._by_key.pop((session.profile, session.key), None)
                session.key = mask(session.key)
                self._put(session)
                found = True
            if found:
                tickets.append(self._save(session, with_snapshot=True))
            if found and session.redacted:
                session.frozen = session.frozen and self._share(session.frozen)
                changed.append(session)
        return changed, tickets

    # -- turns --------------------------------------------------------------------------------------------------

    def begin_turn(self, session: Session, turn: str, *, user: bool, counted: bool) -> Ticket:
        """Open a turn.

        Raises:
            InvalidParams: The id is empty or too long.
        """
        _check_name("turn", turn)
        return self.save_turns(session, session.begin_turn(turn, user=user, counted=counted, now_us=self._clock()))

    def end_turn(self, session: Session, turn: str, status: TurnStatus) -> list[TurnRecord]:
        """End a turn in memory; what is returned is for ``save_turns``, which makes it durable.

        Raises:
            InvalidRequest: It was never begun.
        """
        return session.end_turn(turn, status, now_us=self._clock())

    def save_turns(self, session: Session, turns: Sequence[TurnRecord], work: WorkPart | None = None) -> Ticket:
        """Make turns durable, in one with what their end brings about for jobs; nothing to do if they were already."""
        if not turns and work is None and session.saved is not None and not _save_failed(session):
            return session.saved
        return self._save(session, turns=turns, work=work)

    # -- staleness ----------------------------------------------------------------------------------------------

    def changes(self, session: Session, profile: ProfileView) -> str:
        """What differs from the session's snapshot, fenced; ``""`` if it is not stale. Cached until a store changes."""
        if session.frozen is None:
            return ""
        head = profile.head()
        if session.changes_cache is None or session.changes_cache[0] != head:
            session.changes_cache = (head, describe_changes(session.frozen, profile, session.fence))
        return session.changes_cache[1]

    def watch(self, session: Session) -> None:
        """A connection uses the session from now on and wants to hear when its snapshot goes stale."""
        session.watchers += 1
        if not session.told_stale:
            self._untold.setdefault(session.profile, set()).add(session)

    def unwatch(self, session: Session) -> None:
        """That connection is gone."""
        session.watchers -= 1
        if not session.watchers:
            self._forget_untold(session)

    def newly_stale(self, profile: ProfileView) -> list[Session]:
        """Sessions in use whose snapshot went stale since the last call, each once per snapshot."""
        waiting = self._untold.get(profile.name)
        if not waiting:
            return []
        found = sorted((item for item in waiting if self.changes(item, profile)), key=lambda item: item.id)
        for session in found:
            session.told_stale = True
            self._forget_untold(session)
        return found

    # -- inside -------------------------------------------------------------------------------------------------

    def _find(self, profile: ProfileView, request: OpenRequest) -> Session | None:
        if request.session is not None:
            session = self.get(profile.name, request.session)
            if request.key is not None and request.key != session.key:
                msg = f"key: {request.key!r} is not the key of session {session.id}; give one of the two"
                raise InvalidParams(msg, field="key")
            return session
        self._expire()
        if request.key is None:
            return None
        found = self._by_key.get((profile.name, request.key))
        return self.get(profile.name, found.id) if found is not None else None

    def _create(self, profile: ProfileView, request: OpenRequest) -> Session:
        mark = self._token(16).hex()
        fence = Fence(f"<memory-note {mark}>", f"</memory-note {mark}>")
        session = Session(
            self._token(16).hex(), profile=profile.name, key=request.key, fence=fence, created_us=self._clock()
        )
        session.parent = request.parent
        session.endpoint = request.endpoint
        self._put(session)
        return session

    def _freeze(self, session: Session, profile: ProfileView) -> None:
        session.replace_snapshot(self._share(freeze(profile)))
        if session.watchers:
            self._untold.setdefault(session.profile, set()).add(session)

    def _share(self, frozen: FrozenSnapshot) -> FrozenSnapshot:
        """The one object for this content: thousands of sessions may have been frozen from the same stores."""
        return self._snapshots.setdefault(frozen.record_id, frozen)

    def _put(self, session: Session) -> None:
        self._sessions[session.id] = session
        if session.key is not None:
            self._by_key[session.profile, session.key] = session

    def _drop(self, session: Session) -> None:
        self._sessions.pop(session.id, None)
        if session.key is not None and self._by_key.get((session.profile, session.key)) is session:
            del self._by_key[session.profile, session.key]
        self._forget_untold(session)

    def _forget_untold(self, session: Session) -> None:
        waiting = self._untold.get(session.profile, set())
        waiting.discard(session)
        if not waiting:
            self._untold.pop(session.profile, None)

    def _save(
        self,
        session: Session,
        *,
        with_snapshot: bool = False,
        turns: Sequence[TurnRecord] = (),
        work: WorkPart | None = None,
    ) -> Ticket:
        session.stored_us = session.seen_us
        snapshot = None
        if with_snapshot and session.frozen is not None:
            snapshot = SnapshotRecord(id=session.frozen.record_id, body=session.frozen.encode())
        session.saved = self._journal.put_session(session.record(), snapshot, turns, work)
        return session.saved

    def _expire(self) -> None:
        """Close what is idle for too long or too many; the oldest come first in the table."""
        oldest_us = self._clock() - self.keep_days * DAY_US
        while self._sessions:
            session = next(iter(self._sessions.values()))
            if session.seen_us >= oldest_us and len(self._sessions) <= self._maximum:
                return
            self._drop(session)
            self._journal.put_session(session.record(closed=True))


def _save_failed(session: Session) -> bool:
    """True if the last change never became durable, so that nobody may be told of it yet."""
    return session.saved is not None and session.saved.error is not None


def _check_name(field: str, value: str | None, limit: int = NAME_BYTES) -> None:
    if value is None:
        return
    size = len(value.encode())
    if not 1 <= size <= limit:
        msg = f"{field}: 1 to {limit} bytes expected, got {size}"
        raise InvalidParams(msg, field=field)
