"""Redaction: a text taken out of the whole journal, and out of the damaged ones beside it.

What comes in: the journal and a mask. What goes out: how many rows of each table were changed. What must not be here: the
memory files, sessions in memory (their owners see to them first). It runs in the journal's thread, between groups.

Rows keep their place: a redacted revision stays as a stub, so that numbers and histories hold. Hashes by which the text
could be guessed are worked out anew or blanked. Freed pages are overwritten (``secure_delete`` is always on), the file is rebuilt
(``VACUUM``), and the log is copied back and emptied; only then it is done. A mark in ``meta`` says from the commit on that
this is still to be seen to, so that a start after a crash finishes it. The mark says nothing of the text.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
from typing import TYPE_CHECKING, Any

import msgspec

from memd.errors import Busy, from_oserror
from memd.store.masking import MARK
from memd.store.records import ChangeRecord, ProposalRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from memd.store.journal import Journal
    from memd.store.masking import Mask

PENDING = "redacting"
_BATCH = 200
_LIVE = ("", "-wal", "-shm", "-journal")
_changes = msgspec.msgpack.Decoder(list[ChangeRecord])
_proposal_decoder = msgspec.msgpack.Decoder(ProposalRecord)


class Redacted(msgspec.Struct, frozen=True):
    """Rows changed by table (``set_aside``: damaged journals), and the revisions that are stubs now."""

    tables: dict[str, int]
    revisions: frozenset[int]


def redact(
    journal: Journal, mask: Mask, *, stubs: frozenset[int] = frozenset(), live: frozenset[bytes] = frozenset()
) -> Redacted:
    """Take the mask's texts out of every row; of the revisions ``stubs``, every text there is.

    ``live``: SHA-256 of the texts that are in the stores now; approvals of others are forgotten.

    It may be run again at any time, and finishes what an earlier run left undone.

    Raises:
        NoSpace, IoFailure, Busy: With ``outcome`` "none" if no row was changed; "unknown" if rows were masked, but the
            text may still be in freed parts of the file. Run it again then.
    """
    run = _Run(journal.connection, mask, stubs, live)
    try:
        run.begin()
    except sqlite3.Error as error:
        with contextlib.suppress(sqlite3.Error):  # SQLite may have rolled back by itself
            journal.connection.execute("ROLLBACK")
        raise journal.failure(error, step="redact in", outcome="none") from error
    try:
        journal.connection.execute("COMMIT")
    except sqlite3.Error as error:
        journal.start_over()
        raise journal.failure(error, step="redact in", outcome="unknown") from error
    complete(journal)
    set_aside = _redact_set_aside(journal.path, mask)
    return Redacted({**run.counts, "set_aside": set_aside}, frozenset(run.revisions))


def complete(journal: Journal) -> bool:
    """Rebuild the file and empty the log if a redaction asks for it; False if none does.

    Raises:
        NoSpace, IoFailure, Busy: With ``outcome`` "unknown"; it is still asked for.
    """
    run = journal.connection.execute
    if run("SELECT 1 FROM meta WHERE key=?", (PENDING,)).fetchone() is None:
        return False
    try:
        run("VACUUM")
        busy = run("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if not busy:
            run("DELETE FROM meta WHERE key=?", (PENDING,))
    except sqlite3.Error as error:
        journal.start_over()
        raise journal.failure(error, step="rebuild", outcome="unknown") from error
    if busy:
        message = f"the log of the journal {journal.path} is in use and could not be emptied; redact again in a moment"
        raise Busy(message, path=str(journal.path), outcome="unknown")
    return True


def mask_answer(answer: bytes, mask: Mask) -> bytes:
    """A remembered answer: a letter, then MessagePack."""
    return answer[:1] + mask.packed(answer[1:])


class _Run:
    """One transaction over all tables."""

    def __init__(
        self, connection: sqlite3.Connection, mask: Mask, stubs: frozenset[int], live: frozenset[bytes]
    ) -> None:
        self.counts: dict[str, int] = {}
        self.revisions: set[int] = set()
        self._connection = connection
        self._mask = mask
        self._stubs = stubs
        self._live = live

    def begin(self) -> None:
        """Everything but the COMMIT."""
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        self._revisions()
        self._bytes("rendering")
        self._bytes("preimage")
        self._map("event", {"body": self._mask.packed})
        self._requests()
        self._refusals()
        self._sessions()
        self._map("turn", {"turn": self._mask.text})
        self._map("proposal", {"body": self._proposal})
        self._approved()
        self._work()
        run("INSERT OR REPLACE INTO meta VALUES (?, 1)", (PENDING,))

    def _rows(self, table: str, columns: str, order: str) -> Iterator[tuple[Any, ...]]:
        """All rows, in batches. None may be changed before all are read."""
        cursor = self._connection.execute(f"SELECT {columns} FROM {table} ORDER BY {order}")  # noqa: S608 - names are ours
        while rows := cursor.fetchmany(_BATCH):
            yield from rows

    def _map(self, table: str, columns: dict[str, Callable[[Any], Any]]) -> None:
        """Mask columns one by one; a row that becomes equal to another takes its place."""
        names, key = ", ".join(columns), ", ".join(_KEYS[table])
        width = len(columns)
        found = []
        for row in self._rows(table, f"{names}, {key}", key):
            masked = [None if old is None else fn(old) for fn, old in zip(columns.values(), row, strict=False)]
            if masked != list(row[:width]):
                found.append((*masked, *row[width:]))
        sets = ", ".join(f"{name}=?" for name in columns)
        where = " AND ".join(f"{name}=?" for name in _KEYS[table])
        self._connection.executemany(f"UPDATE OR REPLACE {table} SET {sets} WHERE {where}", found)  # noqa: S608 - names are ours
        self.counts[table] = len(found)

    def _revisions(self) -> None:
        names = ("client", "session", "turn", "job", "reason")
        found = []
        for number, changes, *texts in self._rows("revision", f"revision, changes, {', '.join(names)}", "revision"):
            stub = number in self._stubs
            masked = [text if text is None else self._mask.text(text) for text in texts]
            if stub and masked[-1] is not None:
                masked[-1] = MARK
            after = self._masked_changes(changes, stub=stub)
            if masked != texts or after != changes:
                found.append((after, *masked, number))
        sets = ", ".join(f"{name}=?" for name in names)
        self._connection.executemany(f"UPDATE revision SET changes=?, {sets} WHERE revision=?", found)  # noqa: S608 - names are ours
        self.revisions = {row[-1] for row in found}
        self.counts["revision"] = len(found)

    def _masked_changes(self, data: bytes, *, stub: bool) -> bytes:
        if not stub and not self._mask.found(data):
            return data
        try:
            changes = _changes.decode(data)
        except msgspec.DecodeError:  # damaged already: it only has to go
            return b"\x90" if stub else self._mask.data(data)
        for change in changes:
            before, after = (_masked(text, self._mask, whole=stub) for text in (change.before, change.after))
            if (before, after) != (change.before, change.after):
                change.before, change.after, change.redacted = before, after, True
        return msgspec.msgpack.encode(changes)

    def _bytes(self, table: str) -> None:
        """Files' bytes with their hash, by which they are known again."""
        found = []
        for rowid, data in self._rows(table, "rowid, data", "rowid"):
            if self._mask.found(data):
                masked = self._mask.data(data)
                found.append((masked, hashlib.sha256(masked).digest(), rowid))
        self._connection.executemany(f"UPDATE OR REPLACE {table} SET data=?, hash=? WHERE rowid=?", found)  # noqa: S608 - names are ours
        self.counts[table] = len(found)

    def _requests(self) -> None:
        """Remembered answers. A fingerprint is a hash of the call: one whose call held the text goes with it."""
        found = []
        columns = "profile, request_id, fingerprint, answer"
        for profile, request_id, fingerprint, answer in self._rows("request", columns, "profile, request_id"):
            masked = (self._mask.text(request_id), fingerprint, mask_answer(answer, self._mask))
            if masked[::2] != (request_id, answer) or self._made_a_stub(answer):
                masked = (masked[0], b"", masked[2])
            if masked != (request_id, fingerprint, answer):
                found.append((*masked, profile, request_id))
        sql = "UPDATE OR REPLACE request SET request_id=?, fingerprint=?, answer=? WHERE profile=? AND request_id=?"
        self._connection.executemany(sql, found)
        self.counts["request"] = len(found)

    def _made_a_stub(self, answer: bytes) -> bool:
        """True if the call made a revision that held the text: in what was replaced, in its reason."""
        try:
            told: dict[str, Any] = msgspec.msgpack.decode(answer[1:])
        except msgspec.DecodeError:
            return False
        numbers = {told.get("revision"), *(told.get("revisions") or ())}
        return bool(told.get("changes")) and not self.revisions.isdisjoint(numbers)

    def _refusals(self) -> None:
        """Of a refused text there is only a hash; the one of this very text is blanked."""
        hashes = {hashlib.sha256(text.strip().encode("utf-8", "surrogateescape")).digest() for text in self._mask.texts}

        def blanked(found: bytes) -> bytes:
            return b"" if found in hashes else found

        text = self._mask.text
        self._map("refusal", {"text_hash": blanked, "reason": text, "session": text, "turn": text})

    def _proposal(self, body: bytes) -> bytes:
        """A proposal with its texts masked; what it proposes is then nothing that may be applied."""
        masked = self._mask.packed(body)
        if masked == body:
            return body
        try:
            before, after = _proposal_decoder.decode(body), _proposal_decoder.decode(masked)
        except msgspec.DecodeError:  # damaged already: it only has to go
            return masked
        after.redacted = before.redacted or before.operations != after.operations
        return msgspec.msgpack.encode(after)

    def _approved(self) -> None:
        """Of an approved text there is only a hash, by which it could be guessed: those of texts that are gone go too."""
        found = [
            row for row in self._rows("approved", "store, text_hash", "store, text_hash") if row[1] not in self._live
        ]
        self._connection.executemany("DELETE FROM approved WHERE store=? AND text_hash=?", found)
        self.counts["approved"] = len(found)

    def _work(self) -> None:
        """What reviews and flushes know: copies of messages, what jobs want and were refused, names that clients gave."""
        text = self._mask.text
        self._map("message", {"body": self._mask.packed})
        self._map("job", {"key": text, "body": self._mask.packed})
        self._map("tally", {"body": self._mask.packed})
        self._map("compaction", {"epoch": text, "reason": text})

    def _sessions(self) -> None:
        """Ended sessions go, and snapshots nobody has; the others' are masked and get the hash of what they are now."""
        run = self._connection.execute
        gone = run("DELETE FROM session WHERE closed=1").rowcount
        run("DELETE FROM turn WHERE session NOT IN (SELECT id FROM session)")
        dropped = run("DELETE FROM snapshot WHERE id NOT IN (SELECT snapshot FROM session)").rowcount
        self._map("session", {"key": self._mask.text, "body": self._mask.packed})
        found = []
        for snapshot, body in self._rows("snapshot", "id, body", "id"):
            if self._mask.found(body):
                masked = self._mask.packed(body)
                found.append((hashlib.sha256(masked).hexdigest(), masked, snapshot))
        self._connection.executemany("UPDATE OR REPLACE snapshot SET id=?, body=? WHERE id=?", found)
        self._connection.executemany("UPDATE session SET snapshot=? WHERE snapshot=?", [row[::2] for row in found])
        self.counts["session"] += gone
        self.counts["snapshot"] = len(found) + dropped


