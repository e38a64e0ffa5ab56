"""memd.cli.history: history, show, diff, undo, redo, restore."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.scripted_server import USAGE, ScriptedServer, answers, entry

if TYPE_CHECKING:
    from cli.conftest import Command

HOURS_AGO = 1_767_225_600_000_000 + 3 * 86_400_000_000 - 2 * 3_600_000_000


def change(action: str = "add", before: str | None = None, after: str | None = None) -> dict[str, Any]:
    texts = {key: value for key, value in (("before", before), ("after", after)) if value is not None}
    return {"action": action, "target": "memory", "id": "e1", **texts}


def revision(number: int, *changes: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "revision": number,
        "target": "memory",
        "at": "2026-01-03T22:00:00.000000Z",
        "us": HOURS_AGO,
        "origin": "agent",
        "client": "codex",
        "uid": 1000,
        "pid": 42,
        "kind": "change",
        "changes": list(changes),
        "undoes": [],
        "redacted": False,
        **fields,
    }


def undone(**fields: Any) -> dict[str, Any]:
    return {
        "revision": 9,
        "revisions": [9],
        "changes": [change("remove", before="one")],
        "conflicts": [],
        "usage": {"memory": USAGE},
        "replayed": False,
        **fields,
    }


def sent(server: ScriptedServer, method: str) -> dict[str, Any]:
    params = [params for name, params in server.calls if name == method][-1]
    return {key: value for key, value in params.items() if key not in ("deadline_ms", "request_id")}


def test_history_is_one_line_a_revision(memd: Command, server: ScriptedServer) -> None:
    rows = [
        revision(12, change("replace", "old", "new text"), change("add", after="x"), undone_by=13),
        revision(3, change("remove", before="gone")),
    ]
    server.script["history.list"] = answers({"revisions": rows, "next": 3})
    lines = memd("history").out.splitlines()
    assert [
        "12  2h  memory  agent  ~ new text (+1) (undone)",
        " 3  2h  memory  agent  - gone",
        "older: memd history --before 3",
    ] == lines
    assert {"limit": 20} == sent(server, "history.list")


def test_history_shows_the_client_where_there_is_room(memd: Command, server: ScriptedServer) -> None:
    memd.env["COLUMNS"] = "120"
    server.script["history.list"] = answers({"revisions": [revision(1, change(after="x" * 200))]})
    (line,) = memd("history").out.splitlines()
    assert "codex" in line
    assert 120 == len(line)


@pytest.mark.parametrize("columns", ["20", "40", "60"])
def test_history_fits_narrow_terminals(memd: Command, server: ScriptedServer, columns: str) -> None:
    """Down to 40 columns; below, the beginning of the text is still there."""
    memd.env["COLUMNS"] = columns
    server.script["history.list"] = answers({"revisions": [revision(1, change(after="word " * 40))]})
    (line,) = memd("history").out.splitlines()
    assert len(line) <= max(int(columns), 40)
    assert "word" in line


def test_history_takes_every_filter(memd: Command, server: ScriptedServer) -> None:
    server.script["history.list"] = answers({"revisions": []})
    done = memd("history", "user", "-n", "5", "--before", "9", "--session", "s", "--job", "j", "--entry", "e")
    expected = {"target": "user", "limit": 5, "before": 9, "session": "s", "job": "j", "entry": "e"}
    assert expected == sent(server, "history.list")
    assert "nothing older\n" == done.out
    assert "nothing has changed yet\n" == memd("history").out


def test_a_revision_without_changes_shows_its_reason(memd: Command, server: ScriptedServer) -> None:
    rows = [revision(1, reason="normalised"), revision(2)]
    server.script["history.list"] = answers({"revisions": rows})
    first, second = memd("history").out.splitlines()
    assert first.endswith("normalised")
    assert second.endswith("no change")


def test_show_says_who_when_why_and_what(memd: Command, server: ScriptedServer) -> None:
    shown = revision(12, change("replace", "Debian 12", "Debian 13"), reason="upgrade", session="s-1")
    entries = {"memory": [entry("Debian 13")], "user": []}
    server.script["history.show"] = answers({**shown, "entries": entries})
    assert [
        "revision 12 of memory, 2026-01-03T22:00:00.000000Z (2h ago)",
        "  by: agent through codex, uid 1000, pid 42",
        "  session: s-1",
        "  reason: upgrade",
        "~ memory e1",
        "    Debian [-12-]{+13+}",
    ] == memd("show", "12").out.splitlines()
    assert "memory after it\n  e1  3d  agent  Debian 13\n" in memd("show", "12", "--entries").out


def test_diff_takes_the_store_of_its_revision(memd: Command, server: ScriptedServer) -> None:
    server.script["history.show"] = answers({**revision(3, target="user"), "entries": {}})
    server.script["history.diff"] = answers({"text": "", "changes": [change("add", after="new")]})
    assert "+ memory e1\n    {+new+}\n" == memd("diff", "3", "5").out
    assert {"target": "user", "from": 3, "to": 5} == sent(server, "history.diff")


def test_diff_up_to_now(memd: Command, server: ScriptedServer) -> None:
    server.script["history.diff"] = answers({"text": "", "changes": []})
    assert "no difference\n" == memd("diff", "3", "-u").out
    assert {"target": "user", "from": 3} == sent(server, "history.diff")


def test_changed_words_are_coloured_line_by_line(memd: Command, server: ScriptedServer) -> None:
    """Each line on its own, so that a pager does not lose the colour."""
    server.script["history.diff"] = answers({"text": "", "changes": [change("edit", "a b", "a c\nd")]})
    out = memd("diff", "1", "-t", "memory", "--color", "always").out
    assert "    a \x1b[31mb\x1b[0m\x1b[32mc\x1b[0m\n    \x1b[32md\x1b[0m\n" in out


def test_undo_without_a_selector_is_the_last_change(memd: Command, server: ScriptedServer) -> None:
    server.script["history.undo"] = answers(undone())
    done = memd("undo", "--reason", "wrong")
    assert {"last": 1, "reason": "wrong"} == sent(server, "history.undo")
    assert done.out.startswith("undone  1 change\n- memory e1\n    [-one-]\nmemory: ")
    assert 0 == done.status


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["7"], {"revision": 7}),
        (["--last", "3"], {"last": 3}),
        (["--session", "s"], {"session": "s"}),
        (["--job", "j"], {"job": "j"}),
    ],
)
def test_undo_and_redo_take_every_selector(
    memd: Command, server: ScriptedServer, argv: list[str], expected: dict[str, Any]
) -> None:
    for verb in ("undo", "redo"):
        server.script[f"history.{verb}"] = answers(undone())
        assert 0 == memd(verb, *argv).status
        assert expected == sent(server, f"history.{verb}")


def test_an_undo_that_conflicts_is_a_refusal_with_reasons(memd: Command, server: ScriptedServer) -> None:
    conflict = {"id": "e1", "reason": "changed later"}
    server.script["history.undo"] = answers(undone(revision=None, revisions=[], changes=[], conflicts=[conflict]))
    done = memd("undo", "7")
    assert (1, "") == (done.status, done.out)
    assert [
        "memd: nothing was undone, as later changes stand in the way:",
        "  e1  changed later",
        "  `memd history --entry e1` lists what came later: undo that first, or change",
        "  the entry by hand",
    ] == done.err.splitlines()
    assert 1 == memd("undo", "7", "--json").status


def test_restore_takes_the_store_of_its_revision(memd: Command, server: ScriptedServer) -> None:
    server.script["history.show"] = answers({**revision(3, target="user"), "entries": {}})
    server.script["history.restore"] = answers(undone())
    assert memd("restore", "3").out.startswith("restored")
    assert {"target": "user", "revision": 3} == sent(server, "history.restore")


@pytest.mark.parametrize(
    ("argv", "method"),
    [(["history"], "history.list"), (["show", "1"], "history.show"), (["diff", "1", "-u"], "history.diff")],
)
def test_json_is_the_answer_as_it_came(memd: Command, server: ScriptedServer, argv: list[str], method: str) -> None:
    answer = {"revisions": [], "changes": [], "text": "", "entries": {}, "future": 1}
    server.script[method] = answers(answer)
    assert answer == memd(*argv, "--json").json
