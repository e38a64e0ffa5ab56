"""The generated parts of ``client/PROTOCOL.md``: what the code knows better than a person who types it off.

What comes in: rows of the method table, recorded transcripts, the page with its marks. What goes out: Markdown. What
must not be here: files, prose that belongs on the page itself.
"""

from __future__ import annotations

import inspect as introspect
import json
import re
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import inspect

from memd.errors import wire_errors
from memd.protocol.connection import TRANSITIONS
from memd.protocol.explain import shape_of
from memd.protocol.notation import escaped, fields_of, inline, notation, structs_in
from memd.protocol.params import MutationParams, OperationParams, Params
from memd.protocol.types import TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_WHERE = {"id": "this or `old_text`", "old_text": "this or `id`", "if_hash": "optional"}
OPERATION_FIELDS: dict[str, dict[str, str]] = {
    "memory.add": {"target": "required", "content": "required"},
    "memory.replace": {"target": "required", "content": "required", **_WHERE},
    "memory.edit": {
        "target": "required",
        "old_text": "required",
        "new_text": 'required, `""` deletes',
        "id": "optional",
        "if_hash": "optional",
    },
    "memory.remove": {"target": "required", **_WHERE},
}
"""What each operation takes: one struct carries the fields and aliases of all four, and a normaliser sorts them out."""

OPERATION_ERRORS = (
    "invalid_content",
    "over_limit",
    "not_found",
    "ambiguous_match",
    "conflict",
    "turn_budget_exhausted",
)
STORE_ERRORS = ("store_disabled", "store_unreadable", "read_only", "no_space", "busy", "io_error", "profile_owned")
METHOD_ERRORS: dict[str, tuple[str, ...]] = {
    "hello": ("unsupported_version",),
    "session.open": ("no_such_session", "io_error"),
    **{f"session.{verb}": ("no_such_session",) for verb in ("snapshot", "refresh", "close")},
    **{f"turn.{verb}": ("no_such_session",) for verb in ("begin", "end")},
    "memory.add": (
        "invalid_content",
        "blocked_content",
        "over_limit",
        "conflict",
        "turn_budget_exhausted",
        *STORE_ERRORS,
    ),
    **{
        f"memory.{verb}": (*OPERATION_ERRORS, "blocked_content", *STORE_ERRORS) for verb in ("replace", "edit", "apply")
    },
    "memory.remove": ("not_found", "ambiguous_match", "conflict", "turn_budget_exhausted", *STORE_ERRORS),
    "memory.tool": ("no_such_session",),
    "memory.wipe": ("conflict", *STORE_ERRORS),
    "history.show": ("no_such_revision",),
    "history.diff": ("no_such_revision",),
    **{
        f"history.{verb}": ("no_such_revision", "over_limit", "conflict", "blocked_content", *STORE_ERRORS)
        for verb in ("undo", "redo", "restore")
    },
    "approval.approve": (
        "no_such_proposal",
        "blocked_content",
        "not_found",
        "ambiguous_match",
        "invalid_content",
        "over_limit",
        "conflict",
        *STORE_ERRORS,
    ),
    "approval.reject": ("no_such_proposal", "conflict", "io_error", "no_space"),
    "scan.check": ("too_large",),
    "profile.create": ("conflict", "io_error", "profile_owned"),
    "profile.import": (
        "no_such_profile",
        "invalid_content",
        "over_limit",
        "conflict",
        "blocked_content",
        *STORE_ERRORS,
    ),
}
"""Beside those that any method may give."""


class Row(Protocol):
    """A row of the method table, as far as it is documented."""

    @property
    def name(self) -> str:
        """As clients call it."""

    @property
    def params(self) -> Any:
        """The struct of its parameters."""

    @property
    def result(self) -> Any:
        """What it gives."""

    @property
    def access(self) -> str:
        """The level it needs."""

    @property
    def mutation(self) -> bool:
        """True if it takes the parameters of mutations."""


