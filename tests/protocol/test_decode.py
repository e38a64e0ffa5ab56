"""Parameters: what is accepted from senders of all languages, and what a sender is told that has to change."""

from __future__ import annotations

import contextlib
from typing import Any

import msgpack
import pytest
from hypothesis import given, strategies as st

from memd.errors import InvalidParams
from memd.protocol.decode import MAX_VALUES, decode_params, peek_errors_form
from memd.protocol.params import (
    EventsWait,
    Hello,
    HistoryDiff,
    MemoryAdd,
    MemoryApply,
    MemoryRead,
    MemoryTool,
    OpParams,
    Params,
    TurnEnd,
)


def add(**fields: Any) -> MemoryAdd:
    return decode_params(msgpack.packb([{"target": "memory", **fields}]), MemoryAdd)


def refused(raw: bytes, method_params: type[Params] = MemoryAdd) -> InvalidParams:
    with pytest.raises(InvalidParams) as caught:
        decode_params(raw, method_params)
    return caught.value


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


class TestTheParamsArray:
    @pytest.mark.parametrize("params", [[], [None], [[]], [{}]])
    def test_no_parameters(self, params: list[Any]) -> None:
        """Absent, nil, an empty Lua table and an empty map are the same."""
        assert MemoryRead() == decode_params(msgpack.packb(params), MemoryRead)

    @pytest.mark.parametrize(
        ("params", "message"),
        [
            (None, "params are an array with at most one map, [] or [{…}]; got nil"),
            ({"target": "memory"}, "params are an array with at most one map, [] or [{…}]; got a bare map"),
            ("x", "params are an array with at most one map, [] or [{…}]; got str"),
            ([{}, {}], "params are an array with at most one map; got 2 values: put them all into one map by name"),
            (
                ["memory", "x"],
                "params are an array with at most one map; got 2 values: put them all into one map by name",
            ),
            (["memory"], "params hold str 'memory'; send one map of parameters by name, [{…}]"),
            ([[1]], "params hold list [1]; send one map of parameters by name, [{…}]"),
        ],
    )
    def test_anything_else(self, params: Any, message: str) -> None:
        error = refused(msgpack.packb(params))
        assert message == error.message
        assert "field" not in error.data()


class TestGenerosity:
    def test_integral_floats_are_ints(self) -> None:
        revision = add(if_revision=3.0).if_revision
        assert 3 == revision
        assert type(revision) is int

    def test_any_integer_width(self) -> None:
        raw = b"\x91\x82\xa6target\xa6memory\xabif_revision\xcf" + (3).to_bytes(8, "big")
        assert 3 == decode_params(raw, MemoryAdd).if_revision

    def test_nil_is_absent(self) -> None:
        """Also where the default is not nil."""
        assert add(session=None) == add()
        assert "primary" == decode_params(msgpack.packb([{"context": None}]), Hello).context

    def test_nil_is_absent_inside_of_maps(self) -> None:
        tool = decode_params(msgpack.packb([{"arguments": {"action": None, "deep": {"x": None}}}]), MemoryTool)
        assert {"deep": {}} == tool.arguments

    def test_bin_is_text(self) -> None:
        """As key, as value, and inside of arrays."""
        raw = msgpack.packb([{b"target": b"memory", "content": "Grüße".encode()}])
        assert add(content="Grüße") == decode_params(raw, MemoryAdd)
        assert ["memory.changed"] == decode_params(msgpack.packb([{"topics": [b"memory.changed"]}]), EventsWait).topics

    def test_unknown_fields_are_passed_over(self) -> None:
        assert add(future={"x": [1, 2]}) == add()

    def test_an_empty_array_is_an_empty_map_where_a_map_belongs(self) -> None:
        """In fields, in items of arrays, in values of maps."""
        hello = decode_params(msgpack.packb([{"client": [], "protocol": [1.0, 1.0]}]), Hello)
        assert ("", [1, 1]) == (hello.client.name, hello.protocol)
        batch = decode_params(msgpack.packb([{"target": "user", "operations": [[], {"action": "add"}]}]), MemoryApply)
        assert [OpParams(), OpParams(action="add")] == batch.operations
        assert {} == decode_params(msgpack.packb([{"arguments": []}]), MemoryTool).arguments

    def test_an_empty_array_stays_one_where_an_array_belongs(self) -> None:
        raw = msgpack.packb(
            [
                {
                    "session": "s",
                    "turn": "t",
                    "status": "completed",
                    "first": 1.0,
                    "messages": [{"role": "user", "content": []}],
                }
            ]
        )
        assert [] == decode_params(raw, TurnEnd).messages[0].content

    def test_a_float_stays_one_where_no_int_belongs(self) -> None:
        tool = decode_params(msgpack.packb([{"arguments": {"x": 2.0}, "deadline_ms": 5.0}]), MemoryTool)
        assert type(tool.arguments["x"]) is float

    def test_a_reserved_word_as_name(self) -> None:
        diff = decode_params(msgpack.packb([{"target": "user", "from": 1}]), HistoryDiff)
        assert 1 == diff.from_


