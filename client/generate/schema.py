"""The daemon's self-description as the generators see it: structs and methods, in the notation of no language.

What comes in: ``client/schema.json``, which is what ``rpc.discover`` answers. What goes out: structs with their fields, methods
with their parameters and results, errors, topics. What must not be here: names or types of a language.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCHEMA = Path(__file__).resolve().parents[1] / "schema.json"

ALIASES = frozenset({"old", "old_string", "new", "new_string", "new_content", "text"})
"""What ``memory.add`` and its like also take, for models that write it so; a typed client has the one name."""
OPERATION_FIELDS = {
    "MemoryAdd": ALIASES | {"old_text", "new_text", "id", "if_hash"},
    "MemoryReplace": ALIASES | {"new_text"},
    "MemoryEdit": ALIASES | {"content"},
    "MemoryRemove": ALIASES | {"content", "new_text"},
    "OpParams": ALIASES,
}
"""Fields that are in a struct for the sake of the others of its kind."""


@dataclass(frozen=True, slots=True)
class Type:
    """A type: ``str``, ``int``, ``bool``, ``any``, ``list``, ``map`` or ``struct``.

    ``item`` is that of a list's or map's values, ``name`` the struct's, ``choices`` the texts that a ``str`` may be.
    """

    kind: str
    item: Type | None = None
    name: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Field:
    """A field. ``required``: it has to be sent. ``nullable``: it may be absent or nil."""

    name: str
    type: Type
    required: bool
    nullable: bool


@dataclass(frozen=True, slots=True)
class Struct:
    """A map with known fields."""

    name: str
    doc: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Method:
    """A method. ``result`` is a struct's name, ``"map"`` where the keys are not known beforehand, ``""`` if there is none."""

    name: str
    params: Struct
    result: str
    mutation: bool
    repeatable: bool


@dataclass(frozen=True, slots=True)
class Description:
    """All of it. ``structs``: those of results and nested ones, sorted; the parameters of methods are with these."""

    protocol: int
    structs: tuple[Struct, ...]
    methods: tuple[Method, ...]
    errors: tuple[tuple[str, int], ...]
    topics: tuple[str, ...]


def load(path: Path = SCHEMA) -> Description:
    """Read the file."""
    found = json.loads(path.read_text(encoding="utf-8"))
    structs: dict[str, Struct] = {}
    for described in found["methods"]:
        for part in ("params", "result"):
            for name, body in described[part].get("$defs", {}).items():
                structs[clean(name)] = _struct(clean(name), body)
    methods = tuple(_method(described, structs) for described in found["methods"])
    own = {method.params.name for method in methods} | {name for name, struct in structs.items() if not struct.fields}
    return Description(
        protocol=found["protocol"],
        structs=tuple(struct for name, struct in sorted(structs.items()) if name not in own),
        methods=tuple(method for method in methods if not method.name.startswith("rpc.certify.")),
        errors=tuple((one["name"], one["code"]) for one in found["errors"]),
        topics=tuple(found["events"]),
    )


def clean(name: str) -> str:
    """A name that every language takes: ``PerStore_list_memd.protocol.types.Entry__`` is ``PerStoreListEntry``."""
    name = re.sub(r"typing\.Annotated_(\w+?)__.*", r"\1", name)
    words = re.split(r"_+", re.sub(r"(\w+\.)+", lambda match: match[0].rpartition("_")[0] + "_", name))
    return "".join(
        word[:1].upper() + word[1:] for word in words if word and "." not in word and word not in {"memd", "typing"}
    )


def words_of(name: str) -> list[str]:
    """``memory.tool_schema`` as its words."""
    return re.split(r"[._]", name)


def _method(described: dict[str, Any], structs: dict[str, Struct]) -> Method:
    params = structs[_reference(described["params"])]
    result = _reference(described["result"]) or "map"
    if result in structs and not structs[result].fields:
        result = ""
    return Method(described["name"], params, result, described["mutation"], described["repeatable"])


def _reference(body: dict[str, Any]) -> str:
    return clean(body["$ref"].removeprefix("#/$defs/")) if "$ref" in body else ""


def _struct(name: str, body: dict[str, Any]) -> Struct:
    required = set(body.get("required", ()))
    hidden = OPERATION_FIELDS.get(name, frozenset())
    must = {"MemoryAdd": {"content"}, "MemoryReplace": {"content"}, "MemoryEdit": {"old_text", "new_text"}}.get(
        name, set()
    )
    fields = tuple(
        Field(
            key,
            _type(value),
            required=key in required or key in must,
            nullable=key not in must and key not in required and _nullable(value),
        )
        for key, value in body.get("properties", {}).items()
        if key not in hidden
    )
    return Struct(name, " ".join(body.get("description", "").replace("``", "`").split()), fields)


def _nullable(body: dict[str, Any]) -> bool:
    """True if nil may stand there; where anything may, that is one of the things."""
    return "default" in body and body["default"] is None


def _type(body: dict[str, Any]) -> Type:
    if "anyOf" in body:
        options = [one for one in body["anyOf"] if one.get("type") != "null"]
        return _type(options[0]) if len(options) == 1 else Type("any")
    if "$ref" in body:
        return Type("struct", name=_reference(body))
    if "enum" in body:
        return Type("str", choices=tuple(body["enum"]))
    kind = body.get("type")
    if kind == "array":
        return Type("list", item=_type(body.get("items", {})))
    if kind == "object":
        return Type("map", item=_type(body.get("additionalProperties") or {}))
    return Type({"string": "str", "integer": "int", "boolean": "bool"}.get(str(kind), "any"))
