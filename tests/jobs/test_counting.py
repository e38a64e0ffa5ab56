"""When a review is due: what counts, what is spent and when, what short sessions leave, what a failure takes back."""

from __future__ import annotations

import pytest
from support.fake_daemon import FakeClock
from support.fake_jobs import MemoryJobJournal

from memd.jobs.counting import IDLE_US, REST, Counted, Counting, Rules, TurnEnd, is_of_rest
from memd.store.work import JobRecord, MessageRecord, RangeRecord, TallyRecord

RULES = Rules(interval=3)


class Counter:
    """A counting, a journal that keeps what is durable, and turns of two messages."""

    def __init__(self, rules: Rules = RULES) -> None:
        self.clock = FakeClock()
        self.names = 0
        self.rules = rules
        self.journal = MemoryJobJournal()
        self.counting = Counting(clock=self.clock, name=self._name)
        self.turns = 0

    def _name(self) -> str:
        self.names += 1
        return f"j-{self.names}"

    def settle(self, counted: Counted, *, durable: bool = True) -> JobRecord | None:
        if durable:
            self.journal.take(counted.work)
        counted.settle(durable)
        return counted.job

    def end(
        self, session: str = "s", *, counts: bool = True, durable: bool = True, extend: JobRecord | None = None
    ) -> JobRecord | None:
        """A turn of a session."""
        self.turns += 1
        first = self.counting.take_numbers("p", session, 2)
        messages = [
            MessageRecord(owner=session, number=first + at, profile="p", us=1, role="user", text="x") for at in (0, 1)
        ]
        ended = TurnEnd("p", session, f"t{self.turns}", counts=counts, endpoint="http://m")
        return self.settle(self.counting.turn_ended(ended, messages, self.rules, extend=extend), durable=durable)

    def close(self, session: str, *, durable: bool = True) -> JobRecord | None:
        return self.settle(self.counting.session_closed("p", session, self.rules), durable=durable)

    async def restarted(self, writes: dict[str, int] | None = None) -> None:
        self.counting = Counting(clock=self.clock, name=self._name)
        self.counting.load(await self.journal.tallies(), writes or {})


@pytest.fixture
def counter() -> Counter:
    return Counter()


def test_due_at_the_interval(counter: Counter) -> None:
    """Everything that none has seen, and then the count is spent."""
    assert [None, None] == [counter.end(), counter.end()]
    job = counter.end()
    assert job is not None
    assert ([RangeRecord("s", 1, 6)], 3, "t3", "http://m") == (job.ranges, job.turns, job.turn, job.endpoint)
    assert "review:s:1-6" == job.key
    assert 0 == counter.counting.unseen("p", "s")
    assert [None, None] == [counter.end(), counter.end()]
    second = counter.end()
    assert second is not None
    assert [RangeRecord("s", 7, 12)] == second.ranges


def test_what_does_not_count_is_in_the_copy_all_the_same(counter: Counter) -> None:
    """An interrupted turn, a synthetic one: the review that is due later sees them; the count is not lost by them."""
    counter.end()
    counter.end()
    assert None is counter.end(counts=False)
    job = counter.end()
    assert job is not None
    assert ([RangeRecord("s", 1, 8)], 3) == (job.ranges, job.turns)


def test_each_session_counts_by_itself(counter: Counter) -> None:
    """Two of one and two of another make none due."""
    for session in ("a", "a", "b", "b"):
        assert None is counter.end(session)
    assert (2, 2) == (counter.counting.unseen("p", "a"), counter.counting.unseen("p", "b"))


async def test_counts_survive_a_restart(counter: Counter) -> None:
    """They are in the journal."""
    counter.end()
    counter.end()
    await counter.restarted()
    job = counter.end()
    assert job is not None
    assert [RangeRecord("s", 1, 6)] == job.ranges


def test_the_same_call_has_the_same_answer(counter: Counter) -> None:
    """The last turn's review is known by the turn; a repeated turn counts nothing."""
    *_, job = [counter.end() for _ in range(3)]
    assert job is not None
    assert (job.id, None) == (counter.counting.planned("p", "s", "t3"), counter.counting.planned("p", "s", "t2"))
    repeated = counter.counting.turn_repeated(TurnEnd("p", "s", "t3", counts=False), RULES)
    assert (None, None) == (repeated.work, repeated.job)


