"""memd_client.autostart: whom it trusts, and what it does with the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from memd_client.autostart import find_memd, find_program, start, wanted
from memd_client.errors import NotRunning
from memd_client.wire import Deadline

if TYPE_CHECKING:
    from pathlib import Path


def command(folder: Path, script: str = "exit 0", name: str = "memd") -> Path:
    """An executable shell script in a folder closed to others."""
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_memd_bin_is_taken_as_it_is(tmp_path: Path) -> None:
    assert "/opt/memd" == find_memd({"MEMD_BIN": "/opt/memd", "PATH": str(tmp_path)})


def test_a_relative_memd_bin_is_refused() -> None:
    """What it means would depend on where the agent happens to stand."""
    with pytest.raises(NotRunning, match="not an absolute path"):
        find_memd({"MEMD_BIN": "bin/memd"})


def test_the_first_trusted_command_on_the_path_is_found(tmp_path: Path) -> None:
    command(tmp_path / "a").chmod(0o777)
    (command(tmp_path / "b").parent).chmod(0o777)
    command(tmp_path / "c").chmod(0o644)
    right = command(tmp_path / "d")
    path = ":".join(["", "relative", *(str(tmp_path / name) for name in "abcde")])
    assert str(right) == find_program("memd", {"PATH": path})


def test_without_a_trusted_command_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NotRunning, match="run `memd serve`"):
        find_memd({"PATH": str(tmp_path)})


def test_it_can_be_turned_off() -> None:
    assert not wanted({"MEMD_AUTOSTART": "0"})
    assert wanted({"MEMD_AUTOSTART": ""})
    assert wanted({})


def test_the_command_prints_the_path(tmp_path: Path) -> None:
    """It is asked to start, for the socket that was named."""
    memd = command(tmp_path / "bin", 'echo "/run/$*"')
    assert "/run/socket --start --socket /x" == start({"MEMD_BIN": str(memd)}, "/x", Deadline(10))
    assert "/run/socket --start" == start({"MEMD_BIN": str(memd)}, None, Deadline(10))


def test_what_the_command_says_is_in_the_error(tmp_path: Path) -> None:
    memd = command(tmp_path / "bin", 'echo "no room on this machine" >&2; exit 69')
    with pytest.raises(NotRunning, match="no room on this machine") as caught:
        start({"MEMD_BIN": str(memd)}, None, Deadline(10))
    assert 69 == caught.value.data["status"]


def test_a_silent_failure_has_its_status(tmp_path: Path) -> None:
    memd = command(tmp_path / "bin", "exit 69")
    with pytest.raises(NotRunning, match="exit status 69"):
        start({"MEMD_BIN": str(memd)}, None, Deadline(10))


def test_a_missing_command_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotRunning, match="could not be started"):
        start({"MEMD_BIN": str(tmp_path / "nowhere")}, None, Deadline(10))


def test_a_command_that_hangs_is_given_up(tmp_path: Path) -> None:
    memd = command(tmp_path / "bin", "exec sleep 60")
    with pytest.raises(NotRunning, match="timed out"):
        start({"MEMD_BIN": str(memd), "PATH": "/usr/bin:/bin"}, None, Deadline(0.05))


def test_the_command_has_no_stdin_and_a_session_of_its_own(tmp_path: Path) -> None:
    """It never reads what was meant for its caller, and no terminal's Ctrl-C stops it half-way."""
    memd = command(tmp_path / "bin", 'read line; test "$(ps -o sid= -p $$ | tr -d " ")" = $$ && echo "own:$line"')
    assert "own:" == start({"MEMD_BIN": str(memd), "PATH": "/usr/bin:/bin"}, None, Deadline(10))
