"""All sessions: opened by id or key, kept over restarts, closed, expired, told when they go stale."""

from __future__ import annotations

import hashlib

import msgspec
import pytest
from support.fake_daemon import CountingToken, FakeClock, MemoryJournal
from support.fake_profile import MemoryProfile, mutation

from memd.errors import InvalidParams, IoFailure, NoSuchSession
from memd.profile.values import Operation
from memd.sessions import OpenRequest, Session, SessionRegistry

DAY_S = 86_400


class Kept:
    """A registry with everything around it."""

    def __init__(self, *, maximum: int = 10_000) -> None:
        self.clock = FakeClock()
        self.journal = MemoryJournal()
        self.profile = MemoryProfile()
        self.token = CountingToken()
        self.registry = self.restarted(maximum=maximum)

    def restarted(self, *, maximum: int = 10_000) -> SessionRegistry:
        registry = SessionRegistry(self.journal, clock=self.clock, token=self.token, maximum=maximum)
        registry.load(self.journal.kept(), self.journal.snapshots)
        return registry

    def open(self, *, may_read: bool = True, **request: str) -> Session:
        return self.registry.open(self.profile, OpenRequest(**request), may_read=may_read).session

    def add(self, text: str) -> None:
        self.profile.submit(mutation(Operation("add", content=text)))


@pytest.fixture
def kept() -> Kept:
    return Kept()


def test_every_session_has_an_id_and_a_fence_of_its_own(kept: Kept) -> None:
    """128 random bits; the fence is not the id."""
    one, other = kept.open(), kept.open()
    assert 32 == len(one.id)
    assert one.id != other.id
    assert one.fence.open != other.fence.open
    assert one.id not in one.fence.open


def test_it_is_durable_before_anyone_is_told(kept: Kept) -> None:
    """One group commit for the session with its snapshot."""
    kept.journal.hold = True
    session = kept.open()
    ticket = session.saved
    assert ticket is not None
    seen: list[bool] = []
    ticket.on_done(lambda done: seen.append(done.done))
    assert [] == seen
    kept.journal.commit()
    assert [True] == seen
    assert session.frozen is not None
    assert [session.frozen.record_id] == list(kept.journal.snapshots)


def test_a_key_finds_the_session_again(kept: Kept) -> None:
    """With the snapshot it had, whatever was written since."""
    kept.add("a")
    session = kept.open(key="claude:1")
    kept.add("b")
    again = kept.registry.open(kept.profile, OpenRequest(key="claude:1"), may_read=True)
    assert again.resumed
    assert session is again.session
    assert again.session.frozen is not None
    assert "b" not in again.session.frozen.text.splitlines()


def test_a_key_belongs_to_its_profile(kept: Kept) -> None:
    """Two profiles may have the same key; an id is unknown in the other."""
    session = kept.open(key="k")
    other = MemoryProfile("work")
    assert session is not kept.registry.open(other, OpenRequest(key="k"), may_read=True).session
    with pytest.raises(NoSuchSession):
        kept.registry.get("work", session.id)


def test_id_and_key_must_belong_together(kept: Kept) -> None:
    """Else one of them is a mistake."""
    session = kept.open(key="k")
    assert session is kept.open(session=session.id, key="k")
    with pytest.raises(InvalidParams, match="key: 'other' is not the key"):
        kept.open(session=session.id, key="other")
    with pytest.raises(NoSuchSession):
        kept.open(session="nope", key="k")


@pytest.mark.parametrize("field", ["key", "parent"])
@pytest.mark.parametrize("value", ["", "x" * 201, "ü" * 101])
def test_names_have_bounds_in_bytes(kept: Kept, field: str, value: str) -> None:
    """Not in characters."""
    with pytest.raises(InvalidParams, match=f"{field}: 1 to 200 bytes expected"):
        kept.registry.open(kept.profile, OpenRequest(**{field: value}), may_read=True)
    kept.registry.open(kept.profile, OpenRequest(**{field: "ü" * 100}), may_read=True)


def test_the_same_bytes_over_a_restart(kept: Kept) -> None:
    """Snapshot, fence, key, turns."""
    kept.add("a")
    session = kept.open(key="k", parent="p", endpoint="http://127.0.0.1:8080/v1")
    kept.registry.begin_turn(session, "t1", user=True, counted=True)
    kept.registry.save_turns(session, kept.registry.end_turn(session, "t1", "completed"))
    kept.add("b")
    kept.registry = kept.restarted()
    again = kept.open(key="k")
    assert session is not again
    assert (session.id, session.frozen, session.fence) == (again.id, again.frozen, again.fence)
    assert (1, "p", session.endpoint) == (again.completed, again.parent, again.endpoint)
    assert "+ memory: b" in kept.registry.changes(again, kept.profile)


