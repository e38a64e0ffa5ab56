"""Exit statuses.

What comes in: an error. What goes out: a number from ``sysexits.h``, so that a script can tell a refusal from trouble.
What must not be here: messages.
"""

from __future__ import annotations

from memd_client import errors

OK = 0
REFUSED = 1
USAGE = 2
UNAVAILABLE = 69
INTERNAL = 70
TEMPORARY = 75
PERMISSION = 77
SETTINGS = 78
INTERRUPTED = 130

MEANINGS = {
    OK: "done",
    REFUSED: "memd refused; the message says what would be accepted",
    USAGE: "the command line or a parameter is wrong",
    UNAVAILABLE: "memd is not running and could not be started, or another version answers",
    INTERNAL: "a bug in memd; its log has the details",
    TEMPORARY: "busy, out of time or out of room; try again",
    PERMISSION: "not allowed, or a file cannot be written",
    SETTINGS: "the settings file cannot be used",
}

# The first class that fits decides; anything else, also of a newer daemon, is a refusal.
_STATUS: tuple[tuple[tuple[type[errors.MemdError], ...], int], ...] = (
    ((errors.NotRunning, errors.UnsupportedVersion), UNAVAILABLE),
    ((errors.Untrusted, errors.PermissionDenied, errors.ReadOnly), PERMISSION),
    ((errors.ConnectionTrouble, errors.ProfileOwned), TEMPORARY),
    ((errors.InvalidParams, errors.InvalidRequest, errors.MethodNotFound, errors.TooLarge), USAGE),
    ((errors.Internal,), INTERNAL),
)


def status_of(error: errors.MemdError) -> int:
    """The exit status for an error."""
    for classes, status in _STATUS:
        if isinstance(error, classes):
            return status
    return TEMPORARY if error.retryable else REFUSED


def table() -> str:
    """The statuses and their meanings, for ``--help``."""
    return "\n".join(f"  {status:>3}  {meaning}" for status, meaning in MEANINGS.items())
