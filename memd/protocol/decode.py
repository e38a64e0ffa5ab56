"""Parameters: from the bytes a client sent to the struct of the method, generously.

What comes in: the undecoded ``params`` of a request and the method's struct. What goes out: an instance of it, or
``InvalidParams`` that names the field and says what to change in the sender. What must not be here: what a parameter
means, settings, state.

Texts sent as bin become str, nil is the same as absent, unknown fields are passed over. Then the struct is tried; if it
does not fit, ``[]`` where a map is expected (Lua cannot tell them apart) and integral floats are put right, and it is
tried once more.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import msgpack
import msgspec

from memd.errors import InvalidParams
from memd.protocol.explain import explain_mismatch, reshape
from memd.protocol.framing import HeaderScan

if TYPE_CHECKING:
    from memd.protocol.params import Params
    from memd.protocol.types import ErrorsForm

P = TypeVar("P", bound="Params")

MAX_NESTING = 16
"""Levels of a message, its own array being the first. No method needs more than 8; a tool call's arguments may."""

MAX_VALUES = 500_000
"""Values in the parameters of one request. A whole profile with its history has fewer; 8 MiB of one-byte maps, decoded in
one piece, would keep everybody else waiting for ten seconds (about 1 µs a value)."""

_PARAMS_ROOM = MAX_NESTING - 1
_UNCHANGED = frozenset({str, int, bool, dict, list})


def decode_params(raw: bytes | bytearray | memoryview | msgspec.Raw, method_params: type[P]) -> P:
    """Decode the parameters of one request.

    Raises:
        InvalidParams: they cannot be understood; ``data.field`` names the field where one is at fault.
    """
    fields = _only_map(_unpack(raw))
    try:
        return msgspec.convert(fields, method_params)
    except msgspec.ValidationError:
        pass
    fields = reshape(fields, method_params)
    try:
        return msgspec.convert(fields, method_params)
    except msgspec.ValidationError as mismatch:
        message, field = explain_mismatch(str(mismatch), fields, method_params)
        raise InvalidParams(message, field=field) from None


def peek_errors_form(raw: bytes | bytearray | memoryview | msgspec.Raw) -> ErrorsForm:
    """The ``errors`` that a ``hello`` asks for, whatever else may be wrong with it: its own error uses it already."""
    try:
        form = _only_map(_unpack(raw)).get("errors")
    except InvalidParams:
        return "map"
    return "pair" if form == "pair" else "map"


def _unpack(raw: bytes | bytearray | memoryview | msgspec.Raw) -> Any:
    """The plain value; nil fields dropped, bin as text."""
    if memoryview(raw).nbytes > MAX_VALUES:
        _refuse_many(bytes(raw))
    try:
        value = msgpack.unpackb(
            raw, object_pairs_hook=_take_map, list_hook=_take_array, ext_hook=_refuse_ext, strict_map_key=False
        )
    except UnicodeDecodeError:
        _refuse_text(_where_undecodable(raw))
    except msgpack.StackError:
        _refuse_nesting()
    if _too_deep(value, _PARAMS_ROOM):
        _refuse_nesting()
    return value


def _only_map(params: Any) -> dict[str, Any]:
    """The one map in the params array."""
    if not isinstance(params, list):
        kind = "nil" if params is None else "a bare map" if isinstance(params, dict) else type(params).__name__
        msg = f"params are an array with at most one map, [] or [{{…}}]; got {kind}"
        raise InvalidParams(msg)
    if len(params) > 1:
        msg = f"params are an array with at most one map; got {len(params)} values: put them all into one map by name"
        raise InvalidParams(msg)
    only = params[0] if params else None
    if only is None or only == []:
        return {}
    if not isinstance(only, dict):
        msg = f"params hold {type(only).__name__} {only!r:.40}; send one map of parameters by name, [{{…}}]"
        raise InvalidParams(msg)
    return only


