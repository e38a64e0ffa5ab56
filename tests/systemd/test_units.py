"""The user units: their shape, and what systemd itself says about them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from memd.config import Daemon

UNITS = Path(__file__).parents[2] / "systemd"
NAMES = ("memd.service", "memd.socket", "memd-operator.socket")


def settings_of(name: str) -> dict[str, str]:
    """The keys of a unit; none of ours occurs twice."""
    lines = (UNITS / name).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def test_sockets_are_where_clients_look_and_for_the_user_alone() -> None:
    """Each in a directory of its own, each under the name by which the daemon tells them apart."""
    for name in ("memd", "memd-operator"):
        unit = settings_of(f"{name}.socket")
        assert f"%t/{name}/memd.sock" == unit["ListenStream"]
        assert name == unit["FileDescriptorName"]
        assert (unit["SocketMode"], unit["DirectoryMode"]) == ("0600", "0700")
        assert unit["Service"] == "memd.service"


def test_the_service_is_killed_only_after_the_longest_grace() -> None:
    """No settings file can ask for a grace that systemd cuts short."""
    grace = next(field for field in msgspec.inspect.type_info(Daemon).fields if field.name == "grace_s")  # type: ignore[attr-defined]
    assert float(settings_of("memd.service")["TimeoutStopSec"]) >= grace.type.le + 5


def test_the_service_says_ready_and_reloads_by_signal() -> None:
    """systemd 252 has no notify-reload."""
    unit = settings_of("memd.service")
    assert unit["Type"] == "notify"
    assert unit["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert "memd.socket memd-operator.socket" == unit["Sockets"] == unit["Requires"]


def test_every_line_of_the_service_has_its_reason() -> None:
    """A line without one cannot be judged by whoever has to change it."""
    page = (UNITS / "README.md").read_text()
    known = {"Description", "ExecStart", "WantedBy", "Also", "StartLimitIntervalSec", "StartLimitBurst"}
    assert [key for key in settings_of("memd.service") if key not in known and f"`{key}=" not in page] == []


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed here")
def test_systemd_has_nothing_to_say_about_the_units(tmp_path: Path) -> None:
    """An unknown or misplaced key is only a warning to systemd, hence the silence that is asked for."""
    for name in NAMES:
        text = (UNITS / name).read_text().replace("%h/.local/bin/memd", "/bin/true")
        (tmp_path / name).write_text(text)
    env = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    command = ["systemd-analyze", "verify", "--user", "--man=no", *(str(tmp_path / name) for name in NAMES)]
    found = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")
