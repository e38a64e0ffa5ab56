"""Verbs of memory: add, replace, edit, remove, read, explain, wipe.

What comes in: the shell and the options. What goes out: an exit status. What must not be here: what memory accepts.
"""

from __future__ import annotations

from memd.cli.exits import OK, REFUSED
from memd.cli.reach import operator, reader, writer
from memd.cli.text import age, bar, cells, one_line, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from memd.cli.shell import Shell
    from memd_client import types
    from memd_client.client import Client
    from memd_client.types import Target

TITLES = {"memory": "MEMORY (the agent's notes)", "user": "USER (who the user is)"}


def add(shell: Shell, options: Namespace) -> int:
    """``memd add``."""
    text = _text(shell, options.text)
    with writer(shell, options) as client:
        return done(shell, client.memory_add(options.target or "memory", text, **_change(options)))


def replace(shell: Shell, options: Namespace) -> int:
    """``memd replace``."""
    text = _text(shell, options.text)
    with writer(shell, options) as client:
        target, place = _place(client, options)
        return done(shell, client.memory_replace(target, text, if_hash=options.if_hash, **place, **_change(options)))


def edit(shell: Shell, options: Namespace) -> int:
    """``memd edit``."""
    with writer(shell, options) as client:
        target = options.target or (_store_of(client, options.id) if options.id else None) or "memory"
        place = {"id": options.id, "if_hash": options.if_hash}
        return done(shell, client.memory_edit(target, options.old, options.new, **place, **_change(options)))


def remove(shell: Shell, options: Namespace) -> int:
    """``memd remove``."""
    with writer(shell, options) as client:
        target, place = _place(client, options)
        return done(shell, client.memory_remove(target, if_hash=options.if_hash, **place, **_change(options)))


def read(shell: Shell, options: Namespace) -> int:
    """``memd read``."""
    with reader(shell, options) as client:
        result = client.memory_read(options.target)
        withheld = {} if shell.json else withheld_rules(client)
    if shell.json:
        shell.out_json(result.as_dict())
        return OK
    for number, (target, store) in enumerate(result.stores.items()):
        if number:
            shell.out()
        show_store(shell, target, store, withheld)
    return OK


def withheld_rules(client: Client) -> dict[str, str]:
    """The rules that keep entries out of prompts, by entry id, as the daemon told when we connected."""
    rows = [notice.data.get("entries") or () for notice in client.hello.notices if notice.name == "withheld"]
    return {str(row.get("id")): str(row.get("rule")) for entries in rows for row in entries}


def show_store(shell: Shell, target: str, store: types.Store, withheld: dict[str, str]) -> None:
    """One store: its head, then its entries with id, age and origin."""
    title = shell.paint(TITLES.get(target, target), "bold")
    shell.out(f"{title}  {usage_bar(shell, store.usage)}  revision {store.revision}")
    shell.out(shell.paint(f"  {store.path}{'' if store.state == 'ok' else f'  ({store.state})'}", "dim"))
    if store.state not in ("ok", "read_only") and store.as_dict().get("detail"):
        shell.out(shell.paint(f"  {one_line(str(store.as_dict()['detail']))}", "yellow"))
    show_entries(shell, store.entries, withheld)


def show_entries(shell: Shell, entries: list[types.Entry], withheld: dict[str, str]) -> None:
    """Entries in columns, their texts wrapped beside the rest, with what the scan says and whether prompts get them."""
    if not entries:
        shell.out(shell.paint("  no entries", "dim"))
        return
    now = shell.now_us()
    ages = [age(entry.updated_us, now) for entry in entries]
    widths = (max(len(e.id) for e in entries), max(map(len, ages)), max(len(e.origin) for e in entries))
    for entry, old in zip(entries, ages, strict=True):
        head = f"  {entry.id:<{widths[0]}}  {old:>{widths[1]}}  {entry.origin:<{widths[2]}}  "
        first, *rest = wrap(entry.text, shell.width() - cells(head))
        shell.out(shell.paint(head, "dim") + first + ("  (not UTF-8)" if entry.undecodable else ""))
        for line in rest:
            shell.out(" " * cells(head) + line)
        for text, colour in _remarks(entry, withheld.get(entry.id)):
            for line in wrap(text, shell.width() - cells(head)):
                shell.out(" " * cells(head) + shell.paint(line, colour))


