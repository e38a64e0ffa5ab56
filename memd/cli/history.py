"""Verbs of history: history, show, diff, undo, redo, restore, redact.

What comes in: the shell and the options. What goes out: an exit status. What must not be here: how an undo is worked out.
"""

from __future__ import annotations

from memd.cli.changes import SIGNS, show_changes
from memd.cli.exits import OK, REFUSED, USAGE
from memd.cli.memory import show_entries, usage_bar, withheld_rules
from memd.cli.reach import operator, reader, writer
from memd.cli.text import age, cells, cut, one_line, plural, quoted, safe, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from memd.cli.shell import Shell
    from memd_client import types
    from memd_client.client import Client
    from memd_client.redacted import Redacted

NUMBERS = 2  # the first two columns, revision and age, are set to the right
WIDE = 100  # from this width on there is room for who made a change
FILTERS = ("session", "job", "entry", "origin")
REDACT_S = 120.0  # a long history is rewritten, and displaced files are waited for
ELSEWHERE = "What memd does not keep is not touched: exports, backups, files of other programs, the shell's history."
OWN_KINDS = ("undo", "redo", "restore", "wipe", "import", "redact", "compensate")  # worth a word of their own


def history(shell: Shell, options: Namespace) -> int:
    """``memd history``: one line a revision, as much of it as fits."""
    chosen = {name: getattr(options, name) for name in ("target", *FILTERS, "limit", "before")}
    with reader(shell, options) as client:
        page = client.history_list(**chosen)
    if shell.json:
        shell.out_json(page.as_dict())
        return OK
    rows = [_row(shell, revision) for revision in page.revisions]
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    for revision, row in zip(page.revisions, rows, strict=True):
        head = "  ".join(
            " " * (width - cells(cell)) + cell if i < NUMBERS else cell + " " * (width - cells(cell))
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        shell.out(f"{shell.paint(head, 'dim')}  {_summary(shell, revision, shell.width() - cells(head) - 2)}")
    if not rows:
        shell.out(_nothing(options))
    if page.next is not None:
        shell.out(shell.paint(f"older: {_older(options, page.next)}", "dim"))
    return OK


def _nothing(options: Namespace) -> str:
    if options.before is not None:
        return "nothing older"
    chosen = [f"{name} {safe(getattr(options, name))}" for name in FILTERS if getattr(options, name) is not None]
    return f"nothing has changed yet by {', '.join(chosen)}" if chosen else "nothing has changed yet"


def _older(options: Namespace, before: int) -> str:
    """The command that shows the next page of the same."""
    words = ["memd history", *([options.target] if options.target else [])]
    words += [f"--{name} {quoted(getattr(options, name))}" for name in FILTERS if getattr(options, name) is not None]
    words += [f"--limit {options.limit}"] if options.limit != options.usual_limit else []
    return " ".join([*words, f"--before {before}"])


def _row(shell: Shell, revision: types.Revision) -> list[str]:
    row = [str(revision.revision), age(revision.us, shell.now_us()), revision.target, revision.origin]
    return [*row, cut(revision.client, 16)] if shell.width() >= WIDE else row


def _summary(shell: Shell, revision: types.Revision, width: int) -> str:
    """What a revision did, in one line: its first change, and how many more."""
    kind = getattr(revision, "kind", "change")
    word = f"{kind}: " if kind in OWN_KINDS else ""
    if not revision.changes:
        return cut(word + (revision.reason or "no change"), max(width, 10))
    change = revision.changes[0]
    sign, colour = SIGNS.get(change.action, ("?", "dim"))
    tail = f" (+{len(revision.changes) - 1})" if len(revision.changes) > 1 else ""
    tail += " (undone)" if revision.undone_by is not None else ""
    said = change.after if change.after is not None else change.before or ""
    text = cut(word + said, max(width - len(tail) - 2, 8))
    return f"{shell.paint(sign, colour)} {text}{tail}"


def show(shell: Shell, options: Namespace) -> int:
    """``memd show``."""
    with reader(shell, options) as client:
        shown = client.history_show(options.revision)
        withheld = {} if shell.json else withheld_rules(client)
    if shell.json:
        shell.out_json(shown.as_dict())
        return OK
    ago = age(shown.us, shell.now_us())
    when = f"{shown.at} ({ago if ago == 'now' else f'{ago} ago'})"
    shell.out(f"{shell.paint(f'revision {shown.revision}', 'bold')} of {shown.target}, {when}")
    facts = {
        "what": _what(shown),
        "by": f"{shown.origin}{f' through {shown.client}' if shown.client else ''}, uid {shown.uid}, pid {shown.pid}",
        "session": shown.session,
        "turn": shown.turn,
        "job": shown.job,
        "reason": shown.reason,
        "undone by": shown.undone_by,
    }
    for name, value in facts.items():
        if value is not None:
            first, *rest = wrap(one_line(f"{name}: {value}"), shell.width() - 2)
            shell.out(f"  {first}")
            for line in rest:
                shell.out(f"    {line}")
    show_changes(shell, shown.changes, full=options.full)
    for entry in dict.fromkeys(change.id for change in shown.changes if change.id in withheld):
        shell.out(shell.paint(f"  {safe(entry)} is kept out of prompts now (rule {safe(withheld[entry])})", "red"))
    for target, entries in shown.entries.items() if options.entries else ():
        shell.out()
        shell.out(shell.paint(f"{target} after it", "bold"))
        show_entries(shell, entries, withheld)
    return OK


def _what(shown: types.RevisionShown) -> str | None:
    """What a revision is, if it is no plain change."""
    told = shown.as_dict()
    kind = str(told.get("kind", "change"))
    numbers = ", ".join(map(str, told.get("undoes") or ()))
    said = [f"{kind}{f' of {numbers}' if numbers else ''}"] if kind in OWN_KINDS else []
    return "; ".join([*said, *(["texts of it were redacted"] if told.get("redacted") else [])]) or None


def diff(shell: Shell, options: Namespace) -> int:
    """``memd diff``."""
    with reader(shell, options) as client:
        named = options.from_ or options.to  # 0 is the empty store, which no revision made
        target = options.target or (client.history_show(named).target if named else "memory")
        result = client.history_diff(target, options.from_, options.to)
    if shell.json:
        shell.out_json(result.as_dict())
        return OK
    show_changes(shell, result.changes, full=options.full)
    if not result.changes:
        shell.out("no difference")
    return OK


def undo(shell: Shell, options: Namespace) -> int:
    """``memd undo``: without a selector the last change."""
    with _person(shell, options) as client:
        return _undone(shell, client.history_undo(**_selector(options)), "undone", preview=options.preview)


def redo(shell: Shell, options: Namespace) -> int:
    """``memd redo``: without a selector the last undo."""
    with _person(shell, options) as client:
        return _undone(shell, client.history_redo(**_selector(options)), "redone", preview=options.preview)


def restore(shell: Shell, options: Namespace) -> int:
    """``memd restore``."""
    with _person(shell, options) as client:
        target = options.target or client.history_show(options.revision).target
        said: Any = {"reason": options.reason, "if_revision": options.if_revision, "origin": options.origin}
        done = client.history_restore(target, options.revision, preview=options.preview or None, **said)
        return _undone(shell, done, "restored", preview=options.preview)


def redact(shell: Shell, options: Namespace) -> int:
    """``memd redact``: asks where a person can answer, since nothing brings the text back."""
    if (options.text is None) == (options.revision is None):
        shell.err("memd: give the text to redact (- reads it from standard input), or --revision REV")
        return USAGE
    text = shell.stdin.read().rstrip("\r\n") if options.text == "-" else options.text
    options.timeout = max(options.timeout, REDACT_S)
    with operator(shell, options) as client:
        if not options.yes and not _confirmed(shell, options.text != "-"):
            shell.err("memd: nothing was redacted; confirm with --yes")
            return REFUSED
        done = client.history_redact(text=text, revision=options.revision, reason=options.reason)
    if shell.json:
        shell.out_json(done.as_dict())
    else:
        _tell_redacted(shell, done)
    return OK


def _tell_redacted(shell: Shell, done: Redacted) -> None:
    """Where it was, what was not looked at, and what is out of memd's reach."""
    rows = {name: count for name, count in done.tables.items() if count}
    if done.revisions:
        numbers = ", ".join(map(str, done.revisions))
        shell.out(f"{shell.paint('redacted', 'green')}  live entries, by revision {numbers}")
    if rows:
        told = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in rows.items())
        shell.out(f"{shell.paint('redacted', 'green')}  rows of history: {told}")
    if not rows and not done.revisions:
        shell.out("memd keeps no such text: nothing had to be redacted")
    for notice in done.notices:
        shell.err(f"{shell.paint('note:', 'yellow', shell.stderr)} {notice.message}")
    for line in wrap(ELSEWHERE, shell.width()):
        shell.err(shell.paint(line, "dim", shell.stderr))


