"""Encoding of everything memd sends.

What comes in: results, typed errors, events. What goes out: the bytes of one message. What must not be here: queues,
sockets, the choice of what to send.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from memd.errors import WireError
    from memd.protocol.types import ErrorsForm, Event

PROTOCOL_ERROR = "rpc.protocol_error"
EVENT = "event"

_encode = msgspec.msgpack.Encoder().encode
_REPLY_HEAD = b"\x94\x01"  # an array of four, of which the first says that it is a reply
_NIL = b"\xc0"


def encode_result(msgid: int, result: object) -> bytes:
    """A reply. ``result`` may be, or contain, ``msgspec.Raw`` that was encoded before.

    One that is nothing else is joined to its head: an encoder would copy the kilobytes of a snapshot as its buffer grows.
    """
    if type(result) is msgspec.Raw:
        return b"".join((_REPLY_HEAD, _encode(msgid), _NIL, result))
    return _encode((1, msgid, None, result))


def encode_error(msgid: int, error: WireError, form: ErrorsForm = "map") -> bytes:
    """A reply that refuses, in the form the connection asked for."""
    body = error_map(error) if form == "map" else error_pair(error)
    return _encode((1, msgid, body, None))


def encode_event(event: Event) -> bytes:
    """The notification of an event."""
    return _encode((2, EVENT, (event,)))


def encode_protocol_error(error: WireError) -> bytes:
    """The notification about something that cannot be answered; always in the map form."""
    return _encode((2, PROTOCOL_ERROR, (error_map(error),)))


def error_map(error: WireError) -> dict[str, Any]:
    """The error as programs read it."""
    return {
        "code": error.code,
        "name": error.wire_name,
        "message": error.message,
        "retryable": error.retryable,
        "data": error.data(),
    }


def error_pair(error: WireError) -> tuple[int, str]:
    """The error as Neovim shows it: a type and one line, which ends with the first entry's id or with the excess."""
    text = f"{error.wire_name}: {error.message}"
    data = error.data()
    for key in ("matches", "nearest"):
        if data.get(key):
            return 0, f"{text} — {_id_of(data[key][0])}"
    if "excess" in data:
        return 0, f"{text} — {data['excess']}"
    return 0, text


def _id_of(entry: Any) -> str:
    """The id of an entry that a layer below gave as a map or as a struct."""
    return str(entry["id"] if isinstance(entry, dict) else entry.id)
