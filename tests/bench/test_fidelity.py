"""The fidelity benchmark: its stories, and one small run of it."""

from __future__ import annotations

import pytest
from bench.fidelity import Fact, main, story


def test_a_story_is_the_same_for_a_seed_and_corrects_what_was_said_before() -> None:
    one, other = story("1", 10, 8, 3), story("1", 10, 8, 3)
    assert one == other
    assert one != story("2", 10, 8, 3)
    assert (5, 3) == (len(one.durable), len(one.corrections))
    at = {
        said.mark: number for number, session in enumerate(one.sessions) for said in session if isinstance(said, Fact)
    }
    assert all(at[fact.wrong] < at[fact.mark] for fact in one.corrections)
    assert any(isinstance(said, str) for session in one.sessions for said in session)


@pytest.mark.slow
def test_a_small_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Through whole daemons: everything durable is kept by both reviewers, and no frozen snapshot changes."""
    assert 0 == main(["--sessions", "6", "--durable", "5", "--corrections", "2"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [["rules", "3/3", "2/2", "0", "0"], ["scripted", "3/3", "2/2", "0", "0"]] == [row[:5] for row in rows]
    assert ["0", "0"] == [row[-1] for row in rows]
