"""Every exception memd defines, in one place.

What comes in: the facts of a failure (a path, an errno, the entries that nearly matched).
What goes out: a class whose ``wire_name`` and ``code`` are the ones of ``client/PROTOCOL.md``, a message composed
from those facts, and ``data()``, the map that travels beside it. What must not be here: how a failure is handled.

The tree, by whose fault it is::

    MemdError
    ├── ProtocolError                 a byte stream that is not the protocol
    │   ├── LocalProtocolError        we asked the core for something it cannot do
    │   └── RemoteProtocolError       the peer sent something it may not
    ├── WireError                     has a code and a name, and travels to the client
    │   ├── RequestError              the caller asked for something impossible
    │   │   ├── InvalidRequest MethodNotFound InvalidParams UnsupportedVersion PermissionDenied TooLarge
    │   │   │   TooManyRequests DeadlineExceeded Cancelled ShuttingDown
    │   │   ├── CurationError         repairable by the caller; counts against the turn's failure budget
    │   │   │   └── InvalidContent BlockedContent OverLimit NotFound AmbiguousMatch
    │   │   ├── Conflict TurnBudgetExhausted StoreDisabled
    │   │   └── NoSuchProfile NoSuchSession NoSuchJob NoSuchRevision NoSuchProposal
    │   ├── StoreError                the outside world: full, corrupt, locked, owned by another
    │   │   └── StoreUnreadable ReadOnly NoSpace Busy IoFailure ProfileOwned
    │   └── InternalError             our bug; made by the dispatcher alone
    ├── ReviewFailed                  a reviewer led nowhere: its endpoint, its model, its answer
    └── StartupError                  ``memd serve`` cannot start; carries the exit status
        └── SettingsError OwnedElsewhere JournalTooNew SocketUnusable
"""

from __future__ import annotations

import errno as errno_names
import os
from typing import Any, ClassVar


class MemdError(Exception):
    """Base of everything raised on purpose. Abstract: never raised itself."""


class ProtocolError(MemdError):
    """A byte stream that is not the protocol."""


class LocalProtocolError(ProtocolError):
    """We asked the protocol core for something its state does not allow; nothing was sent."""


class RemoteProtocolError(ProtocolError):
    """The peer broke the framing; the stream cannot be read on and has to be closed.

    ``wire`` is the error to tell the peer with ``rpc.protocol_error`` before closing.
    """

    def __init__(self, wire: WireError) -> None:
        super().__init__(str(wire))
        self.wire = wire


class WireError(MemdError):
    """An error that travels to the client under a stable name and code.

    ``extra`` becomes ``data`` on the wire; values are plain (str, int, bool, list, dict, None).
    ``outcome`` is set by whoever knows it: ``"none"`` (nothing changed) or ``"unknown"``.
    """

    code: ClassVar[int] = 0
    wire_name: ClassVar[str] = ""
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, outcome: str | None = None, **extra: Any) -> None:
        if not self.wire_name:
            msg = f"{type(self).__name__} is abstract and may not be raised"
            raise TypeError(msg)
        super().__init__(message)
        self.message = message
        self.outcome = outcome
        self.extra: dict[str, Any] = extra

    def data(self) -> dict[str, Any]:
        """The ``data`` map of the wire form, ``outcome`` included when it is known."""
        data = {key: value for key, value in self.extra.items() if value is not None}
        if self.outcome is not None:
            data["outcome"] = self.outcome
        return data

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.wire_name}: {self.message}>"


class RequestError(WireError):
    """The caller asked for something impossible; expected, and the daemon is unharmed."""


class InvalidRequest(RequestError):
    """The message is not a request, or not one that is allowed now."""

    code, wire_name = 1, "invalid_request"


class MethodNotFound(RequestError):
    """No such method."""

    code, wire_name = 2, "method_not_found"

    def __init__(self, method: str) -> None:
        super().__init__(f"there is no method {method!r}; rpc.discover lists them all", method=method)


class InvalidParams(RequestError):
    """A parameter is missing, misspelt or of the wrong type; ``field`` names it."""

    code, wire_name = 3, "invalid_params"


