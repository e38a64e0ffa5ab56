"""The command line: every verb with its options.

What comes in: arguments. What goes out: an argparse tree; each verb names the function that carries it out as
``module:function``, so that only the chosen verb's module is loaded. What must not be here: what a verb does.

Building the whole tree takes longer than most calls, so that only the verb that was typed is built, unless help is wanted.
"""

from __future__ import annotations

import argparse
import os

from memd.cli.exits import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Adder = Callable[[argparse.ArgumentParser], None]

STORES = ("memory", "user")
ORIGINS = ("user", "agent", "tool", "review", "flush", "import", "outside")
HISTORY_LIMIT = 20
MOST_LISTED = 1000
SHELLS = ("bash", "zsh", "fish")
TIMEOUT_S = 10.0
VALUED = ("--profile", "--socket", "--timeout", "--color")  # global options that take the next word
HELP_COLUMNS = 100  # longer lines are hard to read


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Knows its width. argparse makes a formatter for every option, and would load shutil and ask the terminal each time."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=min(help_width(os.environ.get("COLUMNS", "")), HELP_COLUMNS))


def help_width(columns: str) -> int:
    """Two columns less than the terminal has, as argparse does it."""
    return max(int(columns), 40) - 2 if columns.isdecimal() else 78


def build_parser(argv: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """The tree for a command line; the whole of it for None, or where no verb can be made out."""
    parser = argparse.ArgumentParser(
        prog="memd",
        description="One writer for the curated memory files of every agent session on a host.",
        epilog=f"exit status:\n{table()}",
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    _globals(parser, first=True)
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs")
    typed = None if argv is None else verb_of(argv)
    for name in VERBS if typed is None else (typed,):
        _add_verb(verbs, name, *VERBS[name])
    return parser


def verb_of(argv: Sequence[str]) -> str | None:
    """The verb of a command line; None if there is none, or something before it that needs the whole tree."""
    words = iter(argv)
    for word in words:
        if word in VALUED:
            next(words, None)
        elif not word.startswith("-"):
            return word if word in VERBS else None
        elif word in ("-h", "--help"):
            return None
    return None


def _add_verb(verbs: Any, name: str, run: str, text: str, add_options: Adder | None) -> None:
    parser = verbs.add_parser(
        name, help=text, description=text[0].upper() + text[1:] + ".", formatter_class=Formatter, allow_abbrev=False
    )
    _globals(parser, first=False)
    parser.set_defaults(run=run)
    if add_options is not None:
        add_options(parser)


def _globals(parser: argparse.ArgumentParser, *, first: bool) -> None:
    """The options that every verb has too; there without a default, or it would undo what stood before the verb."""

    def add(name: str, default: Any = None, **kwargs: Any) -> None:
        parser.add_argument(name, default=default if first else argparse.SUPPRESS, **kwargs)

    add("--profile", metavar="NAME", help="which profile, where several are configured")
    add("--socket", metavar="PATH", help="talk to this socket")
    add("--json", action="store_true", default=False, help="answer in JSON, errors too")
    add("--timeout", type=_seconds, metavar="S", default=TIMEOUT_S, help="seconds to wait for an answer (10)")
    add("--color", choices=("auto", "always", "never"), default="auto", help="colour the answer (auto)")


def _add(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("text", metavar="TEXT", help="the entry; - reads it from standard input")
    _target(verb)
    _change(verb)


def _replace(verb: argparse.ArgumentParser) -> None:
    _entry(verb)
    verb.add_argument("text", metavar="TEXT", help="the new entry; - reads it from standard input")
    _target(verb)
    _change(verb)


def _edit(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("old", metavar="OLD", help="the part, exactly as it is there")
    verb.add_argument("new", metavar="NEW", help='what to put there; "" deletes it')
    verb.add_argument("--id", metavar="ID", help="in this entry only")
    verb.add_argument("--if-hash", metavar="HASH", help="only if the entry still has this hash")
    _target(verb)
    _change(verb)


def _remove(verb: argparse.ArgumentParser) -> None:
    _entry(verb)
    _target(verb)
    _change(verb)


def _read(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("target", nargs="?", choices=STORES, help="only this store")


def _explain(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("text", metavar="TEXT", help="the text, or a part of it")


def _wipe(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("target", choices=STORES, help="which store")
    verb.add_argument("--confirm", metavar="PROFILE", help="the profile's name, instead of being asked for it")
    _change(verb)


def _pending(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--walk", action="store_true", help="go through them, a key for each: approve, reject, edit, skip"
    )
    _full(verb)


def _approve(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("ids", metavar="ID", nargs="*", help="of a proposal, or of an entry that is kept out of prompts")
    verb.add_argument("--all", action="store_true", help="everything that `memd pending` lists as a proposal")
    verb.add_argument("--content", metavar="TEXT", help="this text instead; - reads it from standard input")
    verb.add_argument("--reason", metavar="WHY", help="recorded with the change")


def _reject(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("ids", metavar="ID", nargs="*", help="of a proposal")
    verb.add_argument("--reason", metavar="WHY", help="recorded with it, and told by `memd explain`")


def _jobs(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("job", nargs="?", metavar="ID", help="only this one, and everything about it")
    verb.add_argument("-n", "--limit", type=_count, default=HISTORY_LIMIT, metavar="N", help="how many (20)")
    verb.add_argument("--session", metavar="ID", help="only of this session")
    verb.add_argument("--run", dest="now", action="store_true", help="now: this job, or a review of what none has seen")
    verb.add_argument("--wait", type=_seconds, metavar="SECONDS", help="until it has ended, at most so long")
    verb.add_argument("--cancel", action="store_true", help="it is not wanted any more")


def _history(verb: argparse.ArgumentParser) -> None:
    _read(verb)
    verb.add_argument("-n", "--limit", type=_count, default=HISTORY_LIMIT, metavar="N", help="how many (20)")
    verb.set_defaults(usual_limit=HISTORY_LIMIT)
    verb.add_argument("--before", type=int, metavar="REV", help="only older than this revision")
    verb.add_argument("--session", metavar="ID", help="only of this session")
    verb.add_argument("--job", metavar="ID", help="only of this job")
    verb.add_argument("--entry", metavar="ID", help="only of this entry")
    verb.add_argument("--origin", choices=ORIGINS, help="only of this origin")


def _show(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("revision", type=int, metavar="REV", help="its number, as in `memd history`")
    verb.add_argument("--entries", action="store_true", help="also the entries as they were after it")
    _full(verb)


def _diff(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("from_", type=int, metavar="FROM", help="the older revision")
    verb.add_argument("to", type=int, nargs="?", metavar="TO", help="the newer one; now, if left out")
    _full(verb)
    _target(verb)


def _undo(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("revision", type=int, nargs="?", metavar="REV", help="this revision")
    verb.add_argument("--last", type=int, metavar="N", help="the last N")
    verb.add_argument("--session", metavar="ID", help="all of this session")
    verb.add_argument("--job", metavar="ID", help="all of this job")
    verb.add_argument("--reason", metavar="WHY", help="recorded with the change")
    _preview(verb)


def _restore(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("revision", type=int, metavar="REV", help="its number")
    _preview(verb)
    _target(verb)
    _change(verb)


def _redact(verb: argparse.ArgumentParser) -> None:
    text = "the text; - reads it from standard input, which keeps it out of the shell's history"
    verb.add_argument("text", nargs="?", metavar="TEXT", help=text)
    verb.add_argument("--revision", type=int, metavar="REV", help="instead: what this revision holds")
    verb.add_argument("--yes", action="store_true", help="do not ask")
    verb.add_argument("--reason", metavar="WHY", help="recorded with the change")


def _full(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--full", action="store_true", help="also all the words of long entries that stay")


def _preview(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--preview", action="store_true", help="only say what would be done")


def _export(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("-o", "--output", metavar="FILE", help="into this file, which must not exist yet")


def _import(verb: argparse.ArgumentParser) -> None:
    exported = "what `memd export` wrote, or Markdown (not *.json); - reads an export from standard input"
    verb.add_argument("file", nargs="?", metavar="FILE", help=exported)
    foreign = "instead of a file: make entries of Markdown that is in memory already (both stores)"
    verb.add_argument("--foreign", nargs="?", const="all", choices=("all", *STORES), metavar="STORE", help=foreign)
    verb.add_argument("-t", "--target", choices=STORES, help="the store that Markdown of a file goes to (memory)")
    verb.add_argument("--yes", action="store_true", help="do not ask")
    _preview(verb)


def _profile(verb: argparse.ArgumentParser) -> None:
    parts = verb.add_subparsers(dest="part", metavar="list|create")
    _add_verb(parts, "list", "profiles:list_", "list the profiles", None)
    _add_verb(parts, "create", "profiles:create", "create a profile", _create)


def _create(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("name", metavar="NAME", help="its name")
    verb.add_argument("--dir", metavar="DIR", help="where its files are")


def _config(verb: argparse.ArgumentParser) -> None:
    parts = verb.add_subparsers(dest="part", metavar="show|path")
    _add_verb(parts, "show", "settings:show", "show every setting and where it came from", None)
    _add_verb(parts, "path", "settings:path", "print the path of the settings file", None)


def _watch(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("topics", nargs="*", metavar="TOPIC", help="only these, for example memory.changed")
    verb.add_argument("--since", type=int, metavar="SEQ", help="begin after this event")


def _snapshot(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--key", metavar="KEY", help="of the session with this key, frozen when it was first opened")
    verb.add_argument("--refresh", action="store_true", help="freeze it anew first")


def _socket(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--start", action="store_true", help="start memd if nobody answers")


def _serve(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--operator-socket", metavar="PATH", help="where to listen for operators")
    verb.add_argument("--config", metavar="FILE", help="the settings file")
    verb.add_argument("--log-format", choices=("auto", "console", "json", "journal"), default="auto", help="(auto)")
    levels = ("debug", "info", "warning", "error")
    verb.add_argument("--log-level", choices=levels, default="info", help="the least that is logged (info)")


def _completion(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("shell", choices=SHELLS, help="which shell")


def _target(verb: argparse.ArgumentParser) -> None:
    group = verb.add_mutually_exclusive_group()
    group.add_argument("-t", "--target", choices=STORES, help="which store (memory, or the one that has the entry)")
    group.add_argument("-u", "--user", dest="target", action="store_const", const="user", help="the store `user`")


def _entry(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("entry", metavar="ENTRY", help="its id, or a part of its text")
    group = verb.add_mutually_exclusive_group()
    group.add_argument("--id", dest="how", action="store_const", const="id", help="ENTRY is an id")
    group.add_argument("--text", dest="how", action="store_const", const="text", help="ENTRY is a text")
    verb.add_argument("--if-hash", metavar="HASH", help="only if the entry still has this hash")


def _change(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--reason", metavar="WHY", help="recorded with the change")
    verb.add_argument("--if-revision", type=int, metavar="REV", help="only if the store is still at this revision")
    origins = ("user", "agent", "tool")
    verb.add_argument("--origin", choices=origins, help="who wants it (user on a terminal, else agent)")


def _count(text: str) -> int:
    value = int(text)
    if not 1 <= value <= MOST_LISTED:
        raise argparse.ArgumentTypeError(f"a number from 1 to {MOST_LISTED}")  # noqa: EM102 - argparse prints it
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError("a number of seconds above 0")  # noqa: EM101 - argparse prints it
    return value


VERBS: dict[str, tuple[str, str, Adder | None]] = {
    "add": ("memory:add", "add an entry", _add),
    "replace": ("memory:replace", "replace a whole entry", _replace),
    "edit": ("memory:edit", "replace a part of an entry", _edit),
    "remove": ("memory:remove", "remove an entry", _remove),
    "read": ("memory:read", "show the entries as they are now", _read),
    "explain": ("memory:explain", "tell what became of a text: stored, refused, removed, and when", _explain),
    "wipe": ("memory:wipe", "remove all entries of a store (can be undone)", _wipe),
    "pending": ("approval:pending", "show what waits for your approval, and what is kept out of prompts", _pending),
    "approve": ("approval:approve", "apply what waits, or let an entry into prompts", _approve),
    "reject": ("approval:reject", "settle what waits without applying it", _reject),
    "jobs": ("jobs:jobs", "show reviews and flushes, what they cost and what came of them", _jobs),
    "history": ("history:history", "list what changed, newest first", _history),
    "show": ("history:show", "show one revision: who, when, why, and the words that changed", _show),
    "diff": ("history:diff", "show the words that changed between two revisions", _diff),
    "undo": ("history:undo", "undo a change, a session or a job (the last change)", _undo),
    "redo": ("history:redo", "undo an undo", _undo),
    "restore": ("history:restore", "make a store what it was at a revision", _restore),
    "redact": ("history:redact", "take a text out of memory and all of history, for good", _redact),
    "export": ("profiles:export", "print a profile with its history as JSON", _export),
    "import": ("importing:import_", "put exported entries or Markdown into a profile", _import),
    "profile": ("profiles:list_", "list profiles, or create one", _profile),
    "config": ("settings:show", "show the settings in force, or where they are read from", _config),
    "status": ("status:status", "show the stores, their usage, their files, and the daemon", None),
    "watch": ("watch:watch", "show what happens, as it happens", _watch),
    "snapshot": ("session:snapshot", "print the block that a session puts into its prompt", _snapshot),
    "socket": ("daemon:socket", "print the path of the socket (69: nobody answers there)", _socket),
    "serve": ("daemon:serve", "run the daemon in the foreground", _serve),
    "reload": ("daemon:reload", "have the settings read again", None),
    "stop": ("daemon:stop", "stop the daemon", None),
    "metrics": ("daemon:metrics", "print the metrics as OpenMetrics text", None),
    "completion": ("completion:completion", "print the completion script for a shell", _completion),
}
