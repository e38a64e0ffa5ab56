"""One session: its turns and its stored form."""

from __future__ import annotations

import pytest
from support.fake_profile import MemoryProfile

from memd.errors import InvalidRequest
from memd.sessions.frozen import Fence, freeze
from memd.sessions.session import REMEMBERED_TURNS, Session, TurnStatus

NOW = 1_000


def session() -> Session:
    return Session("s1", profile="default", key="host:1", fence=Fence("<a>", "</a>"), created_us=NOW)


def begin(item: Session, turn: str = "t1", *, user: bool = True, counted: bool = True) -> list[str]:
    return [record.status for record in item.begin_turn(turn, user=user, counted=counted, now_us=NOW)]


def end(item: Session, turn: str = "t1", status: TurnStatus = "completed") -> list[str]:
    return [record.status for record in item.end_turn(turn, status, now_us=NOW)]


def test_a_completed_turn_of_a_user_counts_once() -> None:
    """A repeated end, as after a lost reply, is no error and counts nothing."""
    item = session()
    assert ["open"] == begin(item)
    assert ["completed"] == end(item)
    assert [] == end(item)
    assert 1 == item.completed


@pytest.mark.parametrize(
    ("user", "counted", "status", "expected"),
    [
        (True, True, "completed", 1),
        (True, True, "interrupted", 0),
        (False, True, "completed", 0),
        (True, False, "completed", 0),
    ],
)
def test_what_counts(*, user: bool, counted: bool, status: TurnStatus, expected: int) -> None:
    """Only what a user began, under an access that writes, and that was completed."""
    item = session()
    begin(item, user=user, counted=counted)
    end(item, status=status)
    assert expected == item.completed


def test_another_turn_interrupts_the_open_one() -> None:
    """Its end may still be sent, and changes nothing."""
    item = session()
    begin(item, "t1")
    assert ["interrupted", "open"] == begin(item, "t2")
    assert [] == end(item, "t1")
    assert 0 == item.completed
    assert item.turn is not None
    assert "t2" == item.turn.id


def test_a_turn_that_is_open_stays_as_it_is_when_begun_again() -> None:
    """A client that repeats a begin after a reconnect keeps its failure budget."""
    item = session()
    begin(item)
    assert item.turn is not None
    item.turn.budget.refuse(b"", limit=3, now_us=NOW)
    assert [] == begin(item)
    assert 1 == item.turn.budget.count(NOW)


def test_a_new_turn_has_a_new_budget() -> None:
    """Whatever the one before left."""
    item = session()
    begin(item, "t1")
    assert item.turn is not None
    item.turn.budget.refuse(b"", limit=3, now_us=NOW)
    begin(item, "t2")
    assert item.turn is not None
    assert 0 == item.turn.budget.count(NOW)


def test_an_ended_turn_that_is_begun_again_counts_nothing_more() -> None:
    """A repeated turn id has had its chance."""
    item = session()
    for _ in range(3):
        begin(item)
        end(item)
    assert 1 == item.completed


def test_a_turn_that_was_never_begun_cannot_end() -> None:
    """It is the caller's mistake."""
    with pytest.raises(InvalidRequest, match="turn 't9' is not open in session s1"):
        end(session(), "t9")


def test_a_call_belongs_to_the_turn_it_names_or_to_the_open_one() -> None:
    """A turn that is not open is refused, and the open one is named."""
    item = session()
    assert item.turn_for(None) is None
    begin(item, "t1")
    assert item.turn == item.turn_for(None) == item.turn_for("t1")
    with pytest.raises(InvalidRequest, match="or name the open turn 't1'"):
        item.turn_for("t0")


def test_old_turn_ids_are_forgotten() -> None:
    """The memory for repeats is bounded."""
    item = session()
    for number in range(REMEMBERED_TURNS + 1):
        begin(item, f"t{number}")
        end(item, f"t{number}")
    with pytest.raises(InvalidRequest):
        end(item, "t0")
    assert [] == end(item, "t1")


def test_the_stored_form_gives_the_session_back() -> None:
    """With the open turn, the ended ones and the count; the budget starts again."""
    item, frozen = session(), freeze(MemoryProfile())
    item.parent, item.endpoint = "s0", "http://127.0.0.1:1"
    item.replace_snapshot(frozen)
    begin(item, "t1")
    end(item, "t1")
    begin(item, "t2")
    again = Session.from_record(item.record(), frozen)
    assert item.record() == again.record()
    assert ("s0", "http://127.0.0.1:1", 1) == (again.parent, again.endpoint, again.completed)
    assert again.turn is not None
    assert again.turn.user
    assert [] == end(again, "t1")
    assert ["completed"] == end(again, "t2")
    assert 2 == again.completed


def test_a_session_without_a_snapshot_is_stored_too() -> None:
    """One that a connection without access opened."""
    record = session().record(closed=True)
    assert ("", True) == (record.snapshot, record.closed)
    assert Session.from_record(record, None).frozen is None


def test_reprs_show_identity_and_state() -> None:
    """For logs."""
    item = session()
    assert "<Session s1 of default, 0 turns>" == repr(item)
    begin(item)
    assert "<Session s1 of default, 0 turns, in <Turn t1 user>>" == repr(item)


def test_a_redaction_reaches_the_ids_of_turns() -> None:
    """Ended ones and the open one; they are still known."""
    item = session()
    item.parent = "p hunter2"
    begin(item, "t hunter2")
    begin(item, "u hunter2")
    assert item.redact(lambda text: text.replace("hunter2", "*"))
    assert not item.redact(lambda text: text.replace("hunter2", "*"))
    assert ("p *", False) == (item.parent, item.redacted)
    assert [] == end(item, "t *")
    assert ["completed"] == end(item, "u *")
