"""Settings: what a file may say, and what is said about one that may not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeAlias

import msgspec
import pytest

from memd.config import Effective, Settings, effective, load, profile_name_problem, read_private, weakened
from memd.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ENV = {"HOME": "/home/u", "XDG_CONFIG_HOME": "/nonexistent"}

Load: TypeAlias = "Callable[[str], Settings]"


@pytest.fixture
def settings_file(tmp_path: Path) -> Path:
    folder = tmp_path / "config"
    folder.mkdir(mode=0o700)
    return folder / "config.toml"


@pytest.fixture
def read(settings_file: Path) -> Load:
    def read(text: str) -> Settings:
        settings_file.write_bytes(text.encode())
        settings_file.chmod(0o600)
        return load(str(settings_file), ENV)

    return read


def test_no_file_gives_the_defaults_and_one_profile() -> None:
    """Memd runs without settings; ``default`` exists by itself."""
    settings = load(None, ENV)
    assert settings.path is None
    assert list(settings.profiles) == ["default"]
    assert settings.profiles["default"].dir == "/home/u/.local/share/memd/profiles/default"
    assert (settings.limits.memory, settings.limits.user, settings.limits.near_percent) == (2200, 1375, 85)
    assert {row.source for row in effective(settings)} == {"default"}


def test_a_file_named_by_hand_must_exist() -> None:
    """A typo in ``--config`` must not start a daemon with defaults."""
    with pytest.raises(SettingsError, match=r"/nonexistent/x\.toml: no such file"):
        load("/nonexistent/x.toml", ENV)


def test_defaults_are_those_that_are_documented() -> None:
    """Names and values are relied on from outside; a change here is a change of the interface."""
    table = msgspec.to_builtins(load(None, ENV))
    assert table["daemon"] == {"grace_s": 4, "idle_exit_s": 0, "allow_root": False, "symlink_roots": ()}
    assert table["wire"] == {"message_bytes": 8388608, "in_flight": 64, "connections": 1024, "deadline_ms": 10000}
    assert table["stores"] == {"memory": True, "user": True}
    assert table["turn"] == {"failure_budget": 3, "idle_expiry_s": 300}
    assert table["access"] == {"primary": "full", "subagent": "read", "cron": "read", "job": "none"}
    assert table["sessions"] == {"keep_days": 30}
    assert table["flush"] == {"min_turns": 6, "min_new_turns": 1, "cooldown_s": 60}
    assert table["scan"] == {"off": (), "warn": ()}
    assert table["history"] == {"keep_days": 365, "keep_revisions": 10000, "max_mb": 256}
    assert table["approval"] == {
        "user": "apply",
        "agent": "apply",
        "tool": "stage",
        "import": "apply",
        "outside": "apply",
        "review_add": "apply",
        "review_change": "stage",
        "flush_add": "apply",
        "flush_change": "stage",
        "expiry_days": 30,
    }
    review = table["review"]
    nested = {name: review.pop(name) for name in ("openai", "anthropic", "command")}
    assert review == {
        "reviewer": "rules",
        "fallback": (),
        "interval": 10,
        "idle_s": 2.0,
        "max_steps": 8,
        "timeout_s": 120,
        "lease_s": 60,
        "tokens_per_job": 60000,
        "tokens_per_day": 500000,
        "keep_messages_days": 7,
        "tool_bodies": False,
        "prompt_file": "",
        "topics_allow": (),
        "topics_deny": (),
    }
    assert {"base_url", "model", "mode", "api_key_file"} == set(nested["openai"])
    assert {"base_url", "model", "api_key_file"} == set(nested["anthropic"])
    assert nested["command"] == {"argv": (), "timeout_s": 120}


def test_a_profile_overrides_key_by_key(read: Load) -> None:
    """What a profile does not say is taken from the general section, also inside nested tables."""
    settings = read("""