class UnsupportedVersion(RequestError):
    """No protocol version in common."""

    code, wire_name = 4, "unsupported_version"


class PermissionDenied(RequestError):
    """The connection's access, role or uid does not allow this."""

    code, wire_name = 5, "permission_denied"


class TooLarge(RequestError):
    """A message, text or batch is over a fixed limit."""

    code, wire_name = 6, "too_large"


class TooManyRequests(RequestError):
    """More requests in flight than a connection may have, or more connections than the daemon takes."""

    code, wire_name, retryable = 7, "too_many_requests", True


class DeadlineExceeded(RequestError):
    """The deadline passed; ``outcome`` says whether something may have changed."""

    code, wire_name, retryable = 8, "deadline_exceeded", True


class Cancelled(RequestError):
    """Taken out by ``rpc.cancel`` before anything happened."""

    code, wire_name = 9, "cancelled"


class ShuttingDown(RequestError):
    """The daemon is stopping and takes no more of this."""

    code, wire_name, retryable = 10, "shutting_down", True


class CurationError(RequestError):
    """A refusal that the caller can repair; counts against the turn's failure budget."""


class InvalidContent(CurationError):
    """Empty, or would read back as a border, or holds a NUL."""

    code, wire_name = 20, "invalid_content"


class BlockedContent(CurationError):
    """Refused by the scan; ``findings`` say which rule and where."""

    code, wire_name = 21, "blocked_content"


class OverLimit(CurationError):
    """The change would leave the store over its limit; ``excess`` is by how much."""

    code, wire_name = 22, "over_limit"


class NotFound(CurationError):
    """Nothing matches; ``nearest`` has the closest entries."""

    code, wire_name = 23, "not_found"


class AmbiguousMatch(CurationError):
    """More than one place matches; ``matches`` has them."""

    code, wire_name = 24, "ambiguous_match"


class Conflict(RequestError):
    """The state is not the one the caller said it was; ``reason`` and ``current`` say what it is."""

    code, wire_name = 25, "conflict"


class TurnBudgetExhausted(RequestError):
    """The fourth repairable refusal of a turn and all after it; ``cause`` is the refusal's own name."""

    code, wire_name = 26, "turn_budget_exhausted"


class StoreDisabled(RequestError):
    """The store is switched off in the settings."""

    code, wire_name = 28, "store_disabled"


class NoSuchProfile(RequestError):
    """No such profile, or several and none named; ``profiles`` lists them."""

    code, wire_name = 36, "no_such_profile"


class NoSuchSession(RequestError):
    """Unknown, closed or expired session."""

    code, wire_name = 37, "no_such_session"

    def __init__(self, session: str) -> None:
        super().__init__(f"no session {session!r}: it was closed, expired or never opened; call session.open")


class NoSuchJob(RequestError):
    """Unknown job, or nothing to make one of (then ``message`` says of what)."""

    code, wire_name = 38, "no_such_job"

    def __init__(self, job: str = "", *, message: str = "") -> None:
        super().__init__(message or f"no job {job!r} in this profile; jobs.list shows what there is")


class NoSuchRevision(RequestError):
    """Unknown or pruned revision, or no revision at all where some were asked for (then ``message`` says which)."""

    code, wire_name = 39, "no_such_revision"

    def __init__(self, revision: int | None = None, *, message: str = "") -> None:
        unknown = f"no revision {revision} in this profile's history; history.list shows what there is"
        super().__init__(message or unknown)


class NoSuchProposal(RequestError):
    """Unknown proposal, or one that is ``settled`` already: approved, rejected or expired."""

    code, wire_name = 40, "no_such_proposal"

    def __init__(self, proposal: str, *, settled: str | None = None) -> None:
        unknown = f"no proposal or withheld entry {proposal!r}; approval.list shows what waits"
        known = f"the proposal {proposal!r} is {settled} already"
        super().__init__(known if settled else unknown, state=settled)


class StoreError(WireError):
    """The outside world refused; bytes on disk are as they were unless ``outcome`` says otherwise."""

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        errno: int | None = None,
        outcome: str | None = None,
        **extra: Any,
    ) -> None:
        super().__init__(message, outcome=outcome, path=path, errno=errno, **extra)
        self.path = path
        self.errno = errno


