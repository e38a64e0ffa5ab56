"""Each system call of a commit fails once, fails from then on, or is the process's last; then everything is judged.

The calls are those that the commit path and SQLite make on files of the host, numbered as they come. The short run takes
every so many-th, the long one all of them. Which calls they are is in ``test_met_calls.py``.
"""

from __future__ import annotations

import errno
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
ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EMFILE, errno.EINTR)
DEATH = 0
FROM_THEN_ON = 1000
STRIDE = 29
"""In the short run. No scenario has a period of so many calls, and each begins elsewhere, so that every kind of call is met."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def preloaded(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    library = interposer.build(tmp_path_factory.mktemp("library"))
    return {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": str(TESTS)}


def sweep(
    env: Mapping[str, str], scenario: str, *errors: int, times: int = 1, stride: int = 1, offset: int = 0
) -> dict[str, Any]:
    chosen = [scenario, ",".join(map(str, errors)), str(times), str(stride), str(offset)]
    command = [sys.executable, "-m", "support.sweep", *chosen]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (0, "") == (done.returncode, done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    print({key: found[key] for key in ("scenario", "calls", "cases", "stopped", "struck")})  # noqa: T201 - the long run's figures
    return found


def strides(suite_profile: str, number: int) -> dict[str, int]:
    """Where the short run begins differs between the scenarios, so that they meet different calls."""
    return {"stride": 1} if suite_profile == "long" else {"stride": STRIDE, "offset": number % STRIDE}


@pytest.mark.parametrize(("number", "scenario"), list(enumerate(SCENARIOS)))
def test_each_call_fails_once(preloaded: Mapping[str, str], suite_profile: str, number: int, scenario: str) -> None:
    """Acknowledged is recovered, refused does not reappear, hand edits are there, the next write works."""
    found = sweep(preloaded, scenario, *ERRORS, **strides(suite_profile, number))
    assert [] == found["broken"]
    assert 0 == found["stopped"]
    assert len(ERRORS) * (found["calls"] // STRIDE) <= found["cases"]


@pytest.mark.parametrize(("number", "scenario"), list(enumerate(SCENARIOS)))
def test_the_process_ends_at_each_call(
    preloaded: Mapping[str, str], suite_profile: str, number: int, scenario: str
) -> None:
    """The next life finds all that was answered, whether the machine has been started anew or not."""
    found = sweep(preloaded, scenario, DEATH, **strides(suite_profile, number))
    assert [] == found["broken"]
    assert found["cases"] == found["struck"]["the end"]


@pytest.mark.parametrize(("number", "scenario"), list(enumerate(SCENARIOS)))
def test_from_some_call_on_the_disk_takes_nothing(
    preloaded: Mapping[str, str], suite_profile: str, number: int, scenario: str
) -> None:
    """Full, broken, read-only, without descriptors or always interrupted until the story's end; then it is well again.

    A store may have stopped writing where a file could not be swapped in and the journal not be told; the next start heals it.
    """
    found = sweep(preloaded, scenario, *ERRORS, times=FROM_THEN_ON, **strides(suite_profile, number))
    assert [] == found["broken"]
