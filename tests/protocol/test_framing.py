"""Message borders: found wherever the stream is cut, linear in the bytes, and refused as soon as they are too far."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import given, strategies as st

from memd.errors import InvalidRequest, RemoteProtocolError, TooLarge
from memd.protocol.framing import Framer, HeaderScan

LIMIT = 1 << 20

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=10,
)


def drain(framer: Framer) -> list[bytes]:
    messages = []
    while (message := framer.next_message()) is not None:
        messages.append(message)
    return messages


def every_header() -> list[bytes]:
    """One object for every kind of header that MessagePack has."""
    values: list[Any] = [None, True, False, 0, 127, 128, 2**16 - 1, 2**16, 2**32 - 1, 2**32, 2**64 - 1]
    values += [-1, -32, -33, -(2**7), -(2**15), -(2**31), -(2**63), 1.5, "", "a" * 31, "a" * 32, "a" * 256, "a" * 65536]
    values += [b"", b"b" * 255, b"b" * 256, b"b" * 65536, [], [0] * 15, [0] * 16, [0] * 65536, {}, {"k": 0}]
    values += [{str(n): n for n in range(16)}, {str(n): n for n in range(65536)}]
    values += [msgpack.ExtType(5, b"x" * n) for n in (0, 1, 2, 4, 8, 16, 17, 256, 65536)]
    return [*(msgpack.packb(value) for value in values), b"\xca\x00\x00\x00\x00"]


class TestFramer:
    def test_whole_messages_of_one_piece(self) -> None:
        """Several messages in one piece come out one by one."""
        parts = every_header()
        framer = Framer(LIMIT)
        framer.feed(b"".join(parts))
        assert parts == drain(framer)
        assert framer.pending == 0

    def test_byte_by_byte(self) -> None:
        """Every header byte and length byte may be the last of a piece."""
        parts = [part for part in every_header() if len(part) < 300]
        framer = Framer(LIMIT)
        found = []
        for byte in b"".join(parts):
            framer.feed(bytes([byte]))
            found += drain(framer)
        assert parts == found

    def test_trailing_bytes_wait_for_the_rest(self) -> None:
        """What is cut short is kept, and the whole message comes when the rest arrives."""
        whole = msgpack.packb([0, 1, "rpc.ping", []])
        framer = Framer(LIMIT)
        framer.feed(whole + whole[:5])
        assert [whole] == drain(framer)
        assert framer.pending == 5
        framer.feed(whole[5:] + whole[:3])
        assert [whole] == drain(framer)
        assert framer.pending == 3

    def test_nesting_beyond_the_c_parser_still_has_a_border(self) -> None:
        """A message nested 100,000 deep ends where it ends, and the next one is found."""
        deep = b"\x91" * 100_000 + b"\xc0"
        framer = Framer(LIMIT)
        framer.feed(b"\x01" + deep + b"\x02")
        assert [b"\x01", deep, b"\x02"] == drain(framer)

    @pytest.mark.parametrize(
        "header", [b"\xdb\xff\xff\xff\xff", b"\xc6\x00\x10\x00\x01", b"\xdd\xff\xff\xff\xff", b"\xdf\x7f\xff\xff\xff"]
    )
    def test_a_declared_size_over_the_limit_is_refused_with_its_header(self, header: bytes) -> None:
        """Nothing of the announced megabytes has to arrive first."""
        framer = Framer(LIMIT)
        framer.feed(b"\x94\x00\x01\xa1x\x91")
        assert framer.next_message() is None
        framer.feed(header)
        with pytest.raises(RemoteProtocolError) as caught:
            framer.next_message()
        assert isinstance(caught.value.wire, TooLarge)
        assert LIMIT == caught.value.wire.data()["limit"]

    def test_a_whole_message_over_the_limit_is_refused(self) -> None:
        framer = Framer(10)
        framer.feed(msgpack.packb("a" * 10))
        with pytest.raises(RemoteProtocolError) as caught:
            framer.next_message()
        assert isinstance(caught.value.wire, TooLarge)

    def test_a_message_of_exactly_the_limit_passes(self) -> None:
        framer = Framer(11)
        framer.feed(msgpack.packb("a" * 10))
        assert [msgpack.packb("a" * 10)] == drain(framer)

    @pytest.mark.parametrize("cut", [0, 1])
    def test_the_byte_that_messagepack_never_uses(self, cut: int) -> None:
        """0xc1 breaks the framing, in a whole message and in one cut short."""
        framer = Framer(LIMIT)
        framer.feed(b"\x05\x92\xc1\x00\x00"[: 3 + cut])
        assert framer.next_message() == b"\x05"
        with pytest.raises(RemoteProtocolError) as caught:
            framer.next_message()
        assert isinstance(caught.value.wire, InvalidRequest)

    def test_clear(self) -> None:
        """Nothing of a message cut short is left, nor of those that nobody asked for."""
        framer = Framer(1000)
        framer.feed(b"\x01\x02\xa5ab")
        assert b"\x01" == framer.next_message()
        framer.clear()
        assert 0 == framer.pending
        framer.feed(b"\x03\xa2a")
        assert b"\x03" == framer.next_message()
        assert None is framer.next_message()
        framer.clear()
        framer.feed(b"\x04")
        assert b"\x04" == framer.next_message()

    def test_repr(self) -> None:
        """It shows what it holds."""
        framer = Framer(LIMIT)
        framer.feed(b"\x01\x02\x93")
        framer.next_message()
        assert repr(framer) == "<Framer 2 bytes, 1 messages waiting>"

    @given(st.lists(plain, max_size=3), st.data())
    def test_any_split_gives_the_same_messages(self, values: list[Any], data: st.DataObject) -> None:
        parts = [msgpack.packb(value) for value in values]
        stream = b"".join(parts)
        cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
        framer = Framer(LIMIT)
        found = []
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
            framer.feed(stream[start:end])
            found += drain(framer)
        assert parts == found

    @given(st.binary(max_size=200))
    def test_any_bytes_give_messages_or_a_violation(self, stream: bytes) -> None:
        """Nothing else can come out, and together the messages are the front of the stream."""
        framer = Framer(LIMIT)
        framer.feed(stream)
        found = []
        try:
            while (message := framer.next_message()) is not None:
                found.append(message)
        except RemoteProtocolError:
            pass
        assert stream.startswith(b"".join(found))


class TestHeaderScan:
    @pytest.mark.parametrize("part", every_header(), ids=lambda part: f"{part[0]:02x}+{len(part)}")
    def test_agrees_with_the_c_parser(self, part: bytes) -> None:
        scan = HeaderScan()
        assert scan.advance(part + b"\x00")
        assert len(part) == scan.at

    def test_knows_the_least_size_of_what_is_announced(self) -> None:
        """Every object that a header announces takes a byte or more."""
        scan = HeaderScan()
        assert not scan.advance(b"\xdc\x01\x00")
        assert (3, 256) == (scan.at, scan.missing)

    def test_many_small_objects_are_walked_at_once(self) -> None:
        """A run of one-byte objects ends where the array ends, not where the run does."""
        scan = HeaderScan()
        assert scan.advance(b"\xdc\x00\x03" + b"\x00" * 10)
        assert 6 == scan.at