def blocks(rows: Iterable[Row], transcripts: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Every generated part by the name of its mark."""
    ordered = list(rows)
    return {
        "states": states(),
        "types": types(ordered),
        "methods": "\n\n".join(method(row, transcripts) for row in ordered),
        "errors": errors(),
        "topics": ", ".join(f"`{topic}`" for topic in TOPICS),
    }


def fill(page: str, parts: Mapping[str, str]) -> str:
    """The page with every marked part replaced.

    Raises:
        ValueError: a part has no mark on the page, or a mark no part.
    """
    marks = set(re.findall(r"<!-- generated: (\w+) -->", page))
    if marks != set(parts):
        msg = f"marks and parts differ: {sorted(marks ^ set(parts))}"
        raise ValueError(msg)
    for name, part in parts.items():
        begin, end = f"<!-- generated: {name} -->\n", f"<!-- end: {name} -->"
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n{part}\n\n{end}{rest.partition(end)[2]}"
    return page


def states() -> str:
    """The state machine of a connection, as memd sees it."""
    lines = ["| state | on | becomes |", "|---|---|---|"]
    lines += [
        f"| {state.value} | {step.value} | {after.value} |"
        for state, row in TRANSITIONS.items()
        for step, after in row.items()
    ]
    return "\n".join(lines)


def errors() -> str:
    """The error table: code, name, retryable, meaning."""
    lines = ["| code | name | retryable | meaning |", "|---|---|---|---|"]
    for error in wire_errors():
        meaning = escaped(_plain(introspect.getdoc(error) or ""))
        lines.append(f"| {error.code} | `{error.wire_name}` | {'yes' if error.retryable else ''} | {meaning} |")
    return "\n".join(lines)


def types(rows: Sequence[Row]) -> str:
    """Every type that a parameter or a result is made of, results of single methods left out."""
    found: dict[str, inspect.StructType] = {}
    for row in rows:
        found.update(structs_in(shape_of(row.params)))
        if not isinstance(row.result, dict):
            found.update(structs_in(shape_of(row.result)))
    whole = {row.params.__name__ for row in rows} | {getattr(row.result, "__name__", "") for row in rows}
    shared = {"Mutation", "Revision"}
    names = sorted(name for name in found if name not in whole or name in shared)
    return "\n".join(["```", *[f"{name} = {inline(found[name])}" for name in names], "```"])


def method(row: Row, transcripts: Sequence[Mapping[str, Any]]) -> str:
    """One method: what it does, takes and gives, how it fails, and how that looks."""
    parts = [f"### `{row.name}`", _plain(introspect.getdoc(row.params) or ""), *_parameters(row)]
    result = shape_of(row.result)
    shown = (
        inline(result)
        if isinstance(result, inspect.StructType) and result.cls.__name__ not in _NAMED
        else notation(result)
    )
    parts.append(f"Result: `{shown}`. Access: {row.access}.")
    if row.name in METHOD_ERRORS:
        parts.append("Errors: " + ", ".join(f"`{name}`" for name in METHOD_ERRORS[row.name]) + ".")
    lines = [line for item in transcripts if item["method"] == row.name for line in _exchange(item)]
    if lines:
        parts.append("\n".join(["```", *lines, "```"]))
    return "\n\n".join(parts)


_NAMED = frozenset({"Mutation"})
"""Results that have a name of their own in the protocol; all others belong to their method and are shown there."""


def _parameters(row: Row) -> list[str]:
    """The parameter table, and what else may be given."""
    inherited = set(fields_of(shape_of(MutationParams if issubclass(row.params, MutationParams) else Params)))
    own = {name: field for name, field in fields_of(shape_of(row.params)).items() if name not in inherited}
    also = "the parameters of every mutation" if row.mutation and issubclass(row.params, MutationParams) else ""
    presence = {name: _presence(field) for name, field in own.items()}
    if issubclass(row.params, OperationParams):
        also += ", and the aliases"
        presence = OPERATION_FIELDS[row.name]
    if not own:
        return [f"Parameters: {also}."] if also else ["Parameters: none."]
    lines = ["| parameter | type | |", "|---|---|---|"]
    lines += [f"| `{name}` | `{escaped(notation(own[name].type))}` | {words} |" for name, words in presence.items()]
    return ["\n".join(lines), *([f"And {also}."] if also else [])]


def _presence(field: inspect.Field) -> str:
    if field.required:
        return "required"
    if field.default in (None, "") or not isinstance(field.default, str | int):
        return "optional"
    return f"default `{json.dumps(field.default)}`"


def _exchange(item: Mapping[str, Any]) -> list[str]:
    """Request and reply as a transcript."""
    params = [item["params"]] if item["params"] else []
    request = [0, item["msgid"], item["method"], params]
    reply = [1, item["msgid"], item.get("error"), item.get("result")]
    return [f"C: {_json(request)}", f"S: {_json(reply)}"]


def _json(value: Any) -> str:
    return json.dumps(_shortened(value), ensure_ascii=False)


def _shortened(value: Any) -> Any:
    """The value with long texts, lists and maps cut, so that a transcript can be read."""
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_TEXT else value[:_LONGEST_TEXT] + "…"
    if isinstance(value, list):
        return [_shortened(item) for item in value[:_MOST_ITEMS]] + ["…"] * (len(value) > _MOST_ITEMS)
    if isinstance(value, dict):
        return {key: _shortened(item) for key, item in value.items()}
    return value


_LONGEST_TEXT = 120
_MOST_ITEMS = 4


def _plain(docstring: str) -> str:
    """A docstring as one Markdown paragraph."""
    return " ".join(docstring.replace("``", "`").split())
