"""The state machine of a connection: its rules one by one, then under any bytes."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import given, strategies as st

from memd.errors import InvalidParams, InvalidRequest, LocalProtocolError, RemoteProtocolError, TooLarge
from memd.protocol.connection import (
    NEED_DATA,
    TRANSITIONS,
    Complaint,
    ConnectionClosed,
    Event,
    Failure,
    Farewell,
    Result,
    ServerConnection,
    State,
    Step,
)
from memd.protocol.messages import Notification, Request, Unusable


def pack(*parts: Any) -> bytes:
    return bytes(msgpack.packb(list(parts)))


PING = pack(0, 1, "rpc.ping", [])
OVERSIZE = b"\xdb\xff\xff\xff\xff"


def events_of(core: ServerConnection) -> list[Event]:
    found: list[Event] = []
    while (event := core.next_event()) is not NEED_DATA:
        found.append(event)
        if isinstance(event, ConnectionClosed):
            break
    return found


def broken() -> ServerConnection:
    core = ServerConnection()
    core.receive_data(OVERSIZE)
    with pytest.raises(RemoteProtocolError):
        core.next_event()
    return core


class TestReading:
    def test_nothing_yet(self) -> None:
        assert NEED_DATA is ServerConnection().next_event()

    def test_events_in_the_order_sent(self) -> None:
        core = ServerConnection()
        core.receive_data(PING + pack(2, "rpc.cancel", [{"msgid": 1}]) + pack(0, 2))
        assert [Request, Notification, Unusable] == [type(event) for event in events_of(core)]

    def test_stray_replies_are_passed_over(self) -> None:
        core = ServerConnection()
        core.receive_data(pack(1, 1, None, {}) + PING)
        assert [Request] == [type(event) for event in events_of(core)]

    def test_a_message_that_is_whole_but_wrong_breaks_nothing(self) -> None:
        core = ServerConnection()
        core.receive_data(msgpack.packb("GET"))
        assert [Unusable] == [type(event) for event in events_of(core)]
        core.receive_data(PING)
        assert [Request] == [type(event) for event in events_of(core)]
        assert State.OPEN is core.state

    @pytest.mark.parametrize(("rest", "cut_short"), [(b"", False), (PING[:4], True)])
    def test_the_end(self, rest: bytes, cut_short: bool) -> None:
        """What came before the end is still given out."""
        core = ServerConnection()
        core.receive_data(PING + rest)
        core.receive_data(b"")
        events = events_of(core)
        assert [Request, ConnectionClosed] == [type(event) for event in events]
        assert ConnectionClosed(cut_short) == events[1]
        assert State.CLOSED is core.state

    def test_nothing_can_be_read_after_the_end(self) -> None:
        core = ServerConnection()
        core.receive_data(b"")
        events_of(core)
        with pytest.raises(LocalProtocolError, match="closed"):
            core.next_event()
        with pytest.raises(LocalProtocolError, match="after the peer's end"):
            core.receive_data(PING)

    def test_broken_framing_stays_broken(self) -> None:
        core = broken()
        assert State.BROKEN is core.state
        core.receive_data(PING)
        with pytest.raises(RemoteProtocolError) as caught:
            core.next_event()
        assert isinstance(caught.value.wire, TooLarge)

    def test_the_limit_is_an_argument(self) -> None:
        core = ServerConnection(message_bytes=5)
        core.receive_data(PING)
        with pytest.raises(RemoteProtocolError):
            core.next_event()


class TestSending:
    def test_every_kind(self) -> None:
        core = ServerConnection()
        error = InvalidParams("no", field="x")
        body = {"code": 3, "name": "invalid_params", "message": "no", "retryable": False, "data": {"field": "x"}}
        assert [1, 1, None, {"a": 1}] == msgpack.unpackb(core.send(Result(1, {"a": 1})))
        assert [1, 1, body, None] == msgpack.unpackb(core.send(Failure(1, error)))
        assert [1, 1, [0, "invalid_params: no"], None] == msgpack.unpackb(core.send(Failure(1, error, "pair")))
        assert [2, "rpc.protocol_error", [body]] == msgpack.unpackb(core.send(Complaint(error)))
        assert [2, "rpc.protocol_error", [body]] == msgpack.unpackb(core.send(Farewell(error)))
        assert State.CLOSED is core.state

    def test_only_the_farewell_after_broken_framing(self) -> None:
        core = broken()
        with pytest.raises(LocalProtocolError, match="broken"):
            core.send(Result(1, None))
        assert core.send(Farewell(InvalidRequest("no")))
        with pytest.raises(LocalProtocolError, match="closed"):
            core.send(Farewell(InvalidRequest("no")))


class TestStates:
    def test_a_closed_connection_goes_nowhere(self) -> None:
        assert {} == TRANSITIONS[State.CLOSED]

    def test_every_state_has_its_row_and_leads_to_one(self) -> None:
        assert set(State) == set(TRANSITIONS)
        assert set(State) >= {after for row in TRANSITIONS.values() for after in row.values()}

    def test_every_step_is_used(self) -> None:
        assert set(Step) == {step for row in TRANSITIONS.values() for step in row}

    def test_repr(self) -> None:
        assert "<ServerConnection open <Framer 0 bytes, 0 messages waiting>>" == repr(ServerConnection())


def outcome(pieces: list[bytes]) -> list[str]:
    """Everything that comes of these pieces, as text."""
    core = ServerConnection(message_bytes=1 << 16)
    found = []
    try:
        for piece in [*pieces, b""]:
            core.receive_data(piece)
            event = None
            while event is not NEED_DATA and not isinstance(event, ConnectionClosed):
                event = core.next_event()
                found.append(str(event))
    except RemoteProtocolError as violation:
        found.append(violation.wire.wire_name)  # how much is known to be missing does depend on the cut
    return [text.split(" object at ")[0] for text in found if text != str(NEED_DATA)]


messages = st.lists(
    st.integers(-1, 3) | st.text(max_size=4) | st.lists(st.integers(-5, 300), max_size=2) | st.none(), max_size=5
).map(lambda parts: bytes(msgpack.packb(parts)))


@given(st.lists(messages | st.binary(max_size=12), max_size=6), st.data())
def test_any_split_of_any_bytes_gives_the_same_events(parts: list[bytes], data: st.DataObject) -> None:
    """And they are events or one ``RemoteProtocolError``, nothing else."""
    stream = b"".join(parts)
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(stream) - 1)), max_size=6)))
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert outcome([stream] if stream else []) == outcome([piece for piece in pieces if piece])