_KEYS = {
    "compaction": ("profile", "session", "epoch"),
    "event": ("seq",),
    "job": ("id",),
    "message": ("owner", "number"),
    "proposal": ("profile", "id"),
    "refusal": ("id",),
    "session": ("id",),
    "tally": ("profile", "session"),
    "turn": ("session", "turn"),
}


def _masked(text: bytes | None, mask: Mask, *, whole: bool) -> bytes | None:
    if text is None:
        return None
    return MARK.encode() if whole else mask.data(text)


def _redact_set_aside(journal: Path, mask: Mask) -> int:
    """Blot the texts out of damaged journals that were set aside. Their lengths stay, so that they are still what they were."""
    try:
        return sum(_blot(path, mask) for path in _set_aside(journal))
    except OSError as error:
        found = from_oserror(error, error.filename or journal.parent, step="redact")
        found.outcome = "unknown"
        raise found from error


def _set_aside(journal: Path) -> list[Path]:
    """The damaged journals. A directory that cannot be listed is an error: ``glob`` would find nothing in it."""
    live = {f"{journal.name}{suffix}" for suffix in _LIVE}
    names = sorted(name for name in os.listdir(journal.parent) if name.startswith(journal.name) and name not in live)
    found = [journal.with_name(name) for name in names]
    return [path for path in found if not path.is_symlink() and path.is_file()]


def _blot(path: Path, mask: Mask) -> bool:
    data = path.read_bytes()
    blotted = mask.blot(data)
    if blotted == data:
        return False
    with path.open("r+b") as file:  # in place, so that no copy of the old blocks is left behind
        file.write(blotted)
        file.flush()
        os.fsync(file.fileno())
    return True