[limits]
memory = 100
user = 50
[review.openai]
model = "m"
[profiles.a]
[profiles.b]
dir = "~/notes"
limits.user = 60
review.openai.mode = "json_schema"
""")
    assert (settings.profiles["a"].limits.memory, settings.profiles["a"].limits.user) == (100, 50)
    assert (settings.profiles["b"].limits.memory, settings.profiles["b"].limits.user) == (100, 60)
    openai = settings.profiles["b"].review.openai
    assert (openai.model, openai.mode) == ("m", "json_schema")
    assert settings.profiles["b"].dir == "/home/u/notes"


def test_default_does_not_exist_beside_configured_profiles(read: Load) -> None:
    """One configured profile is the only one."""
    assert list(read('[profiles.work]\ndir = "/w"').profiles) == ["work"]


def test_a_byte_order_mark_and_windows_newlines_are_tolerated(read: Load) -> None:
    """Editors put them there."""
    settings = read("\ufeff[limits]\r\nmemory = 7\r\n")
    assert settings.limits.memory == 7
    assert settings.sources["limits.memory"].endswith(":2")


def test_effective_says_where_each_value_came_from(read: Load, settings_file: Path) -> None:
    """Line numbers survive comments, multi-line strings and arrays, inline tables and quoted keys."""
    settings = read('''# comment with [brackets] and = signs
[review]
topics_deny = [
  "a", # ]
  "b",
]
topics_allow = ["""x
y = [1]"""]
"openai" = { model = "m", base_url = 'http://h' }
[profiles.p]
limits = { memory = 10 }
''')
    rows = {row.key: row for row in effective(settings)}
    assert rows["review.topics_deny"] == Effective("review.topics_deny", ("a", "b"), f"{settings_file}:3")
    assert rows["review.topics_allow"].source == f"{settings_file}:7"
    assert rows["review.openai.base_url"].source == f"{settings_file}:9"
    assert rows["profiles.p.limits.memory"] == Effective("profiles.p.limits.memory", 10, f"{settings_file}:11")
    assert rows["profiles.p.dir"].source == "default"
    assert "profiles.p.limits.user" not in rows
    assert next(iter(rows)) == "daemon.grace_s"


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("x = 1", 1, "x: unknown key; known here: "),
        ("[daemon]\n\ngrace = 1", 3, "daemon.grace: unknown key; did you mean 'grace_s'?"),
        ('[daemon]\ngrace_s = "4"', 2, "daemon.grace_s: expected a number, got a string"),
        ("[daemon]\nallow_root = 1", 2, "daemon.allow_root: expected true or false, got a whole number"),
        ("[limits]\nmemory = true", 2, "limits.memory: expected a whole number, got true or false"),
        ("[limits]\nmemory = 2.5", 2, "limits.memory: expected a whole number, got a number"),
        ("[limits]\nmemory = -1", 2, "limits.memory: expected a whole number >= 0"),
        ("[limits]\nmemory = 99999999999999999999", 2, "limits.memory: expected a whole number <= 1000000000"),
        ("[limits]\nnear_percent = 101", 2, "limits.near_percent: expected a whole number <= 100"),
        ("[review]\nidle_s = nan", 2, "review.idle_s: expected a number >= 0.0"),
        ("[sessions]\nkeep_days = 0", 2, "sessions.keep_days: expected a whole number >= 1"),
        ('[access]\ncron = "some"', 2, "access.cron: expected one of none, read, add, full; invalid enum value 'some'"),
        ('[approval]\noutside = "stage"', 2, "approval.outside: expected one of apply, withhold;"),
        ('[review]\nfallback = ["rules", "me"]', 2, "review.fallback: expected one of rules, openai,"),
        ("[scan]\noff = [1]", 2, "scan.off: expected a string, got a whole number"),
        ("limits = 3", 1, "limits: expected a table, got a whole number"),
        ("[profiles]", 1, "profiles: expected at least one table [profiles.NAME]"),
        ("[profiles]\na = 3", 2, "profiles.a: expected a table, got a whole number"),
        ('[profiles."a/b"]', 1, "profiles.a/b: a profile's name has 1 to 64"),
        ('[profiles.a]\ndir = "here"', 2, "profiles.a.dir: expected an absolute path or one that starts with ~/"),
        ("[profiles.a.history]\nkeep_days = 1", 1, "profiles.a.history: unknown key;"),
        ('[daemon]\nsymlink_roots = ["x"]', 2, "daemon.symlink_roots: expected an absolute path"),
        ('[profiles.a]\nx = 1\n[profiles.b]\nlimits.user = "z"', 2, "profiles.a.x: unknown key"),
        ('[profiles.a]\n[profiles.b]\nlimits.user = "z"', 3, "profiles.b.limits.user: expected a whole number"),
    ],
)
def test_what_is_wrong_is_said_with_line_and_key(
    read: Load, settings_file: Path, text: str, line: int, what: str
) -> None:
    """Path, line, key and what would be right."""
    with pytest.raises(SettingsError) as caught:
        read(text)
    assert str(caught.value).startswith(f"{settings_file}:{line}: {what}")


@pytest.mark.parametrize(
    ("text", "where"),
    [("[a\n", ":1:3: "), ("a = 1\na = 2", ":2"), ("a =", ":1: "), ("\n\nb = [1,", ":3")],
)
def test_what_is_no_toml_is_said_with_line_and_column(read: Load, settings_file: Path, text: str, where: str) -> None:
    """The parser's own words, behind the place."""
    with pytest.raises(SettingsError) as caught:
        read(text)
    assert str(caught.value).startswith(f"{settings_file}{where}")


