"""memd.cli.approval and walking: what waits, shown to a person and settled by one."""

from __future__ import annotations

import os
import pty
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from support.judged import DOUBTFUL
from support.scripted_server import USAGE, answers, entry

from memd.cli.main import main
from memd.cli.shell import Shell

if TYPE_CHECKING:
    from pathlib import Path

    from cli.conftest import Command
    from support.scripted_server import Call, ScriptedServer

DAY_S = 86_400


def proposal(proposal_id: str = "p-abc123", **fields: Any) -> dict[str, Any]:
    """One as the daemon tells it."""
    return {
        "id": proposal_id,
        "state": "pending",
        "target": "memory",
        "operations": [{"action": "add", "content": "The API allows 40 calls"}],
        "diff": "+The API allows 40 calls",
        "findings": [],
        "origin": "tool",
        "base": 3,
        "at": "2026-01-01T00:00:00Z",
        "us": 1,
        "age_s": 2 * DAY_S,
        "client": "reader",
        **fields,
    }


def listed(*proposals: dict[str, Any]) -> Any:
    oldest = max((one["age_s"] for one in proposals), default=0)
    return answers({"proposals": list(proposals), "count": len(proposals), "oldest_s": oldest})


def mutation(**fields: Any) -> dict[str, Any]:
    said = {"changed": True, "target": "memory", "revision": 7, "changes": [], "usage": USAGE, "message": "Approved."}
    return {**said, "notices": [], "replayed": False, **fields}


@pytest.fixture
def daemon(operator: ScriptedServer) -> ScriptedServer:
    """An operator's daemon with one proposal and one entry."""
    stores = {
        name: {"entries": [entry("old text")], "usage": USAGE, "revision": 1, "state": "ok", "path": "/m"}
        for name in ("memory", "user")
    }
    operator.script["memory.read"] = answers({"stores": stores})
    operator.script["approval.list"] = listed(proposal())
    operator.script["approval.approve"] = answers(mutation())
    operator.script["approval.reject"] = answers(proposal(state="rejected"))
    return operator


