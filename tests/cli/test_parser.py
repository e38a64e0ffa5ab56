"""memd.cli.parser: only what was typed is built, and nobody can tell."""

from __future__ import annotations

import pytest

from memd.cli.parser import VERBS, build_parser, help_width, verb_of

LINES = [
    ["add", "x", "-u", "--reason", "r"],
    ["--profile", "read", "replace", "e1", "y", "--json"],
    ["--timeout=3", "history", "user", "-n", "5"],
    ["profile", "create", "new", "--dir", "d"],
    ["config"],
    ["serve", "--config", "c", "--log-level", "debug"],
    ["undo", "7"],
    ["remove", "--id", "e1"],
]


@pytest.mark.parametrize("line", LINES)
def test_a_verb_alone_parses_as_in_the_whole_tree(line: list[str]) -> None:
    assert vars(build_parser().parse_args(line)) == vars(build_parser(line).parse_args(line))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ([], None),
        (["--json"], None),
        (["--help", "add"], None),
        (["add", "--help"], "add"),
        (["--profile", "add", "read"], "read"),
        (["--profile"], None),
        (["--profile=add", "read"], "read"),
        (["explode", "add"], None),
    ],
)
def test_the_verb_is_the_first_word_that_is_no_value(line: list[str], expected: str | None) -> None:
    assert expected == verb_of(line)


def test_options_of_the_verb_override_those_before_it() -> None:
    options = build_parser(["--timeout", "1", "read", "--timeout", "2"]).parse_args(
        ["--timeout", "1", "read", "--timeout", "2"]
    )
    assert (2.0, False, "auto") == (options.timeout, options.json, options.color)


def test_every_verb_names_a_function_that_exists() -> None:
    """They are imported only when typed, so that nothing else would notice."""
    for run, _, _ in VERBS.values():
        module, _, function = run.partition(":")
        namespace = __import__(f"memd.cli.{module}", fromlist=[function])
        assert callable(getattr(namespace, function))


def test_the_help_is_as_wide_as_the_terminal_within_reason() -> None:
    assert [78, 118, 38, 78] == [help_width(columns) for columns in ("", "120", "10", "wide")]
