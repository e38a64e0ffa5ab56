"""memd.cli.history: history, show, diff, undo, redo, restore, redact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.scripted_server import USAGE, ScriptedServer, answers, entry

from memd.cli.text import cells

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


def test_diff_from_nothing(memd: Command, server: ScriptedServer) -> None:
    """0 is the empty store; the other revision says of which, else it is the first."""
    server.script["history.show"] = answers({**revision(3, target="user"), "entries": {}})
    server.script["history.diff"] = answers({"text": "", "changes": []})
    memd("diff", "0", "3")
    assert {"target": "user", "from": 0, "to": 3} == sent(server, "history.diff")
    memd("diff", "0")
    assert {"target": "memory", "from": 0} == sent(server, "history.diff")


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


def test_the_next_page_keeps_the_filters(memd: Command, server: ScriptedServer) -> None:
    """The hint can be pasted as it is."""
    server.script["history.list"] = answers({"revisions": [revision(3, change(after="x"))], "next": 3})
    out = memd("history", "user", "-n", "5", "--session", "it's 1", "--origin", "review").out
    assert "older: memd history user --session 'it'\\''s 1' --origin review --limit 5 --before 3\n" in out
    assert {"target": "user", "session": "it's 1", "origin": "review", "limit": 5} == sent(server, "history.list")


def test_nothing_by_a_filter_says_by_which(memd: Command, server: ScriptedServer) -> None:
    server.script["history.list"] = answers({"revisions": []})
    assert "nothing has changed yet by job j, origin tool\n" == memd("history", "--job", "j", "--origin", "tool").out


@pytest.mark.parametrize("limit", ["0", "-1", "1001", "x"])
def test_a_page_has_bounds(memd: Command, limit: str) -> None:
    with pytest.raises(SystemExit) as caught:
        memd("history", "-n", limit)
    assert 2 == caught.value.code


def test_columns_count_cells(memd: Command, server: ScriptedServer) -> None:
    """A name in Chinese needs two columns a character."""
    memd.env["COLUMNS"] = "110"
    rows = [revision(1, change(after="x"), client="代码客户端"), revision(2, change(after="y" * 200), client="codex")]
    server.script["history.list"] = answers({"revisions": rows})
    first, second = memd("history").out.splitlines()
    assert cells(first[: first.index("+")]) == cells(second[: second.index("+")])
    assert 110 == cells(second)


def test_what_is_no_plain_change_says_what_it_is(memd: Command, server: ScriptedServer) -> None:
    """In the list by a word, in show with the numbers."""
    undo_of = revision(9, change("add", after="back"), kind="undo", undoes=[7, 8], redacted=True)
    server.script["history.list"] = answers({"revisions": [undo_of, revision(8, kind="outside", reason="r")]})
    first, second = memd("history").out.splitlines()
    assert first.endswith("+ undo: back")
    assert second.endswith("  r")
    server.script["history.show"] = answers({**undo_of, "entries": {}})
    assert "  what: undo of 7, 8; texts of it were redacted\n" in memd("show", "9").out


def test_a_preview_says_that_nothing_was_done(memd: Command, server: ScriptedServer) -> None:
    """The same words, no usage."""
    plan = undone(revision=None, revisions=[])
    for verb, argv, word in (
        ("undo", ["undo"], "undone"),
        ("redo", ["redo"], "redone"),
        ("restore", ["restore", "3", "-u"], "restored"),
    ):
        server.script[f"history.{verb}"] = answers(plan)
        assert f"would be {word}  1 change\n- memory e1\n    [-one-]\n" == memd(*argv, "--preview").out
        assert sent(server, f"history.{verb}")["preview"] is True


def test_what_is_already_so_is_told(memd: Command, server: ScriptedServer) -> None:
    server.script["history.restore"] = answers(undone(revision=None, revisions=[], changes=[]))
    assert memd("restore", "3", "-u").out.startswith("nothing to change  0 changes\n")


REDACTED = {"tables": {"revision": 2, "set_aside": 1, "event": 0}, "revisions": [7], "notices": []}


def test_redact_asks_a_person(memd: Command, operator: ScriptedServer) -> None:
    """What stays outside of memd's reach is said."""
    operator.script["history.redact"] = answers(REDACTED)
    done = memd("redact", "hunter2", answers="yes\n")
    assert {"text": "hunter2"} == sent(operator, "history.redact")
    assert [
        "redacted  live entries, by revision 7",
        "redacted  rows of history: revision 2, set aside 1",
    ] == done.out.splitlines()
    assert "Type yes to go on" in done.err
    assert "exports, backups" in done.err
    assert REDACTED == memd("redact", "hunter2", "--yes", "--json").json


@pytest.mark.parametrize("argv", [["redact", "hunter2"], ["redact", "-"]])
def test_redact_without_a_yes_does_nothing(memd: Command, operator: ScriptedServer, argv: list[str]) -> None:
    """A script has to mean it; what is piped in cannot answer as well."""
    assert 1 == memd(*argv, answers="no\n").status
    assert 1 == memd(*argv, stdin="yes\n").status
    assert [] == operator.methods()


def test_redact_reads_the_text_from_standard_input(memd: Command, operator: ScriptedServer) -> None:
    """So that it does not stand in the shell's history; inner newlines stay."""
    operator.script["history.redact"] = answers({**REDACTED, "tables": {}, "revisions": []})
    done = memd("redact", "-", "--yes", "--reason", "leak", stdin="one\ntwo\n")
    assert {"text": "one\ntwo", "reason": "leak"} == sent(operator, "history.redact")
    assert "memd keeps no such text: nothing had to be redacted\n" == done.out


def test_redact_by_revision(memd: Command, operator: ScriptedServer) -> None:
    """One of the two says what is meant."""
    notice = {"name": "not_redacted", "message": "USER.md was not looked at", "data": {}}
    operator.script["history.redact"] = answers({**REDACTED, "notices": [notice]})
    assert "note: USER.md was not looked at\n" in memd("redact", "--revision", "3", "--yes").err
    assert {"revision": 3} == sent(operator, "history.redact")
    for argv in (["redact"], ["redact", "x", "--revision", "3"]):
        assert 2 == memd(*argv, "--yes").status
