"""The verb ``snapshot``.

What comes in: the shell and the options. What goes out: the block, byte for byte. What must not be here: rendering.
"""

from __future__ import annotations

from memd.cli.exits import OK
from memd.cli.reach import reader
from memd.cli.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from memd.cli.shell import Shell


def snapshot(shell: Shell, options: Namespace) -> int:
    """``memd snapshot``. With a key the session stays, so that the next call prints the same bytes."""
    with reader(shell, options) as client:
        opened = client.session_open(key=options.key)
        shown = client.session_refresh(opened.session).snapshot if options.refresh else opened.snapshot
        if options.key is None:
            client.session_close(opened.session)
    if shell.json:
        shell.out_json({**opened.as_dict(), "snapshot": shown.as_dict()})
    elif shell.stdout.isatty():
        shell.out(safe(shown.text))
    else:
        shell.stdout.write(shown.text)
    return OK
