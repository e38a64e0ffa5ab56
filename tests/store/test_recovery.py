"""What a difference between file and journal means at the start: the rules of ``durability.md``, case by case."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from memd.store.recovery import LastRun, classify

CLEAN = LastRun(clean=True, same_boot=True)
CRASH = LastRun(clean=False, same_boot=True)
POWER = LastRun(clean=False, same_boot=False)
HEAD, BEFORE, OLD = b"one\ntwo\n", b"one\n", b"zero\n"


def _classify(data: bytes | None, last_run: LastRun, *, synced: int = 1) -> str:
    """A head, a state before it, and one since the file checkpoint."""
    return classify(data, [HEAD, BEFORE, OLD], last_run, before=[BEFORE], synced=synced)


@pytest.mark.parametrize("last_run", [CLEAN, CRASH, POWER])
def test_the_head_is_the_head(last_run: LastRun) -> None:
    """However the last daemon ended."""
    assert "same" == _classify(HEAD, last_run)


@pytest.mark.parametrize("last_run", [CLEAN, CRASH, POWER])
def test_a_store_without_history_takes_what_it_finds(last_run: LastRun) -> None:
    """A file that memd never wrote is a person's."""
    assert "outside" == classify(b"notes\n", [], last_run, before=[])
    assert "same" == classify(None, [], last_run, before=[])


@pytest.mark.parametrize("data", [BEFORE, OLD, b"", b"on", None, b"other"])
def test_after_a_clean_stop_any_difference_is_an_edit(data: bytes | None) -> None:
    """Even one that equals an older state: somebody put it there."""
    assert "outside" == _classify(data, CLEAN)


def test_after_a_crash_the_state_before_the_last_group_is_rolled_forward() -> None:
    """It was journaled and not swapped in yet."""
    assert "roll_forward" == _classify(BEFORE, CRASH)


@pytest.mark.parametrize("data", [OLD, b"", b"on", None, b"other"])
def test_after_a_crash_anything_else_is_an_edit(data: bytes | None) -> None:
    """A crash of the process tears no file and goes back no further."""
    assert "outside" == _classify(data, CRASH, synced=0)


def test_after_a_crash_what_the_last_group_had_found_is_rolled_forward() -> None:
    """Bytes of a person that the group had merged are in its result."""
    assert "roll_forward" == classify(b"found\n", [HEAD], CRASH, before=[BEFORE, b"found\n"], synced=2)


@pytest.mark.parametrize("data", [None, b""])
@pytest.mark.parametrize("before", [None, b""])
def test_no_file_and_an_empty_one_are_the_same_state(data: bytes | None, before: bytes | None) -> None:
    """Whether the store was empty or never written before the group."""
    assert "roll_forward" == classify(data, [HEAD], CRASH, before=[before])


@pytest.mark.parametrize("data", [BEFORE, OLD, b"", b"on", b"\0\0\0", b"one\n\0\0\0\0"])
def test_after_another_boot_older_and_torn_files_are_ours(data: bytes) -> None:
    """Nothing since the file checkpoint had to reach the disk, in whole or in part."""
    assert "roll_forward" == _classify(data, POWER)


def test_after_another_boot_other_text_is_an_edit() -> None:
    """A power loss invents nothing."""
    assert "outside" == _classify(b"one\nthree\n", POWER)


def test_after_another_boot_what_the_checkpoint_replaced_is_an_edit() -> None:
    """The disk had the head for certain: somebody put the old text back."""
    assert "outside" == classify(OLD, [HEAD], POWER, before=[OLD], synced=2)


def test_after_another_boot_a_missing_file_was_lost_only_if_it_was_never_checkpointed() -> None:
    """A name that was fsynced does not vanish by itself."""
    assert "roll_forward" == _classify(None, POWER, synced=0)
    assert "outside" == _classify(None, POWER, synced=1)


def test_a_rewrite_in_place_that_was_cut_off_is_ours() -> None:
    """The head over the longer bytes before it, not yet cut to length."""
    before, head = b"a longer state\n", b"short\n"
    mixture = head + before[len(head) :]
    assert "roll_forward" == classify(mixture, [head], CRASH, before=[before], synced=1, in_place=True)
    assert "outside" == classify(mixture, [head], CRASH, before=[before], synced=1)


@given(head=st.binary(min_size=1, max_size=40), cut=st.integers(0, 40), zeros=st.integers(0, 8))
def test_every_torn_head_is_known_after_another_boot(head: bytes, cut: int, zeros: int) -> None:
    """A prefix, with or without the NULs of blocks that were not written."""
    data = head[:cut] + b"\0" * zeros
    assert classify(data, [head], POWER, before=[None], synced=2) in {"same", "roll_forward"}


IN_PLACE = [HEAD[:3] + b"\0" * 3 + HEAD[6:], b"\0" * len(HEAD), b"one\nt", b"onx\ntwo\n", HEAD + b"x"]


@pytest.mark.parametrize(("data", "ours"), list(zip(IN_PLACE, [True, True, True, False, False], strict=True)))
def test_a_file_that_is_rewritten_in_place_may_be_any_mixture_after_a_power_loss(data: bytes, *, ours: bool) -> None:
    """Each byte is the head's, that of the state before or a NUL, in any order; a byte that is none of them is a person's."""
    found = classify(data, [HEAD, BEFORE], POWER, before=[BEFORE], synced=2, in_place=True)
    assert ("roll_forward" if ours else "outside") == found


@pytest.mark.parametrize(
    ("data", "ours"),
    [(b"newer old\n", True), (b"newer\n old\n", False), (b"newer text\nd\n", False), (b"\0" * 4, False)],
)
def test_a_rewrite_in_place_goes_from_the_front_on_the_same_boot(data: bytes, *, ours: bool) -> None:
    """A process that ends in the middle has written the head up to some byte, and no NULs."""
    found = classify(data, [b"newer\n"], CRASH, before=[b"older old\n"], in_place=True)
    assert ("roll_forward" if ours else "outside") == found


@pytest.mark.parametrize("data", [b"", b"new"])
def test_a_file_that_was_cut_on_the_same_boot_is_an_edit(data: bytes) -> None:
    """No process that ends in the middle leaves less than both states have."""
    assert "outside" == classify(data, [b"newer\n"], CRASH, before=[b"older old\n"], in_place=True)


def test_a_rewrite_that_was_not_cut_to_length_yet() -> None:
    """The head, and behind it what was longer before."""
    assert "roll_forward" == classify(b"short\nlong\n", [b"short\n"], CRASH, before=[b"older long\n"], in_place=True)
