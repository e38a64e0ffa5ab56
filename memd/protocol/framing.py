"""Message borders in a stream of MessagePack objects that follow each other with nothing in between.

What comes in: pieces of the stream, cut anywhere. What goes out: the bytes of one whole message at a time. What must
not be here: what a message means.

There is no length prefix, so a border is found by walking the headers. For whole messages the C parser does that
(``skip``, ``tell``). Where it stops, be it for missing bytes or for a nesting deeper than its stack, ``HeaderScan``
goes on: it needs no stack, looks at every byte once however the stream is cut, and knows at every moment how long the
message is at least, so that one over the limit is refused when its header declares it and not when it has arrived.
"""

from __future__ import annotations

import re
import sys
from collections import deque
from typing import Any

import msgpack

from memd.errors import InvalidRequest, RemoteProtocolError, TooLarge

_SINGLES = re.compile(rb"[\x00-\x80\x90\xa0\xc0\xc2\xc3\xe0-\xff]+")
"""A run of objects of one byte each: small ints, nil, booleans, empty maps, arrays and texts."""

# What follows each header byte, as (bytes of the length field, other bytes, contained objects, objects per length).
# https://github.com/msgpack/msgpack/blob/master/spec.md#formats
_Header = tuple[int, int, int, int]
_LENGTHS: dict[int, _Header] = {
    **{0xC4 + n: (1 << n, 0, 0, 0) for n in range(3)},  # bin 8, 16, 32
    **{0xC7 + n: (1 << n, 1, 0, 0) for n in range(3)},  # ext 8, 16, 32 with their type byte
    **{0xD9 + n: (1 << n, 0, 0, 0) for n in range(3)},  # str 8, 16, 32
    **{0xDC + n: (2 << n, 0, 0, 1) for n in range(2)},  # array 16, 32
    **{0xDE + n: (2 << n, 0, 0, 2) for n in range(2)},  # map 16, 32
}
_FIXED: dict[int, _Header] = {
    **{0x80 + n: (0, 0, 2 * n, 0) for n in range(16)},  # fixmap
    **{0x90 + n: (0, 0, n, 0) for n in range(16)},  # fixarray
    **{0xA0 + n: (0, n, 0, 0) for n in range(32)},  # fixstr
    **{0xCC + n: (0, 1 << n, 0, 0) for n in range(4)},  # uint 8 to 64
    **{0xD0 + n: (0, 1 << n, 0, 0) for n in range(4)},  # int 8 to 64
    **{0xD4 + n: (0, 1 + (1 << n), 0, 0) for n in range(5)},  # fixext 1 to 16 with their type byte
    0xCA: (0, 4, 0, 0),  # float 32
    0xCB: (0, 8, 0, 0),  # float 64
}
_HEADERS: tuple[_Header, ...] = tuple({**_LENGTHS, **_FIXED}.get(byte, (0, 0, 0, 0)) for byte in range(256))
_NEVER_USED = 0xC1
_EVERY_VALUE = sys.maxsize
_PARSER_BYTES = 16384
"""What the C parser sets aside from the start; its default of 1 MiB would be mapped anew for every message cut short."""


class HeaderScan:
    """The walk over one object's headers, resumable at any byte.

    ``at`` is where the next header stands, ``missing`` how many objects are still to come; each takes a byte or more,
    so ``at + missing`` is the least that the object can measure. ``seen`` counts the objects passed.
    """

    __slots__ = ("at", "missing", "seen")

    def __init__(self, at: int = 0) -> None:
        self.at = at
        self.missing = 1
        self.seen = 0

    def advance(self, data: bytes | bytearray, most: int = _EVERY_VALUE) -> bool:
        """Walk on as far as ``data`` goes, or until ``most`` objects are seen; True once the object ends, at ``at``.

        Raises:
            RemoteProtocolError: the stream holds the one byte that MessagePack never uses.
        """
        at, missing, seen, end = self.at, self.missing, self.seen, len(data)
        while missing and at < end and seen < most:
            run = _SINGLES.match(data, at, min(end, at + missing))
            if run is not None:
                missing -= run.end() - at
                seen += run.end() - at
                at = run.end()
                continue
            step = _step(data, at)
            if step is None:
                break
            at += step[0]
            missing += step[1] - 1
            seen += 1
        self.at, self.missing, self.seen = at, missing, seen
        return not missing and at <= end


