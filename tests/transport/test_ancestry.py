"""memd.transport.ancestry: where a process comes from."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from memd.transport.ancestry import DEEPEST, Lineage, lineage_of

if TYPE_CHECKING:
    from pathlib import Path


def process(proc: Path, pid: int, parent: int, *, name: str = "bash", terminal: int = 0) -> None:
    """One entry of a ``/proc``."""
    (proc / str(pid)).mkdir()
    (proc / str(pid) / "stat").write_text(f"{pid} ({name}) S {parent} {pid} {pid} {terminal} -1 4194304 0 0\n")


def test_the_parents_in_order(tmp_path: Path) -> None:
    """Up to the first process; a name may hold brackets and blanks."""
    process(tmp_path, 30, 20, name="a) S 1 (b")
    process(tmp_path, 20, 1)
    process(tmp_path, 1, 0, name="init")
    assert Lineage((20, 1)) == lineage_of(30, proc=str(tmp_path))


@pytest.mark.parametrize(
    ("device", "terminal"),
    [
        (os.makedev(136, 3), "/dev/pts/3"),
        (os.makedev(137, 2), "/dev/pts/258"),
        (os.makedev(4, 1), "/dev/tty1"),
        (os.makedev(5, 1), "5:1"),
        (0, ""),
    ],
)
def test_the_terminal(tmp_path: Path, device: int, terminal: str) -> None:
    """As its path, where that is known."""
    process(tmp_path, 30, 0, terminal=device)
    assert Lineage((), terminal) == lineage_of(30, proc=str(tmp_path))


def test_what_is_gone_or_damaged_is_no_error(tmp_path: Path) -> None:
    """A hint that is not there is none."""
    (tmp_path / "40").mkdir()
    (tmp_path / "40" / "stat").write_text("nonsense")
    process(tmp_path, 50, 40)
    assert Lineage() == lineage_of(30, proc=str(tmp_path))
    assert Lineage() == lineage_of(40, proc=str(tmp_path))
    assert Lineage((40,)) == lineage_of(50, proc=str(tmp_path))
    assert Lineage() == lineage_of(os.getpid(), proc=str(tmp_path / "nowhere"))


def test_it_ends(tmp_path: Path) -> None:
    """Whatever the table says: a circle, or an endless line."""
    process(tmp_path, 10, 11)
    process(tmp_path, 11, 10)
    assert (11, 10) == lineage_of(10, proc=str(tmp_path)).ancestors
    for pid in range(100, 300):
        process(tmp_path, pid, pid + 1)
    assert DEEPEST == len(lineage_of(100, proc=str(tmp_path)).ancestors)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is known")
def test_ourselves() -> None:
    """The real table."""
    assert os.getppid() == lineage_of(os.getpid()).ancestors[0]
