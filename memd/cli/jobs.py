"""The verb ``jobs``: reviews and flushes as a person looks at them.

What comes in: the shell and the options. What goes out: a line for each, or one with everything about it; jobs that run, wait to be
over, or are not wanted any more. What must not be here: what a job does.
"""

from __future__ import annotations

from memd.cli.exits import OK, USAGE
from memd.cli.reach import reader
from memd.cli.text import age, cut, one_line, plural, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from memd.cli.shell import Shell
    from memd_client.client import Client
    from memd_client.jobs import Job, RefusedOp

COLOURS = {"ok": "green", "nothing": "dim", "partial": "yellow", "failed": "red", "cancelled": "dim"}


def jobs(shell: Shell, options: Namespace) -> int:
    """``memd jobs``: the newest; with an id, one of them. ``--run``, ``--wait`` and ``--cancel`` do something first."""
    asked = [name for name in ("now", "wait", "cancel") if getattr(options, name)]
    if len(asked) > 1 or (not options.job and asked and asked != ["now"]):
        shell.err("memd: name the job, with one of --run, --wait and --cancel; --run goes without one, too")
        return USAGE
    with reader(shell, options) as client:
        if options.job or asked:
            job = _one(client, options)
            if shell.json:
                shell.out_json(job.as_dict())
            else:
                show(shell, job)
            return OK
        listed = client.jobs_list(options.session, limit=options.limit)
    if shell.json:
        shell.out_json(listed.as_dict())
        return OK
    for job in listed.jobs:
        shell.out(line_of(shell, job))
    if not listed.jobs:
        shell.out("no reviews and no flushes yet")
    return OK


def _one(client: Client, options: Namespace) -> Job:
    if options.now:
        return client.jobs_run(options.job, session=None if options.job else options.session)
    if options.wait:
        return client.jobs_wait(options.job, timeout_ms=int(options.wait * 1000))
    if options.cancel:
        return client.jobs_cancel(options.job)
    return client.jobs_show(options.job)


def line_of(shell: Shell, job: Job) -> str:
    """A job in one line: id, when, what, how it stands, what came of it."""
    state = job.outcome or job.state
    old = age(job.us, shell.now_us())
    head = f"{job.id}  {old:>7}  {job.kind:<6}  "
    rest = "  ".join(filter(None, (_result(job), job.reason and one_line(job.reason))))
    shown = cut(rest, max(shell.width() - len(head) - 11, 10))
    return f"{head}{shell.paint(f'{state:<9}', COLOURS.get(state, 'cyan'))}  {shown}".rstrip()


def show(shell: Shell, job: Job) -> None:
    """Everything about one job."""
    state = job.outcome or job.state
    shell.out(
        f"{shell.paint(job.id, 'bold')}  {job.kind} of {plural(job.turns, 'turn')}  {shell.paint(state, COLOURS.get(state, 'cyan'))}"
    )
    rows = {
        "session": job.session + (f", epoch {one_line(job.epoch)}" if job.epoch else ""),
        "accepted": f"{age(job.us, shell.now_us())} ago",
        "reviewer": job.reviewer + (f", model {one_line(job.model)}" if job.model else ""),
        "attempts": f"{job.attempts}, {plural(job.steps, 'step')}, {job.failures.count} of {job.failures.limit} failures",
        "tokens": f"{job.tokens.input} in ({job.tokens.cached} cached), {job.tokens.output} out",
        "result": _result(job),
        "because": one_line(job.reason or ""),
    }
    for name, value in rows.items():
        if value.strip():
            _wrapped(shell, f"{name:<9}", value)
    for title, refused in (("refused", job.refused), ("changed meanwhile", job.conflicts)):
        for one in refused:
            _wrapped(shell, f"{title}:", _operation(one))
    for line in job.summary.splitlines():
        _wrapped(shell, "found:", one_line(line))


def _result(job: Job) -> str:
    """What came of it, in figures that `memd show` and `memd pending` know."""
    parts = [
        job.committed and f"revision {', '.join(map(str, job.committed))}",
        job.staged and f"waits for you: {', '.join(job.staged)}",
        job.refused and f"{len(job.refused)} refused",
        job.conflicts and plural(len(job.conflicts), "conflict"),
    ]
    return "; ".join(part for part in parts if part)


def _operation(one: RefusedOp) -> str:
    text = one.op.content or one.op.new_text or one.op.old_text or one.op.id or ""
    return f"{one.op.action} {one_line(text)} ({one.name})"


def _wrapped(shell: Shell, name: str, value: str) -> None:
    room = max(shell.width() - len(name) - 4, 10)
    first, *rest = wrap(value, room)
    shell.out(f"  {shell.paint(name, 'dim')}  {first}")
    for line in rest:
        shell.out(f"  {' ' * len(name)}  {line}")
