"""Neovim, a MessagePack-RPC client that nobody wrote for memd, works without a plug-in."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from support.daemon import DaemonProcess

SCRIPT = """
let memd = sockconnect('pipe', '{socket}', {{'rpc': v:true}})
let found = {{}}
let found.hello = rpcrequest(memd, 'hello', {{'client': {{'name': 'nvim', 'version': '0'}}, 'errors': 'pair'}})
let found.added = rpcrequest(memd, 'memory.add', {{'target': 'memory', 'content': 'Written from Neovim'}})
let found.read = rpcrequest(memd, 'memory.read')
let found.ping = rpcrequest(memd, 'rpc.ping', {{}})
let found.lua = luaeval("vim.fn.rpcrequest(_A, 'rpc.ping', {{}})", memd)
try
  call rpcrequest(memd, 'memory.remove', {{'target': 'memory', 'old_text': 'no such thing'}})
catch
  let found.error = v:exception
endtry
call writefile([json_encode(found)], '{output}')
quitall!
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("nvim") is None, reason="Neovim is not installed here; .ci/run installs it"),
]


@pytest.fixture
def found(daemon: DaemonProcess) -> dict[str, Any]:
    """What a headless Neovim got from the daemon."""
    daemon.start()
    script, output = daemon.home / "script.vim", daemon.home / "found.json"
    script.write_text(SCRIPT.format(socket=daemon.socket, output=output))
    command = ["nvim", "--headless", "-u", "NONE", "-i", "NONE", "-S", str(script)]
    run = subprocess.run(command, env=daemon.env, capture_output=True, text=True, timeout=60, check=False)
    assert output.exists(), run.stderr
    result = json.loads(output.read_text())
    assert isinstance(result, dict)
    return result


def test_neovim_adds_and_reads(found: dict[str, Any]) -> None:
    """With the functions that it has built in; an empty Lua table, which goes out as an array, is a map."""
    assert found["hello"]["protocol"] == 1
    assert found["added"]["changed"]
    assert ["Written from Neovim"] == [it["text"] for it in found["read"]["stores"]["memory"]["entries"]]
    assert {} == found["ping"] == found["lua"]


def test_neovim_shows_a_readable_error(found: dict[str, Any]) -> None:
    """The name, what is wrong, and the nearest entry's id, which is all that a line of text can carry."""
    assert "not_found: " in found["error"]
    assert found["error"].rstrip("'\"").endswith(found["added"]["entry"]["id"])
