"""Fixtures of the tests with whole daemons."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.daemon import DaemonProcess


@pytest.fixture
def memd(daemon: DaemonProcess) -> DaemonProcess:
    """A daemon that is up."""
    daemon.start()
    return daemon
