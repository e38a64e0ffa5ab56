"""memd.cli.settings: config show, config path."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from cli.conftest import Command


def write(home: Path, text: str) -> Path:
    file = home / ".config" / "memd" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    file.chmod(0o600)
    return file


def test_path_is_where_the_settings_are_read_from(memd: Command, tmp_path: Path) -> None:
    expected = str(tmp_path / ".config" / "memd" / "config.toml")
    assert expected + "\n" == memd("config", "path").out
    assert {"path": expected} == memd("config", "path", "--json").json


def test_show_says_what_is_in_force_and_where_it_came_from(memd: Command, tmp_path: Path) -> None:
    file = write(tmp_path, '[limits]\nmemory = 3000\n[review]\ntopics_deny = ["a \\"b\\""]\n')
    pairs = [line.split("#", 1) for line in memd("config").out.splitlines()]
    lines = {left.strip(): source.strip() for left, source in pairs}
    assert f"{file}:2" == lines["limits.memory = 3000"]
    assert "default" == lines["limits.user = 1375"]
    assert "default" == lines["daemon.allow_root = false"]
    assert f"{file}:4" == lines['review.topics_deny = ["a \\"b\\""]']


def test_show_as_json(memd: Command) -> None:
    rows = memd("config", "show", "--json").json
    assert {"key": "limits.memory", "value": 2200, "source": "default"} in rows


def test_a_file_that_cannot_be_used_is_told_with_its_line(memd: Command, tmp_path: Path) -> None:
    file = write(tmp_path, "[limits]\nmemmory = 3000\n")
    done = memd("config", "show")
    assert (78, "") == (done.status, done.out)
    assert f"{file}:2" in done.err
    failed = memd("config", "show", "--json")
    assert (78, "settings") == (failed.status, failed.json["error"]["name"])
