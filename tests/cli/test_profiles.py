"""memd.cli.profiles: export, import, list, create."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
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


def test_import_sends_data_not_a_path(memd: Command, operator: ScriptedServer, tmp_path: Path) -> None:
    operator.script["profile.import"] = answers({"changes": [{}], "notices": [{"message": "one was there"}]})
    (tmp_path / "in.json").write_text(json.dumps(DATA))
    done = memd("import", str(tmp_path / "in.json"))
    params = operator.calls[-1][1]
    assert ("work", DATA) == (params["name"], params["data"])
    assert ("ok  1 change in profile work\n", "note: one was there\n") == (done.out, done.err)


def test_import_reads_standard_input_for_another_profile(memd: Command, operator: ScriptedServer) -> None:
    operator.script["profile.import"] = answers({"changes": []})
    assert {"changes": []} == memd("import", "-", "--profile", "home", "--json", stdin=json.dumps(DATA)).json
    assert "home" == operator.calls[-1][1]["name"]


@pytest.mark.parametrize(
    ("text", "problem"), [("{", "not JSON"), ("[]", "not what `memd export` writes"), ('{"entries": 1}', "not what")]
)
def test_what_is_no_export_is_refused_here(memd: Command, text: str, problem: str) -> None:
    done = memd("import", "-", stdin=text)
    assert (2, True) == (done.status, problem in done.err)


def test_a_missing_file_says_so(memd: Command, tmp_path: Path) -> None:
    done = memd("import", str(tmp_path / "nowhere"))
    assert (2, True) == (done.status, "No such file" in done.err)


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
