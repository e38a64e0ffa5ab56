"""Errors, told to people and to programs.

What comes in: an error of the client. What goes out: one clear line, what to do, and the entries it is about. What must
not be here: exit statuses, and texts that the daemon composes itself.
"""

from __future__ import annotations

from memd.cli.text import cut, safe, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from memd.cli.shell import Shell
    from memd_client.errors import MemdError

HINTS = {
    "not_running": "start it with `memd socket --start`, or run `memd serve` and look at what it says",
    "connection_lost": "ask again; `memd history` shows whether a change was made",
    "timeout": "ask again with a longer --timeout; `memd history` shows whether a change was made",
    "permission_denied": "only an operator may do this; leave --socket and --profile to memd, or ask whoever runs it",
    "conflict": "look at it again with `memd read`, then repeat the change on what is there now",
    "no_such_profile": "choose one with --profile",
    "no_such_revision": "`memd history` lists what there is",
    "unsupported_version": "the daemon is of another version than this command; restart it with `memd stop`",
    "internal": "the daemon's log has the details; nothing else was harmed",
    "method_not_found": "the daemon is of another version than this command; restart it with `memd stop`",
}
OWN_ADVICE = frozenset({"agent", "setting", "pending", "origin"})
"""Data of a permission that a policy denies: its message says what to do, and another socket would not help."""
LISTS = {"entries": "entries", "matches": "matches", "nearest": "nearest entries"}


def tell(shell: Shell, error: MemdError, *, hint: bool = True) -> None:
    """Tell an error: to programs on standard output, to people on standard error; with a ``hint`` what to do."""
    if shell.json:
        shell.out_json({"error": error.as_dict()})
        return
    width = shell.width()
    head = shell.paint("memd:", "red", shell.stderr)
    first, *rest = wrap(error.message or error.name, width - 6)
    shell.err(f"{head} {first}")
    for line in rest:
        shell.err(f"      {line}")
    _tell_data(shell, error.data, width)
    if hint and error.name in HINTS and not OWN_ADVICE & error.data.keys():
        _tell_wrapped(shell, HINTS[error.name], width)


def _tell_data(shell: Shell, data: dict[str, Any], width: int) -> None:
    for key, title in LISTS.items():
        if data.get(key):
            shell.err(f"  {title}:")
            for item in data[key]:
                shell.err(entry_line(item, width))
    if data.get("current"):
        shell.err(f"  it is now: {cut(str(data['current']), width - 13)}")
    for finding in data.get("findings") or ():
        shell.err(f"  {safe(str(finding.get('rule')))}: {cut(str(finding.get('reason')), width - 4)}")
    names = data.get("profiles")
    if names:
        shell.err(f"  profiles: {', '.join(safe(str(name)) for name in names)}")


def entry_line(item: dict[str, Any], width: int) -> str:
    """One entry in one line: id, size, beginning."""
    head = f"    {safe(str(item.get('id', '')))}  {item.get('chars', 0):>5,}  "
    return head + cut(str(item.get("text", "")), max(width - len(head), 10))


def _tell_wrapped(shell: Shell, text: str, width: int) -> None:
    for line in wrap(text, width - 2):
        shell.err("  " + shell.paint(line, "dim", shell.stderr))