class TestPending:
    def test_a_person_sees_whose_it_is_and_what_it_would_change(self, memd: Command, daemon: ScriptedServer) -> None:
        """With age, reason and findings; and how to go on."""
        finding = {"rule": "a.rule", "class": "override", "severity": "stage", "start": 0, "end": 3, "reason": "odd"}
        told = proposal(findings=[finding], proposed="said in a document")
        daemon.script["approval.list"] = listed(told)
        done = memd("pending", person=True)
        assert 0 == done.status
        for words in ("p-abc123", "by tool through reader", "2d ago", "said in a document", "odd (rule a.rule, stage)"):
            assert words in done.out
        assert "\x1b[32mThe API allows 40 calls\x1b[0m" in done.out
        assert "--walk" in done.out

    def test_words_that_change_are_marked(self, memd: Command, daemon: ScriptedServer) -> None:
        """Of a replacement and of an edit, by what the entry says now; without colour as wdiff has it."""
        known = entry("old text")["id"]
        daemon.script["approval.list"] = listed(
            proposal(operations=[{"action": "replace", "id": known, "content": "new text"}]),
            proposal(operations=[{"action": "edit", "id": known, "old_text": "old", "new_text": "older"}]),
            proposal(operations=[{"action": "remove", "id": known}]),
            proposal(operations=[{"action": "remove", "old_text": "unknown"}]),
        )
        out = " ".join(memd("pending", "--color", "never", person=True).out.split())
        for line in ("[-old-] {+new+} text", "[-old-] {+older+} text", "[-old text-]", "[-unknown-]"):
            assert line in out

    def test_operations_are_shown_on_what_those_before_them_leave(self, memd: Command, daemon: ScriptedServer) -> None:
        """What an edit puts into a text that is new itself, and what a replacement takes away besides the part it names."""
        known = entry("old text")["id"]
        daemon.script["approval.list"] = listed(
            proposal(
                operations=[
                    {"action": "replace", "id": known, "content": "calm words here"},
                    {"action": "edit", "id": known, "old_text": "calm", "new_text": "EVIL"},
                    {"action": "replace", "old_text": "EVIL", "content": "short"},
                    {"action": "add", "content": "first of two"},
                    {"action": "edit", "old_text": "first", "new_text": "last"},
                ]
            ),
        )
        out = " ".join(memd("pending", "--color", "never", person=True).out.split())
        expected = ["{+calm words here+}", "[-calm-] {+EVIL+} words here", "[-EVIL words here-]{+short+}"]
        for line in (*expected, "[-first-] {+last+} of two"):
            assert line in out

    def test_an_edit_that_fits_no_more_shows_what_it_would_change(self, memd: Command, daemon: ScriptedServer) -> None:
        """And not the text of now, as if nothing would become of it."""
        edit = {"action": "edit", "id": entry("old text")["id"], "old_text": "gone", "new_text": "EVIL"}
        daemon.script["approval.list"] = listed(proposal(operations=[edit]))
        assert "[-gone-]{+EVIL+}" in memd("pending", "--color", "never", person=True).out

    @pytest.mark.parametrize("field", ["client", "proposed", "reason"])
    def test_what_others_wrote_passes_for_no_line_of_ours(
        self, memd: Command, daemon: ScriptedServer, field: str
    ) -> None:
        """Whatever ends a line somewhere."""
        shown = []
        for told in ("a\nb\r\n\u2028+ memory new\n    harmless", "a b\\x0d \\u2028+ memory new harmless"):
            daemon.script["approval.list"] = listed(proposal(**{field: told}))
            shown.append(memd("pending", "--color", "never", person=True).out)
        assert shown[1] == shown[0]
        assert "harmless" in shown[0]

    def test_what_nobody_sees_is_named(self, memd: Command, daemon: ScriptedServer) -> None:
        """Else a person approves what they cannot read."""
        finding = {
            "rule": "invisible.zero-width",
            "class": "invisible",
            "severity": "stage",
            "start": 8,
            "end": 9,
            "reason": "characters that nobody sees",
        }
        told = proposal(operations=[{"action": "add", "content": DOUBTFUL}], findings=[finding])
        daemon.script["approval.list"] = listed(told)
        out = memd("pending", person=True).out
        assert "\u200b" not in out
        assert "\\u200b" in out
        assert "U+200B" in out

    def test_one_that_does_not_fit_says_why(self, memd: Command, daemon: ScriptedServer) -> None:
        """In words."""
        daemon.script["approval.list"] = listed(proposal(state="needs_review", reason="the entry has changed"))
        assert "cannot be applied as it is: the entry has changed" in memd("pending", person=True).out

    def test_entries_that_no_prompt_gets_are_listed_too(self, memd: Command, daemon: ScriptedServer) -> None:
        """With what can be done about each."""
        rows = [
            {"id": "e1", "rule": "a.rule", "reason": "odd", "approvable": True},
            {"id": "e2", "rule": "b.rule", "reason": "an attack", "approvable": False},
        ]
        daemon.script["approval.list"] = listed()
        daemon.script["hello"] = with_notice(daemon.script["hello"], rows)
        out = " ".join(memd("pending", person=True).out.split())
        assert "odd (rule a.rule); `memd approve e1` lets it in" in out
        assert "an attack (rule b.rule); reword it, or `memd remove` it" in out

    def test_nothing_waits(self, memd: Command, daemon: ScriptedServer) -> None:
        """It says so."""
        daemon.script["approval.list"] = listed()
        assert "nothing waits for you\n" == memd("pending", person=True).out

    def test_programs_get_it_as_it_came(self, memd: Command, server: ScriptedServer) -> None:
        """From the agent socket, where nobody looks on."""
        server.script["approval.list"] = listed(proposal())
        done = memd("pending", "--json")
        assert ["p-abc123"] == [one["id"] for one in done.json["proposals"]]


