"""memd.cli.changes: changes in lines that fit a terminal."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from cli.conftest import Terminal
from hypothesis import given, strategies as st

from memd.cli.changes import show_changes
from memd.cli.shell import Shell
from memd.cli.text import cells
from memd_client.types import Change

COLOUR = re.compile(r"\x1b\[\d*m")


def shown(
    before: str | None, after: str | None, *, columns: int = 80, person: bool = False, full: bool = False, **env: str
) -> list[str]:
    stdout = Terminal() if person else io.StringIO()
    shell = Shell(io.StringIO(), stdout, io.StringIO(), {"COLUMNS": str(columns), **env})
    wire: dict[str, Any] = {"action": "edit", "target": "memory", "id": "e1", "before": before, "after": after}
    show_changes(shell, [Change(wire)], full=full)
    return stdout.getvalue().splitlines()[1:]


def test_lines_are_broken_on_a_terminal_only() -> None:
    """A pipe gets them whole, for whatever reads it."""
    text = "one two three four five six"
    assert [f"    {{+{text}+}}"] == shown(None, text, columns=24)
    assert ["    {+one two three four", "    five six+}"] == shown(None, text, columns=24, person=True, NO_COLOR="1")


def test_colour_begins_anew_in_each_line() -> None:
    """So that a pager does not lose it, and no blank is coloured at the end of a line."""
    lines = shown("one two three four", "x", columns=20, person=True)
    assert ["    \x1b[31mone two three\x1b[0m", "    \x1b[31mfour\x1b[0m\x1b[32mx\x1b[0m"] == lines


def test_wide_characters_need_two_columns() -> None:
    """They are broken anywhere, as they have no blanks."""
    lines = shown(None, "服务器是旧的要换新的", columns=20, person=True, NO_COLOR="1")
    assert all(cells(line) <= 20 for line in lines)
    assert "{+服务器是旧的要换新的+}" == "".join(line.strip() for line in lines)


def test_a_blank_at_the_edge_is_left_out() -> None:
    """A line that is exactly full may be followed by one before it is broken by the text itself."""
    lines = shown("x" * 9, "y" * 7 + " \nz", columns=20, person=True)
    assert [f"    \x1b[31m{'x' * 9}\x1b[0m\x1b[32m{'y' * 7}\x1b[0m", "    \x1b[32mz\x1b[0m"] == lines


def test_of_long_texts_only_what_is_near_the_change_is_shown() -> None:
    """All of it if asked for."""
    words = [f"w{number}" for number in range(200)]
    before, after = " ".join(words), " ".join([*words[:100], "new", *words[101:]])
    (line,) = shown(before, after)
    assert line.startswith("    … w")
    assert line.endswith(" …")
    assert "w99 [-w100-] {+new+} w101" in line
    assert len(line) < 200
    (line,) = shown(before, after, full=True)
    assert "w0 w1" in line
    assert "w199" in line


def test_a_removed_text_is_shown_whole() -> None:
    """It is what is lost."""
    text = " ".join(f"w{number}" for number in range(200))
    assert [f"    [-{text}-]"] == shown(text, None)


def test_what_would_act_on_the_terminal_is_made_visible() -> None:
    """In the id as well."""
    assert ["    {+\\x1b[2J \\u202e+}"] == shown(None, "\x1b[2J \u202e")


@pytest.mark.parametrize("columns", [20, 33, 80])
@given(before=st.text("ab 一\n§e\u0301", max_size=60), after=st.text("ab 一\n§e\u0301", max_size=60))
def test_every_line_fits_and_nothing_is_left_out(columns: int, before: str, after: str) -> None:
    """Whatever the texts: without blanks and colour, the two can be read off the lines."""
    lines = shown(before, after, columns=columns, person=True, full=True)
    assert all(cells(COLOUR.sub("", line)) <= columns for line in lines)
    old = without("32", lines)
    new = without("31", lines)
    assert "".join(before.split()) == "".join(old.split())
    assert "".join(after.split()) == "".join(new.split())


def without(hidden: str, lines: list[str]) -> str:
    """What stands in the lines without what has the hidden colour."""
    return COLOUR.sub("", re.sub(rf"\x1b\[{hidden}m.*?\x1b\[0m", "", "\n".join(lines)))
