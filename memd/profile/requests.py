"""Remembered answers: a ``request_id`` is done once, over reconnects and crashes.

What comes in: ids, fingerprints of method and parameters, results. What goes out: the first answer again, marked as
replayed. What must not be here: the journal (records are handed to the group that commits the result).

Only successes are remembered. A repeat that comes while the first is under way waits for it; other parameters under
the same id are a conflict.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from memd.deferred import Ticket
from memd.errors import Conflict, IoFailure
from memd.profile.values import Change, Committed, TargetChange, Undone
from memd.store.redaction import mask_answer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memd.profile.entries import Entry
    from memd.store.masking import Mask
    from memd.store.records import RequestRecord

KEEP_US = 86_400_000_000
KEEP_COUNT = 100_000

Result = Committed | Undone
_committed = msgspec.msgpack.Decoder(Committed)
_undone = msgspec.msgpack.Decoder(Undone)


class Requests:
    """The answers of all profiles, oldest first."""

    def __init__(self, *, count: int = KEEP_COUNT) -> None:
        self._count = count
        self._done: OrderedDict[tuple[str, str], RequestRecord] = OrderedDict()
        self._running: dict[tuple[str, str], tuple[bytes, Ticket]] = {}
        self._doubtful: set[tuple[str, str]] = set()

    def __repr__(self) -> str:
        return f"<Requests {len(self._done)} answered, {len(self._running)} under way>"

    def load(self, records: Iterable[RequestRecord]) -> None:
        """Take over what the journal remembers."""
        for record in records:
            self.remember(record)

    def repeat(self, profile: str, request_id: str, fingerprint: bytes, now_us: int) -> Ticket | None:
        """The ticket of an earlier call under this id, settled or not; None if there is none.

        Raises:
            Conflict: The id was used with other parameters.
        """
        key = (profile, request_id)
        running = self._running.get(key)
        if running is not None:
            _check(request_id, running[0], fingerprint)
            return _follow(running[1])
        return self.answered(profile, request_id, fingerprint, now_us)

    def answered(self, profile: str, request_id: str, fingerprint: bytes, now_us: int) -> Ticket | None:
        """The settled ticket of an earlier call under this id; None if none has succeeded.

        Raises:
            Conflict: The id was used with other parameters.
            IoFailure: The answer is damaged; ``outcome`` is "unknown".
        """
        record = self._done.get((profile, request_id))
        if record is None or record.us < now_us - KEEP_US:
            return None
        _check(request_id, record.fingerprint, fingerprint)
        ticket = Ticket()
        try:
            ticket.finish(replace(decode(record.answer), replayed=True))
        except msgspec.DecodeError as error:
            msg = f"the answer under request_id {request_id!r} is damaged in the journal; history.list shows what was done"
            raise IoFailure(msg, path="", outcome="unknown") from error
        return ticket

    def start(self, profile: str, request_id: str, fingerprint: bytes, ticket: Ticket) -> None:
        """A first call under this id is under way; repeats wait for ``ticket``."""
        key = (profile, request_id)
        self._running[key] = (fingerprint, ticket)

        def ended(_: Ticket) -> None:
            self._running.pop(key, None)

        ticket.on_done(ended)

    def redact(self, mask: Mask, revisions: frozenset[int]) -> None:
        """Mask the answers. The calls that made ``revisions``, or whose answers held a text, are not to be made again."""
        for key, record in list(self._done.items()):
            answer, name = mask_answer(record.answer, mask), mask.text(record.request_id)
            if (answer, name) == (record.answer, record.request_id) and revisions.isdisjoint(_made(record)):
                continue
            if name != record.request_id:
                del self._done[key]
            self.remember(replace(record, request_id=name, fingerprint=b"", answer=answer))

    def doubt(self, profile: str, request_id: str) -> None:
        """Nobody knows whether this call was done, until ``settle_doubts``."""
        self._doubtful.add((profile, request_id))

    def doubtful(self, profile: str, request_id: str) -> bool:
        """True while nobody knows."""
        return (profile, request_id) in self._doubtful

    def settle_doubts(self) -> None:
        """The journal has been read again: what was done is among the answers, all else was not."""
        self._doubtful.clear()

    def remember(self, record: RequestRecord) -> None:
        """Keep an answer that is durable."""
        self._done[(record.profile, record.request_id)] = record
        while len(self._done) > self._count:
            self._done.popitem(last=False)


def encode(result: Result) -> bytes:
    """A result as stored bytes; undecodable parts of texts become U+FFFD, as they were on the wire."""
    plain: Any = result
    if isinstance(result, Committed):
        plain = replace(
            result,
            entry=result.entry and _plain_entry(result.entry),
            changes=tuple(_plain_change(change) for change in result.changes),
            steps=tuple(replace(step, changes=tuple(_plain_change(c) for c in step.changes)) for step in result.steps),
        )
        return b"C" + msgspec.msgpack.encode(plain)
    plain = replace(
        result,
        changes=tuple(TargetChange(item.target, _plain_change(item.change)) for item in result.changes),
    )
    return b"U" + msgspec.msgpack.encode(plain)


def decode(data: bytes) -> Result:
    """A result from its stored bytes."""
    return _committed.decode(data[1:]) if data[:1] == b"C" else _undone.decode(data[1:])


def _plain_entry(entry: Entry) -> Entry:
    return replace(entry, raw=entry.shown, text=entry.shown) if entry.undecodable else entry


def _plain_change(change: Change) -> Change:
    return replace(change, before=_plain(change.before), after=_plain(change.after))


def _plain(text: str | None) -> str | None:
    return text and text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _made(record: RequestRecord) -> tuple[int, ...]:
    """The revisions that a call made, as far as that can be read."""
    try:
        result = decode(record.answer)
    except msgspec.DecodeError:
        return ()
    if isinstance(result, Undone):
        return result.revisions
    return (result.revision,) if result.changed else ()


def _check(request_id: str, known: bytes, fingerprint: bytes) -> None:
    if known == b"":
        msg = f"request_id {request_id!r} was used for a call whose text has been redacted: it is not made again"
        raise Conflict(msg, reason="request_id_reused", current="")
    if known != fingerprint:
        msg = f"request_id {request_id!r} was used for another call: take a new one for each call"
        raise Conflict(
            msg,
            reason="request_id_reused",
            current="",
        )


def _follow(first: Ticket) -> Ticket:
    """A ticket that settles with ``first``, its result marked as replayed."""
    ticket = Ticket()

    def settle(done: Ticket) -> None:
        if done.error is not None:
            ticket.fail(done.error)
        else:
            ticket.finish(replace(done.result, replayed=True))

    first.on_done(settle)
    return ticket
