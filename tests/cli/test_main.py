"""memd.cli.main: statuses, help, and what a one-shot verb loads."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from support.scripted_server import USAGE, Call, ScriptedServer, answers, entry

from memd.cli.main import main
from memd.cli.shell import Shell

if TYPE_CHECKING:
    from pathlib import Path

    from cli.conftest import Command

READ: dict[str, Any] = {
    "stores": {
        name: {"entries": [entry("x")], "usage": USAGE, "revision": 1, "state": "ok", "path": "/m"}
        for name in ("memory", "user")
    }
}
HEAVY = [
    *(
        "trio",
        "msgspec",
        "structlog",
        "asyncio",
        "filelock",
        "rapidfuzz",
        "dataclasses",
        "typing",
        "json",
        "subprocess",
    ),
    *(
        "socket",
        "tomllib",
        "shutil",
        "memd.daemon",
        "memd.config",
        "memd.errors",
        "memd.protocol",
        "memd.profile",
        "memd.store",
    ),
]
PROGRAM = """
import sys
from memd.cli.main import main
status = main(sys.argv[1:])
print("loaded:", *[name for name in {heavy!r} if name in sys.modules])
sys.exit(status)
"""


def run_alone(server: ScriptedServer, *argv: str, bare: bool = True) -> subprocess.CompletedProcess[str]:
    """The command in an interpreter of its own, without site, which might load anything."""
    path = [folder for folder in sys.path if folder]
    program = f"import sys; sys.path[:0] = {path!r}\n{PROGRAM.format(heavy=HEAVY)}"
    flags = ["-I", "-S"] if bare else []
    return subprocess.run(
        [sys.executable, *flags, "-c", program, *argv, "--socket", str(server.path)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("argv", [["read"], ["add", "x"], ["remove", "e1"], ["snapshot"], ["metrics"]])
def test_a_one_shot_verb_loads_nothing_of_the_daemon(server: ScriptedServer, argv: list[str]) -> None:
    """Neither trio nor msgspec nor structlog, and of the standard library nothing that costs more than the call."""
    server.script["memory.read"] = answers(READ)
    server.script["daemon.metrics"] = answers({"text": ""})
    done = run_alone(server, *argv)
    assert ("loaded:", "") == (done.stdout.splitlines()[-1] if done.stdout else "", _traceback(done.stderr))


def _traceback(err: str) -> str:
    return err if "Traceback" in err else ""


def test_a_reader_that_has_seen_enough_is_no_error(server: ScriptedServer) -> None:
    """As in ``memd history | head``: no traceback, no status."""
    server.script["daemon.metrics"] = answers({"text": "x" * 10_000_000})
    path = [folder for folder in sys.path if folder]
    program = f"import sys; sys.path[:0] = {path!r}\nfrom memd.cli.main import main; sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", program, "metrics", "--socket", str(server.path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert (b"", 0) == (process.stderr.read(), process.wait())


def test_without_a_verb_it_shows_the_way(memd: Command) -> None:
    done = memd()
    assert (2, "") == (done.status, done.out)
    assert "exit status:" in done.err


def test_version(memd: Command) -> None:
    assert (0, "memd 0.1.0\n", "") == memd("--version")


def test_a_wrong_command_line_is_status_2(memd: Command, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        memd("explode")
    assert 2 == caught.value.code
    assert "invalid choice" in capsys.readouterr().err


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "x"])
def test_a_timeout_is_above_0(memd: Command, capsys: pytest.CaptureFixture[str], seconds: str) -> None:
    with pytest.raises(SystemExit):
        memd("read", "--timeout", seconds)
    assert "--timeout" in capsys.readouterr().err


def test_nobody_there_is_status_69(memd: Command) -> None:
    done = memd("read")
    assert 69 == done.status
    assert done.err.startswith("memd: memd is not running: nobody listens at")
    assert 69 == memd("read", "--json").status
    assert "not_running" == memd("read", "--json").json["error"]["name"]


def test_no_answer_in_time_is_status_75(memd: Command, server: ScriptedServer) -> None:
    server.script["memory.read"] = lambda _: None
    assert 75 == memd("read", "--timeout", "0.05").status


def test_an_interrupt_is_status_130(memd: Command, server: ScriptedServer) -> None:
    class InterruptedStream:
        def read(self) -> str:
            raise KeyboardInterrupt

        def isatty(self) -> bool:
            return False

    streams: Any = InterruptedStream()
    assert 130 == main(["add", "-"], Shell(streams, streams, streams, memd.env))
    assert [] == server.calls


def test_every_verb_has_help(memd: Command, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in VERBS:
        with pytest.raises(SystemExit) as caught:
            memd(verb, "--help")
        assert 0 == caught.value.code
        assert f"usage: memd {verb}" in capsys.readouterr().out


VERBS = (
    *("add", "replace", "edit", "remove", "read", "show", "history", "diff", "undo", "redo", "restore", "explain"),
    *("wipe", "import", "export", "profile", "config", "socket", "status", "watch", "metrics", "reload", "stop"),
    *("snapshot", "serve", "completion"),
)


def test_global_options_stand_before_or_after_the_verb(memd: Command, server: ScriptedServer) -> None:
    server.script["memory.read"] = answers(READ)
    for argv in (["--profile", "work", "read"], ["read", "--profile", "work"]):
        memd(*argv)
    assert ["work", "work"] == [params["profile"] for method, params in server.calls if method == "hello"]


def test_an_error_of_hello_is_told(memd: Command, server: ScriptedServer) -> None:
    def refuse(call: Call) -> None:
        call.fail("no_such_profile", "several profiles, and none named", profiles=["a", "b"])

    server.script["hello"] = refuse
    done = memd("read")
    assert (1, True) == (done.status, "profiles: a, b" in done.err)
    assert "choose one with --profile" in done.err


def test_the_module_runs_like_the_command(tmp_path: Path) -> None:
    path = [folder for folder in sys.path if folder]
    program = f"import sys, runpy; sys.path[:0] = {path!r}; runpy.run_module('memd', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", program, "--version"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (0, "memd 0.1.0\n") == (done.returncode, done.stdout)
