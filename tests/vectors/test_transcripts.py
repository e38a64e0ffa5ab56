"""The recorded conversation is one that the daemon still has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.transcripts import CALLS, converse
from support.vectors import load

from memd.dispatch.handlers import method_table

if TYPE_CHECKING:
    from support.daemon import DaemonProcess

TRANSCRIPTS = load("transcripts")


def shape(value: Any) -> Any:
    """The value with every scalar as its type: what does not change from run to run."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


def test_every_method_is_shown() -> None:
    assert {row.name for row in method_table()} == {item["method"] for item in TRANSCRIPTS}


def test_the_recording_is_of_these_calls() -> None:
    assert [(role, method) for role, method, _ in CALLS] == [(item["socket"], item["method"]) for item in TRANSCRIPTS]


def test_only_the_refusals_meant_to_be_some_are() -> None:
    assert ["not_found", "conflict"] == [item["error"]["name"] for item in TRANSCRIPTS if "error" in item]


@pytest.mark.slow
def test_the_daemon_still_answers_like_this(daemon: DaemonProcess) -> None:
    """Field for field and type for type; ``python -m support.transcripts`` records it anew."""
    daemon.start()
    for recorded, now in zip(TRANSCRIPTS, converse(daemon), strict=True):
        if recorded["method"] in {"rpc.discover", "daemon.metrics", "daemon.status"}:
            continue  # cut in the recording, or with a field more for every counter
        assert shape(recorded.get("result")) == shape(now.get("result")), recorded["name"]
        assert shape(recorded.get("error")) == shape(now.get("error")), recorded["name"]