class TestDecide:
    def test_approve_and_reject_one(self, memd: Command, daemon: ScriptedServer) -> None:
        """With what the daemon says."""
        assert (0, True) == ((done := memd("approve", "p-abc123", "--reason", "ok")).status, "Approved." in done.out)
        assert (0, True) == ((done := memd("reject", "p-abc123", "--reason", "no")).status, "rejected" in done.out)
        said = {name: params for name, params in daemon.calls if name.startswith("approval")}
        assert ("p-abc123", "ok") == (said["approval.approve"]["id"], said["approval.approve"]["reason"])
        assert ("p-abc123", "no") == (said["approval.reject"]["id"], said["approval.reject"]["reason"])

    def test_with_another_text(self, memd: Command, daemon: ScriptedServer) -> None:
        """Given, or from standard input."""
        memd("approve", "p-abc123", "--content", "mine")
        memd("approve", "p-abc123", "--content", "-", stdin="from a pipe")
        contents = [params["content"] for name, params in daemon.calls if name == "approval.approve"]
        assert ["mine", "from a pipe"] == contents

    def test_all_of_them_although_one_fails(self, memd: Command, daemon: ScriptedServer) -> None:
        """That one is told, the others are done, and the status says that not all went well (FR-140)."""
        daemon.script["approval.list"] = listed(proposal("p-1"), proposal("p-2"), proposal("p-3"))

        def approve(call: Call) -> None:
            if call.params["id"] == "p-2":
                call.fail("over_limit", "no room")
            else:
                call.reply(mutation())

        daemon.script["approval.approve"] = approve
        done = memd("approve", "--all")
        assert (1, 2) == (done.status, done.out.count("Approved."))
        assert "p-2" in done.err
        assert "no room" in done.err
        done = memd("approve", "--all", "--json")
        assert [("p-1", True), ("p-2", False), ("p-3", True)] == [
            (row["id"], "result" in row) for row in done.json["results"]
        ]

    def test_statuses(self, memd: Command, daemon: ScriptedServer) -> None:
        """Usage 2, refused 1, not allowed 77."""
        assert 2 == memd("approve").status
        assert 2 == memd("approve", "p-1", "--all").status
        assert 2 == memd("approve", "p-1", "p-2", "--content", "x").status
        assert 2 == memd("reject").status
        daemon.script["approval.approve"] = lambda call: call.fail("no_such_proposal", "is approved already")
        assert 1 == memd("approve", "p-1").status
        refuse = {"agent": 77}
        daemon.script["approval.approve"] = lambda call: call.fail("permission_denied", "an agent did", **refuse)
        done = memd("approve", "p-1", "p-2")
        assert (77, False) == (done.status, "operator" in done.err)

    def test_a_staged_change_is_told_as_such(self, memd: Command, server: ScriptedServer) -> None:
        """Where an agent or a script adds."""
        told = mutation(changed=False, staged="p-1", message="Not applied: it waits.")
        server.script["memory.add"] = answers(told)
        done = memd("add", "x")
        assert (0, True) == (done.status, done.out.startswith("staged  Not applied"))


def test_read_and_show_mark_what_no_prompt_gets(memd: Command, server: ScriptedServer) -> None:
    """Withheld entries and findings, beside the live text."""
    finding = {"rule": "a.rule", "class": "x", "severity": "stage", "start": 0, "end": 3, "reason": "reads oddly"}
    warned = {**finding, "rule": "w.rule", "severity": "warn", "reason": "worth a look"}
    one, two = (
        {**entry("first"), "id": "e1", "findings": [finding]},
        {**entry("second"), "id": "e2", "findings": [warned]},
    )
    store = {"entries": [one, two], "usage": USAGE, "revision": 1, "state": "ok", "path": "/m"}
    server.script["memory.read"] = answers({"stores": {"memory": store}})
    server.script["hello"] = with_notice(
        server.script["hello"], [{"id": "e1", "rule": "a.rule", "reason": "reads oddly"}]
    )
    out = memd("read").out
    assert "first" in out
    assert "kept out of prompts: reads oddly (rule a.rule)" in out
    assert "scan: worth a look (rule w.rule)" in out
    change = {"action": "add", "target": "memory", "id": "e1", "after": "first"}
    shown = {
        "revision": 1,
        "target": "memory",
        "at": "t",
        "us": 1,
        "origin": "outside",
        "client": "",
        "uid": 1,
        "pid": 1,
    }
    shown |= {"kind": "outside", "undoes": [], "redacted": False, "changes": [change], "entries": {"memory": [one]}}
    server.script["history.show"] = answers(shown)
    assert "e1 is kept out of prompts now (rule a.rule)" in memd("show", "1").out


def with_notice(hello: Any, rows: list[dict[str, Any]]) -> Any:
    """The handshake with a notice on entries that are kept out of prompts."""

    def say(call: Call) -> None:
        reply = call.reply

        def replied(result: Any) -> None:
            notice = {"name": "withheld", "message": "kept out", "data": {"target": "memory", "entries": rows}}
            reply({**result, "notices": [notice]})

        call.reply = replied  # type: ignore[method-assign]  # for this one call
        hello(call)

    return say


