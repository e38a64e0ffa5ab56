"""memd.cli.starting: finding the daemon, or starting it; the real thing is in tests/e2e/test_first_client.py."""

from __future__ import annotations

import fcntl
import os
import threading
from typing import TYPE_CHECKING

import pytest
from support.scripted_server import ScriptedServer

from memd.cli.detach import Daemon, spawn
from memd.cli.starting import answers, find, find_or_start, launch, reduced, serve_command, unit_folders
from memd_client.errors import NotRunning
from memd_client.wire import Deadline

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from cli.conftest import Command


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run"), "PATH": "/usr/bin:/bin"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ScriptedServer]:
    """Not started yet."""
    made = ScriptedServer(tmp_path / "run" / "memd" / "memd.sock")
    yield made
    made.stop()


class Starter:
    """Starts the scripted server, or a process that ends with a status (negative: by that signal)."""

    def __init__(self, server: ScriptedServer | None = None, status: int | None = None) -> None:
        self.server = server
        self.status = status
        self.paths: list[str] = []

    def __call__(self, env: Mapping[str, str], path: str) -> Daemon | None:
        self.paths.append(path)
        if self.server is not None:
            self.server.start()
        if self.status is None:
            return None
        how = f"kill -{-self.status} $$" if self.status < 0 else f"exit {self.status}"
        daemon = spawn(["/bin/sh", "-c", how], dict(env))
        os.waitid(os.P_PID, daemon.pid, os.WEXITED | os.WNOWAIT)
        return daemon


def test_a_daemon_that_answers_is_not_started_again(env: dict[str, str], server: ScriptedServer) -> None:
    server.start()
    starter = Starter()
    assert str(server.path) == find_or_start(env, None, Deadline(5), starter)
    assert [] == starter.paths


def test_it_is_found_at_any_of_its_places(env: dict[str, str], tmp_path: Path) -> None:
    with ScriptedServer(tmp_path / ".local" / "state" / "memd" / "run" / "memd.sock") as elsewhere:
        assert str(elsewhere.path) == find(env, None)
    assert find(env, None) is None


def test_where_nobody_answers_it_starts_one_at_the_first_place(env: dict[str, str], server: ScriptedServer) -> None:
    starter = Starter(server)
    assert str(server.path) == find_or_start(env, None, Deadline(5), starter)
    assert [str(server.path)] == starter.paths


def test_a_daemon_that_ends_at_once_is_told_with_its_status(env: dict[str, str]) -> None:
    with pytest.raises(NotRunning, match=r"exit status 1\); run `memd serve` to see why") as caught:
        find_or_start(env, None, Deadline(5), Starter(status=1))
    assert 1 == caught.value.data["status"]
    with pytest.raises(NotRunning, match="settings"):
        find_or_start(env, None, Deadline(5), Starter(status=78))


def test_one_that_is_killed_is_followed_by_another(env: dict[str, str], server: ScriptedServer) -> None:
    """Somebody who kills a daemon does not mean the one that is just being started."""
    killed, well = Starter(status=-9), Starter(server)

    def start(env: Mapping[str, str], path: str) -> Daemon | None:
        return (well if killed.paths else killed)(env, path)

    assert str(server.path) == find_or_start(env, None, Deadline(60), start)
    assert (1, 1) == (len(killed.paths), len(well.paths))


def test_one_that_is_killed_each_time_is_told(env: dict[str, str]) -> None:
    starter = Starter(status=-11)
    with pytest.raises(NotRunning, match=r"killed 3 times while it started \(signal 11\); run `memd serve`"):
        find_or_start(env, None, Deadline(60), starter)
    assert 3 == len(starter.paths)


def test_one_that_finds_another_at_work_is_waited_for(env: dict[str, str], server: ScriptedServer) -> None:
    """Status 75: the profiles are owned, so that somebody will answer."""
    assert str(server.path) == find_or_start(env, None, Deadline(5), Starter(server, status=75))


def test_an_owner_that_listens_elsewhere_is_guessed(env: dict[str, str]) -> None:
    with pytest.raises(NotRunning, match="another memd owns the profiles and listens elsewhere"):
        find_or_start(env, None, Deadline(0.1), Starter(status=75))


def test_silence_ends_with_the_deadline(env: dict[str, str]) -> None:
    with pytest.raises(NotRunning, match="nobody answers at"):
        find_or_start(env, None, Deadline(0.1), Starter())


