"""Verbs of the daemon: socket, serve, reload, stop, metrics.

What comes in: the shell and the options. What goes out: an exit status. What must not be here: the daemon; only ``serve``
loads it.
"""

from __future__ import annotations

from memd.cli.exits import OK, UNAVAILABLE
from memd.cli.reach import operator, overseer
from memd_client.errors import ConnectionLost, NotRunning
from memd_client.wire import Deadline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from memd.cli.shell import Shell


def socket(shell: Shell, options: Namespace) -> int:
    """``memd socket``: print the path of a socket that answers, after starting the daemon if asked to."""
    from memd.cli.problems import tell  # noqa: PLC0415 - only when it did not start
    from memd.cli.starting import find, find_or_start  # noqa: PLC0415 - subprocess is slow to import

    try:
        if options.start:
            path: str | None = find_or_start(shell.env, options.socket, Deadline(options.timeout))
        else:
            path = find(shell.env, options.socket)
    except NotRunning as error:
        tell(shell, error, hint=False)  # the usual hint is this very command
        return UNAVAILABLE
    if path is None:
        from memd_client.places import agent_sockets  # noqa: PLC0415 - only where it is asked for

        path = agent_sockets(shell.env, options.socket)[0]
        status = UNAVAILABLE
    else:
        status = OK
    if shell.json:
        shell.out_json({"path": path, "answers": status == OK})
    else:
        shell.out(path)
    return status


def serve(shell: Shell, options: Namespace) -> int:
    """``memd serve``."""
    del shell
    from memd.daemon import main  # noqa: PLC0415 - the whole daemon

    return main(options)


def reload(shell: Shell, options: Namespace) -> int:
    """``memd reload``."""
    with operator(shell, options, start=False, whole=True) as client:
        client.daemon_reload()
    return _said(shell, "the settings were read again")


def stop(shell: Shell, options: Namespace) -> int:
    """``memd stop``. A daemon that is not running is stopped; one that closes before it answers is, too."""
    try:
        with operator(shell, options, start=False, whole=True) as client:
            client.daemon_stop()
    except NotRunning:
        return _said(shell, "memd is not running")
    except ConnectionLost:
        pass
    return _said(shell, "memd stops")


def metrics(shell: Shell, options: Namespace) -> int:
    """``memd metrics``."""
    with overseer(shell, options) as client:
        text = client.daemon_metrics()
    if shell.json:
        shell.out_json({"text": text})
    else:
        shell.stdout.write(text)
    return OK


def _said(shell: Shell, text: str) -> int:
    if shell.json:
        shell.out_json({"message": text})
    else:
        shell.out(text)
    return OK
