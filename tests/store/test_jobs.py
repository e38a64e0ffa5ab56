"""memd.store.jobs and memd.store.work_rows: what reviews and flushes keep, in and out of the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from memd.errors import IoFailure
from memd.store import jobs, retention
from memd.store.records import Part, RevisionRecord
from memd.store.work import (
    CompactionRecord,
    DeskRecord,
    JobRecord,
    MessageRecord,
    RangeRecord,
    RefusedRecord,
    SpendingRecord,
    TallyRecord,
    WorkPart,
)

if TYPE_CHECKING:
    from support.faults import FailingJournal

    from memd.store.journal import Journal

DAY_US = 86_400_000_000


def job(number: int, **fields: object) -> JobRecord:
    record = JobRecord(
        id=f"j-{number}",
        profile="p",
        kind="review",
        session="s",
        key=f"review:{number}",
        us=number,
        ranges=[RangeRecord("s", 1, 4)],
        operations=[DeskRecord("user", "add", "likes tea", evidence=[3])],
        refused=[RefusedRecord(DeskRecord("memory", "remove", id="e1"), "not_found")],
    )
    return replace(record, **fields)


def message(number: int, owner: str = "s", **fields: object) -> MessageRecord:
    record = MessageRecord(owner=owner, number=number, profile="p", us=number, role="user", text=f"text {number}")
    return replace(record, **fields)


def work(journal: Journal, **fields: object) -> None:
    journal.commit([Part(work=WorkPart(**fields))])  # type: ignore[arg-type]  # the test's own fields


def numbers(journal: Journal, *ranges: RangeRecord) -> list[tuple[str, int]]:
    return [(one.owner, one.number) for one in jobs.messages_of(journal, ranges)]


def test_a_job_comes_back_as_it_was_last(journal: Journal) -> None:
    """With all it has, by its id, by its key, in the list; in its own profile only."""
    work(journal, jobs=[job(1), job(2, session="t"), job(3, profile="q")])
    work(journal, jobs=[job(1, state="running", lease="l")])
    changed = job(1, state="running", lease="l")
    assert changed == jobs.job_of(journal, "p", "j-1")
    assert changed == jobs.job_by_key(journal, "p", "review:1")
    assert [job(2, session="t"), changed] == jobs.jobs_of(journal, "p")
    assert [changed] == jobs.jobs_of(journal, "p", session="s")
    assert [job(2, session="t")] == jobs.jobs_of(journal, "p", limit=1)
    assert (None, None) == (jobs.job_of(journal, "q", "j-1"), jobs.job_by_key(journal, "q", "review:1"))


def test_those_that_live_are_found_at_the_start(journal: Journal) -> None:
    """Of all profiles, the oldest first; those that have ended are not among them, and a damaged one keeps nobody up."""
    work(journal, jobs=[job(3), job(1, profile="q"), job(2, state="done", done_us=5), job(4)])
    journal.connection.execute("UPDATE job SET body=x'00ff' WHERE id='j-4'")
    assert ["j-1", "j-3"] == [one.id for one in jobs.live_jobs(journal)]


def test_copies_come_in_the_order_of_their_ranges(journal: Journal) -> None:
    """Whole ranges of several owners; one that is repeated is the same one."""
    work(journal, messages=[message(2), message(1), message(3), message(1, "t"), message(2, "t")])
    work(journal, messages=[message(2)])
    wanted = (RangeRecord("t", 2, 9), RangeRecord("s", 1, 2))
    assert [("t", 2), ("s", 1), ("s", 2)] == numbers(journal, *wanted)
    assert message(2) == jobs.messages_of(journal, wanted)[-1]


def test_copies_go_when_they_are_not_needed_or_too_old(journal: Journal) -> None:
    """Exactly those of the range, and those of the profile from before the time."""
    work(journal, messages=[message(number) for number in range(1, 7)])
    work(journal, messages=[message(1, "t", profile="q")])
    work(journal, gone=[RangeRecord("s", 2, 3)])
    everything = (RangeRecord("s", 1, 99), RangeRecord("t", 1, 99))
    assert [("s", 1), ("s", 4), ("s", 5), ("s", 6), ("t", 1)] == numbers(journal, *everything)
    work(journal, expired=[("p", 5)])
    assert [("s", 5), ("s", 6), ("t", 1)] == numbers(journal, *everything)


def test_what_is_deleted_is_gone_from_the_file(journal: Journal) -> None:
    """Not merely unlisted: long and short texts, and what a job had decided."""
    work(journal, messages=[message(1, text="planted short"), message(2, text="planted long " * 5000)])
    work(journal, jobs=[job(1, operations=[DeskRecord("user", "add", "planted wish")])])
    journal.checkpoint_wal(force=True)
    assert b"planted" in journal.path.read_bytes()
    work(journal, gone=[RangeRecord("s", 1, 2)], jobs=[job(1, operations=[])])
    journal.close(clean=True)
    assert b"planted" not in journal.path.read_bytes()


def test_counts_are_kept_until_they_are_over(journal: Journal) -> None:
    """One for each session of each profile."""
    one = TallyRecord(profile="p", session="s", us=1, unseen=3, first=4, last=9, turn="t9", job="j-1")
    rest = TallyRecord(profile="p", session="", us=2, unseen=2, ranges=[RangeRecord("old", 1, 4)])
    work(journal, tallies=[one, rest, replace(one, profile="q", us=3)])
    work(journal, tallies=[replace(one, unseen=4)])
    assert [replace(one, unseen=4), rest, replace(one, profile="q", us=3)] == jobs.tallies(journal)
    work(journal, over=[("p", "s")])
    assert [rest, replace(one, profile="q", us=3)] == jobs.tallies(journal)


def test_an_agents_own_writes_are_known(journal: Journal) -> None:
    """The newest of each session; not those of jobs, of people or of nobody's session."""
    by: list[tuple[str, str | None, int, str | None]] = [
        ("agent", "s", 1, None),
        ("agent", "s", 5, None),
        ("agent", "t", 3, "j-1"),
        ("user", "t", 4, None),
    ]
    by += [("agent", None, 6, None)]
    revisions = [
        RevisionRecord(revision=number, store=1, us=us, origin=origin, session=session, job=job_id)
        for number, (origin, session, us, job_id) in enumerate(by, 1)
    ]
    journal.commit([Part(revisions=revisions)])
    assert {"s": 5} == jobs.last_agent_writes(journal)