def test_bytes_that_are_not_utf8_are_said_with_their_line(settings_file: Path) -> None:
    """A Latin-1 comment is found."""
    settings_file.write_bytes(b"# ok\n# caf\xe9\n")
    settings_file.chmod(0o600)
    with pytest.raises(SettingsError, match=r"config\.toml:2: not UTF-8 \(byte 0xe9\)"):
        load(str(settings_file), ENV)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_refused(read: Load, settings_file: Path, mode: int) -> None:
    """Whoever may write the settings decides what the daemon does."""
    read("")
    settings_file.chmod(mode)
    with pytest.raises(SettingsError, match=rf"others may write it \(mode {mode:04o}\); run: chmod go-w"):
        load(str(settings_file), ENV)


def test_a_file_in_a_directory_that_anyone_may_write_is_refused(read: Load, settings_file: Path) -> None:
    """Unless the sticky bit keeps others from replacing it."""
    read("")
    settings_file.parent.chmod(0o777)
    with pytest.raises(SettingsError, match="stands in a directory that anyone may write"):
        load(str(settings_file), ENV)
    settings_file.parent.chmod(0o1777)
    assert load(str(settings_file), ENV).path == str(settings_file)


def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path) -> None:
    """Neither a directory nor a FIFO hangs or confuses the start."""
    os.mkfifo(tmp_path / "fifo", 0o600)
    for path in (tmp_path, tmp_path / "fifo"):
        with pytest.raises(SettingsError, match="is not a regular file"):
            load(str(path), ENV)


def test_a_file_that_is_too_long_is_refused(settings_file: Path) -> None:
    """Nobody writes a mebibyte of settings."""
    settings_file.write_bytes(b"#" * ((1 << 20) + 1))
    settings_file.chmod(0o600)
    with pytest.raises(SettingsError, match="longer than 1048576 bytes"):
        load(str(settings_file), ENV)


def test_a_file_behind_another_file_is_unreadable_not_missing(settings_file: Path) -> None:
    """Only a missing file means defaults."""
    settings_file.write_bytes(b"")
    with pytest.raises(SettingsError, match="Not a directory"):
        load(str(settings_file / "x"), ENV)


def test_prompt_and_key_files_that_others_may_write_are_refused(read: Load, tmp_path: Path) -> None:
    """They reach the model; a missing one is said by whoever needs it."""
    prompt = tmp_path / "prompt.txt"
    text = f'[limits]\n[review]\nprompt_file = "{prompt}"'
    assert read(text).review.prompt_file == str(prompt)
    prompt.write_text("Be brief.")
    prompt.chmod(0o622)
    with pytest.raises(SettingsError, match=r"config\.toml:3: review\.prompt_file: .* others may write it"):
        read(text)
    prompt.chmod(0o600)
    assert read(text).review.prompt_file == str(prompt)
    assert read_private(str(prompt)) == "Be brief."


def test_weakened_names_what_lets_more_through_than_the_defaults(read: Load) -> None:
    """Stricter values and a profile's mere inheritance are not named."""
    settings = read("""
[approval]
tool = "apply"
user = "refuse"
[profiles.a]
[profiles.b]
approval.review_change = "apply"
scan.off = ["secret.jwt"]
scan.warn = ["override.loose"]
""")
    weak = ["approval.tool", "profiles.b.approval.review_change", "profiles.b.scan.off", "profiles.b.scan.warn"]
    assert weakened(settings) == weak
    assert weakened(load(None, ENV)) == []


@pytest.mark.parametrize("key", ["scan.off", "profiles.a.scan.warn"])
def test_a_rule_that_there_is_not_is_an_error_with_line_and_key(read: Load, key: str) -> None:
    """Whoever wrote it believes that something is switched off."""
    with pytest.raises(SettingsError, match=rf"config.toml:2: {key}: there is no rule 'secret.jot'"):
        read(f"\n{key} = ['secret.jwt', 'secret.jot']\n")


@pytest.mark.parametrize("name", ["default", "a", "work.2024", "A_b-c", "x" * 64])
def test_profile_names_that_are_fine(name: str) -> None:
    """They become directory names."""
    assert profile_name_problem(name) is None


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a/b", "a b", "é", "x" * 65, "-x", "a\n"])
def test_profile_names_that_are_not(name: str) -> None:
    """Nothing that could leave the profiles' directory or be mistaken for an option."""
    assert profile_name_problem(name) is not None
