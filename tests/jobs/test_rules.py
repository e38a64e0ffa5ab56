"""memd.jobs.reviewers.rules: what it keeps of what a person said, and what it leaves alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st
from support.dialogues import Half, Turn, fits, scores, turns
from support.hosts import Host

from memd.config import ProfileSettings
from memd.jobs.ports import Attempt, Found
from memd.jobs.reviewers.rules import LONGEST_SENTENCE, MOST, RulesReviewer, facts
from memd.settings import Review
from memd.store.work import DeskRecord, JobRecord, MessageRecord

if TYPE_CHECKING:
    from pathlib import Path

    from support.hosts import Life
    from trio.testing import MockClock


def kept(text: str) -> list[tuple[str, str]]:
    return [(one.target, one.text) for one in facts(text)]


def keep(turn: Turn) -> list[tuple[str, str]]:
    return kept(turn.text) if turn.role == "user" else []


@pytest.mark.parametrize("turn", list(turns("rules")), ids=lambda turn: f"{turn.dialogue}-{turn.text[:20]}")
def test_the_dialogues_that_phrases_were_written_on(turn: Turn) -> None:
    """All of them, and nothing else."""
    found = keep(turn)
    assert ([] if turn.target == "-" else [True]) == [fits(turn, one) for one in found]


@pytest.mark.parametrize(("half", "precision", "recall"), [("rules", 1.0, 1.0), ("report", 0.9, 0.6)])
def test_the_figures(half: Half, precision: float, recall: float) -> None:
    """Those of the reporting half are the benchmark's; here they may not fall far."""
    found = scores(turns(half), keep)["all"]
    assert found.precision >= precision
    assert found.recall >= recall


def test_there_are_enough_of_every_kind() -> None:
    every = [*turns("rules"), *turns("report")]
    assert len(every) >= 300
    assert {"en", "zh", "vi", "es", "de", "fr"} == {turn.lang for turn in every}
    assert sum(turn.target == "-" for turn in every) > 0.55 * len(every)
    assert all(turn.target == "-" for turn in every if turn.role != "user")


@pytest.mark.parametrize(
    "text",
    [
        "```\nRemember that the port is 80.\n```",
        "> I prefer tabs.",
        "- [ ] Remember: call the bank",
        '"Always use tabs in this repository."',
        "Remember that " + "x" * LONGEST_SENTENCE,
        "Do I prefer short answers?",
        "I prefer short answers, haha.",
        "~~~\nI prefer tabs.",
    ],
)
def test_what_is_not_plainly_said_is_left_alone(text: str) -> None:
    assert [] == kept(text)


def test_what_is_asked_for_is_kept_whatever_it_is() -> None:
    """What is only pointed out is not, where it is what somebody did."""
    assert [("user", "My dog is called Momo")] == kept("Remember that my dog is called Momo.")
    assert [("user", "I have two children")] == kept("Don't forget that I have two children.")
    assert [] == kept("For the record, I did not break it.")
    assert [("memory", "The mirror moved")] == kept("For the record, the mirror moved.")


def test_a_message_may_hold_several_facts_among_others() -> None:
    text = "Thanks! I prefer short answers. Can you fix the test?\nRemember that db-2 is the primary. It rains."
    assert [("user", "I prefer short answers"), ("memory", "Db-2 is the primary")] == kept(text)


@given(st.text(max_size=400))
def test_any_text_gets_an_answer(text: str) -> None:
    for _, found in kept(text):
        assert found == found.strip()
        assert found
        assert len(found) <= LONGEST_SENTENCE + 1


def message(text: str, number: int = 1, **fields: Any) -> MessageRecord:
    said = {"role": "user", "user_turn": True, **fields}
    return MessageRecord(owner="s", number=number, profile="p", us=1, text=text, **said)


async def review(life: Life, *messages: MessageRecord, **settings: Any) -> tuple[str, list[DeskRecord]]:
    life.profile.settings = ProfileSettings(name="p", dir=life.profile.dir, review=Review(**settings))
    found = Found()
    job = JobRecord(id="j", profile="p", kind="review", session="s", key="k", us=1)
    said = await RulesReviewer().attempt(life.profile, Attempt(job, messages, 0, 3), found)
    return said, found.operations


async def test_only_a_persons_own_words_count(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with Host(tmp_path).life() as life:
        said, operations = await review(
            life,
            message("I prefer tabs.", 1, role="assistant"),
            message("Remember that the port is 80.", 2, role="tool", user_turn=False),
            message("I prefer spaces.", 3, synthetic=True),
            message("I prefer short answers.", 4),
            message("My name is Ines.", 5, user_turn=False),
        )
        assert [DeskRecord("user", "add", "I prefer short answers", evidence=[4])] == operations
        assert "I prefer short answers" == said
        assert re.fullmatch("<RulesReviewer>", repr(RulesReviewer()))


async def test_what_is_known_is_not_added_again(tmp_path: Path, autojump_clock: MockClock) -> None:
    """In either store, in other letters or much the same words; twice in one review neither."""
    async with Host(tmp_path).life() as life:
        await life.add("Staging listens on port 8081", "User prefers short answers")
        said, operations = await review(
            life,
            message("Remember that staging listens on port 8081."),
            message("I prefer tabs.", 2),
            message("I prefer tabs!", 3),
        )
        assert ["I prefer tabs"] == [operation.content for operation in operations]
        assert "I prefer tabs" == said


async def test_a_correction_replaces_what_was_wrong(tmp_path: Path, autojump_clock: MockClock) -> None:
    """If exactly one entry holds it and speaks of the same; else it is added."""
    async with Host(tmp_path).life() as life:
        await life.add("Primary database is db-1", "db-1 is an old laptop")
        correction = "No, that's wrong: the primary database is db-2, not db-1."
        _, (operation,) = await review(life, message(correction, 7))
        entry = life.profile.state("memory").document.entries[0]
        assert ("replace", entry.id, entry.hash, [7]) == (
            operation.action, operation.id, operation.if_hash, operation.evidence,
        )  # fmt: skip
        await life.add("The primary database was once db-1")
        _, (operation,) = await review(life, message(correction, 8))
        assert ("add", None) == (operation.action, operation.id)


async def test_topics_are_allowed_and_denied(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with Host(tmp_path).life() as life:
        messages = (message("I prefer tabs."), message("My name is Ines.", 2))
        _, operations = await review(life, *messages, topics_deny=("NAME",))
        assert ["I prefer tabs"] == [operation.content for operation in operations]
        _, operations = await review(life, *messages, topics_allow=("name",))
        assert ["My name is Ines"] == [operation.content for operation in operations]


async def test_one_review_has_a_bound(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with Host(tmp_path).life() as life:
        many = [message(f"Remember that host{n} is box{n}{n}.", n) for n in range(3 * MOST)]
        _, operations = await review(life, *many)
        assert MOST == len(operations)
