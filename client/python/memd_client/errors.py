"""Every exception of the client, in one place.

What it is: one class per wire error of ``client/PROTOCOL.md``, and four for what can happen to a connection.
What comes in: the error map of a reply, or the facts of a lost connection. What goes out: exceptions with ``code``,
``name``, ``message``, ``retryable`` and ``data``. What must not be here: how a failure is handled.

The tree::

    MemdError                       also raised itself, for a name this client does not know yet
    ├── ConnectionTrouble           there is no answer
    │   └── NotRunning Untrusted ConnectionLost Timeout
    ├── Refused                     the call was understood and refused; another call may be right
    │   ├── InvalidContent BlockedContent OverLimit NotFound AmbiguousMatch Conflict TurnBudgetExhausted
    │   └── StoreDisabled NoSuchProfile NoSuchSession NoSuchJob NoSuchRevision NoSuchProposal
    ├── StoreTrouble                the disk or another program stands in the way
    │   └── StoreUnreadable ReadOnly NoSpace Busy IoFailure ProfileOwned
    ├── BadCall                     the caller has a bug, or another version than the daemon
    │   └── InvalidRequest MethodNotFound InvalidParams UnsupportedVersion TooLarge
    └── PermissionDenied TooManyRequests DeadlineExceeded Cancelled ShuttingDown Internal
"""

from __future__ import annotations

TYPE_CHECKING = False  # the typing module costs more than this whole client
if TYPE_CHECKING:
    from typing import Any