def _remarks(entry: types.Entry, rule: str | None) -> list[tuple[str, str]]:
    """What is to be said of an entry, and in which colour."""
    found = {finding.rule: f"{finding.reason} (rule {finding.rule})" for finding in entry.findings}
    remarks = []
    if rule is not None:
        reason = found.pop(rule, f"another program wrote it (rule {rule})")
        remarks.append((f"kept out of prompts: {reason}", "red"))
    return [*remarks, *((f"scan: {text}", "yellow") for text in found.values())]


def usage_bar(shell: Shell, usage: types.Usage) -> str:
    """How full a store is, as a bar and in numbers; yellow when nearly full, red when over."""
    colour = "red" if usage.chars > usage.limit else "yellow" if usage.near_limit else "green"
    picture = shell.paint(bar(usage.percent, marks=shell.marks()), colour)
    return f"{picture} {usage.percent}%  {usage.chars:,}/{usage.limit:,} characters"


def explain(shell: Shell, options: Namespace) -> int:
    """``memd explain``."""
    with reader(shell, options) as client:
        result = client.memory_explain(options.text)
    if shell.json:
        shell.out_json(result.as_dict())
        return OK
    for match in result.matches:
        where = " ".join(
            part for part in (match.target, match.id, match.revision and f"revision {match.revision}") if part
        )
        rule = f" by rule {match.rule}" if match.rule else ""
        shell.out(f"{shell.paint(match.state, 'bold')}{rule}  {where}  {match.at}")
        for line in wrap(one_line(match.reason), shell.width() - 2):
            shell.out(f"  {line}")
    if not result.matches:
        shell.out("memd has never seen a text like that: it was neither stored nor refused")
    return OK


def wipe(shell: Shell, options: Namespace) -> int:
    """``memd wipe``: asks for the profile's name where a person can answer."""
    with operator(shell, options) as client:
        name = options.confirm
        if name is None and shell.stdin.isatty():
            shell.stderr.write(
                f"This removes all entries of `{options.target}`. To go on, type {client.hello.profile}: "
            )
            shell.stderr.flush()
            name = shell.stdin.readline().strip()
        if name != client.hello.profile:
            shell.err("memd: nothing was removed; confirm with the profile's name: --confirm NAME")
            return REFUSED
        return done(shell, client.memory_wipe(options.target, name, **_change(options)))


def _text(shell: Shell, argument: str) -> str:
    return shell.stdin.read() if argument == "-" else argument


def _change(options: Namespace) -> Any:
    return {"reason": options.reason, "if_revision": options.if_revision, "origin": options.origin}


def _place(client: Client, options: Namespace) -> tuple[Target, Any]:
    """Which entry is meant: ENTRY is an id if there is an entry with that id, else a text."""
    if options.how != "text":
        store = _store_of(client, options.entry)
        if store is not None or options.how == "id":
            return options.target or store or "memory", {"id": options.entry}
    return options.target or "memory", {"old_text": options.entry}


def _store_of(client: Client, entry_id: str) -> Target | None:
    stores = client.memory_read().stores
    names: tuple[Target, Target] = ("memory", "user")
    return next((name for name in names if any(e.id == entry_id for e in stores[name].entries)), None)


def done(shell: Shell, result: types.Mutation) -> int:
    """What a change did. One that waits for a person is told as such."""
    if shell.json:
        shell.out_json(result.as_dict())
        return OK
    unchanged = "staged" if result.staged else "unchanged"
    mark = shell.paint("ok", "green") if result.changed else shell.paint(unchanged, "yellow")
    shown = f"  {result.entry.id}" if result.entry else ""
    shell.out(f"{mark}{shown}  {result.message}")
    shell.out(f"{result.target}: {usage_bar(shell, result.usage)}  revision {result.revision}")
    for notice in result.notices:
        shell.err(f"{shell.paint('note:', 'yellow', shell.stderr)} {notice.message}")
    return OK
