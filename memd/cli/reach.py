"""Which socket a verb goes to.

What comes in: the options and whether a person asks. What goes out: a client. What must not be here: what is asked.

What only an operator may do goes to the operator socket. What a person at a terminal writes goes there too, where
there is one, since that is how the daemon knows that a person wants it (origin ``user``).
"""

from __future__ import annotations

import os

from memd_client.autostart import wanted
from memd_client.client import Client
from memd_client.errors import NotRunning
from memd_client.places import agent_sockets, operator_sockets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from memd.cli.shell import Shell
    from memd_client.link import Starter
    from memd_client.wire import Deadline

CLIENT_NAME = "memd-cli"


def reader(shell: Shell, options: Namespace, *, start: bool = True, profile: str | None = None) -> Client:
    """A client for what anybody may ask."""
    return _client(shell, options, options.socket, _starter(shell, options) if start else None, profile=profile)


def overseer(shell: Shell, options: Namespace) -> Client:
    """A client for questions about the daemon as a whole.

    Without a profile, since no such question may fail because there are several, or because one cannot be served.
    """
    return _client(shell, options, options.socket, _starter(shell, options), whole=True)


def writer(shell: Shell, options: Namespace) -> Client:
    """A client for changes: a person's go to the operator socket, so that they count as a person's.

    Not beside ``$MEMD_SOCKET``: the operator socket may then be another daemon's.
    """
    by_person = options.origin == "user" or (options.origin is None and shell.attended())
    path = _existing(operator_sockets(shell.env))
    if by_person and path and not options.socket and not shell.env.get("MEMD_SOCKET"):
        return _client(shell, options, path, _starter(shell, options, answer=path))
    return reader(shell, options)


def operator(
    shell: Shell, options: Namespace, *, start: bool = True, profile: str | None = None, whole: bool = False
) -> Client:
    """A client for what only an operator may do, to a profile or, if ``whole``, to the daemon.

    Raises:
        NotRunning: ``$MEMD_SOCKET`` leads to one daemon and the operator socket to another.
    """
    if options.socket:
        starter = _starter(shell, options) if start else None
        return _client(shell, options, options.socket, starter, profile=profile, whole=whole)
    paths = operator_sockets(shell.env)
    path = _existing(paths) or paths[0]
    if shell.env.get("MEMD_SOCKET"):
        _check_same_daemon(shell, options, path)
    starter = _starter(shell, options, answer=path) if start else None
    return _client(shell, options, path, starter, profile=profile, whole=whole)


def _client(
    shell: Shell,
    options: Namespace,
    socket: str | None,
    starter: Starter | None,
    *,
    profile: str | None = None,
    whole: bool = False,
) -> Client:
    return Client(
        socket,
        profile=profile or options.profile,
        client_name=CLIENT_NAME,
        timeout=options.timeout,
        autostart=starter or False,
        env=shell.env,
        handshake=not whole,
    )


def _starter(shell: Shell, options: Namespace, answer: str | None = None) -> Starter | None:
    """What starts the daemon, and then says to go to ``answer`` (the agent socket, if None)."""
    if not wanted(shell.env):
        return None

    def start(deadline: Deadline) -> str:
        from memd.cli.starting import find_or_start  # noqa: PLC0415 - hardly ever needed

        path = find_or_start(shell.env, None if answer else options.socket, deadline)
        return answer or path

    return start


def _existing(paths: list[str]) -> str | None:
    return next((path for path in paths if os.path.exists(path)), None)


def _check_same_daemon(shell: Shell, options: Namespace, path: str) -> None:
    with (
        _client(shell, options, None, None, whole=True) as agent,
        _client(shell, options, path, None, whole=True) as other,
    ):
        if agent.daemon_status().server.instance == other.daemon_status().server.instance:
            return
    agent_path = agent_sockets(shell.env)[0]
    msg = f"MEMD_SOCKET={agent_path} and the operator socket {path} are of two daemons; choose one with --socket"
    raise NotRunning(msg, {"path": path})
