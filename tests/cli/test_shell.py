"""memd.cli.shell: colour, width and attendance."""

from __future__ import annotations

import io
from argparse import Namespace

import pytest

from memd.cli.shell import Shell


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "UTF-8"

    def isatty(self) -> bool:
        return True


def shell_of(env: dict[str, str] | None = None, *, out: io.StringIO | None = None, color: str = "auto") -> Shell:
    shell = Shell(io.StringIO(), out or Terminal(), Terminal(), env or {})
    shell.configure(Namespace(json=False, color=color))
    return shell


@pytest.mark.parametrize(
    ("env", "terminal", "color", "expected"),
    [
        ({}, True, "auto", True),
        ({}, False, "auto", False),
        ({"NO_COLOR": "1"}, True, "auto", False),
        ({"NO_COLOR": ""}, True, "auto", True),
        ({"TERM": "dumb"}, True, "auto", False),
        ({"NO_COLOR": "1"}, False, "always", True),
        ({}, True, "never", False),
    ],
)
def test_colour_is_for_terminals_that_want_it(env: dict[str, str], terminal: bool, color: str, expected: bool) -> None:
    shell = shell_of(env, out=Terminal() if terminal else io.StringIO(), color=color)
    assert ("\x1b[31mx\x1b[0m" if expected else "x") == shell.paint("x", "red")


def test_each_stream_is_judged_by_itself() -> None:
    shell = shell_of(out=io.StringIO())
    assert "x" == shell.paint("x", "red")
    assert "x" != shell.paint("x", "red", shell.stderr)


@pytest.mark.parametrize(("columns", "expected"), [("120", 120), ("5", 20), ("", 80), ("wide", 80), ("0", 80)])
def test_the_width_comes_from_the_environment_or_is_80(columns: str, expected: int) -> None:
    assert expected == shell_of({"COLUMNS": columns}).width()


def test_a_person_is_there_if_both_outputs_are_terminals() -> None:
    """An agent captures at least one of them, and often leaves it the terminal's input."""
    assert shell_of().attended()
    assert not shell_of(out=io.StringIO()).attended()


def test_bars_are_drawn_with_what_can_be_encoded() -> None:
    assert "█░" == shell_of().marks()
    assert "#-" == shell_of(out=io.StringIO()).marks()


def test_the_processes_own_streams_never_fail_on_a_character() -> None:
    """Under a C locale an entry is shown escaped, not as a traceback."""
    shell = Shell.of_process()
    assert shell.now_us() > 0
    assert shell.env
