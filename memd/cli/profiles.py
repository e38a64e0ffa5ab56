"""Verbs of profiles: export, import, profile list, profile create.

What comes in: the shell and the options. What goes out: an exit status. What must not be here: paths on the wire; data is
sent, so that the daemon never opens a file for a client.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from memd.cli.exits import OK, REFUSED, USAGE
from memd.cli.memory import usage_bar
from memd.cli.reach import operator, overseer, reader
from memd.cli.text import plural

if TYPE_CHECKING:
    from argparse import Namespace

    from memd.cli.shell import Shell


def export(shell: Shell, options: Namespace) -> int:
    """``memd export``. A file is created for the user alone, and never over another."""
    with reader(shell, options) as client:
        data = client.profile_export().as_dict()
    if options.output is None:
        shell.out_json(data)
        return OK
    try:
        descriptor = os.open(options.output, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        shell.err(f"memd: {options.output}: {error.strerror}")
        return REFUSED
    with open(descriptor, "w", encoding="utf-8") as file:
        json.dump(data, file, ensure_ascii=False, indent=2)
        file.write("\n")
    return OK


def import_(shell: Shell, options: Namespace) -> int:
    """``memd import``. The profile is the one of ``--profile``, else the one that was exported."""
    data = _exported(shell, options.file)
    if data is None:
        return USAGE
    name = options.profile or data.get("profile") or "default"
    with operator(shell, options, profile=str(name)) as client:
        result = client.profile_import(str(name), data)
    if shell.json:
        shell.out_json(result)
        return OK
    shell.out(f"{shell.paint('ok', 'green')}  {plural(len(result.get('changes', ())), 'change')} in profile {name}")
    for notice in result.get("notices", ()):
        shell.err(f"{shell.paint('note:', 'yellow', shell.stderr)} {notice.get('message')}")
    return OK


def _exported(shell: Shell, file: str) -> dict[str, Any] | None:
    """The data in a file of ``memd export``, or None after saying what is wrong with it."""
    problem = ""
    data: Any = None
    try:
        if file == "-":
            data = json.load(shell.stdin)
        else:
            with open(file, encoding="utf-8-sig") as opened:
                data = json.load(opened)
    except OSError as error:
        problem = error.strerror or str(error)
    except ValueError as error:
        problem = f"not JSON in UTF-8: {error}"
    if not problem and not (isinstance(data, dict) and isinstance(data.get("entries"), dict)):
        problem = "not what `memd export` writes: there are no entries"
    if problem:
        shell.err(f"memd: {file}: {problem}")
        return None
    return dict(data)


def list_(shell: Shell, options: Namespace) -> int:
    """``memd profile list``."""
    with overseer(shell, options) as client:
        result = client.profile_list()
    if shell.json:
        shell.out_json(result.as_dict())
        return OK
    for profile in result.profiles:
        shell.out(f"{shell.paint(profile.name, 'bold')}  {profile.dir}")
        for target, store in profile.stores.items():
            shell.out(f"  {target:<6}  {usage_bar(shell, store.usage)}")
    return OK


def create(shell: Shell, options: Namespace) -> int:
    """``memd profile create``."""
    folder = os.path.abspath(options.dir) if options.dir else None
    with operator(shell, options, whole=True) as client:
        result = client.profile_create(options.name, folder)
    if shell.json:
        shell.out_json(result)
    else:
        shell.out(f"{shell.paint('ok', 'green')}  profile {options.name}  {result.get('dir', '')}".rstrip())
    return OK
