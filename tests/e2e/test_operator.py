"""What an operator does to a running daemon, as those who are connected see it."""

from __future__ import annotations

import pytest
from support.daemon import DaemonProcess

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("written", [False, True])
def test_the_end_is_announced_before_the_connections_close(*, written: bool) -> None:
    """To subscribers, also where nothing else is on its way to the journal."""
    with DaemonProcess() as daemon:
        daemon.start()
        with daemon.connect() as reader, daemon.connect(operator=True) as operator:
            reader.call("events.subscribe", topics=["daemon.closing"])
            if written:
                reader.call("memory.add", target="memory", content="a fact")
            operator.send("daemon.stop")
            (event,) = reader.wait_notification("event")
        assert "daemon.closing" == event["topic"]
        assert 0 == daemon.wait()


def test_a_profile_made_at_run_time_follows_the_general_settings() -> None:
    """At a reload, as it would after a restart."""
    with DaemonProcess() as daemon:
        daemon.start()
        with daemon.connect(operator=True) as operator:
            operator.call("profile.create", name="work")
            daemon.configure("[limits]\nmemory = 100\n")
            operator.call("daemon.reload")
        with daemon.connect(profile="work") as client:
            assert 100 == client.call("memory.read")["stores"]["memory"]["usage"]["limit"]


def test_what_concerns_the_whole_daemon_needs_no_profile() -> None:
    """Neither of several, nor one that can be served."""
    with DaemonProcess() as daemon:
        daemon.configure(f'[profiles.a]\ndir = "{daemon.home}/mem"\n[profiles.b]\ndir = "{daemon.home}/log/b"\n')
        daemon.log_file.touch()
        daemon.start()
        status = daemon.memd("status")
        assert (0, True) == (status.returncode, "note: b:" in status.stdout)
        assert [0, 0, 0] == [daemon.memd(*verb).returncode for verb in (["profile"], ["metrics"], ["reload"])]
        assert 1 == daemon.memd("read").returncode
        assert 0 == daemon.memd("stop").returncode
        assert 0 == daemon.wait()
