"""What is installed when memd is installed."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import memd
import memd_client

ROOT = Path(__file__).parents[1]


def test_daemon_and_client_have_one_version() -> None:
    """They are released together."""
    assert memd.__version__ == memd_client.__version__


@pytest.mark.slow
def test_the_wheel_has_both_packages_and_the_command(tmp_path: Path) -> None:
    """Typed, licensed, and nothing of the tests in it."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (entry_points,) = [name for name in names if name.endswith("entry_points.txt")]
        assert "memd = memd.cli.main:main" in archive.read(entry_points).decode()
    for name in ("memd/py.typed", "memd/cli/main.py", "memd/ARCHITECTURE.md", "memd_client/py.typed"):
        assert name in names
    assert {"memd", "memd_client"} == {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert any(name.endswith("licenses/LICENSE") for name in names)
