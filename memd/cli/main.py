"""Where the ``memd`` command begins.

What comes in: the command line. What goes out: an exit status; errors told to people on standard error, or to programs
as ``{"error": …}`` on standard output. What must not be here: what a verb does.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from memd.cli.exits import INTERRUPTED, OK, USAGE, status_of
from memd.cli.parser import build_parser
from memd.cli.shell import Shell
from memd_client.errors import MemdError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None, shell: Shell | None = None) -> int:
    """Carry out one command line and return its exit status."""
    shell = shell or Shell.of_process()
    argv = sys.argv[1:] if argv is None else argv
    parser = build_parser(argv)
    options = parser.parse_args(argv)
    shell.configure(options)
    if options.version:
        from memd import __version__  # noqa: PLC0415 - for this alone

        shell.out(f"memd {__version__}")
        return OK
    if options.verb is None:
        parser.print_help(shell.stderr)
        return USAGE
    try:
        return _run(shell, options)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader has seen enough, as in `memd history | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK


def _run(shell: Shell, options: Namespace) -> int:
    module, _, function = options.run.partition(":")
    try:
        status = int(getattr(import_module(f"memd.cli.{module}"), function)(shell, options))
        shell.stdout.flush()
    except MemdError as error:
        from memd.cli.problems import tell  # noqa: PLC0415 - only when there is one

        tell(shell, error)
        return status_of(error)
    return status