class TestMismatches:
    @pytest.mark.parametrize(
        ("fields", "field", "message"),
        [
            ({"target": "nowhere"}, "target", 'target: expected "memory" or "user", got "nowhere"'),
            ({"target": 5}, "target", 'target: expected "memory" or "user", got 5'),
            ({"content": "x"}, "target", 'target: missing; it takes "memory" or "user"'),
            ({"target": "user", "content": 5}, "content", "content: expected a string, got 5"),
            ({"target": "user", "content": ["x"]}, "content", "content: expected a string, got an array"),
            (
                {"target": "user", "if_revision": True},
                "if_revision",
                "if_revision: expected an integer from 0 to 9223372036854775807, got true",
            ),
            (
                {"target": "user", "if_revision": 1.5},
                "if_revision",
                "if_revision: expected an integer from 0 to 9223372036854775807, got 1.5",
            ),
            (
                {"target": "user", "if_revision": -1},
                "if_revision",
                "if_revision: expected an integer from 0 to 9223372036854775807, got -1",
            ),
            (
                {"target": "user", "if_revision": 2**63},
                "if_revision",
                "if_revision: expected an integer from 0 to 9223372036854775807, got 9223372036854775808",
            ),
            (
                {"target": "user", "origin": "root"},
                "origin",
                'origin: expected "agent", "tool" or "user", got "root"',
            ),
            (
                {"target": "user", "reason": "x" * 1001},
                "reason",
                f'reason: expected a string of at most 1,000 characters, got "{"x" * 39}…"',
            ),
            (
                {"target": "user", "deadline_ms": 0},
                "deadline_ms",
                "deadline_ms: expected an integer from 1 to 9223372036854775807, got 0",
            ),
        ],
    )
    def test_the_field_and_what_it_takes_are_named(self, fields: dict[str, Any], field: str, message: str) -> None:
        error = refused(msgpack.packb([fields]))
        assert message == error.message
        assert {"field": field} == error.data()

    def test_the_place_inside_of_arrays_is_named(self) -> None:
        error = refused(msgpack.packb([{"target": "user", "operations": [{}, {"action": 3}]}]), MemoryApply)
        assert "operations[1].action: expected a string, got 3" == error.message

    def test_missing_fields_inside_of_arrays_are_named(self) -> None:
        raw = msgpack.packb([{"session": "s", "turn": "t", "status": "completed", "messages": [{"content": "x"}]}])
        assert "messages[0].role" == refused(raw, TurnEnd).data()["field"]

    def test_long_texts_are_cut(self) -> None:
        """An error must not carry a whole entry."""
        error = refused(msgpack.packb([{"target": "x" * 500}]))
        assert f'target: expected "memory" or "user", got "{"x" * 39}…"' == error.message


