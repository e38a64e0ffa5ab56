"""Types in the short notation of ``client/PROTOCOL.md``.

What comes in: the shapes of wire structs. What goes out: text such as ``{id, text: str, findings: [Finding]}``. What
must not be here: Markdown's own structure, methods.
"""

from __future__ import annotations

import json
from typing import Any, get_args

from msgspec import inspect

from memd.protocol import types

_WORDS: tuple[tuple[type[inspect.Type], str], ...] = (
    (inspect.StrType, "str"),
    (inspect.BoolType, "bool"),
    (inspect.IntType, "int"),
    (inspect.FloatType, "float"),
    (inspect.DictType, "map"),
)
_IN_ORDER: dict[frozenset[Any], tuple[Any, ...]] = {
    frozenset(get_args(literal)): get_args(literal)
    for literal in (
        types.Target,
        types.Action,
        types.Context,
        types.Access,
        types.Role,
        types.ErrorsForm,
        types.Origin,
        types.Style,
        types.StoreCondition,
    )
}
"""The order in which alternatives were written down; the shapes have them sorted."""

_PER_STORE = {"PerStore": "{{memory, user: {}}}", "SomeStores": "{{memory?, user?: {}}}"}


def notation(shape: inspect.Type) -> str:
    """A type by its name, or spelled out where it has none. nil is left to the field's ``?``."""
    if isinstance(shape, inspect.UnionType):
        return "|".join(notation(option) for option in shape.types if not isinstance(option, inspect.NoneType))
    if isinstance(shape, inspect.LiteralType):
        values = _IN_ORDER.get(frozenset(shape.values), shape.values)
        return "|".join(json.dumps(value) for value in values)
    if isinstance(shape, inspect.ListType):
        return f"[{notation(shape.item_type)}]"
    if isinstance(shape, inspect.StructType):
        name = _name(shape)
        return _PER_STORE[name].format(notation(shape.fields[0].type)) if name in _PER_STORE else name
    return next((word for kind, word in _WORDS if isinstance(shape, kind)), "any")


def inline(shape: inspect.StructType) -> str:
    """A struct with all its fields; neighbours of one type share its name."""
    groups: list[tuple[list[str], str]] = []
    for name, field in fields_of(shape).items():
        text = notation(field.type)
        label = name if field.required else f"{name}?"
        if groups and groups[-1][1] == text:
            groups[-1][0].append(label)
        else:
            groups.append(([label], text))
    return "{" + ", ".join(f"{', '.join(labels)}: {text}" for labels, text in groups) + "}"


def fields_of(shape: inspect.Type) -> dict[str, inspect.Field]:
    """The fields by their names on the wire."""
    return {field.encode_name: field for field in shape.fields} if isinstance(shape, inspect.StructType) else {}


def structs_in(shape: inspect.Type) -> dict[str, inspect.StructType]:
    """Every struct that the type is made of, by name; the ones that only pair the stores are looked through."""
    found: dict[str, inspect.StructType] = {}
    pending: list[inspect.Type] = [shape]
    while pending:
        current = pending.pop()
        pending += _inside(current)
        if isinstance(current, inspect.StructType) and _name(current) not in _PER_STORE:
            found[_name(current)] = current
    return found


def _inside(shape: inspect.Type) -> list[inspect.Type]:
    if isinstance(shape, inspect.UnionType):
        return list(shape.types)
    if isinstance(shape, inspect.ListType):
        return [shape.item_type]
    if isinstance(shape, inspect.StructType):
        return [field.type for field in shape.fields]
    return []


def _name(shape: inspect.StructType) -> str:
    cls: Any = shape.cls
    return str(getattr(cls, "__origin__", cls).__name__)


def escaped(text: str) -> str:
    """Text that may stand in a cell of a table."""
    return text.replace("|", "\\|")