class StoreUnreadable(StoreError):
    """The file is there and cannot be read as a memory file; the last good state is served, marked stale."""

    code, wire_name = 30, "store_unreadable"


class ReadOnly(StoreError):
    """The file or its directory cannot be written; reads go on."""

    code, wire_name = 31, "read_only"


class NoSpace(StoreError):
    """The disk or a quota is full; the old file is intact."""

    code, wire_name, retryable = 32, "no_space", True


class Busy(StoreError):
    """Another program holds the file's lock (``holder`` names it where that can be known), or its disk does not answer yet."""

    code, wire_name, retryable = 33, "busy", True


class IoFailure(StoreError):
    """Any other failure of the disk or the journal."""

    code, wire_name, retryable = 34, "io_error", True


class ProfileOwned(StoreError):
    """Another daemon owns this profile's directory; ``pid`` names it."""

    code, wire_name = 35, "profile_owned"


class InternalError(WireError):
    """A bug in memd. The daemon goes on; the traceback is in its log."""

    code, wire_name = 11, "internal"


class ReviewFailed(MemdError):
    """A reviewer led nowhere.

    ``retry_after_s``: how long its endpoint asks to be left alone. ``permanent``: trying it again would change nothing (a wrong key,
    a model that is not there, an answer that cannot be used).
    """

    def __init__(self, message: str, *, retry_after_s: float | None = None, permanent: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after_s = retry_after_s
        self.permanent = permanent


class StartupError(MemdError):
    """``memd serve`` cannot start; nothing was changed. ``exit_status`` is from ``sysexits.h``."""

    exit_status: ClassVar[int] = 1


class SettingsError(StartupError):
    """A settings file that cannot be used; the message has path, line and key."""

    exit_status = 78  # EX_CONFIG


class OwnedElsewhere(StartupError):
    """Every profile is owned by another daemon; the message names its pid."""

    exit_status = 75  # EX_TEMPFAIL


class JournalTooNew(StartupError):
    """The journal was written by a newer memd; it is left untouched."""

    exit_status = 78


class SocketUnusable(StartupError):
    """The socket path cannot be bound: too long, in use, or in a directory others may write."""

    exit_status = 69  # EX_UNAVAILABLE


def from_oserror(error: OSError, path: str | os.PathLike[str], *, step: str) -> StoreError:
    """Translate an ``OSError`` met while doing ``step`` to ``path`` into the typed error for it.

    The table is the one place where errno values get a meaning. The message names step, path and errno.
    """
    number = error.errno or 0
    where = os.fspath(path)
    label = errno_names.errorcode.get(number, str(number))
    message = f"{step} {where}: {os.strerror(number) if number else error} ({label})"
    if number in _NO_SPACE:
        return NoSpace(message + "; free some room, the old file is intact", path=where, errno=number)
    if number in _READ_ONLY:
        facts = file_facts(where)
        detail = f", mode {facts['mode']}, owner {facts['owner']}" if facts else ""
        return ReadOnly(message + detail, path=where, errno=number, **facts)
    return IoFailure(message, path=where, errno=number)


def file_facts(path: str) -> dict[str, Any]:
    """``{mode: "0444", owner: 1000}`` of what stands at the path, for an error's data; empty if it cannot be looked at."""
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError:
        return {}
    return {"mode": f"{status.st_mode & 0o7777:04o}", "owner": status.st_uid}


_NO_SPACE = frozenset({errno_names.ENOSPC, errno_names.EDQUOT, errno_names.EFBIG})
_READ_ONLY = frozenset({errno_names.EACCES, errno_names.EPERM, errno_names.EROFS})


def wire_errors() -> list[type[WireError]]:
    """Every concrete wire error, by code: the error table of the protocol."""
    found: list[type[WireError]] = []
    pending: list[type[WireError]] = [WireError]
    while pending:
        cls = pending.pop()
        pending.extend(cls.__subclasses__())
        if cls.wire_name:
            found.append(cls)
    return sorted(found, key=lambda cls: cls.code)
