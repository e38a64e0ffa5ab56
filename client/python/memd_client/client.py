"""The client: calls that survive a restart of the daemon.

What comes in: where memd is, who calls, and methods with their parameters. What goes out: typed results and typed
errors. What must not be here: bytes, and rules of memory.
"""

from __future__ import annotations

import os

from memd_client import __version__, autostart as starting
from memd_client.errors import ConnectionLost, ConnectionTrouble, MemdError, NoSuchSession, NotRunning, ShuttingDown
from memd_client.link import Link
from memd_client.methods import Methods
from memd_client.places import agent_sockets
from memd_client.repeating import MUTATIONS, PASSING, may_repeat, new_request_id
from memd_client.wire import Deadline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Self

    from memd_client.events import EventStream
    from memd_client.link import Starter
    from memd_client.types import Hello

PAUSE_S = 0.02
LONGEST_PAUSE_S = 0.5
MARGIN_S = 0.25  # the daemon's own answer about a deadline says more than our giving up: leave it time to arrive


class Client(Methods):
    """A blocking client. It connects when first used and again when it must. Not for several threads at once.

    Every method of the protocol is a method here, with an underscore for the dot: ``memory.add`` is ``memory_add``.

    Args:
        socket: Path of the socket; None looks at the places of the protocol.
        profile: Needed only where several are configured.
        client_name: Recorded with every change.
        context: ``"primary"``, ``"subagent"``, ``"cron"`` or ``"job"``.
        access: Less than the context has: ``"none"``, ``"read"`` or ``"add"``.
        timeout: Seconds a call may take, reconnecting and repeating included; None waits for ever.
        autostart: Whether to start memd if nobody listens, or what starts it. ``MEMD_AUTOSTART=0`` also turns it off.
        env: Where ``MEMD_SOCKET``, ``MEMD_BIN``, ``MEMD_AUTOSTART`` and the XDG directories are looked up.
        handshake: False leaves ``hello`` out, with all it says: for calls about the daemon as a whole.
    """

    def __init__(  # noqa: PLR0913 - each is a setting of its own, all but the first by keyword
        self,
        socket: str | os.PathLike[str] | None = None,
        *,
        profile: str | None = None,
        client_name: str = "memd_client",
        context: str | None = None,
        access: str | None = None,
        timeout: float | None = 10.0,
        autostart: bool | Starter = True,
        env: Mapping[str, str] = os.environ,
        handshake: bool = True,
    ) -> None:
        self.timeout = timeout
        argument = None if socket is None else os.fspath(socket)
        said = {"profile": profile, "context": context, "access": access}
        hello: dict[str, Any] = {key: value for key, value in said.items() if value is not None}
        hello.update(client={"name": client_name, "version": __version__}, protocol=[1, 1])
        self._link = Link(
            agent_sockets(env, argument), hello if handshake else None, _starter(autostart, argument, env)
        )

    def __repr__(self) -> str:
        return f"<Client {self._link!r}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        self._link.drop()

    @property
    def hello(self) -> Hello:
        """What the handshake settled; connects if that has not been done. Not for a client without one."""
        self._link.connected(Deadline(self.timeout))
        assert self._link.hello is not None  # noqa: S101 - connected() has set it
        return self._link.hello

    def call(self, method: str, /, **params: Any) -> Any:
        """Call any method with parameters by name; None is the same as leaving it out. The result is plain."""
        return self.request(method, params)

    def request(self, method: str, params: dict[str, Any], *, timeout: float | None = None) -> Any:
        """Call a method within ``timeout`` seconds (None: the client's own).

        Mutations get a ``request_id``; with it they are repeated after a lost connection and are still done once.

        Raises:
            MemdError: The typed error of the reply, or of the connection.
        """
        deadline = Deadline(self.timeout if timeout is None else timeout)
        sent = {key: value for key, value in params.items() if value is not None}
        if method in MUTATIONS:
            sent.setdefault("request_id", new_request_id())
        pause = PAUSE_S
        doubt = False  # whether the daemon may have carried out an earlier attempt
        while True:
            try:
                return self._attempt(method, sent, deadline)
            except MemdError as error:
                if doubt and method == "session.close" and isinstance(error, NoSuchSession):
                    return {}  # closed by the attempt whose reply was lost
                doubt = doubt or bool(error.data.get("sent"))
                if not self._again(method, error) or not deadline.sleep(pause):
                    raise _final(error, sent, doubt=doubt) from error.__cause__
            pause = min(2 * pause, LONGEST_PAUSE_S)

    def events(self, topics: Iterable[str] = (), *, since_seq: int | None = None) -> EventStream:
        """Events as they happen, over a connection of their own; no topics means all.

        With ``since_seq`` those after it come first. After a restart of the daemon the stream goes on where it was.
        """
        from memd_client.events import EventStream  # noqa: PLC0415 - only watchers pay for it

        return EventStream(self._link, list(topics), since_seq=since_seq, timeout=self.timeout)

    def _attempt(self, method: str, params: dict[str, Any], deadline: Deadline) -> Any:
        connection = self._link.connected(deadline)
        left = deadline.left()
        if left is not None and "deadline_ms" not in params:
            params = {**params, "deadline_ms": max(1, int(1000 * (left - min(MARGIN_S, left / 10))))}
        return connection.request(method, params, deadline)

    def _again(self, method: str, error: MemdError) -> bool:
        if isinstance(error, NotRunning):
            return self._link.met
        if isinstance(error, ShuttingDown | ConnectionLost):
            self._link.drop()
        return may_repeat(method, error)


def _starter(autostart: bool | Starter, socket: str | None, env: Mapping[str, str]) -> Starter | None:
    if not autostart or not starting.wanted(env):
        return None
    if callable(autostart):
        return autostart
    return lambda deadline: starting.start(env, socket, deadline)


def _final(error: MemdError, params: dict[str, Any], *, doubt: bool) -> MemdError:
    """The error, made to say what is known of a mutation over all attempts, and with what to ask again.

    A reply about the mutation itself is the last word: the daemon knows the ``request_id`` of an earlier attempt.
    """
    if "request_id" in params and isinstance(error, (ConnectionTrouble, *PASSING)):
        unknown = doubt or error.outcome == "unknown"
        error.data.update(outcome="unknown" if unknown else "none", request_id=params["request_id"])
    return error
