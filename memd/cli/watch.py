"""The verb ``watch``.

What comes in: the shell and the options. What goes out: one line an event until interrupted. What must not be here: what an
event means.
"""

from __future__ import annotations

from memd.cli.exits import OK
from memd.cli.reach import reader
from memd.cli.text import as_json, cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from memd.cli.shell import Shell
    from memd_client.types import Event

COLOURS = {"memory.refused": "yellow", "events.lost": "red", "store.state": "yellow", "daemon.closing": "yellow"}
CLOCK = slice(11, 19)  # the time of day in RFC 3339


def watch(shell: Shell, options: Namespace) -> int:
    """``memd watch``. JSON is one event a line, for programs that read along."""
    with reader(shell, options) as client, client.events(options.topics, since_seq=options.since) as stream:
        for event in stream:
            if shell.json:
                shell.out(as_json(event.as_dict()))
            else:
                shell.out(line_of(shell, event))
            shell.stdout.flush()
    return OK


def line_of(shell: Shell, event: Event) -> str:
    """One event in one line: number, time, topic, and what it is about."""
    head = f"{event.seq}  {event.at[CLOCK] or '--:--:--'}  "
    topic = f"{event.topic:<16}"
    about = [event.profile, event.target, event.id, event.job, event.revision and f"revision {event.revision}"]
    details = " ".join(f"{key}={value}" for key, value in event.data.items() if isinstance(value, str | int))
    rest = "  ".join([" ".join(str(part) for part in about if part), details])
    shown = cut(rest, max(shell.width() - len(head) - len(topic) - 2, 10))
    return f"{shell.paint(head, 'dim')}{shell.paint(topic, COLOURS.get(event.topic, 'cyan'))}  {shown}".rstrip()
