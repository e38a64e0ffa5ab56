"""Word to the service manager: the datagrams of sd_notify(3), without its library.

What comes in: the environment, and what there is to say. What goes out: datagrams to ``$NOTIFY_SOCKET``. What must not
be here: when to say it.

All of it is best effort: a daemon must not fail because nobody listens to its state.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import MutableMapping


class Notifier:
    """Says things to the service manager, or to nobody where there is none."""

    def __init__(self, address: str | None) -> None:
        """``address`` is a path, or a name of the abstract namespace after ``@``."""
        self._address = f"\0{address[1:]}" if address and address.startswith("@") else address

    def __repr__(self) -> str:
        return f"<Notifier {self._address!r}>"

    @classmethod
    def from_environ(cls, environ: MutableMapping[str, str]) -> Notifier:
        """The notifier of this process; the variable is removed, so that no child speaks for it."""
        return cls(environ.pop("NOTIFY_SOCKET", None))

    def ready(self, status: str = "") -> bool:
        """Recovered and listening; also ends a reload."""
        return self._say("READY=1", *([f"STATUS={status}"] if status else []))

    def status(self, text: str) -> bool:
        """One line for people."""
        return self._say("STATUS=" + text.replace("\n", " "))

    def reloading(self, monotonic_us: int) -> bool:
        """Settings are being read again; ``ready`` ends it. The time lets the manager tell one reload from the next."""
        return self._say("RELOADING=1", f"MONOTONIC_USEC={monotonic_us}")

    def stopping(self) -> bool:
        """No more connections are taken."""
        return self._say("STOPPING=1")

    def extend_timeout(self, us: int) -> bool:
        """A start or stop takes this much longer; to be said again before that passes."""
        return self._say(f"EXTEND_TIMEOUT_USEC={us}")

    def watchdog(self) -> bool:
        """Alive."""
        return self._say("WATCHDOG=1")

    def _say(self, *lines: str) -> bool:
        """Send one datagram; True if somebody took it."""
        if not self._address:
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            try:
                sock.sendto("\n".join(lines).encode(), self._address)
            except OSError:
                return False
        return True


def watchdog_s(environ: MutableMapping[str, str], *, pid: int) -> float | None:
    """Seconds within which the manager wants a ``watchdog``, None if it does not watch this process.

    The variables are removed, so that no child takes them for its own.
    """
    us, for_pid = environ.pop("WATCHDOG_USEC", ""), environ.pop("WATCHDOG_PID", str(pid))
    return int(us) / 1_000_000 if us.isdecimal() and int(us) and for_pid == str(pid) else None
