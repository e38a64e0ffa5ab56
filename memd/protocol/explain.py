"""Why parameters do not fit their struct, in words that say what to send instead.

What comes in: a decoded map, the struct it should be, the validator's complaint. What goes out: the map with what can
be put right put right; or one line that names the field, what it takes and what it got. What must not be here: bytes.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from msgspec import inspect

_PATH = re.compile(r"`\$(.*)`$")
_MISSING = re.compile(r"Object missing required field `(.+?)`")
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_SHOWN_CHARS = 40


@lru_cache(maxsize=256)
def shape_of(struct: type) -> inspect.Type:
    """The struct's shape; asking for it costs more than a request, so each is asked once."""
    return inspect.type_info(struct)


def reshape(value: Any, struct: type) -> Any:
    """The value with ``[]`` as an empty map and integral floats as ints, wherever the struct expects those."""
    return _reshape(value, shape_of(struct))


def _reshape(value: Any, shape: inspect.Type) -> Any:
    options = _options(shape)
    if isinstance(value, float):
        integral = value.is_integer() and any(isinstance(option, inspect.IntType) for option in options)
        return int(value) if integral else value
    if isinstance(value, list):
        return _reshape_array(value, options)
    if isinstance(value, dict):
        return _reshape_map(value, options)
    return value


def _reshape_array(value: list[Any], options: tuple[inspect.Type, ...]) -> Any:
    for option in options:
        if isinstance(option, inspect.ListType):
            return [_reshape(item, option.item_type) for item in value]
    if not value and any(isinstance(option, inspect.StructType | inspect.DictType) for option in options):
        return {}
    return value


def _reshape_map(value: dict[str, Any], options: tuple[inspect.Type, ...]) -> Any:
    for option in options:
        if isinstance(option, inspect.StructType):
            shapes = {field.encode_name: field.type for field in option.fields}
            return {key: _reshape(item, shapes[key]) if key in shapes else item for key, item in value.items()}
        if isinstance(option, inspect.DictType):
            return {key: _reshape(item, option.value_type) for key, item in value.items()}
    return value


def explain_mismatch(complaint: str, value: Any, struct: type) -> tuple[str, str]:
    """One line about the mismatch, and the path of the field it is about."""
    found = _PATH.search(complaint)
    steps = _STEP.findall(found.group(1)) if found else []
    shape = shape_of(struct)
    missing = _MISSING.match(complaint)
    if missing:
        steps.append((missing.group(1), ""))
    path, value, shape = _follow(steps, value, shape)
    wanted = describe(shape)
    if missing:
        return f"{path}: missing; it takes {wanted}", path
    return f"{path}: expected {wanted}, got {show(value)}", path


def _follow(steps: list[tuple[str, str]], value: Any, shape: inspect.Type) -> tuple[str, Any, inspect.Type]:
    """Walk a path of the validator through value and shape at once."""
    path = ""
    for name, index in steps:
        options = _options(shape)
        if name:
            path += f".{name}" if path else name
            value = value.get(name) if isinstance(value, dict) else None
            shape = _field_shape(options, name)
        else:
            path += f"[{index}]"
            value = value[int(index)] if index.isdecimal() and isinstance(value, list) else None
            shape = next(
                (option.item_type for option in options if isinstance(option, inspect.ListType)), inspect.AnyType()
            )
    return path or "params", value, shape


def _field_shape(options: tuple[inspect.Type, ...], name: str) -> inspect.Type:
    for option in options:
        if isinstance(option, inspect.StructType):
            for field in option.fields:
                if field.encode_name == name:
                    return field.type
    return inspect.AnyType()


def _options(shape: inspect.Type) -> tuple[inspect.Type, ...]:
    """What may stand here: the members of a union, or the shape itself."""
    return shape.types if isinstance(shape, inspect.UnionType) else (shape,)


def describe(shape: inspect.Type) -> str:
    """What a field takes, in words."""
    words = [_describe_one(option) for option in _options(shape) if not isinstance(option, inspect.NoneType)]
    return " or ".join(words)


def _describe_one(shape: inspect.Type) -> str:
    if isinstance(shape, inspect.LiteralType):
        return _alternatives(shape.values)
    if isinstance(shape, inspect.IntType):
        return "an integer" + _bounds(shape.ge, shape.le)
    if isinstance(shape, inspect.StrType) and shape.max_length is not None:
        return f"a string of at most {shape.max_length:,} characters"
    if isinstance(shape, inspect.ListType):
        return "an array" + _bounds(shape.min_length, shape.max_length) + f", each {describe(shape.item_type)}"
    for kind, words in _WORDS:
        if isinstance(shape, kind):
            return words
    return "any value"


_WORDS: tuple[tuple[type[inspect.Type], str], ...] = (
    (inspect.StrType, "a string"),
    (inspect.BoolType, "a boolean"),
    (inspect.FloatType, "a number"),
    (inspect.StructType, "a map"),
    (inspect.DictType, "a map"),
)


def _alternatives(values: tuple[Any, ...]) -> str:
    quoted = [json.dumps(value) for value in values]
    return " or ".join(quoted) if len(quoted) < 3 else ", ".join(quoted[:-1]) + " or " + quoted[-1]


def _bounds(low: int | None, high: int | None) -> str:
    if low is not None and high is not None:
        return f" of {low}" if low == high else f" from {low} to {high}"
    if low is not None:
        return f" of at least {low}"
    return "" if high is None else f" of at most {high}"


def show(value: Any) -> str:
    """What was got, short: long texts are cut, containers only named."""
    if value is None:
        return "nil"
    if isinstance(value, str):
        cut = value if len(value) <= _SHOWN_CHARS else value[: _SHOWN_CHARS - 1] + "…"
        return json.dumps(cut, ensure_ascii=False)
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return "an array" if isinstance(value, list) else "a map"