def _step(data: bytes | bytearray, at: int) -> tuple[int, int] | None:
    """Size of the header at ``at`` with its own payload, and the objects it contains; None if it is cut short."""
    byte = data[at]
    if byte == _NEVER_USED:
        raise RemoteProtocolError(InvalidRequest("the byte 0xc1 is not MessagePack; close and connect again"))
    width, payload, contained, per_length = _HEADERS[byte]
    if not width:
        return 1 + payload, contained
    if at + 1 + width > len(data):
        return None
    length = int.from_bytes(data[at + 1 : at + 1 + width], "big")
    if per_length:
        return 1 + width, length * per_length
    return 1 + width + payload + length, 0


class Framer:
    """Cuts a stream into messages.

    Every byte is copied once into the buffer and once out of it; finding the borders is linear in the bytes, however
    they are cut.
    """

    def __init__(self, message_bytes: int) -> None:
        self._limit = message_bytes
        self._buffer = bytearray()
        self._sizes: deque[int] = deque()  # of the whole messages at the buffer's front
        self._scan: HeaderScan | None = None  # of the message cut short, if there is one
        self._unpacker: Any = None  # made when it is needed, and thrown away where it stopped inside an object
        self._unpacker_at = 0

    def __repr__(self) -> str:
        return f"<Framer {len(self._buffer)} bytes, {len(self._sizes)} messages waiting>"

    @property
    def pending(self) -> int:
        """Bytes taken that have not left as messages."""
        return len(self._buffer)

    def feed(self, data: bytes) -> None:
        """Take more of the stream."""
        self._buffer += data

    def clear(self) -> None:
        """Forget everything, and give the memory back."""
        self._buffer.clear()
        self._sizes.clear()
        self._scan = None
        self._unpacker = None
        self._unpacker_at = 0

    def next_message(self) -> bytes | None:
        """The next whole message, or None as long as there is none.

        Raises:
            RemoteProtocolError: the stream cannot be read on.
        """
        if not self._sizes:
            self._find()
            if not self._sizes:
                return None
        size = self._sizes.popleft()
        if size > self._limit:
            raise self._too_large(size)
        if size == len(self._buffer):
            message = bytes(self._buffer)
            self._buffer.clear()
            return message
        message = bytes(self._buffer[:size])
        del self._buffer[:size]  # bytearray moves its start: no copy of the rest
        return message

    def _find(self) -> None:
        """Fill ``_sizes`` with every whole message in the buffer, or else go on with the one cut short."""
        if self._scan is None:
            if not self._buffer:
                return
            self._find_whole()
            if self._sizes:
                return
            self._scan = HeaderScan()
        scan = self._scan
        if scan.advance(self._buffer):
            self._sizes.append(scan.at)
            self._scan = None
        elif scan.at + scan.missing > self._limit:
            raise self._too_large(scan.at + scan.missing)

    def _find_whole(self) -> None:
        """Find borders with the C parser until it runs out of data, or meets what only ``HeaderScan`` can judge."""
        unpacker = self._unpacker or msgpack.Unpacker(read_size=_PARSER_BYTES, max_buffer_size=0)
        at = self._unpacker_at
        whole = False
        try:
            unpacker.feed(self._buffer)
            while True:
                unpacker.skip()
                end = unpacker.tell()
                self._sizes.append(end - at)
                at = end
                whole = end - self._unpacker_at == len(self._buffer)
                if whole:
                    break
        except (msgpack.OutOfData, ValueError):  # ValueError: nested too deep (StackError), or 0xc1 (FormatError)
            pass
        self._unpacker, self._unpacker_at = (unpacker, at) if whole else (None, 0)

    def _too_large(self, size: int) -> RemoteProtocolError:
        message = f"a message of at least {size} bytes; the limit is {self._limit} (wire.message_bytes)"
        return RemoteProtocolError(TooLarge(message, limit=self._limit, size=size))
