"""Walking through what waits: one proposal at a time, one key for each decision.

What comes in: a terminal, keys. What goes out: decisions, and what became of them. What must not be here: how a proposal looks
(``approval``), what an approval does.
"""

from __future__ import annotations

import os
import tempfile

from memd.cli.approval import settled, show_proposal, texts_of
from memd.cli.exits import OK, REFUSED, USAGE
from memd.cli.problems import tell
from memd.cli.reach import operator
from memd.cli.text import plural
from memd_client.errors import MemdError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from memd.cli.shell import Shell
    from memd_client.client import Client
    from memd_client.proposals import Proposal

KEYS = {"a": "approve", "r": "reject", "e": "edit, then approve", "s": "skip", "q": "quit"}
END = "\x04"  # Ctrl-D
LONGEST_KEY = 32  # bytes: what one key of a terminal sends at most, and a character of several bytes


def walk(shell: Shell, options: Namespace) -> int:
    """``memd pending --walk``. What is decided is done at once; the rest stays as it is."""
    if not (shell.stdin.isatty() and shell.stdout.isatty()) or shell.json:
        shell.err("memd: --walk needs a terminal; use `memd approve ID` and `memd reject ID`")
        return USAGE
    counts = {"approved": 0, "rejected": 0, "refused": 0}
    with operator(shell, options) as client:
        waiting = client.approval_list().proposals
        for number, proposal in enumerate(waiting, 1):
            shell.out(shell.paint(f"{number} of {len(waiting)}", "dim"))
            show_proposal(shell, proposal, texts_of(client), full=options.full)
            if not _decide(shell, client, proposal, counts):
                break
            shell.out()
    _sum_up(shell, len(waiting), counts)
    return REFUSED if counts["refused"] else OK


def read_key(shell: Shell, question: str) -> str:
    """Ask for one key, without Enter; ``""`` for a key that is no character, Ctrl-D at the end of the input.

    What was typed before the question does not answer it: it was meant for the one before.
    """
    import termios  # noqa: PLC0415 - not on every platform, and only here
    import tty  # noqa: PLC0415 - as above

    descriptor = shell.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor, termios.TCSAFLUSH)
        shell.stdout.write(question)
        shell.stdout.flush()
        data = os.read(descriptor, LONGEST_KEY)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
    text = data.decode("utf-8", "replace")
    return (END if not text else text[0] if text[0].isprintable() or text[0] == END else "").lower()


def _decide(shell: Shell, client: Client, proposal: Proposal, counts: dict[str, int]) -> bool:
    """Ask until there is an answer; False to go no further."""
    choices = "  ".join(f"{shell.paint(key, 'bold')} {what}" for key, what in KEYS.items() if _offered(key, proposal))
    while True:
        key = read_key(shell, f"{choices}? ")
        shell.out(key if key in KEYS else "")
        if key in ("q", END):
            return False
        if key == "s":
            return True
        if key in KEYS and _offered(key, proposal) and _carry_out(shell, client, proposal, key, counts):
            return True


def _offered(key: str, proposal: Proposal) -> bool:
    """An edit needs a text, and only one."""
    return key != "e" or (len(proposal.operations) == 1 and _text(proposal) is not None)


def _text(proposal: Proposal) -> str | None:
    only = proposal.operations[0]
    return only.new_text if only.action == "edit" else only.content


def _carry_out(shell: Shell, client: Client, proposal: Proposal, key: str, counts: dict[str, int]) -> bool:
    """Do it; False if another answer is wanted."""
    content = None
    if key == "e":
        content = edited(shell, _text(proposal) or "")
        if content is None:
            return False
    try:
        if key == "r":
            settled(shell, proposal.id, client.approval_reject(proposal.id))
            counts["rejected"] += 1
        else:
            settled(shell, proposal.id, client.approval_approve(proposal.id, content))
            counts["approved"] += 1
    except MemdError as error:
        tell(shell, error, hint=error.name == "permission_denied")
        counts["refused"] += 1
    return True


def edited(shell: Shell, text: str) -> str | None:
    """The text as a person left it in their editor; None if they changed nothing, or emptied it."""
    import shlex  # noqa: PLC0415 - only here
    import subprocess  # noqa: PLC0415 - the person's own editor

    editor = shell.env.get("VISUAL") or shell.env.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="memd-") as folder:  # 0700: nobody else reads it
        path = os.path.join(folder, "entry.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        shell.stdout.flush()
        try:
            status = subprocess.call([*shlex.split(editor), path])  # noqa: S603 - as above
        except OSError as error:
            shell.err(f"memd: {editor}: {error.strerror}; set EDITOR to an editor that is there")
            return None
        with open(path, encoding="utf-8", errors="replace") as file:
            found = file.read().strip()
    if status or not found or found == text.strip():
        shell.out("nothing was changed")
        return None
    return found


def _sum_up(shell: Shell, count: int, counts: dict[str, int]) -> None:
    left = count - counts["approved"] - counts["rejected"]
    if not count:
        shell.out("nothing waits for you")
        return
    said = [f"{number} {what}" for what, number in counts.items() if number and what != "refused"]
    shell.out(", ".join([*said, f"{plural(left, 'proposal')} left"]))
