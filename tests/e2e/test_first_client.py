"""A client that finds nobody, and the daemon it gets."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.home import Home

from memd_client.errors import NotRunning

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow


@pytest.fixture
def home() -> Iterator[Home]:
    with Home() as made:
        yield made


def test_a_client_that_finds_nobody_starts_memd(home: Home) -> None:
    with home.client() as client:
        assert client.memory_add("memory", "the first words").changed
    assert "the first words" in home.memory.read_text()


def test_a_verb_starts_memd(home: Home) -> None:
    done = home.memd("add", "by a verb")
    assert (0, "") == (done.returncode, done.stderr)
    assert "by a verb" in home.memory.read_text()


def test_the_daemon_shares_nothing_with_its_starter(home: Home) -> None:
    """Not its environment, not its directory, not its descriptors: a pipe it kept would hang the starter's parent."""
    home.env["SECRET"] = "x"
    began = time.monotonic()
    done = subprocess.run(
        [home.env["MEMD_BIN"], "socket", "--start"],
        env=home.env,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=15,
    )
    assert time.monotonic() - began < 15
    assert f"{home.socket}\n" == done.stdout
    process = Path(f"/proc/{home.pid()}")
    names = {item.split(b"=")[0].decode() for item in (process / "environ").read_bytes().split(b"\0") if item}
    assert {"SECRET", "MEMD_BIN", "MEMD_AUTOSTART"}.isdisjoint(names)
    assert {"HOME", "XDG_RUNTIME_DIR", "PATH"} <= names
    assert "/" == os.readlink(process / "cwd")
    assert {"/dev/null"} == {os.readlink(process / "fd" / number) for number in ("0", "1", "2")}
    assert home.pid() == os.getsid(home.pid())


def test_a_killed_daemon_is_started_again_by_whoever_needs_it(home: Home) -> None:
    """With a stale socket in the way; the session and its snapshot are found again."""
    with home.client() as client:
        client.memory_add("memory", "before")
        opened = client.session_open(key="k")
        first = home.pid()
        os.kill(first, signal.SIGKILL)
        client.memory_add("memory", "after")
        again = client.session_open(key="k")
        assert first != home.pid()
    assert (opened.session, opened.snapshot) == (again.session, again.snapshot)
    assert again.stale


def test_a_settings_file_that_cannot_be_used_is_told(home: Home) -> None:
    home.configure("[limits]\nmemmory = 1\n")
    done = home.memd("read")
    assert 69 == done.returncode
    assert "memd serve ended at once (exit status 78)" in " ".join(done.stderr.split())
    assert 78 == home.memd("config", "show").returncode
    home.configure("")


def test_a_second_daemon_ends_at_once_with_75(home: Home) -> None:
    home.memd("socket", "--start")
    done = home.memd("serve")
    assert 75 == done.returncode
    assert str(home.pid()) in done.stderr


def test_turned_off_nothing_is_started(home: Home) -> None:
    home.env["MEMD_AUTOSTART"] = "0"
    with home.client() as client, pytest.raises(NotRunning):
        client.rpc_ping()
    assert 69 == home.memd("read").returncode
    assert not home.socket.exists()