class MemdError(Exception):
    """Something memd refused or could not do.

    ``name`` and ``code`` are stable; ``message`` is for people. ``data`` has what is needed to act, among it, for
    mutations, ``outcome``: ``"none"`` (nothing changed) or ``"unknown"`` (ask again with the same ``request_id``).
    """

    code: int = 0
    name: str = ""
    retryable: bool = False

    def __init__(self, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.data: dict[str, Any] = data or {}

    @property
    def outcome(self) -> str:
        """``"none"`` or ``"unknown"``, and ``""`` where the question does not arise."""
        return str(self.data.get("outcome", ""))

    def as_dict(self) -> dict[str, Any]:
        """The error map as it is on the wire."""
        return {
            "code": self.code,
            "name": self.name,
            "message": self.message,
            "retryable": self.retryable,
            "data": self.data,
        }

    def __str__(self) -> str:
        return f"{self.name}: {self.message}" if self.name else self.message

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"


class ConnectionTrouble(MemdError):
    """There is no answer. Not from the wire: ``code`` is 0."""


class NotRunning(ConnectionTrouble):
    """Nobody listens, and nobody could be started. Nothing was sent."""

    name = "not_running"


class Untrusted(ConnectionTrouble):
    """The socket belongs to another user. Nothing was sent."""

    name = "untrusted"


class ConnectionLost(ConnectionTrouble):
    """The connection broke before the reply and the call may not be repeated, or time ran out over repeating it."""

    name = "connection_lost"
    retryable = True


class Timeout(ConnectionTrouble):
    """No reply in time; for a mutation ``data`` has the ``request_id`` to ask again with."""

    name = "timeout"
    retryable = True


class Refused(MemdError):
    """The call was understood and refused; another call may be right."""


class InvalidContent(Refused):
    """Empty, or would read back as a border."""

    code, name = 20, "invalid_content"


class BlockedContent(Refused):
    """Refused by the scan; ``data["findings"]`` says which rule and where."""

    code, name = 21, "blocked_content"


class OverLimit(Refused):
    """Would leave the store over its limit by ``data["excess"]``; ``data["entries"]`` says what there is."""

    code, name = 22, "over_limit"


class NotFound(Refused):
    """Nothing matches; ``data["nearest"]`` has the closest entries."""

    code, name = 23, "not_found"


class AmbiguousMatch(Refused):
    """More than one place matches; ``data["matches"]`` has them."""

    code, name = 24, "ambiguous_match"


class Conflict(Refused):
    """The state is not the one the call named; ``data["reason"]`` and ``data["current"]`` say what it is."""

    code, name = 25, "conflict"


class TurnBudgetExhausted(Refused):
    """Too many refusals in this turn: leave memory as it is. ``data["cause"]`` is the refusal's own name."""

    code, name = 26, "turn_budget_exhausted"


class StoreDisabled(Refused):
    """The store is switched off in the settings."""

    code, name = 28, "store_disabled"


class NoSuchProfile(Refused):
    """No such profile, or several and none named; ``data["profiles"]`` lists them."""

    code, name = 36, "no_such_profile"


class NoSuchSession(Refused):
    """The session was closed, expired or never opened."""

    code, name = 37, "no_such_session"


class NoSuchJob(Refused):
    """Unknown job."""

    code, name = 38, "no_such_job"


class NoSuchRevision(Refused):
    """Unknown or pruned revision."""

    code, name = 39, "no_such_revision"


class NoSuchProposal(Refused):
    """Unknown proposal."""

    code, name = 40, "no_such_proposal"


class StoreTrouble(MemdError):
    """The disk or another program stands in the way; ``data`` has ``path`` and ``errno`` where there are any."""


class StoreUnreadable(StoreTrouble):
    """The file is there and cannot be read as a memory file."""

    code, name = 30, "store_unreadable"


class ReadOnly(StoreTrouble):
    """The file or its directory cannot be written; reads go on."""

    code, name = 31, "read_only"


class NoSpace(StoreTrouble):
    """The disk or a quota is full; the old file is intact."""

    code, name, retryable = 32, "no_space", True


class Busy(StoreTrouble):
    """Another program holds the file's lock."""

    code, name, retryable = 33, "busy", True


class IoFailure(StoreTrouble):
    """Any other failure of the disk or the journal."""

    code, name, retryable = 34, "io_error", True


class ProfileOwned(StoreTrouble):
    """Another daemon owns this profile's directory."""

    code, name = 35, "profile_owned"


class BadCall(MemdError):
    """The caller has a bug, or speaks another version than the daemon."""


class InvalidRequest(BadCall):
    """Not a request, or not one that is allowed now."""

    code, name = 1, "invalid_request"


class MethodNotFound(BadCall):
    """This daemon has no such method."""

    code, name = 2, "method_not_found"


class InvalidParams(BadCall):
    """A parameter is missing, misspelt or of the wrong type."""

    code, name = 3, "invalid_params"


class UnsupportedVersion(BadCall):
    """No protocol version in common."""

    code, name = 4, "unsupported_version"


class TooLarge(BadCall):
    """A message, text or batch is over a fixed limit."""

    code, name = 6, "too_large"


class PermissionDenied(MemdError):
    """The connection's access, role or uid does not allow this."""

    code, name = 5, "permission_denied"


class TooManyRequests(MemdError):
    """More requests in flight, or more connections, than the daemon takes."""

    code, name, retryable = 7, "too_many_requests", True


class DeadlineExceeded(MemdError):
    """The daemon did not get to it in time; ``outcome`` says whether something may have changed."""

    code, name, retryable = 8, "deadline_exceeded", True


class Cancelled(MemdError):
    """Taken out before anything happened."""

    code, name = 9, "cancelled"


class ShuttingDown(MemdError):
    """The daemon is stopping."""

    code, name, retryable = 10, "shutting_down", True


class Internal(MemdError):
    """A bug in memd; the traceback is in its log."""

    code, name = 11, "internal"


def _by_name(base: type[MemdError]) -> dict[str, type[MemdError]]:
    """Every class below ``base`` that has a wire code, by its wire name."""
    found: dict[str, type[MemdError]] = {}
    for cls in base.__subclasses__():
        found.update(_by_name(cls))
        if cls.code:
            found[cls.name] = cls
    return found


BY_NAME = _by_name(MemdError)


def from_wire(error: object) -> MemdError:
    """The exception for a reply's error; an unknown name (a newer daemon) gives ``MemdError`` itself."""
    if not isinstance(error, dict):
        return MemdError(f"the daemon sent an error that is no map: {error!r:.200}")
    name = str(error.get("name", ""))
    data = error.get("data")
    found = BY_NAME.get(name, MemdError)(str(error.get("message", "")), data if isinstance(data, dict) else {})
    if type(found) is MemdError:
        found.name = name
        found.code = error["code"] if isinstance(error.get("code"), int) else 0
    found.retryable = bool(error.get("retryable", found.retryable))
    return found