class Terminal:
    """A pseudo terminal with the command on it, and a person who types."""

    def __init__(self, memd: Command) -> None:
        self.memd = memd
        self.out = ""
        self.status: int | None = None

    def run(self, keys: str, *argv: str, env: dict[str, str] | None = None) -> None:
        """Press the keys one by one, each when it is asked for."""
        ours, theirs = pty.openpty()
        with os.fdopen(theirs, "r+b", buffering=0, closefd=True) as raw, os.fdopen(os.dup(theirs), "r") as stdin:
            out = os.fdopen(os.dup(raw.fileno()), "w")
            shell = Shell(stdin, out, out, {**self.memd.env, "NO_COLOR": "1", **(env or {})})
            thread = threading.Thread(target=self._run, args=(argv, shell, out), daemon=True)
            thread.start()
            for key in keys:
                self._read_until(ours, "? ")
                os.write(ours, key.encode())
            thread.join(10)
            assert not thread.is_alive(), self.out
        self._drain(ours)
        os.close(ours)

    def _run(self, argv: tuple[str, ...], shell: Shell, out: Any) -> None:
        self.status = main(["pending", "--walk", *argv], shell)
        out.close()

    def _read_until(self, descriptor: int, mark: str) -> None:
        text = ""
        while not text.endswith(mark):
            text += os.read(descriptor, 4096).decode()
        self.out += text

    def _drain(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        try:
            while data := os.read(descriptor, 4096):
                self.out += data.decode()
        except OSError:
            return


@pytest.fixture
def terminal(memd: Command) -> Terminal:
    return Terminal(memd)


class TestWalk:
    @pytest.fixture
    def three(self, daemon: ScriptedServer) -> ScriptedServer:
        """Three that wait; the last one has two operations."""
        two = [{"action": "add", "content": "x"}, {"action": "add", "content": "y"}]
        daemon.script["approval.list"] = listed(proposal("p-1"), proposal("p-2"), proposal("p-3", operations=two))
        return daemon

    def test_a_key_for_each(self, terminal: Terminal, three: ScriptedServer) -> None:
        """Approve, reject, skip; what was done is summed up."""
        terminal.run("ars")
        assert 0 == terminal.status
        assert [("approval.approve", "p-1"), ("approval.reject", "p-2")] == decided(three)
        assert "1 approved, 1 rejected, 1 proposal left" in terminal.out
        assert "1 of 3" in terminal.out

    @pytest.mark.parametrize("end", ["q", "\x04"])
    def test_quit_leaves_the_rest(self, terminal: Terminal, three: ScriptedServer, end: str) -> None:
        """With q or at the end of the input."""
        terminal.run("a" + end)
        assert [("approval.approve", "p-1")] == decided(three)
        assert "1 approved, 2 proposals left" in terminal.out

    def test_other_keys_do_nothing(self, terminal: Terminal, three: ScriptedServer) -> None:
        """It asks again; an edit is not offered where there are two texts."""
        terminal.run("xAseq")
        assert [("approval.approve", "p-1")] == decided(three)
        assert [True, False] == ["edit" in terminal.out.split(f"{number} of 3")[1].split("?")[0] for number in (1, 3)]

    def test_edit_and_approve(self, terminal: Terminal, three: ScriptedServer, tmp_path: Path) -> None:
        """In the person's editor; what they leave is approved, no change is no decision."""
        script = tmp_path / "editor.py"
        script.write_text("import sys\nfrom pathlib import Path\np = Path(sys.argv[1])\np.write_text('mine\\n')\n")
        terminal.run("eq", env={"EDITOR": f"{sys.executable} {script}"})
        (params,) = [params for name, params in three.calls if name == "approval.approve"]
        assert ("p-1", "mine") == (params["id"], params["content"])
        three.calls.clear()
        terminal.run("eq", env={"EDITOR": "true"})
        assert [] == decided(three)
        assert "nothing was changed" in terminal.out
        terminal.run("eq", env={"VISUAL": "/nowhere/editor"})
        assert "set EDITOR" in terminal.out

    def test_one_that_fails_is_told_and_the_next_one_comes(self, terminal: Terminal, three: ScriptedServer) -> None:
        """The status says so."""
        three.script["approval.approve"] = lambda call: call.fail("over_limit", "no room")
        terminal.run("arq")
        assert 1 == terminal.status
        assert "no room" in terminal.out
        assert "1 rejected, 2 proposals left" in terminal.out

    def test_nothing_waits(self, terminal: Terminal, daemon: ScriptedServer) -> None:
        """It says so."""
        daemon.script["approval.list"] = listed()
        terminal.run("")
        assert (0, True) == (terminal.status, "nothing waits for you" in terminal.out)

    def test_it_needs_a_terminal(self, memd: Command, daemon: ScriptedServer) -> None:
        """A script is told what to use."""
        done = memd("pending", "--walk")
        assert (2, True) == (done.status, "memd approve ID" in done.err)


def decided(server: ScriptedServer) -> list[tuple[str, str]]:
    return [(name, params["id"]) for name, params in server.calls if name in ("approval.approve", "approval.reject")]
