"""Running the command inside the test's process, with streams, environment and clock of the test."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from support.scripted_server import ScriptedServer
from support.short_path import short_path

from memd.cli.main import main
from memd.cli.shell import Shell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW_NS = 1_767_225_600_000_000_000 + 3 * 86400 * 1_000_000_000  # three days after the entries of the scripted server


tmp_path = pytest.fixture(short_path, name="tmp_path")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Done(NamedTuple):
    """What a run left behind."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Command:
    """The command, with a scratch home."""

    def __init__(self, home: Path) -> None:
        self.env = {
            "HOME": str(home),
            "XDG_RUNTIME_DIR": str(home / "run"),
            "MEMD_AUTOSTART": "0",
            "PATH": "/usr/bin:/bin",
            "COLUMNS": "80",
        }

    def __call__(self, *argv: str, stdin: str = "", person: bool = False, answers: str | None = None) -> Done:
        """Run it. ``person``: standard output and error are terminals; ``answers``: so is standard input."""
        streams = [Terminal() if person else io.StringIO() for _ in range(2)]
        given = io.StringIO(stdin) if answers is None else Terminal(answers)
        shell = Shell(given, streams[0], streams[1], self.env, lambda: NOW_NS)
        status = main(argv, shell)
        return Done(status, streams[0].getvalue(), streams[1].getvalue())


@pytest.fixture
def memd(tmp_path: Path) -> Command:
    return Command(tmp_path)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ScriptedServer]:
    """A scripted daemon at the agent socket of the command's environment."""
    with ScriptedServer(tmp_path / "run" / "memd" / "memd.sock") as running:
        yield running


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[ScriptedServer]:
    """The same at the operator socket."""
    with ScriptedServer(tmp_path / "run" / "memd-operator" / "memd.sock") as running:
        yield running