class TestSpending:
    def test_not_before_the_job_is_accepted(self, counter: Counter) -> None:
        """What could not be made durable is due again, with every message of it."""
        counter.end()
        counter.end()
        counter.end(durable=False)
        assert 3 == counter.counting.unseen("p", "s")
        assert {} == counter.journal.jobs
        again = counter.settle(counter.counting.turn_repeated(TurnEnd("p", "s", "t3", counts=False), RULES))
        assert again is not None
        assert [RangeRecord("s", 1, 6)] == again.ranges
        assert 6 == len(counter.journal.kept)
        assert 0 == counter.counting.unseen("p", "s")

    def test_the_next_turn_does_as_well(self, counter: Counter) -> None:
        """For a client that does not ask again."""
        counter.end(durable=False)
        counter.end(durable=False)
        job = counter.end()
        assert job is not None
        assert ([RangeRecord("s", 1, 6)], 3, 6) == (job.ranges, job.turns, len(counter.journal.kept))

    def test_what_came_meanwhile_is_not_lost(self, counter: Counter) -> None:
        """A turn that ended before the failure was known."""
        counter.end()
        counter.end()
        ended = TurnEnd("p", "s", "t3", counts=True)
        first = counter.counting.take_numbers("p", "s", 2)
        failing = counter.counting.turn_ended(ended, [], RULES)
        assert failing.job is not None
        assert None is counter.end()
        failing.settle(False)
        assert 4 == counter.counting.unseen("p", "s")
        job = counter.end()
        assert job is not None
        assert (5, 1, first + 5) == (job.turns, job.ranges[0].first, job.ranges[0].last)

    def test_a_review_that_has_not_begun_takes_in_more(self, counter: Counter) -> None:
        """One job for both; its key is what it is about."""
        *_, first = [counter.end() for _ in range(3)]
        *_, job = [counter.end(extend=first) for _ in range(3)]
        assert first is not None
        assert job is not None
        assert (first.id, [RangeRecord("s", 1, 12)], 6) == (job.id, job.ranges, job.turns)
        assert ["review:s:1-12"] == [one.key for one in counter.journal.jobs.values()]


class TestRest:
    def test_many_short_sessions_are_reviewed(self) -> None:
        """Twenty of two turns at an interval of ten: four reviews, of five sessions each."""
        counter = Counter(Rules(interval=10))
        jobs = []
        for number in range(20):
            counter.end(f"s{number}")
            counter.end(f"s{number}")
            jobs.append(counter.close(f"s{number}"))
        due = [job for job in jobs if job is not None]
        assert [4, 9, 14, 19] == [at for at, job in enumerate(jobs) if job is not None]
        assert [RangeRecord(f"s{number}", 1, 4) for number in range(5)] == due[0].ranges
        assert (10, "s4", True) == (due[0].turns, due[0].session, is_of_rest(due[0]))
        assert [("p", REST)] == list(counter.journal.counts)

    def test_a_session_without_anything_leaves_nothing(self, counter: Counter) -> None:
        """Its copies go."""
        counter.end(counts=False)
        assert 2 == len(counter.journal.kept)
        assert None is counter.close("s")
        assert ({}, {}) == (counter.journal.kept, counter.journal.counts)
        assert None is counter.close("never heard of")

    async def test_what_is_left_survives_a_restart(self, counter: Counter) -> None:
        """With the ranges it is about."""
        counter.end("a")
        counter.close("a")
        await counter.restarted()
        counter.end("b")
        counter.end("b")
        job = counter.close("b")
        assert job is not None
        assert [RangeRecord("a", 1, 2), RangeRecord("b", 1, 4)] == job.ranges

    def test_a_close_that_fails_leaves_all_as_it_was(self, counter: Counter) -> None:
        """The session counts on, the profile's count is what it was."""
        counter.end("a")
        counter.end("a")
        counter.close("a", durable=False)
        assert (2, 0) == (counter.counting.unseen("p", "a"), counter.counting.unseen("p"))
        job = counter.end("a")
        assert job is not None
        assert [RangeRecord("a", 1, 6)] == job.ranges

    def test_an_hour_without_a_turn(self, counter: Counter) -> None:
        """Is as good as a close; the session counts on from 0, with other messages. One in a turn is not idle."""
        counter.end("a")
        counter.end("b")
        counter.clock.now_us += IDLE_US
        assert [] == counter.counting.idle("q", RULES, busy=lambda _: False)
        (tally,) = counter.counting.idle("p", RULES, busy=lambda session: session == "b")
        assert "a" == tally.session
        counter.settle(counter.counting.session_idles(tally, RULES))
        assert (0, 1) == (counter.counting.unseen("p", "a"), counter.counting.unseen("p"))
        assert [] == [one for one in counter.counting.idle("p", RULES, busy=lambda _: False) if one.session == "a"]
        counter.end("a")
        counter.end("a")
        job = counter.end("a")
        assert job is not None
        assert [RangeRecord("a", 3, 8)] == job.ranges

    def test_one_that_cannot_be_written_idles_again(self, counter: Counter) -> None:
        """Nothing is lost, nothing is there twice."""
        counter.end("a")
        counter.clock.now_us += IDLE_US
        (tally,) = counter.counting.idle("p", RULES, busy=lambda _: False)
        counter.settle(counter.counting.session_idles(tally, RULES), durable=False)
        assert (1, 0) == (counter.counting.unseen("p", "a"), counter.counting.unseen("p"))


