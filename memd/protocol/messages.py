"""The kinds of message, and telling them apart.

What comes in: the bytes of one whole MessagePack object. What goes out: ``Request``, ``Notification``, ``Reply``, or
``Unusable`` for an object that is none of them. What must not be here: the stream, method names, parameters' meaning.

``params`` stay undecoded: only the method table knows their type (see ``decode.py``).
"""

from __future__ import annotations

from typing import Any

import msgpack
import msgspec

from memd.errors import InvalidRequest
from memd.protocol.framing import HeaderScan


class Request(msgspec.Struct, array_like=True, tag=0, frozen=True, forbid_unknown_fields=True):
    """``[0, msgid, method, params]``: has to be answered, once."""

    msgid: int
    method: str
    params: msgspec.Raw

    @property
    def size(self) -> int:
        """Bytes of the parameters: what the request costs while it is in flight."""
        return memoryview(self.params).nbytes


class Reply(msgspec.Struct, array_like=True, tag=1, frozen=True, forbid_unknown_fields=True):
    """``[1, msgid, error, result]``: memd asks nothing, so each is a stray."""

    msgid: int
    error: msgspec.Raw
    result: msgspec.Raw


class Notification(msgspec.Struct, array_like=True, tag=2, frozen=True, forbid_unknown_fields=True):
    """``[2, method, params]``: never answered."""

    method: str
    params: msgspec.Raw


class Unusable(msgspec.Struct, frozen=True):
    """An object that is none of the three kinds. ``msgid`` is None if there is none to answer to."""

    msgid: int | None
    error: InvalidRequest


Incoming = Request | Reply | Notification | Unusable

_decoder: msgspec.msgpack.Decoder[Request | Reply | Notification] = msgspec.msgpack.Decoder(
    Request | Reply | Notification
)


def classify(message: bytes) -> Incoming:
    """Tell what kind of message this is. Never fails on a whole MessagePack object."""
    try:
        return _decoder.decode(message)
    except (msgspec.DecodeError, RecursionError):  # RecursionError: parameters nested deeper than C can skip
        return _classify_loosely(message)


def _classify_loosely(message: bytes) -> Incoming:
    """The same for what strict decoding refuses: methods as bin, integral floats, deep nesting, and nonsense."""
    if not _is_array(message):
        return Unusable(None, InvalidRequest(f"{_SHAPES}; got no array"))
    length, parts = _length(message), _split(message)
    kind, msgid = _integer(parts, 0), _integer(parts, 1)
    if kind == 0 and length == 4 and msgid is not None:
        method = _text(parts, 2)
        if method is None:
            return Unusable(msgid, InvalidRequest("the method's name is no UTF-8 text; send it as str"))
        return Request(msgid, method, msgspec.Raw(parts[3]))
    if kind == 1 and length == 4 and msgid is not None:
        return Reply(msgid, _UNREAD, _UNREAD)
    if kind == 2 and length == 3:
        method = _text(parts, 1)
        if method is not None:
            return Notification(method, msgspec.Raw(parts[2]))
    wrong = InvalidRequest(f"{_SHAPES}; got an array of {length} with kind {kind}")
    return Unusable(None if kind in {1, 2} else msgid, wrong)


_SHAPES = "a message is [0, msgid, method, params] or [2, method, params]"
_PARTS = 4
"""As many as the longest kind has; of a longer message the first two are enough."""
_UNREAD = msgspec.Raw(b"\xc0")
"""What a stray reply says concerns nobody."""


def _is_array(message: bytes) -> bool:
    return 0x90 <= message[0] <= 0x9F or message[0] in {0xDC, 0xDD}


def _is_container(byte: int) -> bool:
    return 0x80 <= byte <= 0x9F or 0xDC <= byte <= 0xDF


def _length(message: bytes) -> int:
    """The declared length of the array that the message is."""
    unpacker = msgpack.Unpacker(max_buffer_size=0)
    unpacker.feed(message[:5])  # the longest array header
    return int(unpacker.read_array_header())


def _split(message: bytes) -> list[bytes]:
    """The first elements of the array that the message is, undecoded.

    The last one, the parameters, is what remains. A container before it ends the list: no kind has one that matters, and
    a walk through megabytes of nested ones would hold up everybody.
    """
    length = _length(message)
    at = {0xDC: 3, 0xDD: 5}.get(message[0], 1)
    parts: list[bytes] = []
    for index in range(min(length, _PARTS)):
        if index == length - 1:
            parts.append(message[at:])
        elif _is_container(message[at]):
            break
        else:
            scan = HeaderScan(at)
            scan.advance(message)
            parts.append(message[at : scan.at])
            at = scan.at
    return parts


def _scalar(part: bytes) -> Any:
    """The value of an object that is no container, None if it is one or cannot be decoded."""
    try:
        return msgpack.unpackb(part, max_array_len=0, max_map_len=0, max_ext_len=0)
    except ValueError:  # a container, an ext, or text that is not UTF-8
        return None


def _integer(parts: list[bytes], index: int) -> int | None:
    value = _scalar(parts[index]) if index < len(parts) else None
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**64:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(parts: list[bytes], index: int) -> str | None:
    value = _scalar(parts[index]) if index < len(parts) else None
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return None
    return value if isinstance(value, str) else None
