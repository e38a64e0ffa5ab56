"""Verbs of profiles: export, profile list, profile create.

What comes in: the shell and the options. What goes out: an exit status. What must not be here: paths on the wire; data is
sent, so that the daemon never opens a file for a client.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from memd.cli.exits import OK, REFUSED
from memd.cli.memory import usage_bar
from memd.cli.reach import operator, overseer, reader

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
