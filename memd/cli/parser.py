"""The command line: every verb with its options.

What comes in: nothing. What goes out: an argparse tree; each verb names the function that carries it out as
``module:function``, so that only the chosen verb's module is loaded. What must not be here: what a verb does.
"""

from __future__ import annotations

import argparse

from memd.cli.exits import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Verbs(Protocol):
        """What ``add_subparsers`` returns."""

        def add_parser(self, name: str, **kwargs: Any) -> argparse.ArgumentParser:
            """Add a verb."""


STORES = ("memory", "user")
SHELLS = ("bash", "zsh", "fish")
TIMEOUT_S = 10.0


def build_parser() -> argparse.ArgumentParser:
    """The whole tree."""
    parser = argparse.ArgumentParser(
        prog="memd",
        description="One writer for the curated memory files of every agent session on a host.",
        epilog=f"exit status:\n{table()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _globals(parser, first=True)
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs")
    _memory(verbs)
    _history(verbs)
    _profiles(verbs)
    _daemon(verbs)
    return parser


def _globals(parser: argparse.ArgumentParser, *, first: bool) -> None:
    """The options that every verb has too; there without a default, or it would undo what stood before the verb."""

    def add(*names: str, default: Any = None, **kwargs: Any) -> None:
        parser.add_argument(*names, default=default if first else argparse.SUPPRESS, **kwargs)

    add("--profile", metavar="NAME", help="which profile, where several are configured")
    add("--socket", metavar="PATH", help="talk to this socket")
    add("--json", action="store_true", default=False, help="answer in JSON, errors too")
    add("--timeout", type=_seconds, metavar="S", default=TIMEOUT_S, help="seconds to wait for an answer (10)")
    add("--color", choices=("auto", "always", "never"), default="auto", help="colour the answer (auto)")


def _verb(verbs: Verbs, name: str, run: str, text: str) -> argparse.ArgumentParser:
    """A verb that ``module:function`` of this package carries out."""
    parser = verbs.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".", allow_abbrev=False)
    _globals(parser, first=False)
    parser.set_defaults(run=run)
    return parser


def _memory(verbs: Verbs) -> None:
    verb = _verb(verbs, "add", "memory:add", "add an entry")
    verb.add_argument("text", metavar="TEXT", help="the entry; - reads it from standard input")
    _target(verb)
    _change(verb)
    verb = _verb(verbs, "replace", "memory:replace", "replace a whole entry")
    _entry(verb)
    verb.add_argument("text", metavar="TEXT", help="the new entry; - reads it from standard input")
    _target(verb)
    _change(verb)
    verb = _verb(verbs, "edit", "memory:edit", "replace a part of an entry")
    verb.add_argument("old", metavar="OLD", help="the part, exactly as it is there")
    verb.add_argument("new", metavar="NEW", help='what to put there; "" deletes it')
    verb.add_argument("--id", metavar="ID", help="in this entry only")
    verb.add_argument("--if-hash", metavar="HASH", help="only if the entry still has this hash")
    _target(verb)
    _change(verb)
    verb = _verb(verbs, "remove", "memory:remove", "remove an entry")
    _entry(verb)
    _target(verb)
    _change(verb)
    verb = _verb(verbs, "read", "memory:read", "show the entries as they are now")
    verb.add_argument("target", nargs="?", choices=STORES, help="only this store")
    verb = _verb(verbs, "explain", "memory:explain", "tell what became of a text: stored, refused, removed, and when")
    verb.add_argument("text", metavar="TEXT", help="the text, or a part of it")
    verb = _verb(verbs, "wipe", "memory:wipe", "remove all entries of a store (can be undone)")
    verb.add_argument("target", choices=STORES, help="which store")
    verb.add_argument("--confirm", metavar="PROFILE", help="the profile's name, instead of being asked for it")
    _change(verb)


