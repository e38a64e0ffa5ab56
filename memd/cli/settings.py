"""Verbs of settings: config show, config path.

What comes in: the shell. What goes out: every value in force and where it came from. What must not be here: a connection;
settings are read from the file itself, so that they can be looked at before the daemon runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memd.cli.exits import OK
from memd.config import config_file, effective, load
from memd.errors import SettingsError

if TYPE_CHECKING:
    from argparse import Namespace

    from memd.cli.shell import Shell


def path(shell: Shell, options: Namespace) -> int:
    """``memd config path``."""
    del options
    found = config_file(shell.env)
    if shell.json:
        shell.out_json({"path": found})
    else:
        shell.out(found)
    return OK


def show(shell: Shell, options: Namespace) -> int:
    """``memd config show``."""
    del options
    try:
        rows = effective(load(None, shell.env))
    except SettingsError as error:
        if shell.json:
            shell.out_json({"error": {"name": "settings", "message": str(error)}})
        else:
            shell.err(f"{shell.paint('memd:', 'red', shell.stderr)} {error}")
        return error.exit_status
    if shell.json:
        shell.out_json([{"key": row.key, "value": row.value, "source": row.source} for row in rows])
        return OK
    left = [f"{row.key} = {_toml(row.value)}" for row in rows]
    width = min(max(map(len, left)), shell.width() // 2)
    for text, row in zip(left, rows, strict=True):
        source = shell.paint(f"# {row.source}", "dim" if row.source == "default" else "cyan")
        shell.out(f"{text:<{width}}  {source}")
    return OK


def _toml(value: Any) -> str:
    """A value as the settings file would have it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        import json  # noqa: PLC0415 - a basic string of TOML is a string of JSON

        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(item) for item in value)}]"
    return str(value)
