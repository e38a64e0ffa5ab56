"""Verbs of history: history, show, diff, undo, redo, restore.

What comes in: the shell and the options. What goes out: an exit status. What must not be here: how an undo is worked out.
"""

from __future__ import annotations

from memd.cli.exits import OK, REFUSED
from memd.cli.memory import show_entries, usage_bar
from memd.cli.reach import reader, writer
from memd.cli.text import age, cut, plural, safe
from memd.cli.worddiff import word_diff

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from memd.cli.shell import Shell
    from memd_client import types
    from memd_client.client import Client

SIGNS = {"add": ("+", "green"), "remove": ("-", "red"), "replace": ("~", "yellow"), "edit": ("~", "yellow")}
NUMBERS = 2  # the first two columns, revision and age, are set to the right
WIDE = 100  # from this width on there is room for who made a change
WDIFF = {"old": ("[-", "-]"), "new": ("{+", "+}")}  # as wdiff has it, where there is no colour


def history(shell: Shell, options: Namespace) -> int:
    """``memd history``: one line a revision, as much of it as fits."""
    chosen = {name: getattr(options, name) for name in ("target", "session", "job", "entry", "limit", "before")}
    with reader(shell, options) as client:
        page = client.history_list(**chosen)
    if shell.json:
        shell.out_json(page.as_dict())
        return OK
    rows = [_row(shell, revision) for revision in page.revisions]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for revision, row in zip(page.revisions, rows, strict=True):
        head = "  ".join(
            cell.rjust(width) if i < NUMBERS else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        shell.out(f"{shell.paint(head, 'dim')}  {_summary(shell, revision, shell.width() - len(head) - 2)}")
    if not rows:
        shell.out("nothing has changed yet" if options.before is None else "nothing older")
    if page.next is not None:
        shell.out(shell.paint(f"older: memd history --before {page.next}", "dim"))
    return OK


def _row(shell: Shell, revision: types.Revision) -> list[str]:
    row = [str(revision.revision), age(revision.us, shell.now_us()), revision.target, revision.origin]
    return [*row, cut(revision.client, 16)] if shell.width() >= WIDE else row


def _summary(shell: Shell, revision: types.Revision, width: int) -> str:
    """What a revision did, in one line: its first change, and how many more."""
    if not revision.changes:
        return cut(revision.reason or "no change", max(width, 10))
    change = revision.changes[0]
    sign, colour = SIGNS.get(change.action, ("?", "dim"))
    tail = f" (+{len(revision.changes) - 1})" if len(revision.changes) > 1 else ""
    tail += " (undone)" if revision.undone_by is not None else ""
    text = cut(change.after if change.after is not None else change.before or "", max(width - len(tail) - 2, 8))
    return f"{shell.paint(sign, colour)} {text}{tail}"


def show(shell: Shell, options: Namespace) -> int:
    """``memd show``."""
    with reader(shell, options) as client:
        shown = client.history_show(options.revision)
    if shell.json:
        shell.out_json(shown.as_dict())
        return OK
    shell.out(f"{shell.paint(f'revision {shown.revision}', 'bold')} of {shown.target}, {shown.at}")
    facts = {
        "by": f"{shown.origin}{f' through {safe(shown.client)}' if shown.client else ''}, uid {shown.uid}, pid {shown.pid}",
        "session": shown.session,
        "turn": shown.turn,
        "job": shown.job,
        "reason": shown.reason,
        "undone by": shown.undone_by,
    }
    for name, value in facts.items():
        if value is not None:
            shell.out(f"  {name}: {safe(str(value))}")
    show_changes(shell, shown.changes)
    for target, entries in shown.entries.items() if options.entries else ():
        shell.out()
        shell.out(shell.paint(f"{target} after it", "bold"))
        show_entries(shell, entries)
    return OK


def diff(shell: Shell, options: Namespace) -> int:
    """``memd diff``."""
    with reader(shell, options) as client:
        target = options.target or client.history_show(options.from_).target
        result = client.history_diff(target, options.from_, options.to)
    if shell.json:
        shell.out_json(result.as_dict())
        return OK
    show_changes(shell, result.changes)
    if not result.changes:
        shell.out("no difference")
    return OK


def show_changes(shell: Shell, changes: list[types.Change]) -> None:
    """Each change with the words that go and come."""
    for change in changes:
        sign, colour = SIGNS.get(change.action, ("?", "dim"))
        shell.out(f"{shell.paint(sign, colour)} {shell.paint(f'{change.target} {change.id}', 'dim')}")
        text = _words(shell, change.before or "", change.after or "")
        for line in text.split("\n"):
            shell.out(f"    {line}")


def _words(shell: Shell, before: str, after: str) -> str:
    parts = []
    for run in word_diff(safe(before), safe(after)):
        if run.kind == "same":
            parts.append(run.text)
            continue
        words = run.text.rstrip()
        blank = run.text[len(words) :]
        if shell.coloured(shell.stdout):
            painted = [shell.paint(line, "red" if run.kind == "old" else "green") for line in words.split("\n")]
            parts.append("\n".join(painted) + blank)
        else:
            opening, closing = WDIFF[run.kind]
            parts.append(f"{opening}{words}{closing}{blank}")
    return "".join(parts)


def undo(shell: Shell, options: Namespace) -> int:
    """``memd undo``: without a selector the last change."""
    with _person(shell, options) as client:
        return _undone(shell, client.history_undo(**_selector(options)), "undone")


def redo(shell: Shell, options: Namespace) -> int:
    """``memd redo``: without a selector the last undo."""
    with _person(shell, options) as client:
        return _undone(shell, client.history_redo(**_selector(options)), "redone")


def restore(shell: Shell, options: Namespace) -> int:
    """``memd restore``."""
    with _person(shell, options) as client:
        target = options.target or client.history_show(options.revision).target
        said: Any = {"reason": options.reason, "if_revision": options.if_revision, "origin": options.origin}
        return _undone(shell, client.history_restore(target, options.revision, **said), "restored")


def _person(shell: Shell, options: Namespace) -> Client:
    options.origin = getattr(options, "origin", None)
    return writer(shell, options)


def _selector(options: Namespace) -> Any:
    chosen = {name: getattr(options, name) for name in ("revision", "last", "session", "job")}
    if all(value is None for value in chosen.values()):
        chosen["last"] = 1
    return {**chosen, "reason": options.reason}


def _undone(shell: Shell, result: types.Undone, word: str) -> int:
    status = REFUSED if result.conflicts else OK
    if shell.json:
        shell.out_json(result.as_dict())
        return status
    if result.conflicts:
        shell.err(f"{shell.paint('memd:', 'red', shell.stderr)} nothing was {word}, as later changes stand in the way:")
        for conflict in result.conflicts:
            shell.err(f"  {conflict.id}  {cut(conflict.reason, shell.width() - len(conflict.id) - 4)}")
        return status
    shell.out(f"{shell.paint(word, 'green')}  {plural(len(result.changes), 'change')}")
    show_changes(shell, result.changes)
    for target, usage in result.usage.items():
        shell.out(f"{target}: {usage_bar(shell, usage)}")
    return status
