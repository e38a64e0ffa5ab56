"""Eight kinds of outside writers beside eight clients: nothing is missing, and what was removed stays removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.outsiders import Outsiders
from support.survival import Diary, losses

from memd_client import Client

if TYPE_CHECKING:
    from support.daemon import DaemonProcess

PAGE = 1000
CLIENTS = 8


def lines_of(texts: list[str]) -> list[str]:
    return [line for text in texts for line in text.split("\n") if line not in {"", "§"}]


def recorded(client: Client) -> list[str]:
    """Every line of every revision."""
    found: list[str] = []
    before: int | None = None
    while True:
        page = client.history_list(target="memory", limit=PAGE, before=before)
        changes = [change for revision in page.revisions for change in revision.changes]
        found += lines_of([text for change in changes for text in (change.before, change.after) if text])
        before = page.next
        if before is None:
            return found


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_kind_of_writer_at_once(daemon: DaemonProcess, suite_profile: str) -> None:
    """An editor, a shell, sed, stale saves, a checkout, a sync client and a script that builds the file line by line."""
    if suite_profile != "long":
        pytest.skip("a minute of real time, and every kind has to have had its turn: for the long profile")
    daemon.configure("[limits]\nmemory = 1000000\n[wire]\ndeadline_ms = 60000\n")
    daemon.memory.write_text("")
    daemon.start()
    diary = Diary()
    Outsiders(daemon.memory, daemon.socket, diary, suite_profile).run(60, CLIENTS)
    daemon.restart()
    with Client(daemon.socket, autostart=False, timeout=60) as client:
        shown = lines_of([entry.text for entry in client.memory_read("memory").stores["memory"].entries])
        history = recorded(client)
    found = lines_of([daemon.memory.read_text()])
    assert [] == losses(diary, found, shown, history)
    owners = {text.split(" wrote ")[0] for text in diary.written}
    assert owners >= {"editor", "shell", "sed", "stale_editor", "stale_script", "builder"}
    assert diary.put_back