def test_equal_snapshots_are_one_object_and_one_record(kept: Kept) -> None:
    """Thousands of sessions may be frozen from the same stores."""
    kept.add("a")
    one, other = kept.open(), kept.open()
    assert one.frozen is other.frozen
    assert 1 == len(kept.journal.snapshots)


def test_without_access_nothing_is_frozen_until_a_reader_comes(kept: Kept) -> None:
    """The first connection that may read freezes it."""
    kept.add("a")
    assert kept.open(may_read=False, key="k").frozen is None
    session = kept.open(key="k")
    assert session.frozen is not None
    assert "a" in session.frozen.text
    assert "" == kept.registry.changes(kept.open(may_read=False), kept.profile)


def test_a_session_that_never_became_durable_is_forgotten(kept: Kept) -> None:
    """Its key is free again, and the next open is a new session."""
    kept.journal.hold = True
    session = kept.open(key="k")
    kept.journal.fail(IoFailure("disk"))
    assert session.saved is not None
    assert isinstance(session.saved.error, IoFailure)
    with pytest.raises(NoSuchSession):
        kept.registry.get("default", session.id)
    kept.journal.hold = False
    assert session.id != kept.open(key="k").id


def test_closing_frees_the_key_and_ends_the_id(kept: Kept) -> None:
    """For good: also after a restart."""
    session = kept.open(key="k")
    assert kept.registry.close(session).done
    with pytest.raises(NoSuchSession):
        kept.registry.get("default", session.id)
    assert session.id != kept.open(key="k").id
    with pytest.raises(NoSuchSession):
        kept.restarted().get("default", session.id)


def test_a_close_that_cannot_be_stored_did_not_happen(kept: Kept) -> None:
    """The caller gets the error and may try again."""
    session = kept.open(key="k")
    kept.journal.error = IoFailure("disk")
    assert isinstance(kept.registry.close(session).error, IoFailure)
    assert session is kept.registry.get("default", session.id)


def test_a_new_endpoint_is_stored(kept: Kept) -> None:
    """The model server of a session may move; the same one again costs nothing."""
    session = kept.open(key="k", endpoint="http://127.0.0.1:1")
    commits = kept.journal.commits
    assert session is kept.open(key="k", endpoint="http://127.0.0.1:1")
    assert commits == kept.journal.commits
    assert "http://127.0.0.1:2" == kept.open(key="k", endpoint="http://127.0.0.1:2").endpoint
    assert commits + 1 == kept.journal.commits


def test_refresh_freezes_anew_and_says_nothing_changed_after(kept: Kept) -> None:
    """The only way for a session to see other bytes."""
    session = kept.open()
    kept.add("a")
    assert "" != kept.registry.changes(session, kept.profile)
    assert kept.registry.refresh(session, kept.profile).done
    assert session.frozen is not None
    assert "a" in session.frozen.text
    assert "" == kept.registry.changes(session, kept.profile)


def test_refreshing_what_is_fresh_costs_no_commit(kept: Kept) -> None:
    """The same snapshot id: the prompt stays."""
    session = kept.open()
    before, commits = session.frozen, kept.journal.commits
    assert kept.registry.refresh(session, kept.profile).done
    assert before == session.frozen
    assert commits == kept.journal.commits


def test_a_refresh_that_cannot_be_stored_leaves_the_old_snapshot(kept: Kept) -> None:
    """Else a restart would bring back other bytes than the prompt has."""
    session = kept.open()
    before = session.frozen
    kept.add("a")
    kept.journal.error = IoFailure("disk")
    assert kept.registry.refresh(session, kept.profile).error is not None
    assert before is session.frozen


def test_idle_sessions_expire(kept: Kept) -> None:
    """After thirty days without use, each use counting."""
    used, idle = kept.open(), kept.open()
    kept.clock.advance(29 * DAY_S)
    kept.registry.get("default", used.id)
    kept.clock.advance(2 * DAY_S)
    assert used is kept.registry.get("default", used.id)
    with pytest.raises(NoSuchSession):
        kept.registry.get("default", idle.id)
    assert kept.journal.sessions[idle.id].closed


def test_use_is_stored_now_and_then(kept: Kept) -> None:
    """So that a restart does not expire what is in use, and not on every call."""
    session = kept.open()
    commits = kept.journal.commits
    kept.registry.get("default", session.id)
    assert commits == kept.journal.commits
    kept.clock.advance(2 * 3600)
    kept.registry.get("default", session.id)
    assert commits + 1 == kept.journal.commits
    assert kept.clock.now_us == kept.journal.sessions[session.id].seen_us


def test_beyond_the_maximum_the_longest_unused_go() -> None:
    """Not the oldest."""
    kept = Kept(maximum=2)
    first, second = kept.open(), kept.open()
    kept.clock.advance(2)
    kept.registry.get("default", first.id)
    kept.open()
    kept.registry.get("default", first.id)
    with pytest.raises(NoSuchSession):
        kept.registry.get("default", second.id)


