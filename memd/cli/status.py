"""The verb ``status``.

What comes in: the shell and the options. What goes out: which files, how full, who wrote last, what is wrong. What must not
be here: figures that the daemon does not give.
"""

from __future__ import annotations

from memd.cli.exits import OK
from memd.cli.memory import usage_bar
from memd.cli.reach import overseer, reader
from memd.cli.text import age, one_line, plural, wrap
from memd_client.errors import MemdError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from memd.cli.shell import Shell
    from memd_client import types


LIVING = ("queued", "leased", "running", "waiting")
"""Where a review or a flush can be that has not ended."""


def status(shell: Shell, options: Namespace) -> int:
    """``memd status``."""
    with overseer(shell, options) as client:
        result = client.daemon_status()
    lasts = {profile.name: _lasts(shell, options, profile.name) for profile in result.profiles}
    if shell.json:
        shell.out_json(_with_lasts(result, lasts))
        return OK
    _show_daemon(shell, result)
    for profile in result.profiles:
        shell.out()
        shell.out(f"{shell.paint(f'profile {profile.name}', 'bold')}  {profile.dir}")
        for target, store in profile.stores.items():
            _show_store(shell, target, store, lasts[profile.name].get(target))
    _show_pending(shell, result.as_dict().get("pending") or {})
    for notice in result.notices:
        shell.out()
        first, *rest = wrap(notice.message, shell.width() - 6)
        shell.out(f"{shell.paint('note:', 'yellow')} {first}")
        for line in rest:
            shell.out(f"      {line}")
    return OK


def _show_pending(shell: Shell, pending: dict[str, Any]) -> None:
    count = pending.get("count")
    if count:
        old = age(0, pending.get("oldest_s", 0) * 1_000_000)
        since = "" if old == "now" else f", the oldest for {old}"
        waits = f"{plural(count, 'proposal')} for your approval{since}; `memd pending` shows what waits"
        shell.out()
        shell.out(f"{shell.paint('waiting:', 'yellow')} {waits}")


class Last:
    """What is known of a store beyond its usage: how many entries, and the newest revision."""

    def __init__(self, entries: int, revision: types.Revision | None) -> None:
        self.entries = entries
        self.revision = revision


def _lasts(shell: Shell, options: Namespace, profile: str) -> dict[str, Last]:
    """Entry counts and last revisions of a profile; a store that cannot be asked is left out, as its state says why."""
    found: dict[str, Last] = {}
    try:
        with reader(shell, options, start=False, profile=profile) as client:
            for target, store in client.memory_read().stores.items():
                newest = client.history_list(target="user" if target == "user" else "memory", limit=1).revisions
                found[target] = Last(len(store.entries), newest[0] if newest else None)
    except MemdError:
        return found
    return found


def _show_daemon(shell: Shell, result: types.Status) -> None:
    told: dict[str, Any] = result.as_dict()
    server = told.get("server", {})
    uptime = told.get("uptime_s")
    up = f"  up {age(0, uptime * 1_000_000)}" if isinstance(uptime, int) and uptime >= 60 else ""
    shell.out(f"{shell.paint('memd', 'bold')} {server.get('version', '')}  pid {server.get('pid', '?')}{up}")
    commits = result.commits
    groups = f"{plural(commits.groups, 'group')}, {plural(commits.fsyncs, 'fsync')}"
    shell.out(f"  {plural(commits.acknowledged, 'write')} in {groups}")
    count = {name: told[name] for name in ("connections", "sessions") if isinstance(told.get(name), int)}
    if count:
        shell.out("  " + ", ".join(plural(value, name[:-1]) for name, value in count.items()))
    jobs = {state: told.get("jobs", {}).get(state, 0) for state in LIVING}
    if any(jobs.values()):
        shell.out(
            f"  reviews and flushes: {', '.join(f'{number} {state}' for state, number in jobs.items() if number)}"
        )


def _show_store(shell: Shell, target: str, store: types.Store, last: Last | None) -> None:
    state = "" if store.state == "ok" else f"  {shell.paint(store.state, 'yellow')}"
    entries = f"  {plural(last.entries, 'entry')}" if last else ""
    shell.out(f"  {target:<6}  {usage_bar(shell, store.usage)}{entries}  revision {store.revision}{state}")
    shell.out(shell.paint(f"          {one_line(store.path)}", "dim"))
    detail = store.as_dict().get("detail")
    if detail:
        for line in wrap(str(detail), shell.width() - 10):
            shell.out(f"          {shell.paint(line, 'yellow')}")
    if last and last.revision:
        newest = last.revision
        client = f" through {one_line(newest.client)}" if newest.client else ""
        old = age(newest.us, shell.now_us())
        when = "just now" if old == "now" else f"{old} ago"
        shell.out(shell.paint(f"          last written {when} by {newest.origin}{client}", "dim"))


def _with_lasts(result: types.Status, lasts: dict[str, dict[str, Last]]) -> dict[str, Any]:
    """The daemon's answer, with ``entries`` and ``last`` added to each store."""
    told = dict(result.as_dict())
    told["profiles"] = [dict(profile) for profile in told["profiles"]]
    for profile in told["profiles"]:
        profile["stores"] = {
            target: {**store, **_plain(lasts[profile["name"]].get(target))}
            for target, store in profile["stores"].items()
        }
    return told


def _plain(last: Last | None) -> dict[str, Any]:
    if last is None:
        return {}
    return {"entries": last.entries, "last": last.revision.as_dict() if last.revision else None}
