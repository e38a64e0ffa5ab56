"""support.survival: the judge finds each loss, and forgives what was meant."""

from __future__ import annotations

import pytest
from support.survival import Diary, PutBack, losses


def diary() -> Diary:
    """``old`` and ``new`` are there, ``away`` was removed; nothing was put back."""
    made = Diary()
    for text, at in (("old", 1.0), ("new", 20.0), ("away", 2.0)):
        made.wrote(text, at)
    made.took_out("away", 3.0)
    return made


ALL = ["old", "new", "away"]


def test_nothing_is_said_where_nothing_is_wrong() -> None:
    assert [] == losses(diary(), ["old", "new"], ["old", "new"], ALL)


@pytest.mark.parametrize(
    ("file", "recorded", "said"),
    [
        (["old"], ALL, "written, and gone from the file: new"),
        (["old"], ["old", "away"], "written, and no revision has it: new"),
        (["old", "new"], ["old", "new"], "written, and no revision has it: away"),
        (["old", "new", "away"], ALL, "removed, and back: away"),
        (["old", "new", "old"], ALL, "there twice: old"),
        (["old", "new", "torn"], ALL, "nobody wrote this: torn"),
    ],
)
def test_each_fault_is_found(file: list[str], recorded: list[str], said: str) -> None:
    assert [said] == losses(diary(), file, file, recorded)


def test_memd_and_the_file_have_to_agree() -> None:
    assert ["the file and memd differ: new"] == losses(diary(), ["old", "new"], ["old"], ALL)


@pytest.mark.parametrize(
    ("version", "file", "said"),
    [
        (PutBack(30.0, frozenset({"old"})), ["old"], []),
        (PutBack(23.0, frozenset({"old"})), ["old"], ["written, and gone from the file: new"]),
        (PutBack(30.0, frozenset({"old", "new"})), ["old"], ["written, and gone from the file: new"]),
        (PutBack(30.0, frozenset({"old", "new", "away"})), ["old", "new", "away"], []),
        (PutBack(2.5, frozenset({"old", "new", "away"})), ["old", "new", "away"], ["removed, and back: away"]),
    ],
)
def test_what_was_put_back_is_obeyed(version: PutBack, file: list[str], said: list[str]) -> None:
    """What the version lacks may go, unless its writer cannot have seen it; what it has comes back."""
    made = diary()
    made.put_back.append(version)
    assert said == losses(made, file, file, ALL)


def test_trouble_is_passed_on() -> None:
    made = diary()
    made.trouble.append("a client was refused")
    assert ["a client was refused"] == losses(made, ["old", "new"], ["old", "new"], ALL)
