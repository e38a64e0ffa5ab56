"""memd.cli.memory: add, replace, edit, remove, read, explain, wipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.scripted_server import USAGE, Call, ScriptedServer, answers, entry, mutation

if TYPE_CHECKING:
    from cli.conftest import Command


def stores(memory: list[dict[str, Any]], user: list[dict[str, Any]] | None = None, **fields: Any) -> dict[str, Any]:
    base = {"usage": USAGE, "revision": 3, "state": "ok", "path": "/m/MEMORY.md", **fields}
    both = {"memory": {**base, "entries": memory}, "user": {**base, "path": "/m/USER.md", "entries": user or []}}
    return {"stores": both}


def sent(server: ScriptedServer, method: str) -> dict[str, Any]:
    """The parameters of the last call of a method, without those every call has."""
    params = [params for name, params in server.calls if name == method][-1]
    return {key: value for key, value in params.items() if key not in ("deadline_ms", "request_id")}


def test_add_stores_a_text(memd: Command, server: ScriptedServer) -> None:
    server.script["memory.add"] = answers(mutation("a fact"))
    done = memd("add", "a fact", "--reason", "it is so")
    assert {"target": "memory", "content": "a fact", "reason": "it is so"} == sent(server, "memory.add")
    assert (0, "") == (done.status, done.err)
    assert "ok  e1  added\nmemory: #--------- 1%  22/2,200 characters  revision 4\n" == done.out.replace(
        "█", "#"
    ).replace("░", "-")


def test_add_reads_standard_input(memd: Command, server: ScriptedServer) -> None:
    server.script["memory.add"] = answers(mutation())
    memd("add", "-", "-u", stdin="from a pipe\n")
    assert {"target": "user", "content": "from a pipe\n"} == sent(server, "memory.add")


def test_add_tells_notices_and_no_change(memd: Command, server: ScriptedServer) -> None:
    notice = {"name": "near_duplicate", "message": "there is nearly the same", "data": {}}
    server.script["memory.add"] = answers(mutation(changed=False, message="there already", notices=[notice]))
    done = memd("add", "a fact")
    assert done.out.startswith("unchanged  e1  there already")
    assert "note: there is nearly the same\n" == done.err


def test_json_is_the_answer_as_it_came(memd: Command, server: ScriptedServer) -> None:
    """Before or after the verb."""
    server.script["memory.add"] = answers(mutation())
    assert mutation() == memd("--json", "add", "a fact").json == memd("add", "a fact", "--json").json


def test_conditions_are_passed_on(memd: Command, server: ScriptedServer) -> None:
    server.script["memory.add"] = answers(mutation())
    memd("add", "x", "--if-revision", "7", "--origin", "tool")
    assert {"target": "memory", "content": "x", "if_revision": 7, "origin": "tool"} == sent(server, "memory.add")


def test_an_entry_is_found_by_its_id_and_so_is_its_store(memd: Command, server: ScriptedServer) -> None:
    server.script["memory.read"] = answers(stores([entry("one", 1)], [entry("two", 2)]))
    server.script["memory.remove"] = answers(mutation(None, message="removed"))
    memd("remove", "e2")
    assert {"target": "user", "id": "e2"} == sent(server, "memory.remove")


def test_what_is_no_id_is_a_text(memd: Command, server: ScriptedServer) -> None:
    server.script["memory.read"] = answers(stores([entry("one", 1)]))
    server.script["memory.replace"] = answers(mutation("1"))
    memd("replace", "on", "1", "--if-hash", "h")
    assert {"target": "memory", "old_text": "on", "content": "1", "if_hash": "h"} == sent(server, "memory.replace")


def test_how_an_entry_is_named_can_be_said(memd: Command, server: ScriptedServer) -> None:
    server.script["memory.read"] = answers(stores([entry("one", 1)]))
    server.script["memory.remove"] = answers(mutation(None))
    memd("remove", "--text", "e1")
    assert {"target": "memory", "old_text": "e1"} == sent(server, "memory.remove")
    memd("remove", "--id", "gone", "-t", "user")
    assert {"target": "user", "id": "gone"} == sent(server, "memory.remove")


def test_edit_changes_a_part(memd: Command, server: ScriptedServer) -> None:
    server.script["memory.edit"] = answers(mutation())
    memd("edit", " 12", "")
    assert {"target": "memory", "old_text": " 12", "new_text": ""} == sent(server, "memory.edit")


def test_edit_finds_the_store_of_an_id(memd: Command, server: ScriptedServer) -> None:
    server.script["memory.read"] = answers(stores([], [entry("two", 2)]))
    server.script["memory.edit"] = answers(mutation())
    memd("edit", "a", "b", "--id", "e2")
    assert {"target": "user", "old_text": "a", "new_text": "b", "id": "e2"} == sent(server, "memory.edit")


def test_read_shows_ids_ages_and_usage(memd: Command, server: ScriptedServer) -> None:
    server.script["memory.read"] = answers(stores([entry("Project uses pytest -x", 1), entry("two\nlines", 12)]))
    lines = memd("read").out.splitlines()
    assert [
        "MEMORY (the agent's notes)  #--------- 1%  22/2,200 characters  revision 3",
        "  /m/MEMORY.md",
        "  e1   3d  agent  Project uses pytest -x",
        "  e12  3d  agent  two",
        "                  lines",
        "",
        "USER (who the user is)  #--------- 1%  22/2,200 characters  revision 3",
        "  /m/USER.md",
        "  no entries",
    ] == lines


def test_read_as_json(memd: Command, server: ScriptedServer) -> None:
    server.script["memory.read"] = answers(stores([entry("one")]))
    assert stores([entry("one")]) == memd("read", "--json").json


def test_read_may_be_of_one_store(memd: Command, server: ScriptedServer) -> None:
    server.script["memory.read"] = answers(stores([]))
    memd("read", "user")
    assert {"target": "user"} == sent(server, "memory.read")


def test_a_long_entry_wraps_beside_its_id(memd: Command, server: ScriptedServer) -> None:
    memd.env["COLUMNS"] = "40"
    server.script["memory.read"] = answers(stores([entry("word " * 12)]))
    lines = memd("read", "memory").out.splitlines()[2:6]
    assert all(len(line) <= 40 for line in lines)
    assert lines[1].startswith(" " * 17 + "word")


def test_an_entry_cannot_act_on_the_terminal(memd: Command, server: ScriptedServer) -> None:
    server.script["memory.read"] = answers(stores([entry("\x1b]0;title\x07 x")]))
    assert "\\x1b]0;title\\x07 x" in memd("read").out


def test_a_store_in_trouble_says_why(memd: Command, server: ScriptedServer) -> None:
    server.script["memory.read"] = answers(
        stores([entry("x", undecodable=True)], state="stale", detail="no permission")
    )
    out = memd("read", "memory").out
    assert "(stale)" in out
    assert "no permission" in out
    assert "(not UTF-8)" in out


@pytest.mark.parametrize(("percent", "near", "colour"), [(10, False, "32"), (90, True, "33"), (120, True, "31")])
def test_the_bar_has_the_colour_of_its_state(
    memd: Command, server: ScriptedServer, percent: int, near: bool, colour: str
) -> None:
    usage = {"chars": 22 * percent, "limit": 2200, "free": 0, "percent": percent, "near_limit": near}
    server.script["memory.read"] = answers(stores([], usage=usage))
    assert f"\x1b[{colour}m#" in memd("read", "--color", "always").out


def test_explain_says_what_became_of_a_text(memd: Command, server: ScriptedServer) -> None:
    match = {
        "state": "refused",
        "target": "memory",
        "at": "2026-01-01T00:00:00Z",
        "us": 1,
        "reason": "a key",
        "rule": "r",
    }
    stored = {"state": "stored", "target": "user", "id": "e1", "revision": 3, "at": "x", "us": 1, "reason": ""}
    server.script["memory.explain"] = answers({"matches": [match, stored]})
    out = memd("explain", "secret").out
    assert "refused by rule r  memory  2026-01-01T00:00:00Z\n  a key\n" in out
    assert "stored  user e1 revision 3" in out


def test_explain_of_an_unknown_text_is_an_answer_too(memd: Command, server: ScriptedServer) -> None:
    server.script["memory.explain"] = answers({"matches": []})
    done = memd("explain", "nothing")
    assert (0, True) == (done.status, "never seen" in done.out)
    assert {"matches": []} == memd("explain", "nothing", "--json").json


def test_wipe_asks_a_person_for_the_name(memd: Command, operator: ScriptedServer) -> None:
    operator.script["memory.wipe"] = answers(mutation(None, message="wiped"))
    done = memd("wipe", "memory", answers="default\n")
    assert "type default: " in done.err
    assert {"target": "memory", "confirm": "default"} == sent(operator, "memory.wipe")


def test_wipe_without_the_right_name_does_nothing(memd: Command, operator: ScriptedServer) -> None:
    assert 1 == memd("wipe", "memory", answers="yes\n").status
    assert 1 == memd("wipe", "memory").status
    assert [] == operator.methods()


def test_wipe_may_be_confirmed_by_a_script(memd: Command, operator: ScriptedServer) -> None:
    operator.script["memory.wipe"] = answers(mutation(None))
    assert 0 == memd("wipe", "memory", "--confirm", "default").status


def test_a_refusal_lists_what_there_is(memd: Command, server: ScriptedServer) -> None:
    def refuse(call: Call) -> None:
        shown = [{"id": "e1", "chars": 1300, "text": "x" * 200}]
        call.fail("over_limit", "over the limit by 25", entries=shown, excess=25)

    server.script["memory.add"] = refuse
    done = memd("add", "x", "-u")
    assert (1, "") == (done.status, done.out)
    lines = done.err.splitlines()
    assert "memd: over the limit by 25" == lines[0]
    assert lines[2].startswith("    e1  1,300  xxx")
    assert lines[2].endswith("…")
