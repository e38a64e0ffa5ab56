"""The state machine of a job: every move from every state, in the code and in the document."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from memd.jobs import states
from memd.jobs.states import MOVES, STATES, TABLE, Move, after, may, table_text
from memd.store.work import DeskRecord, JobRecord

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = Path(__file__).parents[2] / "memd" / "ARCHITECTURE.md"


def job(**fields: object) -> JobRecord:
    return replace(JobRecord(id="j-1", profile="p", kind="review", session="s", key="review:s:1-4", us=1), **fields)


def leased(state: str = "leased", **fields: object) -> JobRecord:
    return job(state=state, lease="token", holder="daemon", lease_us=9, attempts=1, **fields)


APPLY: dict[Move, Callable[[JobRecord], JobRecord]] = {
    "lease": lambda it: states.lease(it, token="t", holder="daemon", until_us=5),
    "begin": lambda it: states.begin(it, now_us=5),
    "renew": lambda it: states.renew(it, until_us=5),
    "release": lambda it: states.release(it, reason="r"),
    "retry": lambda it: states.retry(it, until_us=5, reason="r", counts=True),
    "hold": lambda it: states.hold(it, until_us=5, reason="r"),
    "wake": states.wake,
    "expire": states.expire,
    "finish": lambda it: states.finish(it, "ok", now_us=5),
    "cancel": lambda it: states.cancel(it, now_us=5, reason="r"),
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("move", MOVES)
def test_each_move_from_each_state(state: str, move: Move) -> None:
    """Leads where the table says, or raises; the job that was moved is as it was."""
    before = job(state=state)
    kept = replace(before)
    wanted = TABLE[state].get(move)  # type: ignore[index]  # one of STATES
    assert (wanted is not None) == may(before, move)
    if wanted is None:
        with pytest.raises(ValueError, match=f"{state}.*cannot {move}"):
            APPLY[move](before)
    else:
        assert wanted == APPLY[move](before).state
    assert kept == before


def test_an_end_is_an_end() -> None:
    """Nothing leads out of ``done``, every other state leads there, and only a lease leads to work."""
    assert {} == TABLE["done"]
    assert all("cancel" in TABLE[state] for state in STATES if state != "done")
    assert ["queued"] == [state for state in STATES if "lease" in TABLE[state]]


def test_a_state_that_is_none() -> None:
    """A damaged row is told, not run."""
    with pytest.raises(ValueError, match="'odd' cannot lease"):
        after("odd", "lease")
    assert not may(job(state="odd"), "lease")


def test_a_lease_is_gone_with_the_work() -> None:
    """Whoever has it no more cannot renew or submit by it."""
    moves: list[Move] = ["release", "retry", "expire", "finish", "cancel"]
    for move in moves:
        moved = APPLY[move](leased("running"))
        assert ("", "", 0) == (moved.lease, moved.holder, moved.lease_us), move


def test_what_counts_as_a_try() -> None:
    """A failure that says so, and a crash; not a wait for others, and not what was given up for another's sake."""
    running = leased("running")
    assert 1 == states.retry(running, until_us=5, reason="r", counts=True).tries
    assert 0 == states.retry(running, until_us=5, reason="r", counts=False).tries
    assert 1 == states.expire(running).tries
    released = states.release(running, reason="r")
    assert (0, 0) == (released.tries, released.attempts)


def test_the_first_beginning_is_kept() -> None:
    """A job that runs again began when it first did."""
    assert 5 == states.begin(leased(), now_us=5).started_us
    assert 3 == states.begin(leased(started_us=3), now_us=5).started_us


def test_what_is_decided_outlives_a_crash_and_ends_with_the_job() -> None:
    """Then only the commit is left; the texts are not kept longer than they are needed."""
    operations = [DeskRecord("memory", "add", "likes tea")]
    decided = states.decide(leased("running"), operations, ended="ok", summary="s", reason=None)
    assert (True, operations, "running") == (decided.decided, decided.operations, decided.state)
    crashed = states.expire(decided)
    assert (True, operations, "queued") == (crashed.decided, crashed.operations, crashed.state)
    assert [] == states.finish(decided, "ok", now_us=5).operations
    with pytest.raises(ValueError, match="no reviewer"):
        states.decide(leased(), operations, ended="ok", summary="", reason=None)


def test_the_document_has_the_same_table() -> None:
    """It is generated: copy what ``table_text()`` gives."""
    assert table_text() in PAGE.read_text()
