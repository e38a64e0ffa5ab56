"""support.power: what a power cut leaves, and that nothing more is taken for granted than an fsync gives."""

from __future__ import annotations

import random

import pytest
from support.power import Disk, State, parse


def states(*lines: bytes, directories: tuple[str, ...] = ("/p",)) -> list[dict[str, bytes]]:
    """The files of every state after these steps."""
    disk = Disk(directories)
    for step in parse(b"".join(lines)):
        disk.play(step)
    return [_files(state) for state in disk.states(random.Random(1))]


def _files(state: State) -> dict[str, bytes]:
    return {name: data for names, data in state.files for name in names}


CREATED = (b"create 7 /p/a\n", b"write 7 0 4\nabcd")


def test_nothing_that_was_not_synced_is_certain() -> None:
    """Neither name nor bytes: none, all, half of the last write, or zeros."""
    found = states(*CREATED)
    assert {} in found
    assert {b"", b"abcd", b"ab", bytes(4)} == {state["/p/a"] for state in found if state}


def test_a_synced_file_may_still_have_no_name() -> None:
    assert [{}, {"/p/a": b"abcd"}] == sorted(states(*CREATED, b"sync 7 /p/a\n"), key=len)


def test_a_synced_file_in_a_synced_directory_is_there() -> None:
    assert [{"/p/a": b"abcd"}] == states(*CREATED, b"sync 7 /p/a\n", b"sync 1 /p\n")


def test_a_directory_needs_its_parents_sync() -> None:
    """Without it nothing in it can be found."""
    made = (b"mkdir /q\n", b"create 7 /q/a\n", b"sync 7 /q/a\n", b"sync 2 /q\n")
    assert {} in states(*made, directories=())
    assert [{"/q/a": b""}] == states(*made, b"sync 1 \n", directories=())


@pytest.mark.parametrize("kind", ["exchange", "rename"])
def test_names_change_at_once(kind: str) -> None:
    """An exchange is both, or neither."""
    files = (*CREATED, b"sync 7 /p/a\n", b"create 8 /p/b\n", b"write 8 0 1\nB", b"sync 8 /p/b\n", b"sync 1 /p\n")
    found = states(*files, f"{kind} /p/a\t/p/b\n".encode())
    after = {"/p/a": b"B", "/p/b": b"abcd"} if kind == "exchange" else {"/p/b": b"abcd"}
    assert [{"/p/a": b"abcd", "/p/b": b"B"}, after] == found


def test_a_truncation_and_a_write_behind_the_end() -> None:
    """What lies between is zeros."""
    found = states(*CREATED, b"truncate 7 2\n", b"write 7 3 1\nX", b"sync 7 /p/a\n", b"sync 1 /p\n")
    assert [{"/p/a": b"ab\0X"}] == found


def test_a_number_that_is_given_out_again_is_another_file() -> None:
    found = states(*CREATED, b"sync 7 /p/a\n", b"unlink /p/a\n", b"create 7 /p/c\n", b"sync 7 /p/c\n", b"sync 1 /p\n")
    assert [{"/p/c": b""}] == found


def test_notes_are_kept_in_their_place() -> None:
    disk = Disk()
    for step in parse(b"note one two\n"):
        disk.play(step)
    assert ["one two"] == disk.notes
