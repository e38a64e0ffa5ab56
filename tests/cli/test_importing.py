"""memd.cli.importing: exports, Markdown files, Markdown that is in memory already."""

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
    "profile": "default",
    "entries": {"memory": [entry("é")], "user": []},
    "revisions": [],
}
CHANGES = [
    {"action": "remove", "target": "memory", "id": "old", "before": "# Tools\n- uses uv\n- runs tests"},
    {"action": "add", "target": "memory", "id": "a", "after": "Tools: uses uv"},
    {"action": "add", "target": "memory", "id": "b", "after": "Tools: runs\ntests"},
]
REPLY: dict[str, Any] = {"changes": CHANGES, "usage": {"memory": USAGE}, "notices": [], "heads": {"memory": 7}}
BAR = "memory: #--------- 1%  22/2,200 characters\n"
ROWS = "- memory    30  # Tools\n                …\n+ memory    14  Tools: uses uv\n+ memory    17  Tools: runs\n                tests\n"
TOO_MUCH = {"name": "over_limit", "message": "too much"}


def imports(server: ScriptedServer) -> list[dict[str, Any]]:
    """The parameters of every import, without what the client adds."""
    calls = [params for method, params in server.calls if method == "profile.import"]
    return [{key: value for key, value in call.items() if key not in {"request_id", "deadline_ms"}} for call in calls]


def test_an_export_is_sent_as_data_not_as_a_path(memd: Command, operator: ScriptedServer, tmp_path: Path) -> None:
    reply = {**REPLY, "changes": CHANGES[1:2], "notices": [{"message": "one was there"}]}
    operator.script["profile.import"] = answers(reply)
    (tmp_path / "in").write_text(json.dumps(DATA))
    done = memd("import", str(tmp_path / "in"))
    assert [{"name": "default", "data": DATA}] == imports(operator)
    assert (0, "imported  1 entry in profile default\n" + BAR, "note: one was there\n") == done


def test_standard_input_holds_an_export(memd: Command, operator: ScriptedServer) -> None:
    operator.script["profile.import"] = answers({"changes": []})
    assert {"changes": []} == memd("import", "-", "--json", stdin=json.dumps(DATA)).json
    assert "nothing to import  0 entries in profile default\n" == memd("import", "-", stdin=json.dumps(DATA)).out


@pytest.mark.parametrize(("options", "store"), [((), "memory"), (("-t", "user"), "user")])
def test_markdown_of_a_file(
    memd: Command, operator: ScriptedServer, tmp_path: Path, options: tuple[str, ...], store: str
) -> None:
    """Newlines are sent as they are, the byte-order mark is not."""
    operator.script["profile.import"] = answers(REPLY)
    (tmp_path / "notes.md").write_bytes(b"\xef\xbb\xbf- a\r\n- b\r\n")
    assert 0 == memd("import", str(tmp_path / "notes.md"), *options).status
    assert [{"name": "default", "data": {"version": 1, "markdown": {store: "- a\r\n- b\r\n"}}}] == imports(operator)


@pytest.mark.parametrize(
    ("options", "stores"), [(("--foreign",), ["memory", "user"]), (("--foreign", "user"), ["user"])]
)
def test_foreign_markdown(memd: Command, operator: ScriptedServer, options: tuple[str, ...], stores: list[str]) -> None:
    """Of both stores, or of one. Where nobody can be asked it is done, as undo brings it back."""
    operator.script["profile.import"] = answers(REPLY)
    done = memd("import", *options)
    assert [{"name": "default", "data": {"version": 1, "foreign": stores}}] == imports(operator)
    assert (0, "imported  2 entries for 1 in profile default\n" + BAR, "") == done


def test_a_preview(memd: Command, operator: ScriptedServer) -> None:
    """Every entry with its size, then the usage; nothing is imported."""
    operator.script["profile.import"] = answers(REPLY)
    done = memd("import", "--foreign", "memory", "--preview")
    assert (0, "would be imported  2 entries for 1 in profile default\n" + ROWS + BAR, "") == done
    assert [True] == [call["preview"] for call in imports(operator)]
    assert REPLY == memd("import", "--foreign", "memory", "--preview", "--json").json


def test_a_preview_of_what_would_be_refused(memd: Command, operator: ScriptedServer) -> None:
    """The status says so."""
    operator.script["profile.import"] = answers({**REPLY, "notices": [TOO_MUCH]})
    done = memd("import", "--foreign", "memory", "--preview")
    assert (1, "note: too much\n") == (done.status, done.err)
    assert 1 == memd("import", "--foreign", "memory", "--preview", "--json").status


@pytest.mark.parametrize(("answer", "status"), [("yes\n", 0), ("Y\n", 0), ("no\n", 1), ("", 1)])
def test_a_person_is_asked(memd: Command, operator: ScriptedServer, answer: str, status: int) -> None:
    """After a preview; what is imported then is bound to the revisions that the preview was made for."""
    operator.script["profile.import"] = answers(REPLY)
    done = memd("--color", "never", "import", "--foreign", "memory", person=True, answers=answer)
    data = {"name": "default", "data": {"version": 1, "foreign": ["memory"]}}
    wanted = [{**data, "preview": True}, {**data, "if_revisions": {"memory": 7}}]
    assert (status, wanted[: 1 + (status == 0)]) == (done.status, imports(operator))
    assert ("nothing was imported" in done.err) == (status == 1)
    assert ROWS in done.out


@pytest.mark.parametrize("reply", [{**REPLY, "notices": [TOO_MUCH]}, {**REPLY, "changes": []}])
def test_nothing_is_asked_where_there_is_nothing_to_do(
    memd: Command, operator: ScriptedServer, reply: dict[str, Any]
) -> None:
    """Refused, or there already."""
    operator.script["profile.import"] = answers(reply)
    done = memd("import", "--foreign", person=True, answers="yes\n")
    assert (1, False) == (len(imports(operator)), "Import this?" in done.err)


def test_yes_asks_nothing(memd: Command, operator: ScriptedServer) -> None:
    operator.script["profile.import"] = answers(REPLY)
    assert 0 == memd("import", "--foreign", "--yes", person=True, answers="").status
    assert ["preview" in call for call in imports(operator)] == [False]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "not JSON"),
        ("[]", "not what `memd export` writes"),
        ('{"entries": 1}', "not what"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_export_is_refused_here(memd: Command, text: str, problem: str) -> None:
    done = memd("import", "-", stdin=text)
    assert (2, True) == (done.status, problem in done.err)


@pytest.mark.parametrize("options", [(), ("--foreign", "memory", "--preview", "--", "x.md")])
def test_a_file_or_foreign(memd: Command, options: tuple[str, ...]) -> None:
    """One of them."""
    done = memd("import", *options)
    assert (2, True) == (done.status, "give a file to import, or --foreign" in done.err)


def test_files_that_cannot_be_read(memd: Command, tmp_path: Path) -> None:
    (tmp_path / "latin.md").write_bytes(b"\xff")
    for name, problem in [("nowhere", "No such file"), ("latin.md", "not UTF-8"), ("", "Is a directory")]:
        done = memd("import", str(tmp_path / name))
        assert (2, True) == (done.status, problem in done.err)
