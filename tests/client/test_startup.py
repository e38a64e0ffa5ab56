"""The client's start-up: its main cost, held down by what it does not import."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from support.scripted_server import ScriptedServer

if TYPE_CHECKING:
    from pathlib import Path

HEAVY = "trio msgspec structlog asyncio dataclasses typing enum socket subprocess logging inspect json re uuid memd"
PROGRAM = """
import sys
from memd_client import Client
with Client(sys.argv[1], autostart=False) as client:
    client.rpc_ping()
print(*[name for name in sys.argv[2:] if name in sys.modules])
"""


def test_a_call_loads_nothing_heavy(tmp_path: Path) -> None:
    """Standard library and msgpack only, and of the library nothing that costs more than the call.

    A bare interpreter (-I) shows it; the path of the packages under test is handed over.
    """
    path = [entry for entry in sys.path if entry]
    program = f"import sys; sys.path[:0] = {path!r}\n{PROGRAM}"
    with ScriptedServer(tmp_path / "s") as server:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", program, str(server.path), *HEAVY.split()],
            capture_output=True,
            text=True,
            check=False,
        )
    assert ("", "\n", 0) == (done.stderr, done.stdout, done.returncode)
