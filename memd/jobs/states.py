"""The states of a job, as a table, and its moves from one to another.

What comes in: a job as it is, what happens to it, times and tokens as arguments. What goes out: the job as it is then; the old one is
left as it was. What must not be here: which jobs there are, when something happens to them, the journal.

The rules. A job is ``queued`` until somebody takes it. Who takes it has a lease with an end, and renews it for as long as he is at
work: ``leased`` before anything was asked of a reviewer, ``running`` from then on. Work that leads nowhere for now makes it ``waiting``
until a time; work that is given up for somebody else's sake (a turn that begins, a daemon that stops) makes it ``queued`` at once, and
so does a lease that ends without a word: the holder crashed. ``done`` is the end, by an outcome, and nothing happens to it any more: a
job ends once. Whatever is not in the table is a bug of whoever tried it, and raises.

``decided`` is no state: the reviewer has ended and what it wants is written down, so that after a crash only the commit is left. The
commit has the job's id as its request id, so that it happens once however often it is tried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memd.store.work import DeskRecord, JobRecord

State = Literal["queued", "leased", "running", "waiting", "done"]
Move = Literal["lease", "begin", "renew", "release", "retry", "hold", "wake", "expire", "finish", "cancel"]
Outcome = Literal["ok", "nothing", "partial", "failed", "cancelled"]
Holder = Literal["daemon", "client"]

STATES: Final[tuple[State, ...]] = ("queued", "leased", "running", "waiting", "done")
MOVES: Final[dict[Move, str]] = {
    "lease": "somebody takes it",
    "begin": "its reviewer begins",
    "renew": "its holder is still at work",
    "release": "its holder gives it up for another's sake",
    "retry": "it led nowhere for now",
    "hold": "nobody can do it before a time",
    "wake": "that time has come",
    "expire": "its lease ended without a word",
    "finish": "it has come to an outcome",
    "cancel": "a person wants it no more",
}

TABLE: Final[Mapping[State, Mapping[Move, State]]] = {
    "queued": {"lease": "leased", "hold": "waiting", "cancel": "done"},
    "leased": {
        "begin": "running", "renew": "leased", "release": "queued", "retry": "waiting", "expire": "queued",
        "finish": "done", "cancel": "done",
    },
    "running": {
        "renew": "running", "release": "queued", "retry": "waiting", "expire": "queued", "finish": "done",
        "cancel": "done",
    },
    "waiting": {"hold": "waiting", "wake": "queued", "cancel": "done"},
    "done": {},
}  # fmt: skip


def after(state: str, move: Move) -> State:
    """The state that a move leads to.

    Raises:
        ValueError: The table has no such move from there.
    """
    found: Mapping[Move, State] = TABLE.get(state, {})  # type: ignore[call-overload]  # a state from the journal is any text
    if move not in found:
        msg = f"a job that is {state!r} cannot {move}"
        raise ValueError(msg)
    return found[move]


def may(job: JobRecord, move: Move) -> bool:
    """True if the table has this move for the job as it is."""
    return move in TABLE.get(job.state, {})  # type: ignore[call-overload]  # as above


def lease(job: JobRecord, *, token: str, holder: Holder, until_us: int) -> JobRecord:
    """Taken by a holder, until a time."""
    reason = job.reason if job.decided else None  # why what is decided is only a part
    return _moved(job, "lease", lease=token, holder=holder, lease_us=until_us, attempts=job.attempts + 1, reason=reason)


def begin(job: JobRecord, *, now_us: int) -> JobRecord:
    """Its reviewer begins; the time of the first beginning stays."""
    return _moved(job, "begin", started_us=job.started_us or now_us)


def renew(job: JobRecord, *, until_us: int) -> JobRecord:
    """Its holder is at work until a later time."""
    return _moved(job, "renew", lease_us=until_us)


def decide(job: JobRecord, operations: list[DeskRecord], *, ended: str, summary: str, reason: str | None) -> JobRecord:
    """What its reviewer wants is known, and how the reviewer ended (``ok`` or ``partial``); the state stays.

    Raises:
        ValueError: It is not running.
    """
    if job.state != "running":
        msg = f"a job that is {job.state!r} has no reviewer that could decide"
        raise ValueError(msg)
    return replace(job, decided=True, operations=operations, ended=ended, summary=summary, reason=reason)


def release(job: JobRecord, *, reason: str | None) -> JobRecord:
    """Given up as if it had never been taken; it counts as no attempt."""
    return _unleased(job, "release", attempts=job.attempts - 1, reason=reason)


def retry(job: JobRecord, *, until_us: int, reason: str, counts: bool) -> JobRecord:
    """Wait for another attempt. ``counts``: it failed by something that another attempt may well not change."""
    return _unleased(job, "retry", until_us=until_us, reason=reason, tries=job.tries + int(counts))


def hold(job: JobRecord, *, until_us: int, reason: str) -> JobRecord:
    """Wait until somebody can do it."""
    return _moved(job, "hold", until_us=until_us, reason=reason)


def wake(job: JobRecord) -> JobRecord:
    """The wait is over."""
    return _moved(job, "wake", until_us=0)


def expire(job: JobRecord) -> JobRecord:
    """Its lease ended without a word; what was decided stays decided."""
    return _unleased(job, "expire", tries=job.tries + 1, reason="its lease ended: whoever worked on it went away")


def finish(job: JobRecord, outcome: Outcome, *, now_us: int, reason: str | None = None) -> JobRecord:
    """It has come to an outcome."""
    return _unleased(job, "finish", outcome=outcome, done_us=now_us, reason=reason, operations=[])


def cancel(job: JobRecord, *, now_us: int, reason: str) -> JobRecord:
    """A person wants it no more."""
    return _unleased(job, "cancel", outcome="cancelled", done_us=now_us, reason=reason, operations=[])


def table_text() -> str:
    """The table as the documents have it."""
    lines = ["| what happens | " + " | ".join(f"`{state}`" for state in STATES) + " |"]
    lines.append("|---" * (len(STATES) + 1) + "|")
    for move, meaning in MOVES.items():
        cells = [TABLE[state].get(move, "") for state in STATES]
        lines.append(f"| `{move}`: {meaning} | " + " | ".join(f"→ `{cell}`" if cell else "–" for cell in cells) + " |")
    return "\n".join(lines)


def _moved(job: JobRecord, move: Move, **fields: object) -> JobRecord:
    return replace(job, state=after(job.state, move), **fields)


def _unleased(job: JobRecord, move: Move, **fields: object) -> JobRecord:
    return _moved(job, move, lease="", holder="", lease_us=0, **fields)