def locked_state(home: Path) -> int:
    """The lock as another starter holds it."""
    folder = home / ".local/state/memd"
    folder.mkdir(parents=True)
    holder = os.open(folder, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    return holder


def test_while_one_starts_the_others_wait(env: dict[str, str], server: ScriptedServer, tmp_path: Path) -> None:
    """The lock on the state directory is held by whoever starts; no file is left behind."""
    holder = locked_state(tmp_path)
    starter = Starter()
    found: list[str] = []
    waiter = threading.Thread(target=lambda: found.append(find_or_start(env, None, Deadline(10), starter)))
    waiter.start()
    server.start()
    waiter.join()
    os.close(holder)
    assert ([str(server.path)], []) == (found, starter.paths)
    assert [] == os.listdir(tmp_path / ".local/state/memd")


def test_a_holder_that_gives_up_is_followed_by_the_next(
    env: dict[str, str], server: ScriptedServer, tmp_path: Path
) -> None:
    holder = locked_state(tmp_path)
    with pytest.raises(NotRunning):
        find_or_start(env, None, Deadline(0.1), Starter())
    os.close(holder)
    assert str(server.path) == find_or_start(env, None, Deadline(5), Starter(server))


def test_without_a_folder_to_lock_it_still_starts(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / ".local").touch()
    with pytest.raises(NotRunning, match="nobody answers"):
        find_or_start(env, None, Deadline(0.05), Starter())


def test_an_error_is_an_answer(server: ScriptedServer) -> None:
    """A daemon that is shutting down or of another mind is there all the same."""
    server.script["rpc.ping"] = lambda call: call.fail("shutting_down")
    server.start()
    assert answers(str(server.path), Deadline(5))
    server.script["rpc.ping"] = lambda call: call.drop()
    assert not answers(str(server.path), Deadline(5))


def test_the_environment_is_reduced() -> None:
    given = {
        "HOME": "/h",
        "XDG_DATA_HOME": "/d",
        "PATH": "/p",
        "LANG": "C",
        "TZ": "UTC",
        "API_KEY": "secret",
        "MEMD_X": "1",
    }
    assert ["HOME", "LANG", "PATH", "TZ", "XDG_DATA_HOME"] == sorted(reduced(given))


def test_serve_is_run_by_memd_bin_or_this_installation() -> None:
    assert ["/opt/memd"] == serve_command({"MEMD_BIN": "/opt/memd"})
    assert ["-m", "memd"] == serve_command({"MEMD_BIN": "relative"})[-2:]


def test_units_are_looked_for_where_systemd_does() -> None:
    expected = ["/c/systemd/user", "/r/systemd/user", "/h/.local/share/systemd/user", "/etc/systemd/user"]
    assert expected == unit_folders({"HOME": "/h", "XDG_CONFIG_HOME": "/c", "XDG_RUNTIME_DIR": "/r"})[:4]


def systemctl(folder: Path, script: str) -> str:
    """A stand-in for systemctl that notes how it was called."""
    folder.mkdir(mode=0o700)
    program = folder / "systemctl"
    program.write_text(f'#!/bin/sh\necho "$*" >> {folder}/called\n{script}\n')
    program.chmod(0o700)
    return str(folder)


@pytest.mark.parametrize(
    ("script", "units", "by_systemd"), [("", True, True), ("exit 1", True, False), ("", False, False)]
)
def test_where_units_are_installed_systemd_listens(
    env: dict[str, str], tmp_path: Path, script: str, units: bool, by_systemd: bool
) -> None:
    """If it can; else the daemon is started by hand, here by a command that ends at once."""
    (tmp_path / "run" / "systemd").mkdir(parents=True)
    if units:
        (tmp_path / ".config" / "systemd" / "user").mkdir(parents=True)
        (tmp_path / ".config" / "systemd" / "user" / "memd.socket").touch()
    env |= {"PATH": systemctl(tmp_path / "bin", script), "MEMD_BIN": "/bin/true"}
    daemon = launch(env, str(tmp_path / "run" / "memd" / "memd.sock"))
    assert by_systemd is (daemon is None)
    if daemon is not None:
        os.waitid(os.P_PID, daemon.pid, os.WEXITED | os.WNOWAIT)
        assert 0 == daemon.ended()
    called = tmp_path / "bin" / "called"
    assert (["--user start memd.socket"] if units else []) == (
        called.read_text().splitlines() if called.exists() else []
    )


def test_another_socket_than_the_units_is_no_business_of_systemd(env: dict[str, str], tmp_path: Path) -> None:
    env |= {"PATH": systemctl(tmp_path / "bin", ""), "MEMD_BIN": "/bin/true"}
    daemon = launch(env, str(tmp_path / "elsewhere"))
    assert daemon is not None
    os.waitid(os.P_PID, daemon.pid, os.WEXITED | os.WNOWAIT)
    assert 0 == daemon.ended()


def test_socket_prints_the_path_and_whether_anybody_answers(memd: Command, server: ScriptedServer) -> None:
    expected = f"{server.path}\n"
    assert (69, expected, "") == memd("socket")
    server.start()
    assert (0, expected, "") == memd("socket")
    assert (0, expected, "") == memd("socket", "--start")
    assert {"path": str(server.path), "answers": True} == memd("socket", "--json").json


def test_socket_start_that_fails_is_status_69(memd: Command) -> None:
    memd.env["MEMD_BIN"] = "/bin/false"
    done = memd("socket", "--start", "--timeout", "5")
    assert (69, "") == (done.status, done.out)
    assert "memd serve ended at once (exit status 1)" in " ".join(done.err.split())
    assert "socket --start" not in done.err  # it is what was just tried