def test_a_turn_is_stored_when_it_begins_and_ends(kept: Kept) -> None:
    """The record follows the turn."""
    session = kept.open()
    kept.registry.begin_turn(session, "t1", user=True, counted=True)
    kept.registry.begin_turn(session, "t2", user=True, counted=True)
    kept.registry.save_turns(session, kept.registry.end_turn(session, "t2", "completed"))
    expected = [("t1", "open"), ("t1", "interrupted"), ("t2", "open"), ("t2", "completed")]
    assert expected == [(record.turn, record.status) for record in kept.journal.turns]
    commits = kept.journal.commits
    assert kept.registry.save_turns(session, kept.registry.end_turn(session, "t2", "completed")).done
    assert commits == kept.journal.commits
    with pytest.raises(InvalidParams, match="turn: 1 to 200 bytes"):
        kept.registry.begin_turn(session, "", user=True, counted=True)


def test_after_a_failed_save_the_next_call_saves_again(kept: Kept) -> None:
    """Nobody is told of a turn that is not stored."""
    session = kept.open()
    kept.journal.error = IoFailure("disk")
    assert kept.registry.begin_turn(session, "t1", user=True, counted=True).error is not None
    kept.journal.error = None
    assert kept.registry.begin_turn(session, "t1", user=True, counted=True).error is None
    assert Session.from_record(kept.journal.sessions[session.id], None).turn is not None


def test_a_watched_session_is_newly_stale_once_for_each_snapshot(kept: Kept) -> None:
    """And again after a refresh; one that nobody uses is never told."""
    session = kept.open()
    kept.open()
    kept.registry.watch(session)
    assert [] == kept.registry.newly_stale(kept.profile)
    kept.add("a")
    assert [session] == kept.registry.newly_stale(kept.profile)
    kept.add("b")
    assert [] == kept.registry.newly_stale(kept.profile)
    kept.registry.refresh(session, kept.profile)
    kept.add("c")
    assert [session] == kept.registry.newly_stale(kept.profile)
    kept.registry.refresh(session, kept.profile)
    kept.registry.unwatch(session)
    kept.add("d")
    assert [] == kept.registry.newly_stale(kept.profile)


def test_statistics_and_repr(kept: Kept) -> None:
    """How many there are."""
    kept.registry.begin_turn(kept.open(), "t", user=True, counted=True)
    kept.open()
    statistics = kept.registry.statistics()
    assert (2, 1) == (statistics.sessions, statistics.open_turns)
    assert "<SessionRegistry 2 sessions>" == repr(kept.registry)


def test_a_redaction_reaches_every_session(kept: Kept) -> None:
    """Snapshot, key, endpoint; over a restart; those that hold nothing stay as they are."""
    empty = kept.open(key="empty")
    kept.add("pin hunter2")
    session = kept.open(key="key hunter2", endpoint="http://x/?pin=hunter2")
    before = session.frozen
    assert before is not None
    changed, tickets = kept.registry.redact(lambda text: text.replace("hunter2", "*"))
    assert ([session], 1) == (changed, len(tickets))
    for registry in (kept.registry, kept.restarted()):
        found = registry.open(kept.profile, OpenRequest(key="key *"), may_read=True).session
        assert (session.id, "http://x/?pin=*", True) == (found.id, found.endpoint, found.redacted)
        frozen = found.frozen
        assert frozen is not None
        assert "pin *" in frozen.text
        assert "hunter2" not in str(frozen)
        assert frozen.id == hashlib.sha256(frozen.text.encode()).hexdigest() != before.id
        assert not registry.get("default", empty.id).redacted
    assert ([], []) == kept.registry.redact(lambda text: text.replace("hunter2", "*"))


def test_a_refreshed_snapshot_is_no_longer_a_redacted_one(kept: Kept) -> None:
    """Whoever froze it anew knows what is in it."""
    kept.add("pin hunter2")
    session = kept.open()
    kept.registry.redact(lambda text: text.replace("hunter2", "*"))
    kept.registry.refresh(session, kept.profile)
    assert not session.redacted


def test_a_session_that_is_damaged_in_the_journal_is_gone(kept: Kept) -> None:
    """It is named, and the others are there."""
    one, other = kept.open(), kept.open()
    records = [
        msgspec.structs.replace(item, body=b"\x93") if item.id == one.id else item for item in kept.journal.kept()
    ]
    registry = SessionRegistry(kept.journal, clock=kept.clock, token=kept.token)
    assert [one.id] == registry.load(records, kept.journal.snapshots)
    assert other.id == registry.open(kept.profile, OpenRequest(session=other.id), may_read=True).session.id
    with pytest.raises(NoSuchSession):
        registry.open(kept.profile, OpenRequest(session=one.id), may_read=True)
