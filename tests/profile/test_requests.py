"""Remembered answers: in memory, in flight, and as stored bytes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from memd.deferred import Ticket
from memd.errors import Conflict, IoFailure, NotFound
from memd.profile.entries import Entry
from memd.profile.requests import KEEP_US, Requests, decode, encode
from memd.profile.values import Change, Committed, Limits as StoreLimits, Notice, Step, TargetChange, Undone, usage_of
from memd.store.records import RequestRecord

USAGE = usage_of(10, StoreLimits(100))
CHANGE = Change("add", "e1", None, "text", 0, 5, "agent")
COMMITTED = Committed(
    True,
    "memory",
    7,
    Entry("text", "text", "e1", 5, 5, "agent"),
    (CHANGE,),
    USAGE,
    "Added.",
    (Notice("near_duplicate", "…", {"id": "e0"}),),
    (Step("applied", "e1", (CHANGE,), "Added."),),
)
UNDONE = Undone((7, 8), (TargetChange("user", CHANGE),), (("e2", "changed since"),), {"user": USAGE})


def _record(request_id: str = "r", *, us: int = 0, fingerprint: bytes = b"f") -> RequestRecord:
    return RequestRecord(profile="p", request_id=request_id, fingerprint=fingerprint, us=us, answer=encode(COMMITTED))


class TestAnswers:
    @pytest.mark.parametrize("result", [COMMITTED, UNDONE])
    def test_they_come_back_as_they_were(self, result: Committed | Undone) -> None:
        """Everything that was told."""
        assert result == decode(encode(result))

    def test_bytes_that_are_no_text_are_stored_as_they_were_shown(self) -> None:
        """With U+FFFD."""
        entry = Entry("caf\udce9", "caf\udce9", "e1")
        change = Change("replace", "e1", "caf\udce9", "caf\udce9 2", 0)
        committed = Committed(
            True, "memory", 7, entry, (change,), USAGE, "m", (), (Step("applied", "e1", (change,), "m"),)
        )
        found = decode(encode(committed))
        assert isinstance(found, Committed)
        assert found.entry is not None
        assert ("caf�", "caf� 2") == (found.entry.text, found.changes[0].after)
        undone = decode(encode(Undone((1,), (TargetChange("user", change),), (), {})))
        assert "caf�" == undone.changes[0].change.before  # type: ignore[union-attr]  # an Undone


class TestRequests:
    def test_a_call_is_in_doubt_until_the_journal_has_been_read(self) -> None:
        """By its profile and id."""
        requests = Requests()
        requests.doubt("p", "r")
        assert [True, False, False] == [requests.doubtful(*key) for key in (("p", "r"), ("q", "r"), ("p", "s"))]
        requests.settle_doubts()
        assert not requests.doubtful("p", "r")

    def test_a_damaged_answer_is_told_as_unknown(self) -> None:
        """The call is not made again: it may well have been done."""
        requests = Requests()
        requests.load([replace(_record(), answer=b"C\x93")])
        with pytest.raises(IoFailure) as caught:
            requests.repeat("p", "r", b"f", 0)
        assert "unknown" == caught.value.outcome

    def test_a_success_is_answered_again(self) -> None:
        """Marked as replayed, nothing else changed."""
        requests = Requests()
        assert requests.repeat("p", "r", b"f", 0) is None
        requests.load([_record()])
        ticket = requests.repeat("p", "r", b"f", 5)
        assert ticket is not None
        assert (True, True, 7) == (ticket.done, ticket.result.replayed, ticket.result.revision)

    def test_ids_belong_to_a_profile(self) -> None:
        """The same id in another one is another call."""
        requests = Requests()
        requests.remember(_record())
        assert requests.repeat("q", "r", b"f", 0) is None

    def test_other_parameters_are_a_conflict(self) -> None:
        """Whether the first is done or under way."""
        requests = Requests()
        requests.remember(_record())
        requests.start("p", "s", b"f", Ticket())
        for request_id in ("r", "s"):
            with pytest.raises(Conflict) as caught:
                requests.repeat("p", request_id, b"other", 0)
            assert "request_id_reused" == caught.value.extra["reason"]

    def test_a_repeat_in_flight_waits_for_the_first(self) -> None:
        """And gets its answer."""
        requests, first = Requests(), Ticket()
        requests.start("p", "r", b"f", first)
        repeat = requests.repeat("p", "r", b"f", 0)
        assert repeat is not None
        assert not repeat.done
        first.finish(COMMITTED)
        assert repeat.result.replayed
        assert requests.repeat("p", "r", b"f", 0) is None

    def test_a_failure_is_not_remembered(self) -> None:
        """Whoever waits hears of it; the next call is tried anew."""
        requests, first = Requests(), Ticket()
        requests.start("p", "r", b"f", first)
        repeat = requests.repeat("p", "r", b"f", 0)
        assert repeat is not None
        error = NotFound("not there", nearest=[])
        first.fail(error)
        assert error is repeat.error
        assert requests.repeat("p", "r", b"f", 0) is None

    def test_they_are_kept_for_a_day(self) -> None:
        """To the microsecond."""
        requests = Requests()
        requests.remember(_record(us=10))
        assert requests.repeat("p", "r", b"f", 10 + KEEP_US) is not None
        assert requests.repeat("p", "r", b"f", 11 + KEEP_US) is None

    def test_the_oldest_go_first(self) -> None:
        """Beyond a number."""
        requests = Requests(count=2)
        requests.load(_record(name) for name in ("a", "b", "c"))
        assert [False, True, True] == [requests.repeat("p", name, b"f", 0) is not None for name in ("a", "b", "c")]
        assert "<Requests 2 answered, 0 under way>" == repr(requests)
