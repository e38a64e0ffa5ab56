"""memd.cli.profiles: export, list, create."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from support.scripted_server import USAGE, ScriptedServer, answers, entry

if TYPE_CHECKING:
    from pathlib import Path

    from cli.conftest import Command

DATA: dict[str, Any] = {
    "version": 1,
    "profile": "work",
    "entries": {"memory": [entry("é")], "user": []},
    "revisions": [],
}


def test_export_prints_json(memd: Command, server: ScriptedServer) -> None:
    server.script["profile.export"] = answers(DATA)
    assert DATA == memd("export").json


def test_export_writes_a_file_for_the_user_alone(memd: Command, server: ScriptedServer, tmp_path: Path) -> None:
    server.script["profile.export"] = answers(DATA)
    file = tmp_path / "out.json"
    assert (0, "", "") == memd("export", "-o", str(file))
    assert DATA == json.loads(file.read_text())
    assert 0o600 == file.stat().st_mode & 0o777


def test_export_never_overwrites(memd: Command, server: ScriptedServer, tmp_path: Path) -> None:
    server.script["profile.export"] = answers(DATA)
    (tmp_path / "out.json").write_text("mine")
    done = memd("export", "-o", str(tmp_path / "out.json"))
    assert (1, "File exists" in done.err, "mine") == (done.status, True, (tmp_path / "out.json").read_text())


def test_profiles_are_listed_with_their_usage(memd: Command, server: ScriptedServer) -> None:
    store = {"path": "/m", "state": "ok", "usage": USAGE, "revision": 1}
    found = {"profiles": [{"name": "work", "dir": "/w", "stores": {"memory": store}}]}
    server.script["profile.list"] = answers(found)
    assert (
        "work  /w\n  memory  #--------- 1%  22/2,200 characters\n" == memd("profile").out == memd("profile", "list").out
    )
    assert found == memd("profile", "list", "--json").json


def test_create_makes_the_directory_absolute(memd: Command, operator: ScriptedServer) -> None:
    """The daemon stands elsewhere."""
    operator.script["profile.create"] = answers({"name": "new", "dir": "/d"})
    assert "ok  profile new  /d\n" == memd("profile", "create", "new", "--dir", "d").out
    assert operator.calls[-1][1]["dir"].startswith("/")
    assert {"name": "new", "dir": "/d"} == memd("profile", "create", "new", "--json").json