class TestWhatASenderHasToChange:
    @pytest.mark.parametrize(
        ("value", "what"), [(msgpack.ExtType(5, b"x"), "ext type 5"), (msgpack.Timestamp(1, 0), "a timestamp")]
    )
    def test_extension_types(self, value: Any, what: str) -> None:
        """The whole message is refused, in whatever field they are, and the encoder's switch is named."""
        for raw in (
            msgpack.packb([{"target": "memory", "content": value}]),
            msgpack.packb([{"target": "memory", "future": [value]}]),
            msgpack.packb([value]),
        ):
            message = refused(raw).message
            assert message.startswith(what)
            assert "turn extension types off" in message

    @pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
    def test_numbers_that_are_none(self, number: float) -> None:
        assert {"field": "if_revision"} == refused(msgpack.packb([{"target": "user", "if_revision": number}])).data()
        assert {"field": "[0]"} == refused(msgpack.packb([{"x": [number]}])).data()

    @pytest.mark.parametrize("text", [b"\xff", b"\xed\xa0\x80", b"\xc3"])
    def test_text_that_is_not_utf8(self, text: bytes) -> None:
        """Lone surrogates are no UTF-8 either. The field is named, whether it came as str or as bin."""
        as_str = b"\x91\x82\xa6target\xa6memory\xa7content" + bytes([0xA0 + len(text)]) + text
        as_bin = msgpack.packb([{"target": "memory", "content": text}])
        as_key = b"\x91\x81" + bytes([0xA0 + len(text)]) + text + b"\x01"
        as_bin_key = msgpack.packb([{text: 1}])
        in_array = b"\x91\x81\xa6topics\x91" + bytes([0xA0 + len(text)]) + text
        assert ["content", "content", "a map's key", "a map's key", "topics"] == [
            refused(raw).data()["field"] for raw in (as_str, as_bin, as_key, as_bin_key, in_array)
        ]

    def test_a_field_whose_name_is_not_utf8_either(self) -> None:
        """It cannot be named: the error has to be sendable."""
        error = refused(b"\x91\x81\xa1\xff\xa1\xff")
        assert {"field": "a map's key"} == error.data()
        assert error.message.encode()

    @pytest.mark.parametrize("second", [b"\xa6target", b"\xc4\x06target"])
    def test_duplicate_keys(self, second: bytes) -> None:
        """Also when they are the same only as text, and when one of the values is nil."""
        for value in (b"\xa6memory", b"\xc0"):
            error = refused(b"\x91\x82\xa6target\xa6memory" + second + value)
            assert "target: stands twice in one map; send it once" == error.message

    @pytest.mark.parametrize("value", [b"\x80", b"\x91\xc0", b"\x00", b"\xa1x"])
    def test_more_values_than_can_be_decoded_at_once(self, value: bytes) -> None:
        """A small message of very many values is refused without decoding it, whatever their kind."""
        error = refused(b"\x91\x81\xa1x\xdd" + MAX_VALUES.to_bytes(4, "big") + value * MAX_VALUES)
        assert "more than 500,000 values in one message; send fewer at a time" == error.message

    def test_as_many_values_as_allowed(self) -> None:
        """The array around them, the map, its key and the array inside count too."""
        count = MAX_VALUES - 4
        raw = b"\x91\x81\xa1x\xdd" + count.to_bytes(4, "big") + b"\xa1x" * count
        assert MemoryRead() == decode_params(raw, MemoryRead)

    def test_one_duplicate_among_very_many_keys(self) -> None:
        """Finding it takes one walk; comparing each key with each would take hours."""
        count = 200_000
        pairs = b"".join([b"\xa5%05x\xc0" % n for n in [*range(count), count - 1]])
        error = refused(b"\x91\xdf" + (count + 1).to_bytes(4, "big") + pairs)
        assert f"{count - 1:05x}: stands twice in one map; send it once" == error.message

    @pytest.mark.parametrize("key", [b"\x05", b"\x90", b"\x80", b"\xc3", b"\xc0"])
    def test_keys_that_are_no_text(self, key: bytes) -> None:
        assert "keys are strings" in refused(b"\x91\x82\xa6target\xa6memory" + key + b"\x01").message

    def test_nesting(self) -> None:
        """16 levels pass, the message's own array being the first; 17 do not."""
        params_and_two_maps = 1 + 1 + 2  # the message, its params, the map, `arguments`
        raw = msgpack.packb([{"arguments": {"x": nested(16 - params_and_two_maps)}}])
        assert decode_params(raw, MemoryTool).arguments
        for levels in (17 - params_and_two_maps, 600, 5000):
            deep = b"\x91\x81\xa9arguments\x81\xa1x" + b"\x91" * levels + b"\x01"
            assert "nested deeper than 16 levels" in refused(deep, MemoryTool).message


class TestPeekErrorsForm:
    @pytest.mark.parametrize(
        ("params", "form"),
        [
            ([{"errors": "pair"}], "pair"),
            ([{"errors": "pair", "protocol": 5}], "pair"),
            ([{"errors": b"pair"}], "pair"),
            ([{"errors": "map"}], "map"),
            ([{"errors": "json"}], "map"),
            ([{"errors": ["pair"]}], "map"),
            ([], "map"),
            (None, "map"),
        ],
    )
    def test_whatever_else_is_wrong(self, params: Any, form: str) -> None:
        assert form == peek_errors_form(msgpack.packb(params))


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=4)
    | st.binary(max_size=4)
)
anything = st.recursive(
    scalars | st.builds(msgpack.ExtType, st.integers(0, 127), st.binary(max_size=3)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.binary(max_size=3) | st.just(9), inner, max_size=3)
    ),
    max_leaves=4,
)
names = st.sampled_from(
    ["target", "operations", "messages", "content", "session", "deadline_ms", "client", "arguments"]
)


@given(
    st.lists(st.dictionaries(names, anything, max_size=3), min_size=1, max_size=1),
    st.sampled_from([MemoryAdd, MemoryApply, MemoryTool, Hello, TurnEnd, EventsWait]),
)
def test_any_value_fits_or_is_invalid_params(params: list[Any], method_params: type[Params]) -> None:
    """Nothing else can come out."""
    with contextlib.suppress(InvalidParams):
        assert isinstance(decode_params(msgpack.packb(params), method_params), method_params)


@given(st.binary(min_size=1, max_size=80))
def test_any_object_fits_or_is_invalid_params(data: bytes) -> None:
    """The same for objects that no encoder makes: duplicate keys, bad text."""
    unpacker = msgpack.Unpacker()
    unpacker.feed(data)
    try:
        unpacker.skip()
    except (msgpack.OutOfData, ValueError):
        return
    with contextlib.suppress(InvalidParams):
        decode_params(data[: unpacker.tell()], MemoryRead)