class TestAgentWrites:
    def test_its_session_counts_from_zero(self, counter: Counter) -> None:
        """Only its own; what it said is still seen by the next review."""
        counter.end("a")
        counter.end("a")
        counter.end("b")
        counter.journal.take(counter.counting.agent_wrote("p", "a"))
        assert (0, 1) == (counter.counting.unseen("p", "a"), counter.counting.unseen("p", "b"))
        assert 0 == counter.journal.counts["p", "a"].unseen
        assert None is counter.counting.agent_wrote("p", "a")
        assert None is counter.counting.agent_wrote("p", "unknown")
        *_, job = [counter.end("a") for _ in range(3)]
        assert job is not None
        assert [RangeRecord("a", 1, 10)] == job.ranges

    async def test_one_that_a_crash_kept_from_being_noted(self, counter: Counter) -> None:
        """The revisions tell."""
        counter.end("a")
        counter.end("b")
        await counter.restarted({"a": counter.clock.now_us + 1, "b": counter.clock.now_us - 1})
        assert (0, 1) == (counter.counting.unseen("p", "a"), counter.counting.unseen("p", "b"))


class TestOff:
    def test_an_interval_of_zero(self) -> None:
        """Nothing is kept, nothing is due; fresh turns are known all the same, for flushes."""
        counter = Counter(Rules(interval=0))
        for _ in range(20):
            assert None is counter.end()
        assert ({}, 0, 20) == (
            counter.journal.kept,
            counter.counting.unseen("p", "s"),
            counter.counting.fresh("p", "s"),
        )
        counter.rules = RULES
        counter.end()
        counter.end()
        job = counter.end()
        assert job is not None
        assert [RangeRecord("s", 41, 46)] == job.ranges


def test_fresh_since_the_last_review_or_flush(counter: Counter) -> None:
    """Both make them old."""
    counter.end()
    counter.end()
    assert 2 == counter.counting.fresh("p", "s")
    tally = counter.counting.flushed("p", "s")
    assert (0, 2, 0) == (tally.fresh, tally.unseen, counter.counting.fresh("p", "s"))
    counter.end()
    assert 0 == counter.counting.fresh("p", "s")


def test_a_person_wants_it_now(counter: Counter) -> None:
    """However little there is; nothing comes of nothing."""
    assert None is counter.counting.demand("p", "s", RULES).job
    counter.end()
    failing = counter.counting.demand("p", "s", RULES)
    failing.settle(False)
    assert 1 == counter.counting.unseen("p", "s")
    job = counter.settle(counter.counting.demand("p", "s", RULES))
    assert job is not None
    assert ([RangeRecord("s", 1, 2)], 1) == (job.ranges, job.turns)
    counter.end("a")
    counter.close("a")
    rest = counter.settle(counter.counting.demand("p", REST, RULES))
    assert rest is not None
    assert ("a", True) == (rest.session, is_of_rest(rest))


def test_offered_to_its_client_first(counter: Counter) -> None:
    """For as long as a lease; what short sessions left has no client."""
    counter.rules = Rules(interval=1, offer_us=60)
    job = counter.end()
    assert job is not None
    assert counter.clock.now_us + 60 == job.offered_us
    counter.rules = Rules(interval=2, offer_us=60)
    counter.end("a")
    counter.close("a")
    counter.end("b")
    rest = counter.close("b")
    assert rest is not None
    assert 0 == rest.offered_us


def test_what_is_only_in_memory_is_masked(counter: Counter) -> None:
    """A redaction reaches the copies that could not be written yet."""
    counter.end(durable=False)
    counter.counting.redact(lambda text: text.replace("x", "[redacted]"))
    counter.end()
    assert {"[redacted]", "x"} == {one.text for one in counter.journal.kept.values()}
    assert [(1, "[redacted]"), (2, "[redacted]")] == [
        (one.number, one.text) for one in counter.journal.kept.values() if one.number < 3
    ]


def test_damaged_ranges_are_no_trouble() -> None:
    """A tally without messages has none to review."""
    counter = Counter(Rules(interval=1))
    counter.counting.load([TallyRecord(profile="p", session="s", us=1, unseen=0, first=5, last=4)], {})
    assert None is counter.counting.demand("p", "s", RULES).job
