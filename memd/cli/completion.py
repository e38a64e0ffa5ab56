"""The verb ``completion``: scripts for bash, zsh and fish, made from the command line's own tree.

What comes in: the argparse tree. What goes out: a script. What must not be here: a list of verbs; what the parser knows is
what is completed.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

from memd.cli.exits import OK
from memd.cli.parser import build_parser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memd.cli.shell import Shell

FILES = ("FILE", "DIR", "PATH")  # what the help calls a value that is a path


class Option(NamedTuple):
    """One option: its names, its help, the values it may have (None: it has none), and whether they are paths."""

    names: tuple[str, ...]
    help: str
    values: tuple[str, ...] | None
    path: bool


class Command(NamedTuple):
    """The words so far, what may follow, and whether a path may."""

    words: tuple[str, ...]
    help: str
    options: tuple[Option, ...]
    choices: tuple[tuple[str, str], ...]
    path: bool


def completion(shell: Shell, options: argparse.Namespace) -> int:
    """``memd completion``."""
    commands = list(commands_of(build_parser(), (), ""))
    script = {"bash": bash, "zsh": zsh, "fish": fish}[options.shell](commands)
    if shell.json:
        shell.out_json({"script": script})
    else:
        shell.stdout.write(script)
    return OK


def commands_of(parser: argparse.ArgumentParser, words: tuple[str, ...], text: str) -> Iterator[Command]:
    """The command at ``words`` and all below it."""
    options, choices, below, path = [], [], [], False
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to ask what there is
        if action.option_strings:
            options.append(_option(action))
        elif isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}  # noqa: SLF001 - as above
            choices += [(name, helps.get(name, "")) for name in action.choices]
            below += [(sub, (*words, name), helps.get(name, "")) for name, sub in action.choices.items()]
        else:
            choices += [(str(choice), "") for choice in action.choices or ()]
            path = path or action.metavar in FILES
    yield Command(words, text, tuple(options), tuple(choices), path)
    for sub, name, sub_text in below:
        yield from commands_of(sub, name, sub_text)


def _option(action: argparse.Action) -> Option:
    values = None if action.nargs == 0 else tuple(str(choice) for choice in action.choices or ())
    return Option(tuple(action.option_strings), action.help or "", values, action.metavar in FILES)


def bash(commands: list[Command]) -> str:
    """A function that looks the words up in two tables: what may follow a command, and what an option's value may be."""
    follow, values = [], []
    for command in commands:
        key = " ".join(command.words)
        words = [name for option in command.options for name in option.names] + [name for name, _ in command.choices]
        follow.append(f"    {_quoted(key)}) words={_quoted(' '.join(words))}; files={int(command.path)} ;;")
        for option in command.options:
            if option.values is not None:
                names = "|".join(_quoted(f"{key}:{name}") for name in option.names)
                values.append(f"    {names}) words={_quoted(' '.join(option.values))}; files={int(option.path)} ;;")
    verbs = "|".join(_quoted(" ".join(command.words)) for command in commands if command.words)
    return BASH.format(verbs=verbs, follow="\n".join(follow), values="\n".join(values))


def zsh(commands: list[Command]) -> str:
    """The bash script under zsh's own emulation of bash completion."""
    return f"#compdef memd\nautoload -U +X bashcompinit && bashcompinit\n{bash(commands)}"


def fish(commands: list[Command]) -> str:
    """One ``complete`` line for each word; a global option stands once, without a condition."""
    lines = ["complete -c memd -f"]
    everywhere = commands[0].options
    for command in commands:
        when = _fish_condition(command, commands)
        for name, text in command.choices:
            lines.append(f"complete -c memd {when} -a {_quoted(name)} -d {_quoted(text)}")
        if command.path:
            lines.append(f"complete -c memd {when} -F")
        new = [option for option in command.options if not command.words or option not in everywhere]
        lines += [_fish_option(option, when if command.words else "") for option in new]
    return "\n".join(" ".join(line.split("  ")) for line in lines) + "\n"


def _fish_condition(command: Command, commands: list[Command]) -> str:
    if not command.words:
        return "-n __fish_use_subcommand"
    seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in command.words)
    below = [other.words[-1] for other in commands if other.words[:-1] == command.words]
    if below:
        seen += f"; and not __fish_seen_subcommand_from {' '.join(below)}"
    return f"-n {_quoted(seen)}"


def _fish_option(option: Option, when: str) -> str:
    names = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names]
    value = []
    if option.values is not None:
        value = ["-r", "-F"] if option.path else ["-x"]
        if option.values:
            value.append(f"-a {_quoted(' '.join(option.values))}")
    return " ".join(part for part in ("complete -c memd", when, *names, *value, f"-d {_quoted(option.help)}") if part)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


BASH = r"""# memd completion for bash: eval "$(memd completion bash)"
_memd() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" verb="" word words="" files=0 i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="${{verb:+$verb }}${{COMP_WORDS[i]}}"
    case "$word" in
      {verbs}) verb="$word" ;;
    esac
  done
  case "$verb:$previous" in
{values}
    *) case "$verb" in
{follow}
    esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [[ $files = 1 && ( -z $words || $current != -* ) ]]; then
    compopt -o filenames 2>/dev/null
    COMPREPLY+=($(compgen -f -- "$current"))
  fi
}}
complete -F _memd memd
"""
