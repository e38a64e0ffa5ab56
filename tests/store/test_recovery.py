"""What a difference between file and journal means at the start: the rules of ``durability.md``, case by case."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from memd.store.recovery import LastRun, classify

CLEAN = LastRun(clean=True, same_boot=True)
CRASH = LastRun(clean=False, same_boot=True)
POWER = LastRun(clean=False, same_boot=False)
HEAD, BEFORE, OLD = b"one\ntwo\n", b"one\n", b"zero\n"
KNOWN = [HEAD, BEFORE, OLD]


@pytest.mark.parametrize("last_run", [CLEAN, CRASH, POWER])
def test_the_head_is_the_head(last_run: LastRun) -> None:
    """However the last daemon ended."""
    assert "same" == classify(HEAD, KNOWN, last_run, checkpointed=True)


@pytest.mark.parametrize("last_run", [CLEAN, CRASH, POWER])
def test_a_store_without_history_takes_what_it_finds(last_run: LastRun) -> None:
    """A file that memd never wrote is a person's."""
    assert "outside" == classify(b"notes\n", [], last_run, checkpointed=False)
    assert "same" == classify(None, [], last_run, checkpointed=False)


@pytest.mark.parametrize("data", [BEFORE, OLD, b"", b"on", None, b"other"])
def test_after_a_clean_stop_any_difference_is_an_edit(data: bytes | None) -> None:
    """Even one that equals an older state: somebody put it there."""
    assert "outside" == classify(data, KNOWN, CLEAN, checkpointed=True)


def test_after_a_crash_the_state_before_the_last_group_is_rolled_forward() -> None:
    """It was journaled and not swapped in yet."""
    assert "roll_forward" == classify(BEFORE, KNOWN, CRASH, checkpointed=True)


@pytest.mark.parametrize("data", [OLD, b"", b"on", None, b"other"])
def test_after_a_crash_anything_else_is_an_edit(data: bytes | None) -> None:
    """A crash of the process tears no file and goes back no further."""
    assert "outside" == classify(data, KNOWN, CRASH, checkpointed=False)


def test_after_a_crash_what_the_last_group_had_found_is_rolled_forward() -> None:
    """Bytes of a person that the group had merged are in its result."""
    assert "roll_forward" == classify(b"found\n", KNOWN, CRASH, checkpointed=True, preimages=[b"found\n"])


def test_a_first_file_that_never_came_to_be_is_written() -> None:
    """The first group was journaled; there was no file before it."""
    assert "roll_forward" == classify(None, [HEAD], CRASH, checkpointed=False)


@pytest.mark.parametrize("data", [None, b""])
@pytest.mark.parametrize("known", [[HEAD], [HEAD, b""]])
def test_no_file_and_an_empty_one_are_the_same_state(data: bytes | None, known: list[bytes]) -> None:
    """Whether the store was empty or never written before the group."""
    assert "roll_forward" == classify(data, known, CRASH, checkpointed=True)


@pytest.mark.parametrize("data", [BEFORE, OLD, b"", b"on", b"\0\0\0", b"one\n\0\0\0\0"])
def test_after_another_boot_older_and_torn_files_are_ours(data: bytes) -> None:
    """Nothing since the file checkpoint had to reach the disk, in whole or in part."""
    assert "roll_forward" == classify(data, KNOWN, POWER, checkpointed=True)


def test_after_another_boot_other_text_is_an_edit() -> None:
    """A power loss invents nothing."""
    assert "outside" == classify(b"one\nthree\n", KNOWN, POWER, checkpointed=True)


def test_after_another_boot_a_missing_file_was_lost_only_if_it_was_never_checkpointed() -> None:
    """A name that was fsynced does not vanish by itself."""
    assert "roll_forward" == classify(None, KNOWN, POWER, checkpointed=False)
    assert "outside" == classify(None, KNOWN, POWER, checkpointed=True)


def test_a_rewrite_in_place_that_was_cut_off_is_ours() -> None:
    """The head over the longer bytes before it, not yet cut to length."""
    before, head = b"a longer state\n", b"short\n"
    mixture = head + before[len(head) :]
    assert "roll_forward" == classify(mixture, [head, before], CRASH, checkpointed=True, in_place=True)
    assert "outside" == classify(mixture, [head, before], CRASH, checkpointed=True)


@given(head=st.binary(min_size=1, max_size=40), cut=st.integers(0, 40), zeros=st.integers(0, 8))
def test_every_torn_head_is_known_after_another_boot(head: bytes, cut: int, zeros: int) -> None:
    """A prefix, with or without the NULs of blocks that were not written."""
    data = head[:cut] + b"\0" * zeros
    assert classify(data, [head], POWER, checkpointed=True) in {"same", "roll_forward"}
