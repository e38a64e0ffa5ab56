"""One settings file: its text, its tree, and where in it each key stands.

What it is: reading a private text file, and errors with path, line and key. What comes in: a path, the type that a table must
have. What goes out: the text, the converted table, or a ``SettingsError``. What must not be here: which keys there are
(``memd.settings``), how sections are merged (``memd.config``).
"""

from __future__ import annotations

import difflib
import errno
import os
import re
import stat
from typing import Any, Literal, TypeVar, get_args, get_origin

import msgspec

from memd.errors import SettingsError
from memd.settings import Section

MAX_BYTES = 1 << 20  # as for a memory file: nothing that a person writes by hand is longer

_WORDS = {
    "`int`": "a whole number",
    "`float`": "a number",
    "`object`": "a table",
    "`array`": "an array",
    "`str`": "a string",
    "`bool`": "true or false",
}

_S = TypeVar("_S", bound=Section)


def read_private(path: str) -> str:
    """Read a small text file that nobody but its owner may write: settings, prompts, keys.

    Args:
        path: The file; links are followed, the file they lead to is what counts.

    Raises:
        FileNotFoundError: It does not exist.
        SettingsError: It cannot be read, is no regular file, is too long, is not UTF-8, or others may write it.
    """
    try:
        # Without O_NONBLOCK a FIFO put in this place would hang the start.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise
        msg = f"{path}: {error.strerror}"
        raise SettingsError(msg) from None
    try:
        problem = _unsafe(os.fstat(descriptor), path)
        if problem:
            msg = f"{path}: {problem}"
            raise SettingsError(msg)
        data = os.read(descriptor, MAX_BYTES + 1)
    finally:
        os.close(descriptor)
    return _decoded(data, path)


def _unsafe(status: os.stat_result, path: str) -> str | None:
    """Why this file may not decide what the daemon does, or None."""
    if not stat.S_ISREG(status.st_mode):
        return "is not a regular file"
    if status.st_uid not in (os.geteuid(), 0):
        return f"belongs to uid {status.st_uid}; it must be yours or root's"
    if status.st_mode & 0o022:
        return f"others may write it (mode {status.st_mode & 0o7777:04o}); run: chmod go-w {path}"
    folder = os.stat(os.path.dirname(os.path.realpath(path)))
    # In a directory that anyone may write, anyone may put another file in this one's place; the sticky bit forbids that.
    if folder.st_mode & 0o002 and not folder.st_mode & stat.S_ISVTX:
        return f"stands in a directory that anyone may write (mode {folder.st_mode & 0o7777:04o})"
    return None


def _decoded(data: bytes, path: str) -> str:
    if len(data) > MAX_BYTES:
        msg = f"{path}: longer than {MAX_BYTES} bytes"
        raise SettingsError(msg)
    try:
        return data.decode("utf-8-sig")  # editors on some systems put a BOM there
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        msg = f"{path}:{line}: not UTF-8 (byte 0x{data[error.start]:02x})"
        raise SettingsError(msg) from None


class SettingsFile:
    """The text of a settings file: its parsed tree, and the line on which each key stands."""

    def __init__(self, path: str, text: str) -> None:
        import tomllib  # noqa: PLC0415 - half the cost of importing this module, and needed once

        self._path = path
        try:
            self.tree: dict[str, Any] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            place = re.search(r"^(.*) \(at line (\d+), column (\d+)\)$", str(error), re.DOTALL)
            where = f"{path}:{place[2]}:{place[3]}" if place else f"{path}:{text.count(chr(10)) + 1}"
            what = place[1] if place else str(error)
            msg = f"{where}: {what}"
            raise SettingsError(msg) from None
        self._lines = key_lines(text)

    def places(self) -> dict[str, str]:
        """``path:line`` of every key that has one."""
        return {".".join(key): f"{self._path}:{line}" for key, line in self._lines.items()}

    def error(self, *, key: str, what: str) -> SettingsError:
        """The error for a key, with the line of the key or of the nearest table around it."""
        parts = tuple(key.split("."))
        while parts and parts not in self._lines:
            parts = parts[:-1]
        line = f":{self._lines[parts]}" if parts else ""
        return SettingsError(f"{self._path}{line}: {key}: {what}")

    def absolute(self, key: str, value: str, home: str) -> str:
        """A path of the file, ``~`` expanded. Relative ones are refused: a daemon's directory is ``/``."""
        full = home + value[1:] if value == "~" or value.startswith("~/") else value
        if not os.path.isabs(full) or "\0" in full:
            raise self.error(key=key, what=f"expected an absolute path or one that starts with ~/, got {value!r}")
        return os.path.normpath(full)

    def convert(self, value: Any, kind: type[_S], prefix: str) -> _S:
        """The table as ``kind``; strict: a string is no number and a number no flag."""
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            key, what = _explained(str(error), kind)
            raise self.error(key=".".join(filter(None, (prefix, key))), what=what) from None


