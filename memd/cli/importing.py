"""The verb import: exports, Markdown files, and Markdown that is in a memory file already.

What comes in: the shell and the options. What goes out: an exit status. What must not be here: paths on the wire (the
file is read here), how Markdown is split.

Nothing is imported before a person who can be asked has seen what it would do; what they saw is what is done, since the
import is bound to the revisions of the preview.
"""

from __future__ import annotations

import json

from memd.cli.exits import OK, REFUSED, USAGE
from memd.cli.memory import usage_bar
from memd.cli.reach import operator
from memd.cli.text import cells, plural, safe, wrap
from memd_client import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from memd.cli.shell import Shell
    from memd_client.client import Client

SIGNS = {"add": ("+", "green"), "remove": ("-", "red")}


def import_(shell: Shell, options: Namespace) -> int:
    """``memd import``. The profile is the one of ``--profile``, else the one that was exported."""
    if (options.file is None) == (options.foreign is None):
        shell.err("memd: give a file to import, or --foreign for Markdown that is in memory already")
        return USAGE
    data = _foreign(options.foreign) if options.foreign else _read(shell, options)
    if data is None:
        return USAGE
    named = options.profile or data.get("profile")
    with operator(shell, options, profile=None if named is None else str(named)) as client:
        name = client.hello.profile
        if options.preview:
            return _previewed(shell, client.profile_import(name, data, preview=True), name)
        if _asks(shell, options):
            return _asked(shell, client, name, data)
        result = client.profile_import(name, data)
    return _done(shell, result, name)


def _foreign(stores: str) -> dict[str, Any]:
    return {"version": 1, "foreign": ["memory", "user"] if stores == "all" else [stores]}


def _asks(shell: Shell, options: Namespace) -> bool:
    """Whether a person is there to answer: not where the file itself came in by standard input."""
    return not options.yes and not shell.json and options.file != "-" and shell.stdin.isatty() and shell.attended()


def _asked(shell: Shell, client: Client, name: str, data: dict[str, Any]) -> int:
    planned = client.profile_import(name, data, preview=True)
    status = _previewed(shell, planned, name)
    if status != OK or not planned.get("changes"):
        return status
    shell.stderr.write("Import this? Undo takes it back. Type yes to go on: ")
    shell.stderr.flush()
    if shell.stdin.readline().strip().lower() not in ("y", "yes"):
        shell.err("memd: nothing was imported")
        return REFUSED
    return _done(shell, client.profile_import(name, data, if_revisions=planned.get("heads")), name)


def _previewed(shell: Shell, planned: dict[str, Any], name: str) -> int:
    """What would come of it; refused is also a preview of what would be refused."""
    refused = any(notice.get("name") == "over_limit" for notice in planned.get("notices", ()))
    if shell.json:
        shell.out_json(planned)
        return REFUSED if refused else OK
    changes = planned.get("changes", ())
    shell.out(f"{shell.paint('would be imported', 'yellow')}  {_counted(changes)} in profile {safe(name)}")
    for change in changes:
        _show(shell, types.Change(change))
    _tell(shell, planned)
    return REFUSED if refused else OK


def _show(shell: Shell, change: types.Change) -> None:
    """One entry with its size."""
    sign, colour = SIGNS.get(change.action, ("~", "yellow"))
    text = change.after if change.after is not None else change.before or ""
    head = f"{sign} {change.target:<6} {len(text):>5,}  "
    first, *rest = wrap(text, shell.width() - cells(head))
    shell.out(shell.paint(head, colour) + first)
    for line in rest if sign != "-" else rest[:1]:  # what goes is what the others are made of
        shell.out(" " * cells(head) + (line if sign != "-" else "…"))


def _done(shell: Shell, result: dict[str, Any], name: str) -> int:
    if shell.json:
        shell.out_json(result)
        return OK
    changes = result.get("changes", ())
    said = shell.paint("imported", "green") if changes else shell.paint("nothing to import", "yellow")
    shell.out(f"{said}  {_counted(changes)} in profile {safe(name)}")
    _tell(shell, result)
    return OK


def _counted(changes: Any) -> str:
    """``3 entries for 1``: what comes, and what it takes the place of."""
    came = sum(change.get("action") != "remove" for change in changes)
    gone = len(changes) - came
    return plural(came, "entry") + (f" for {gone:,}" if gone else "")


def _tell(shell: Shell, result: dict[str, Any]) -> None:
    for target, usage in (result.get("usage") or {}).items():
        shell.out(f"{target}: {usage_bar(shell, types.Usage(usage))}")
    for notice in result.get("notices", ()):
        shell.err(f"{shell.paint('note:', 'yellow', shell.stderr)} {safe(str(notice.get('message')))}")


def _read(shell: Shell, options: Namespace) -> dict[str, Any] | None:
    """The data in a file, or None after saying what is wrong with it. An export is JSON, whatever its name."""
    file, problem, text = options.file, "", ""
    try:
        if file == "-":
            text = shell.stdin.read()
        else:
            with open(file, encoding="utf-8-sig", newline="") as opened:
                text = opened.read()
    except OSError as error:
        problem = error.strerror or str(error)
    except UnicodeDecodeError as error:
        problem = f"not UTF-8: {error}"
    if not problem and not _is_export(options, text):
        return {"version": 1, "markdown": {options.target or "memory": text}}
    data, problem = (None, problem) if problem else _exported(text)
    if problem:
        shell.err(f"memd: {file}: {problem}")
    return data


def _is_export(options: Namespace, text: str) -> bool:
    """Whether it is to be read as an export: unless a store for Markdown is named, or it is a file that is no JSON at all."""
    if options.target is not None:
        return False
    return options.file == "-" or options.file.lower().endswith(".json") or text.lstrip().startswith("{")


def _exported(text: str) -> tuple[dict[str, Any] | None, str]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        return None, f"not JSON in UTF-8: {error}"
    if not (isinstance(data, dict) and isinstance(data.get("entries"), dict)):
        return None, "not what `memd export` writes: there are no entries"
    return data, ""
