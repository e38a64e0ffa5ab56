"""Word to the service manager: what is said, and that nothing depends on being heard."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from memd.transport.notify import Notifier, watchdog_s

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """A service manager's socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "notify"))
        sock.setblocking(False)
        yield sock


@pytest.mark.parametrize(
    ("say", "heard"),
    [
        (lambda notifier: notifier.ready(), b"READY=1"),
        (lambda notifier: notifier.ready("2 profiles"), b"READY=1\nSTATUS=2 profiles"),
        (lambda notifier: notifier.status("one\ntwo"), b"STATUS=one two"),
        (lambda notifier: notifier.reloading(5), b"RELOADING=1\nMONOTONIC_USEC=5"),
        (lambda notifier: notifier.stopping(), b"STOPPING=1"),
        (lambda notifier: notifier.extend_timeout(7), b"EXTEND_TIMEOUT_USEC=7"),
        (lambda notifier: notifier.watchdog(), b"WATCHDOG=1"),
    ],
)
def test_what_is_said(manager: socket.socket, say: Callable[[Notifier], bool], heard: bytes) -> None:
    """Each is one datagram."""
    assert say(Notifier(manager.getsockname()))
    assert heard == manager.recv(1000)


def test_an_abstract_address() -> None:
    """``@`` stands for the NUL in front of a name that is in no directory."""
    name = f"memd-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(f"\0{name}")
        assert Notifier(f"@{name}").ready()
        assert b"READY=1" == sock.recv(1000)


@pytest.mark.parametrize("address", [None, "", "/nonexistent/socket"])
def test_nobody_listens(address: str | None) -> None:
    assert not Notifier(address).ready()


def test_a_manager_that_does_not_read_holds_nothing_up(manager: socket.socket) -> None:
    """The datagram that does not fit is dropped."""
    notifier = Notifier(manager.getsockname())
    while notifier.watchdog():
        pass
    assert manager.recv(1000) == b"WATCHDOG=1"


def test_the_variable_is_not_left_to_children() -> None:
    environ = {"NOTIFY_SOCKET": "@x", "HOME": "/"}
    assert "<Notifier '\\x00x'>" == repr(Notifier.from_environ(environ))
    assert {"HOME": "/"} == environ
    assert "<Notifier None>" == repr(Notifier.from_environ(environ))


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"}, 30.0),
        ({"WATCHDOG_USEC": "500000"}, 0.5),
        ({"WATCHDOG_USEC": "500000", "WATCHDOG_PID": "8"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({}, None),
    ],
)
def test_watchdog(environ: dict[str, str], seconds: float | None) -> None:
    """Only if it is meant for this process, and never left to children."""
    assert seconds == watchdog_s(environ, pid=7)
    assert {} == environ