def _explained(message: str, kind: type[Section]) -> tuple[str, str]:
    """Key and sentence for a person, out of msgspec's message about ``kind``."""
    what, _, place = message.partition(" - at `$")
    key = re.sub(r"\[[^]]*\]", "", place).strip(".`")
    unknown = re.search(r"unknown field `(.*)`", what)
    if unknown:
        names = [field.encode_name for field in msgspec.structs.fields(_kind_at(kind, key))]
        close = difflib.get_close_matches(unknown[1], names, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"known here: {', '.join(names)}"
        return ".".join(filter(None, (key, unknown[1]))), f"unknown key; {hint}"
    choices = _choices(_kind_at(kind, key))
    if choices:
        return key, f"expected one of {', '.join(choices)}; {what[0].lower()}{what[1:]}"
    for old, new in _WORDS.items():
        what = what.replace(old, new)
    return key, what[0].lower() + what[1:].replace("`", "")


def _kind_at(kind: Any, key: str) -> Any:
    """The type of the value at a dotted key below ``kind``."""
    for part in filter(None, key.split(".")):
        kind = next(field.type for field in msgspec.structs.fields(kind) if field.encode_name == part)
    return kind


def _choices(kind: Any) -> list[str]:
    """The values of an enumeration, or of the elements of a list of them."""
    if get_origin(kind) is Literal:
        return [str(value) for value in get_args(kind)]
    return [value for inner in get_args(kind) if get_origin(inner) is Literal for value in _choices(inner)]


_TOKEN = re.compile(
    r"""
    "{3} (?: \\. | [^\\] )*? "{3} "{0,2}    # multi-line strings may end with quotes of their own
    | '{3} .*? '{3} '{0,2}
    | " (?: \\. | [^"\\\n] )* "
    | ' [^'\n]* '
    | \# [^\n]*
    | [\[\]{}=,.\n]
    | [^\s\[\]{}=,."'\#]+
    """,
    re.DOTALL | re.VERBOSE,
)


def key_lines(text: str) -> dict[tuple[str, ...], int]:
    """The line of every table header and key of a valid TOML text, keys of inline tables too.

    Tables inside arrays have no line of their own: no setting is one.
    """
    walk = _Walk(text)
    while walk.word:
        if walk.word == "[":
            walk.header()
        elif walk.word == "\n" or walk.word.startswith("#"):
            walk.step()
        else:
            walk.pair(walk.table)
    return walk.lines


class _Walk:
    """A walk over the tokens of a valid TOML text; ``word`` is the one it stands on, ``""`` at the end."""

    def __init__(self, text: str) -> None:
        self.lines: dict[tuple[str, ...], int] = {}
        self.table: tuple[str, ...] = ()
        self.word = ""
        self._line = 1
        self._tokens = _TOKEN.finditer(text)
        self.step()

    def step(self) -> None:
        self._line += self.word.count("\n")
        token = next(self._tokens, None)
        self.word = token[0] if token else ""

    def header(self) -> None:
        """``[a.b]`` or ``[[a.b]]``, up to the end of its line."""
        while self.word == "[":
            self.step()
        self.table = self._key(end="]")
        self.lines.setdefault(self.table, self._line)
        while self.word not in {"", "\n"}:
            self.step()

    def pair(self, around: tuple[str, ...]) -> None:
        """``a.b = value``, inside the table ``around``."""
        line = self._line
        key = around + self._key(end="=")
        self.lines[key] = line
        self.step()
        if self.word == "{":
            self._inline_table(key)
        else:
            self._plain_value()

    def _key(self, end: str) -> tuple[str, ...]:
        parts = []
        while self.word not in {"", end}:
            if self.word != ".":
                parts.append(self.word.strip("\"'"))
            self.step()
        return tuple(parts)

    def _inline_table(self, key: tuple[str, ...]) -> None:
        self.step()
        while self.word not in {"", "}"}:
            if self.word in {",", "\n"} or self.word.startswith("#"):
                self.step()
            else:
                self.pair(key)
        self.step()

    def _plain_value(self) -> None:
        """Up to what ends a value: the line, or the next key of an inline table."""
        depth = 0
        while self.word and (depth or self.word not in {"\n", ",", "}"}):
            depth += (self.word in {"[", "{"}) - (self.word in {"]", "}"})
            self.step()
