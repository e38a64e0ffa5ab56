"""Fixtures of the jobs' tests: a journal on a disk that fails when it is told to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.faults import FailingJournal

from memd.store.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def plan() -> FailingJournal:
    """What fails, and where."""
    return FailingJournal()


@pytest.fixture
def journal(tmp_path: Path, plan: FailingJournal) -> Iterator[Journal]:
    """An open journal."""
    found = Journal(tmp_path / "journal.db", connect=plan.connect, boot_id="boot")
    found.open()
    yield found
    plan.heal()
    if found.is_open:
        found.close(clean=False)