def _confirmed(shell: Shell, may_ask: bool) -> bool:
    if not may_ask or not shell.stdin.isatty():
        return False
    shell.stderr.write(
        "This takes it out of memory and all of history, and nothing brings it back. Type yes to go on: "
    )
    shell.stderr.flush()
    return shell.stdin.readline().strip().lower() == "yes"


def _person(shell: Shell, options: Namespace) -> Client:
    options.origin = getattr(options, "origin", None)
    return writer(shell, options)


def _selector(options: Namespace) -> Any:
    chosen = {name: getattr(options, name) for name in ("revision", "last", "session", "job")}
    if all(value is None for value in chosen.values()):
        chosen["last"] = 1
    return {**chosen, "reason": options.reason, "preview": options.preview or None}


def _undone(shell: Shell, result: types.Undone, word: str, *, preview: bool) -> int:
    status = REFUSED if result.conflicts else OK
    if shell.json:
        shell.out_json(result.as_dict())
        return status
    if result.conflicts:
        _tell_conflicts(shell, result, word)
        return status
    said = f"would be {word}" if preview else word if result.changes else "nothing to change"
    shell.out(f"{shell.paint(said, 'yellow' if preview else 'green')}  {plural(len(result.changes), 'change')}")
    show_changes(shell, result.changes)
    if preview:
        return status
    for target, usage in result.usage.items():
        shell.out(f"{target}: {usage_bar(shell, usage)}")
    return status


def _tell_conflicts(shell: Shell, result: types.Undone, word: str) -> None:
    """What stands in the way, entry by entry, and what can be done about it."""
    shell.err(f"{shell.paint('memd:', 'red', shell.stderr)} nothing was {word}, as later changes stand in the way:")
    for conflict in result.conflicts:
        first, *rest = wrap(conflict.reason, shell.width() - cells(conflict.id) - 4)
        shell.err(f"  {conflict.id}  {first}")
        for line in rest:
            shell.err(" " * (cells(conflict.id) + 4) + line)
    entry = result.conflicts[0].id
    hint = f"`memd history --entry {entry}` lists what came later: undo that first, or change the entry by hand"
    for line in wrap(hint, shell.width() - 2):
        shell.err("  " + shell.paint(line, "dim", shell.stderr))
