"""One event, one line, without what entries say."""

from __future__ import annotations

import io
import json
import os
from typing import TYPE_CHECKING

import pytest

from memd.logs import open_log

if TYPE_CHECKING:
    from pathlib import Path

    from memd.logs import Form, Level

SECRET = "my cat is called Felix"


class Terminal(io.StringIO):
    """A stream that a person watches."""

    def isatty(self) -> bool:
        return True


class GoneTerminal(Terminal):
    """A stream whose reader went away."""

    def write(self, text: str, /) -> int:
        raise BrokenPipeError(32, "Broken pipe", text)


def fail() -> None:
    """Raise an error with a cause, both of which quote an entry."""
    try:
        os.environ[SECRET]
    except KeyError as error:
        message = f"no {SECRET}"
        raise ValueError(message) from error


def logged(form: Form, *, level: Level = "info", **fields: object) -> str:
    stream = io.StringIO()
    open_log(stream, {}, form=form, level=level).info("memory.changed", **fields)
    return stream.getvalue()


def test_json_is_one_object_a_line_with_time_and_level() -> None:
    """A log shipper reads it as it is."""
    line = logged("json", profile="default", revision=3, note="two\nlines")
    assert line.count("\n") == 1
    event = json.loads(line)
    assert event.pop("timestamp").endswith("Z")
    expected = {"event": "memory.changed", "level": "info", "profile": "default", "revision": 3, "note": "two\\nlines"}
    assert expected == event


def test_journal_lines_start_with_their_priority_and_have_no_time() -> None:
    """The journal takes ``<N>`` off and has its own clock."""
    assert logged("journal", profile="default", ok=True) == "<6>memory.changed profile=default ok=true\n"
    stream = io.StringIO()
    log = open_log(stream, {}, form="journal", level="debug")
    log.debug("a")
    log.warning("b")
    log.error("c")
    log.critical("d")
    assert stream.getvalue() == "<7>a\n<4>b\n<3>c\n<2>d\n"


def test_console_is_for_people() -> None:
    """Colours on a terminal, none with NO_COLOR."""
    coloured, plain = Terminal(), Terminal()
    open_log(coloured, {}).info("started", pid=7)
    open_log(plain, {"NO_COLOR": "1"}).info("started", pid=7)
    assert "\x1b[" in coloured.getvalue()
    assert "\x1b[" not in plain.getvalue()
    assert "started" in plain.getvalue()
    assert "pid=7" in plain.getvalue()


def test_auto_writes_json_where_nobody_watches() -> None:
    """A stream without a descriptor is a program's."""
    stream = io.StringIO()
    open_log(stream, {}).info("started")
    assert json.loads(stream.getvalue())["event"] == "started"


def test_auto_writes_for_the_journal_only_into_the_stream_that_leads_there(tmp_path: Path) -> None:
    """JOURNAL_STREAM names device and inode; a redirected stderr of the same service gets JSON."""
    with (tmp_path / "journal").open("w") as journal, (tmp_path / "other").open("w") as other:
        status = os.fstat(journal.fileno())
        env = {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
        open_log(journal, env).info("started")
        open_log(other, env).info("started")
    assert (tmp_path / "journal").read_text() == "<6>started\n"
    assert json.loads((tmp_path / "other").read_text())["event"] == "started"


def test_events_below_the_level_are_not_written() -> None:
    """``--log-level warning`` is quiet."""
    assert logged("json", level="warning") == ""


@pytest.mark.parametrize("form", ["json", "journal", "console"])
def test_no_entry_text_above_debug(form: Form) -> None:
    """Neither as a field nor inside a map."""
    line = logged(form, text=SECRET, data={"entries": [SECRET], "usage": 3}, params={"content": SECRET})
    assert SECRET not in line
    assert "[22]" in line
    assert SECRET in logged(form, level="debug", text=SECRET)


@pytest.mark.parametrize("form", ["json", "journal", "console"])
def test_an_exception_shows_frames_and_types_but_no_message(form: Form) -> None:
    """A KeyError quotes its key, which may be an entry; debugging shows it."""
    shown = {}
    for level in ("info", "debug"):
        stream = io.StringIO()
        log = open_log(stream, {}, form=form, level=level)
        try:
            fail()
        except ValueError:
            log.exception("internal", method="memory.add")
        shown[level] = stream.getvalue()
    for name in ("KeyError", "ValueError", "test_logs.py"):
        assert name in shown["info"]
    # The frames show source lines, which name the variable, not what is in it.
    assert SECRET not in shown["info"]
    assert SECRET in shown["debug"]


def test_an_error_object_is_taken_as_it_is() -> None:
    """``exc_info=error`` works outside the handler; nonsense is ignored."""
    assert "OSError" in json.loads(logged("json", exc_info=OSError(5, "x")))["exception"]
    assert "OSError" in json.loads(logged("json", exc_info=(OSError, OSError(5, "x"), None)))["exception"]
    for nothing in (False, None, (None, None, None)):
        assert "exception" not in json.loads(logged("json", exc_info=nothing))


@pytest.mark.parametrize("form", ["json", "journal", "console"])
def test_control_characters_cannot_steer_a_terminal_or_start_a_line(form: Form) -> None:
    """A client chooses its name."""
    line = logged(form, client="\x1b[2Jx\n<0>fake \ud800")
    assert "\x1b" not in line
    assert line.count("\n") == 1
    line.encode()


def test_a_reader_that_went_away_does_not_stop_the_daemon() -> None:
    """Neither a broken pipe nor a closed stream raises."""
    open_log(GoneTerminal(), {}, form="json").info("started")
    closed = io.StringIO()
    log = open_log(closed, {}, form="json")
    closed.close()
    log.info("started")