def _history(verbs: Verbs) -> None:
    verb = _verb(verbs, "history", "history:history", "list what changed, newest first")
    verb.add_argument("target", nargs="?", choices=STORES, help="only this store")
    verb.add_argument("-n", "--limit", type=int, default=20, metavar="N", help="how many (20)")
    verb.add_argument("--before", type=int, metavar="REV", help="only older than this revision")
    verb.add_argument("--session", metavar="ID", help="only of this session")
    verb.add_argument("--job", metavar="ID", help="only of this job")
    verb.add_argument("--entry", metavar="ID", help="only of this entry")
    verb = _verb(verbs, "show", "history:show", "show one revision: who, when, why, and the words that changed")
    verb.add_argument("revision", type=int, metavar="REV", help="its number, as in `memd history`")
    verb.add_argument("--entries", action="store_true", help="also the entries as they were after it")
    verb = _verb(verbs, "diff", "history:diff", "show the words that changed between two revisions")
    verb.add_argument("from_", type=int, metavar="FROM", help="the older revision")
    verb.add_argument("to", type=int, nargs="?", metavar="TO", help="the newer one; now, if left out")
    _target(verb)
    for name, text in (("undo", "undo a change, a session or a job (the last change)"), ("redo", "undo an undo")):
        verb = _verb(verbs, name, f"history:{name}", text)
        verb.add_argument("revision", type=int, nargs="?", metavar="REV", help="this revision")
        verb.add_argument("--last", type=int, metavar="N", help="the last N")
        verb.add_argument("--session", metavar="ID", help="all of this session")
        verb.add_argument("--job", metavar="ID", help="all of this job")
        verb.add_argument("--reason", metavar="WHY", help="recorded with the change")
    verb = _verb(verbs, "restore", "history:restore", "make a store what it was at a revision")
    verb.add_argument("revision", type=int, metavar="REV", help="its number")
    _target(verb)
    _change(verb)


def _profiles(verbs: Verbs) -> None:
    verb = _verb(verbs, "export", "profiles:export", "print a profile with its history as JSON")
    verb.add_argument("-o", "--output", metavar="FILE", help="into this file, which must not exist yet")
    verb = _verb(verbs, "import", "profiles:import_", "put exported entries into a profile")
    verb.add_argument("file", metavar="FILE", help="what `memd export` wrote; - reads standard input")
    verb = _verb(verbs, "profile", "profiles:list_", "list profiles, or create one")
    parts = verb.add_subparsers(dest="part", metavar="list|create")
    _verb(parts, "list", "profiles:list_", "list the profiles")
    verb = _verb(parts, "create", "profiles:create", "create a profile")
    verb.add_argument("name", metavar="NAME", help="its name")
    verb.add_argument("--dir", metavar="DIR", help="where its files are")
    verb = _verb(verbs, "config", "settings:show", "show the settings in force, or where they are read from")
    parts = verb.add_subparsers(dest="part", metavar="show|path")
    _verb(parts, "show", "settings:show", "show every setting and where it came from")
    _verb(parts, "path", "settings:path", "print the path of the settings file")


def _daemon(verbs: Verbs) -> None:
    _verb(verbs, "status", "status:status", "show the stores, their usage, their files, and the daemon")
    verb = _verb(verbs, "watch", "watch:watch", "show what happens, as it happens")
    verb.add_argument("topics", nargs="*", metavar="TOPIC", help="only these, for example memory.changed")
    verb.add_argument("--since", type=int, metavar="SEQ", help="begin after this event")
    verb = _verb(verbs, "snapshot", "session:snapshot", "print the block that a session puts into its prompt")
    verb.add_argument("--key", metavar="KEY", help="of the session with this key, frozen when it was first opened")
    verb.add_argument("--refresh", action="store_true", help="freeze it anew first")
    verb = _verb(verbs, "socket", "daemon:socket", "print the path of the socket (69: nobody answers there)")
    verb.add_argument("--start", action="store_true", help="start memd if nobody answers")
    verb = _verb(verbs, "serve", "daemon:serve", "run the daemon in the foreground")
    verb.add_argument("--operator-socket", metavar="PATH", help="where to listen for operators")
    verb.add_argument("--config", metavar="FILE", help="the settings file")
    verb.add_argument("--log-format", choices=("auto", "console", "json", "journal"), default="auto", help="(auto)")
    levels = ("debug", "info", "warning", "error")
    verb.add_argument("--log-level", choices=levels, default="info", help="the least that is logged (info)")
    _verb(verbs, "reload", "daemon:reload", "have the settings read again")
    _verb(verbs, "stop", "daemon:stop", "stop the daemon")
    _verb(verbs, "metrics", "daemon:metrics", "print the metrics as OpenMetrics text")
    verb = _verb(verbs, "completion", "completion:completion", "print the completion script for a shell")
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
    verb.add_argument(
        "--origin", choices=("user", "agent", "tool"), help="who wants it (user on a terminal, else agent)"
    )


def _seconds(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError("a number of seconds above 0")  # noqa: EM101 - argparse prints it
    return value