def _take_map(items: list[tuple[Any, Any]]) -> dict[str, Any]:
    """A map with text keys, each once, without its nil fields."""
    try:
        found = dict(items)
    except TypeError:  # an array or a map as key
        _refuse_key("an array or a map")
    if len(found) != len(items):
        _refuse_duplicate([key for key, _ in items])
    for key, value in items:
        if type(key) is not str:
            return _take_map([(_text_key(key), value) for key, value in items])
        if type(value) not in _UNCHANGED:
            if value is None:
                del found[key]
            else:
                found[key] = _plain(value, key)
    return found


def _take_array(items: list[Any]) -> list[Any]:
    """An array of plain values; nil stays, for it holds a place."""
    for index, value in enumerate(items):
        if type(value) not in _UNCHANGED and value is not None:
            items[index] = _plain(value, f"[{index}]")
    return items


def _plain(value: Any, where: str) -> Any:
    """A float, or text that was sent as bin."""
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        msg = f"{where}: {value} is no number that memd takes; leave the field out or send a finite one"
        raise InvalidParams(msg, field=where)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            _refuse_text(where)
    return _refuse_ext(-1, b"")


def _text_key(key: Any) -> str:
    if isinstance(key, bytes):
        try:
            return key.decode()
        except UnicodeDecodeError:
            _refuse_text("a map's key")
    return key if isinstance(key, str) else _refuse_key(f"{key!r:.40}")


def _refuse_key(what: str) -> NoReturn:
    msg = f"{what} as the key of a map; keys are strings (in Lua, do not mix list and table parts)"
    raise InvalidParams(msg)


def _refuse_duplicate(keys: list[Any]) -> NoReturn:
    twice = Counter(keys).most_common(1)[0][0]
    msg = f"{twice}: stands twice in one map; send it once"
    raise InvalidParams(msg, field=str(twice))


def _refuse_ext(code: int, _data: bytes) -> NoReturn:
    what = "a timestamp" if code == -1 else f"ext type {code}"
    msg = (
        f"{what} is no plain value; turn extension types off in the sender's MessagePack encoder "
        "(records, timestamps, Date and undefined become maps, strings and nil)"
    )
    raise InvalidParams(msg)


def _refuse_text(where: str) -> NoReturn:
    msg = f"{where}: not valid UTF-8 (or half of a surrogate pair); encode texts as UTF-8 before sending them"
    raise InvalidParams(msg, field=where)


def _refuse_many(raw: bytes) -> None:
    scan = HeaderScan()
    scan.advance(raw, MAX_VALUES)
    if scan.seen + scan.missing > MAX_VALUES:
        msg = f"more than {MAX_VALUES:,} values in one message; send fewer at a time"
        raise InvalidParams(msg, limit=MAX_VALUES)


def _refuse_nesting() -> NoReturn:
    msg = f"nested deeper than {MAX_NESTING} levels; send flatter values, or a deep one as a JSON string"
    raise InvalidParams(msg)


def _too_deep(value: Any, room: int) -> bool:
    """True if the value has more than ``room`` levels of arrays and maps."""
    kind = type(value)
    if kind is not dict and kind is not list:
        return False
    if room == 0:
        return True
    for item in value.values() if kind is dict else value:
        kind = type(item)
        if (kind is dict or kind is list) and _too_deep(item, room - 1):
            return True
    return False


def _where_undecodable(raw: bytes | bytearray | memoryview | msgspec.Raw) -> str:
    """The name of the field whose text is not UTF-8; only looked for once it is known that there is one."""
    pending: list[tuple[str, Any]] = [
        (
            "params",
            msgpack.unpackb(raw, unicode_errors="surrogateescape", strict_map_key=False, object_pairs_hook=tuple),
        )
    ]
    while True:  # it ends, for there is one
        where, value = pending.pop()
        if isinstance(value, str) and not value.isascii() and _has_escapes(value):
            return where
        if isinstance(value, list):
            pending.extend((where, item) for item in value)
        elif isinstance(value, tuple):
            pending.extend((str(key), item) for key, item in value)
            pending.extend(("a map's key", key) for key, _ in value)  # first in line: a broken key can name no field


def _has_escapes(text: str) -> bool:
    return any("\udc80" <= char <= "\udcff" for char in text)