def test_each_compaction_is_remembered(journal: Journal) -> None:
    """By session and epoch."""
    flushed = CompactionRecord(profile="p", session="s", epoch="1", us=1, state="flushed", job="j-1")
    missed = CompactionRecord(profile="p", session="s", epoch="2", us=2, state="missed")
    work(journal, compactions=[flushed, missed, replace(missed, epoch="3", us=3)])
    assert flushed == jobs.compaction_of(journal, "p", "s", "1")
    assert None is jobs.compaction_of(journal, "p", "t", "1")
    assert ["3", "2"] == [one.epoch for one in jobs.compactions_of(journal, "p", state="missed")]
    assert ["3"] == [one.epoch for one in jobs.compactions_of(journal, "p", state="missed", since_us=3)]


def test_what_is_spent_adds_up_by_day(journal: Journal) -> None:
    """Each part adds."""
    for _ in range(2):
        work(journal, spending=[SpendingRecord(profile="p", day=7, input=10, cached=4, output=1)])
    work(journal, spending=[SpendingRecord(profile="q", day=7, output=2), SpendingRecord(profile="p", day=8, input=1)])
    first, second = jobs.spent(journal, 7)
    assert (20, 8, 2) == (first.input, first.cached, first.output)
    assert ("q", 2) == (second.profile, second.output)


def test_all_of_a_part_or_nothing(journal: Journal, plan: FailingJournal) -> None:
    """A turn's end with its messages, its count and its job is one thing."""
    plan.fail("INSERT OR REPLACE INTO tally")
    with pytest.raises(IoFailure):
        work(
            journal,
            messages=[message(1)],
            jobs=[job(1)],
            tallies=[TallyRecord(profile="p", session="s", us=1)],
        )
    assert ([], [], []) == (numbers(journal, RangeRecord("s", 1, 9)), jobs.live_jobs(journal), jobs.tallies(journal))


def test_what_ended_long_ago_is_pruned(journal: Journal) -> None:
    """What has not ended stays, however old."""
    work(
        journal,
        jobs=[job(1), job(2, state="done", done_us=2), job(3, state="done", done_us=90 * DAY_US)],
        compactions=[CompactionRecord(profile="p", session="s", epoch="1", us=1, state="missed")],
        spending=[SpendingRecord(profile="p", day=1, input=1), SpendingRecord(profile="p", day=90, input=1)],
    )
    retention.prune(journal, retention.Policy(keep_days=10), 91 * DAY_US)
    assert ["j-3", "j-1"] == [one.id for one in jobs.jobs_of(journal, "p")]
    assert [] == jobs.compactions_of(journal, "p", state="missed")
    assert ([], 1) == (jobs.spent(journal, 1), len(jobs.spent(journal, 90)))


def test_what_is_too_much_is_pruned(journal: Journal) -> None:
    """The newest stay."""
    work(
        journal,
        jobs=[job(number, state="done", done_us=number) for number in range(1, jobs.DONE + 3)],
        compactions=[
            CompactionRecord(profile="p", session="s", epoch=str(number), us=number, state="missed")
            for number in range(1, jobs.COMPACTIONS + 3)
        ],
    )
    retention.prune(journal, retention.Policy(), 3)
    assert (None, "j-3") == (jobs.job_of(journal, "p", "j-2"), jobs.jobs_of(journal, "p", limit=9999)[-1].id)
    assert "3" == jobs.compactions_of(journal, "p", state="missed")[-1].epoch


def test_a_part_weighs_what_its_texts_do() -> None:
    """So that a group stays bounded when conversations are long."""
    heavy = Part(work=WorkPart(messages=[message(1, text="x" * 1000, withheld="y" * 500)]))
    assert 1500 <= heavy.weight < 2500
    assert 0 == Part(work=WorkPart()).weight
