"""memd.cli.completion: scripts that the shells themselves run."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from memd.cli.completion import commands_of
from memd.cli.parser import VERBS, build_parser

if TYPE_CHECKING:
    from pathlib import Path

    from cli.conftest import Command

BASH = """
{script}
COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_memd
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
# What is typed, and the whole of what is offered for the last word.
CASES = [
    (["memd", "rea"], ["read"]),
    (["memd", "re"], ["read", "redact", "redo", "reject", "reload", "remove", "replace", "restore"]),
    (
        ["memd", "read", ""],
        ["--color", "--help", "--json", "--profile", "--socket", "--timeout", "-h", "memory", "user"],
    ),
    (["memd", "read", "m"], ["memory"]),
    (["memd", "add", "--ta"], ["--target"]),
    (["memd", "add", "-t", ""], ["memory", "user"]),
    (["memd", "add", "x", "--origin", "a"], ["agent"]),
    (["memd", "profile", "c"], ["create"]),
    (["memd", "profile", "create", "--d"], ["--dir"]),
    (["memd", "--color", "al"], ["always"]),
    (["memd", "serve", "--log-level", "w"], ["warning"]),
    (["memd", "completion", "z"], ["zsh"]),
    (["memd", "add", "--reason", ""], []),
]


def offered_by_bash(script: str, words: list[str], folder: Path) -> list[str]:
    quoted = " ".join(f"'{word}'" for word in words)
    done = subprocess.run(
        ["bash", "--norc", "-c", BASH.format(script=script, words=quoted)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "" == done.stderr
    return sorted(done.stdout.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(("words", "expected"), CASES)
def test_bash_offers_what_the_parser_knows(
    memd: Command, tmp_path: Path, words: list[str], expected: list[str]
) -> None:
    assert expected == offered_by_bash(memd("completion", "bash").out, words, tmp_path)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_offers_files_where_a_file_is_meant(memd: Command, tmp_path: Path) -> None:
    (tmp_path / "saved.json").touch()
    script = memd("completion", "bash").out
    assert ["saved.json"] == offered_by_bash(script, ["memd", "import", "sav"], tmp_path)
    assert ["saved.json"] == offered_by_bash(script, ["memd", "export", "-o", "sav"], tmp_path)
    assert [] == offered_by_bash(script, ["memd", "add", "sav"], tmp_path)


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish here")
@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("memd rea", ["read"]),
        ("memd read m", ["memory"]),
        ("memd add --targ", ["--target"]),
        ("memd add -t ", ["memory", "user"]),
        ("memd profile c", ["create"]),
        ("memd profile create --di", ["--dir"]),
    ],
)
def test_fish_offers_what_the_parser_knows(memd: Command, tmp_path: Path, typed: str, expected: list[str]) -> None:
    program = f"{memd('completion', 'fish').out}\ncomplete -C '{typed}'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", program],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "" == done.stderr
    assert expected == [line.split("\t")[0] for line in done.stdout.splitlines()]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh here")
def test_zsh_takes_the_script(memd: Command, tmp_path: Path) -> None:
    """Completing needs a terminal; that it loads and knows the words does not."""
    script = memd("completion", "zsh").out
    (tmp_path / "script").write_text(script)
    program = f"autoload -U compinit; compinit -D; source {tmp_path}/script; print $_comps[memd]"
    done = subprocess.run(["zsh", "-f", "-c", program], capture_output=True, text=True, check=True)
    assert ("", True) == (done.stderr, "_memd" in done.stdout)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_verb_is_in_every_script(memd: Command, shell: str) -> None:
    script = memd("completion", shell).out
    assert [] == [verb for verb in VERBS if f"'{verb}'" not in script]
    assert {"script": script} == memd("completion", shell, "--json").json


def test_commands_are_read_off_the_parser() -> None:
    commands = {command.words: command for command in commands_of(build_parser(), (), "")}
    assert ("create", "create a profile") in commands["profile",].choices
    assert ["--dir"] == [
        name
        for option in commands["profile", "create"].options
        for name in option.names
        if option.path and name != "--socket"
    ]
    assert commands["import",].path
    assert not commands["add",].path
