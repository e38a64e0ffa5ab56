"""One agent session: what belongs to it, and its turns.

What comes in: turn ids and statuses, times as arguments. What goes out: the session's state and its stored form. What
must not be here: which sessions there are (the registry), randomness, the clock, rendering.

Turns of a session, by turn id::

    state    begin          end                            begin of another turn
    -------  -------------  -----------------------------  ---------------------
    unknown  → open         error: not open                –
    open     stays open     → ended; completed may count   → ended (interrupted)
    ended    → open again   stays ended, counts nothing    stays ended

A session has at most one open turn. What counts towards a review is a turn that a user's message began, that ended as
completed, under an access that may write, and that did not count before: an ended turn that is begun again has already
had its chance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from memd.errors import InvalidRequest
from memd.profile.stored import SessionRecord, TurnRecord
from memd.sessions.budget import FailureBudget
from memd.sessions.frozen import Fence, redact

if TYPE_CHECKING:
    from collections.abc import Callable

    from memd.deferred import Ticket
    from memd.sessions.frozen import FrozenSnapshot

TurnStatus = Literal["completed", "interrupted"]

REMEMBERED_TURNS = 256
"""Ended turns whose ids a session remembers: a client repeats the last one after a lost reply, never one long ago."""


class Turn:
    """An open turn. ``counted``: whether it may count once it is completed."""

    __slots__ = ("budget", "counted", "id", "user")

    def __init__(self, turn_id: str, *, user: bool, counted: bool) -> None:
        self.id = turn_id
        self.user = user
        self.counted = counted
        self.budget = FailureBudget()

    def __repr__(self) -> str:
        return f"<Turn {self.id}{' user' if self.user else ''}>"


class SessionBody(msgspec.Struct, omit_defaults=True):
    """The part of a stored session that the store does not look into."""

    fence: Fence
    created_us: int
    parent: str | None = None
    endpoint: str | None = None
    completed: int = 0
    ended: list[str] = []
    open_turn: str | None = None
    open_user: bool = False
    open_counted: bool = False
    redacted: bool = False


_BODY_DECODER = msgspec.msgpack.Decoder(SessionBody)


class Session:
    """An agent session of one profile. Lives as long as the registry keeps it.

    ``frozen`` is None until a connection that may read opens it. ``saved`` is the ticket of the last change that was
    handed to the journal; whoever is told of that change is told after it. ``answer`` is a place for the layer above.
    """

    def __init__(self, session_id: str, *, profile: str, key: str | None, fence: Fence, created_us: int) -> None:
        self.id = session_id
        self.profile = profile
        self.key = key
        self.fence = fence
        self.created_us = created_us
        self.seen_us = created_us
        self.stored_us = 0
        self.parent: str | None = None
        self.endpoint: str | None = None
        self.completed = 0
        self.turn: Turn | None = None
        self.frozen: FrozenSnapshot | None = None
        self.saved: Ticket | None = None
        self.watchers = 0
        self.told_stale = False
        self.redacted = False
        self.changes_cache: tuple[tuple[int, ...], str] | None = None
        self.answer: Any = None
        self._ended: dict[str, None] = {}

    def __repr__(self) -> str:
        return (
            f"<Session {self.id} of {self.profile}, {self.completed} turns{f', in {self.turn!r}' if self.turn else ''}>"
        )

    def replace_snapshot(self, frozen: FrozenSnapshot | None) -> None:
        """Have another snapshot, or none; what was known of its staleness is forgotten."""
        self.frozen = frozen
        self.told_stale = False
        self.redacted = False
        self.changes_cache = None
        self.answer = None

    def redact(self, mask: Callable[[str], str]) -> bool:
        """Mask texts wherever they are; False if there were none. ``redacted`` says that the snapshot is another now."""
        changed = False
        if self.frozen is not None:
            frozen = redact(self.frozen, mask)
            if frozen != self.frozen:
                self.replace_snapshot(frozen)
                self.redacted = changed = True
        names = (self.parent, self.endpoint, *self._ended, self.turn.id if self.turn else None)
        masked = tuple(name and mask(name) for name in names)
        if masked == names:
            return changed
        self.parent, self.endpoint, *ended, turn = masked
        self._ended = dict.fromkeys(name or "" for name in ended)
        if self.turn is not None and turn is not None:
            self.turn.id = turn
        return True

    # -- turns --------------------------------------------------------------------------------------------------

    def begin_turn(self, turn_id: str, *, user: bool, counted: bool, now_us: int) -> list[TurnRecord]:
        """Open a turn; one that is open already stays as it is, another open one is interrupted."""
        if self.turn is not None and self.turn.id == turn_id:
            return []
        records = [] if self.turn is None else [self._close_turn(self.turn, "interrupted", now_us)]
        self.turn = Turn(turn_id, user=user, counted=counted and turn_id not in self._ended)
        records.append(TurnRecord(session=self.id, turn=turn_id, user=user, status="open", us=now_us))
        return records

    def end_turn(self, turn_id: str, status: TurnStatus, *, now_us: int) -> list[TurnRecord]:
        """End a turn; one that has ended already counts nothing again.

        Raises:
            InvalidRequest: The turn was never begun.
        """
        if self.turn is not None and self.turn.id == turn_id:
            return [self._close_turn(self.turn, status, now_us)]
        if turn_id in self._ended:
            return []
        raise self._not_open(turn_id)

    def turn_for(self, turn_id: str | None) -> Turn | None:
        """The open turn that a call belongs to: the one it names, else whichever is open.

        Raises:
            InvalidRequest: It names a turn that is not open.
        """
        if turn_id is None or (self.turn is not None and self.turn.id == turn_id):
            return self.turn
        raise self._not_open(turn_id)

    def _close_turn(self, turn: Turn, status: TurnStatus, now_us: int) -> TurnRecord:
        if status == "completed" and turn.user and turn.counted:
            self.completed += 1
        self.turn = None
        self._ended.pop(turn.id, None)
        self._ended[turn.id] = None
        while len(self._ended) > REMEMBERED_TURNS:
            del self._ended[next(iter(self._ended))]
        return TurnRecord(session=self.id, turn=turn.id, user=turn.user, status=status, us=now_us)

    def _not_open(self, turn_id: str) -> InvalidRequest:
        message = f"turn {turn_id!r} is not open in session {self.id}; call turn.begin first"
        if self.turn is not None:
            message += f", or name the open turn {self.turn.id!r}"
        return InvalidRequest(message)

    # -- the stored form ----------------------------------------------------------------------------------------

    def record(self, *, closed: bool = False) -> SessionRecord:
        """The session as the journal keeps it."""
        turn = self.turn
        body = SessionBody(
            fence=self.fence,
            created_us=self.created_us,
            parent=self.parent,
            endpoint=self.endpoint,
            completed=self.completed,
            ended=list(self._ended),
            open_turn=turn.id if turn else None,
            open_user=turn.user if turn else False,
            open_counted=turn.counted if turn else False,
            redacted=self.redacted,
        )
        return SessionRecord(
            id=self.id,
            profile=self.profile,
            key=self.key,
            snapshot=self.frozen.record_id if self.frozen else "",
            seen_us=self.seen_us,
            closed=closed,
            body=msgspec.msgpack.encode(body),
        )

    @classmethod
    def from_record(cls, record: SessionRecord, frozen: FrozenSnapshot | None) -> Session:
        """The session from what the journal kept. The failure budget of an open turn starts again at 0."""
        body = _BODY_DECODER.decode(record.body)
        session = cls(record.id, profile=record.profile, key=record.key, fence=body.fence, created_us=body.created_us)
        session.seen_us = session.stored_us = record.seen_us
        session.parent = body.parent
        session.endpoint = body.endpoint
        session.completed = body.completed
        session.frozen = frozen
        session.redacted = body.redacted
        session._ended = dict.fromkeys(body.ended)
        if body.open_turn is not None:
            session.turn = Turn(body.open_turn, user=body.open_user, counted=body.open_counted)
        return session
