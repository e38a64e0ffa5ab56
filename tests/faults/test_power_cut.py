"""The power goes at every step of a commit, and memd recovers from whatever the disk holds then.

Stories are recorded call by call; ``support/power.py`` says what a disk may hold at each moment, on a model that is harsher
than any file system. The short run takes every so many-th step, the long one all of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import interposer
from support.scenarios import SCENARIOS

if TYPE_CHECKING:
    from collections.abc import Mapping

TESTS = Path(__file__).parents[1]
STRIDE = 53

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def preloaded(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    library = interposer.build(tmp_path_factory.mktemp("library"))
    return {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": str(TESTS)}


def cut(env: Mapping[str, str], *chosen: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "support.power_cut", *chosen]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (0, "") == (done.returncode, done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    print({key: found[key] for key in ("scenario", "steps", "states")})  # noqa: T201 - the long run's figures
    return found


@pytest.mark.parametrize(("number", "scenario"), list(enumerate(SCENARIOS)))
def test_a_power_cut_at_each_step(preloaded: Mapping[str, str], suite_profile: str, number: int, scenario: str) -> None:
    """What was answered by then is recovered, what a careful hand saved too, and no torn text is taken for anybody's."""
    found = cut(preloaded, scenario, "1" if suite_profile == "long" else str(STRIDE), str(number))
    assert [] == found["broken"]
    assert found["states"] > found["steps"] // STRIDE


def test_a_journal_that_does_not_sync_is_found_out(preloaded: Mapping[str, str]) -> None:
    """The model takes nothing for granted: without the fsync of a commit, what was acknowledged is lost."""
    found = cut(preloaded, "ordinary", "11", "1", "unsynced")
    assert any("acknowledged and gone" in line for line in found["broken"])
