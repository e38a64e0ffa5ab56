"""Logging: one event, one line, in the form that whoever reads it wants.

What comes in: where the lines go, which form, which level. What goes out: a logger, which is passed to those who log; there
is no global one. What must not be here: what is logged. No line above debug holds the text of an entry, whatever the caller
passes: such fields are replaced by their length, and of an exception only its type and its frames are shown.
"""

from __future__ import annotations

import os
import sys
import traceback
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeAlias, cast

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping

    Event: TypeAlias = MutableMapping[str, Any]
    Processor: TypeAlias = Callable[[Any, str, Event], Any]

Form = Literal["auto", "console", "json", "journal"]
Level = Literal["debug", "info", "warning", "error"]
Logger: TypeAlias = structlog.typing.FilteringBoundLogger

_LEVELS: dict[Level, int] = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_PRIORITIES = {"debug": 7, "info": 6, "warning": 4, "error": 3, "critical": 2}  # sd-daemon(3)

# The fields, here and inside maps, that carry what memory, a conversation or a credential says.
_TEXTS = frozenset(
    {"after", "arguments", "before", "changes", "changes_text", "content", "current", "entries", "entry", "matches"}
    | {"messages", "nearest", "new_text", "old_text", "operations", "params", "snapshot", "summary_text", "text"}
    | {"api_key", "authorization", "password", "secret", "token"}
)


def open_log(stream: TextIO, env: Mapping[str, str], *, form: Form = "auto", level: Level = "info") -> Logger:
    """A logger that writes to ``stream``.

    Args:
        stream: Usually standard error. If it goes away, logging stops and the daemon goes on.
        env: The environment, for ``JOURNAL_STREAM`` and ``NO_COLOR``.
        form: ``auto`` is console on a terminal, journal where the stream leads to one, else JSON.
        level: The lowest level that is written.
    """
    form = _form_of(stream, env) if form == "auto" else form
    processors: list[Processor] = [structlog.processors.add_log_level, _plain(with_text=level == "debug")]
    if form == "journal":
        processors.append(_journal_line)  # the journal has its own clock
    else:
        processors.append(structlog.processors.TimeStamper(fmt="iso", utc=form == "json"))
        processors.append(_console(stream, env) if form == "console" else structlog.processors.JSONRenderer())
    return cast(
        "Logger",
        structlog.wrap_logger(
            _Sink(stream),
            processors=processors,
            wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
            cache_logger_on_first_use=True,
        ),
    )


def _form_of(stream: TextIO, env: Mapping[str, str]) -> Form:
    """Who reads the stream: a person, the journal, or a program."""
    if stream.isatty():
        return "console"
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return "json"
    # systemd sets it to the stream it opened; a child whose stderr was redirected since must not write <N> prefixes.
    return "journal" if env.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}" else "json"


def _console(stream: TextIO, env: Mapping[str, str]) -> Processor:
    colors = stream.isatty() and not env.get("NO_COLOR")
    return structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=structlog.dev.plain_traceback)


_logfmt = structlog.processors.LogfmtRenderer(bool_as_flag=False)


def _journal_line(logger: Any, name: str, event: Event) -> str:
    """``<6>started pid=1``: the priority that the journal takes off again, the event, the rest as key=value."""
    priority = _PRIORITIES[event.pop("level")]
    what = event.pop("event")
    return f"<{priority}>{what} {_logfmt(logger, name, event)}".rstrip()


def _plain(*, with_text: bool) -> Processor:
    """A processor that leaves nothing in an event that may not be in a line.

    Args:
        with_text: Whether the log was opened for debugging, and may show what entries say.
    """

    def plain(_logger: Any, _name: str, event: Event) -> Event:
        error = _error_of(event.pop("exc_info", None))
        for key, value in event.items():
            event[key] = _printable(value if with_text else _without_text(key, value))
        if error is not None:
            event["exception"] = _described(error, with_message=with_text)
        return event

    return plain


def _without_text(key: str, value: Any) -> Any:
    if key in _TEXTS:
        return f"[{len(value)}]" if hasattr(value, "__len__") else "[…]"
    if isinstance(value, dict):
        return {name: _without_text(name, inner) for name, inner in value.items()}
    return value


def _printable(value: Any) -> Any:
    """Control characters and lone surrogates escaped: a client's name must not steer a terminal."""
    if isinstance(value, str) and not value.isprintable():
        return repr(value)[1:-1]
    return value


def _error_of(exc_info: Any) -> BaseException | None:
    if exc_info is True:  # logger.exception(): the one being handled
        return sys.exc_info()[1]
    if isinstance(exc_info, tuple):
        return exc_info[1] if isinstance(exc_info[1], BaseException) else None
    return exc_info if isinstance(exc_info, BaseException) else None


def _described(error: BaseException, *, with_message: bool) -> str:
    """The frames and type of an error, causes included; messages may quote an entry, so only on request."""
    if with_message:
        return "".join(traceback.format_exception(error)).rstrip()
    lines = []
    current: BaseException | None = error
    while current is not None:
        lines.append("".join(traceback.format_tb(current.__traceback__)) + type(current).__name__)
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return "\nwhile handling\n".join(lines)


class _Sink:
    """Writes whole lines, flushed; a reader that went away is no reason to stop a daemon."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def msg(self, line: str) -> None:
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):  # EPIPE, EIO of a closed terminal; ValueError: the stream was closed
            return

    debug = info = warning = error = critical = msg
