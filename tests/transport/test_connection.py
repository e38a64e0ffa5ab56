"""One connection over a stream in memory: order, batching, backpressure, endings."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgpack
import pytest
import trio
import trio.testing
from support.wires import MemoryWire, SlowPeer, VanishingPeer

from memd.protocol.encode import encode_result
from memd.transport.connection import CLOSE_GRACE_S, HALF_CLOSED_CHECK_S, Channel, Connection, Peer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    import msgspec

    from memd.protocol.messages import Request

PEER = Peer(1000, 42, "test", "agent")
LIMIT = 1 << 20


class Echo:
    """A conversation that answers every request with its method, and remembers what it was told.

    ``hold.*`` is not answered until the test does; ``close`` ends the connection after its answer.
    """

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.notifications: list[str] = []
        self.held: list[int] = []
        self.handled: list[str] = []
        self.partings = 0
        self.clear = trio.Event()
        self.clear.set()
        self.answered = trio.Event()

    def handle(self, request: Request) -> None:
        self.handled.append(request.method)
        if request.method == "hold":
            self.held.append(request.msgid)
            return
        self.channel.send(encode_result(request.msgid, request.method))
        if request.method == "close":
            self.channel.close()
        if request.method == "congest":
            self.clear = trio.Event()

    def notification(self, method: str, params: msgspec.Raw) -> None:
        self.notifications.append(f"{method} {msgpack.unpackb(params)}")

    def disconnected(self) -> None:
        self.partings += 1

    @property
    def waiting(self) -> bool:
        return bool(self.held)

    async def wait_answered(self) -> None:
        while self.waiting:
            self.answered = trio.Event()
            await self.answered.wait()

    def answer(self, result: str) -> None:
        """Answer the request that was held longest."""
        self.channel.send(encode_result(self.held.pop(0), result))
        self.answered.set()

    @property
    def congested(self) -> bool:
        return not self.clear.is_set()

    async def wait_clear(self) -> None:
        await self.clear.wait()


class Served:
    """A connection under way, and what belongs to it."""

    def __init__(self, wire: MemoryWire, *, max_unsent: int = 1 << 20) -> None:
        self.wire = wire
        self.waiting: list[Connection] = []
        self.connection = Connection(
            wire, PEER, message_bytes=LIMIT, flush_later=self.waiting.append, max_unsent=max_unsent
        )
        self.conversations: list[Echo] = []

    @property
    def talk(self) -> Echo:
        return self.conversations[0]

    def open(self, channel: Channel) -> Echo:
        self.conversations.append(Echo(channel))
        return self.talk

    def flush(self) -> None:
        """What the server's flusher does a step later."""
        while self.waiting:
            self.waiting.pop(0).flush()


@asynccontextmanager
async def serving(wire: MemoryWire, *, max_unsent: int = 1 << 20) -> AsyncIterator[Served]:
    served = Served(wire, max_unsent=max_unsent)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(served.connection.run, served.open)
        await trio.testing.wait_all_tasks_blocked()
        yield served
        nursery.cancel_scope.cancel()


def request(msgid: int, method: str = "echo") -> list[Any]:
    return [0, msgid, method, []]


def reply(msgid: int, result: str = "echo") -> list[Any]:
    return [1, msgid, None, result]


class TestReplies:
    async def test_in_the_order_asked(self) -> None:
        async with serving(MemoryWire()) as served:
            served.wire.feed(request(1), request(2, "other"))
            assert [reply(1), reply(2, "other")] == await served.wire.read_all()

    async def test_all_replies_to_one_read_leave_in_one_send(self) -> None:
        async with serving(MemoryWire()) as served:
            served.wire.feed(*[request(number) for number in range(64)])
            assert 64 == len(await served.wire.read_all())
            assert 1 == len(served.wire.sends)

    async def test_later_replies_leave_together(self) -> None:
        """They ask once to be flushed, and leave in one send."""
        async with serving(MemoryWire()) as served:
            served.wire.feed(request(1, "hold"), request(2, "hold"))
            await trio.testing.wait_all_tasks_blocked()
            for msgid in served.talk.held:
                served.talk.channel.send(encode_result(msgid, "late"))
            assert [served.connection] == served.waiting
            assert [] == served.wire.sends
            served.flush()
            assert [reply(1, "late"), reply(2, "late")] == await served.wire.read_all()
            assert 1 == len(served.wire.sends)

    async def test_a_flush_without_anything_to_send(self) -> None:
        async with serving(MemoryWire()) as served:
            served.connection.flush()
            assert [] == served.wire.sends

    async def test_events_come_after_the_replies_queued_with_them(self) -> None:
        async with serving(MemoryWire()) as served:
            served.talk.channel.notify(msgpack.packb([2, "event", []]))
            served.talk.channel.send(encode_result(1, "echo"))
            served.flush()
            assert [reply(1), [2, "event", []]] == await served.wire.read_all()


class TestMessages:
    async def test_notifications_are_handed_over_and_not_answered(self) -> None:
        async with serving(MemoryWire()) as served:
            served.wire.feed([2, "rpc.cancel", [{"msgid": 1}]])
            assert [] == await served.wire.read_all()
            assert ["rpc.cancel [{'msgid': 1}]"] == served.talk.notifications

    @pytest.mark.parametrize("form", ["map", "pair"])
    async def test_a_wrong_message_with_a_msgid_is_refused_in_the_form_asked_for(self, form: Any) -> None:
        async with serving(MemoryWire()) as served:
            served.talk.channel.errors_form = form
            served.wire.feed([0, 7, "x"], request(8))
            refusal, answer = await served.wire.read_all()
            assert [1, 7] == refusal[:2]
            assert ("invalid_request" in str(refusal[2]), isinstance(refusal[2], dict)) == (True, form == "map")
            assert reply(8) == answer

    async def test_a_wrong_message_without_a_msgid_is_complained_about(self) -> None:
        async with serving(MemoryWire()) as served:
            served.wire.feed("GET /", request(8))
            complaint, answer = await served.wire.read_all()
            assert [2, "rpc.protocol_error"] == complaint[:2]
            assert "invalid_request" == complaint[2][0]["name"]
            assert reply(8) == answer

    @pytest.mark.parametrize(("data", "name"), [(b"\xc1", "invalid_request"), (b"\xdb\xff\xff\xff\xff", "too_large")])
    async def test_broken_framing_ends_with_a_farewell(self, data: bytes, name: str) -> None:
        """What was answered before it still arrives, and what stands behind it is not read."""
        async with serving(MemoryWire()) as served:
            served.wire.feed(request(1), data, request(2))
            answer, farewell = await served.wire.read_all()
            assert reply(1) == answer
            assert [2, "rpc.protocol_error"] == farewell[:2]
            assert name == farewell[2][0]["name"]
            assert served.wire.closed
            assert 1 == served.talk.partings


class TestBackpressure:
    async def test_a_slow_reader_gets_everything(self) -> None:
        """A few bytes at a time, in order."""
        async with serving(SlowPeer(room=10)) as served:
            served.wire.feed(*[request(number) for number in range(50)])
            assert [reply(number) for number in range(50)] == await served.wire.read_all()
            assert max(len(piece) for piece in served.wire.sends) <= 10

    async def test_a_peer_that_does_not_read_is_not_read_from(self) -> None:
        """Past the bound its requests wait, and go on once it has read."""
        async with serving(SlowPeer(room=10), max_unsent=100) as served:
            for number in range(100):
                served.wire.feed(request(number))
                await trio.testing.wait_all_tasks_blocked()
            assert len(served.talk.handled) < 20
            assert 100 == len(await served.wire.read_all())
            assert 100 == len(served.talk.handled)

    async def test_replies_to_one_read_are_bounded_too(self) -> None:
        """A read of tiny messages whose replies are long is worked off in parts; none is left out."""
        async with serving(SlowPeer(room=10), max_unsent=100) as served:
            served.wire.feed(*[request(number) for number in range(100)])
            await trio.testing.wait_all_tasks_blocked()
            assert len(served.talk.handled) < 40
            assert [reply(number) for number in range(100)] == await served.wire.read_all()

    async def test_a_read_worked_off_in_parts_lets_others_have_their_turn(self) -> None:
        """However fast the peer takes its replies."""
        async with serving(MemoryWire(), max_unsent=100) as served:
            served.wire.feed(*[request(number) for number in range(100)])
            turns = 0
            while len(served.talk.handled) < 100:
                await trio.lowlevel.checkpoint()
                turns += 1
            assert turns > 5
            assert 100 == len(await served.wire.read_all())

    async def test_a_congested_daemon_reads_nothing_until_it_is_clear(self) -> None:
        async with serving(MemoryWire()) as served:
            served.wire.feed(request(1, "congest"))
            assert 1 == len(await served.wire.read_all())
            served.wire.feed(request(2))
            assert [] == await served.wire.read_all()
            served.talk.clear.set()
            assert [reply(2)] == await served.wire.read_all()

    async def test_a_peer_that_does_not_read_loses_its_events_and_is_told(self) -> None:
        """However many there are, one message stands for those that were dropped; replies are never dropped."""
        async with serving(SlowPeer(room=10)) as served:
            served.talk.channel.on_lost = lambda: bytes(msgpack.packb([2, "lost", []]))
            for number in range(2500):
                served.talk.channel.notify(msgpack.packb([2, "event", [number]]))
                served.flush()
            served.talk.channel.send(encode_result(1, "echo"))
            messages = await served.wire.read_all()
            assert 1 == messages.count([2, "lost", []])
            assert reply(1) in messages
            assert [2, "event", [2499]] == messages[-1]
            assert len(messages) < 1010


class TestEndings:
    async def test_the_peer_ends(self) -> None:
        """What it asked before is answered, then everything is closed."""
        async with serving(MemoryWire()) as served:
            served.wire.feed(request(1))
            served.wire.end()
            assert [reply(1)] == await served.wire.read_all()
            assert served.wire.closed
            assert 1 == served.talk.partings

    async def test_a_peer_that_ended_its_stream_gets_the_replies_that_come_later(
        self, autojump_clock: trio.testing.MockClock
    ) -> None:
        """A shell that pipes its requests in and reads the answers ends its side at once."""
        async with serving(MemoryWire()) as served:
            served.wire.feed(request(1, "hold"), request(2))
            served.wire.end()
            await trio.sleep(60)
            assert not served.wire.closed
            moment = trio.current_time()
            served.talk.answer("late")
            await served.wire.wait_closed()
            assert moment == trio.current_time()
            assert [reply(2), reply(1, "late")] == await served.wire.read_all()
            assert 1 == served.talk.partings

    async def test_nobody_waits_for_a_peer_that_is_gone(self, autojump_clock: trio.testing.MockClock) -> None:
        """Closed altogether while a request waits: the conversation hears of it soon, and the wire is given up."""
        async with serving(MemoryWire()) as served:
            served.wire.feed(request(1, "hold"))
            served.wire.end()
            await trio.sleep(60)
            served.wire.vanish()
            await trio.sleep(HALF_CLOSED_CHECK_S * 2)
            assert served.wire.closed
            assert 1 == served.talk.partings

    async def test_nothing_of_what_arrived_is_kept(self) -> None:
        """Whoever sends half of a large message and goes, again and again, must not fill the memory."""
        async with serving(MemoryWire()) as served:
            served.wire.feed(b"\xc6\x00\x08\x00\x00" + b"x" * 1000)
            await trio.testing.wait_all_tasks_blocked()
            assert "<ServerConnection open <Framer 1005 bytes, 0 messages waiting>>" == repr(served.connection._core)
            served.wire.end()
            await served.wire.wait_closed()
            assert "<ServerConnection closed <Framer 0 bytes, 0 messages waiting>>" == repr(served.connection._core)

    async def test_we_end(self) -> None:
        """After what is queued is sent; what was read behind it is not handled."""
        async with serving(MemoryWire()) as served:
            served.wire.feed(request(1, "close"), request(2))
            assert [reply(1, "close")] == await served.wire.read_all()
            assert ["close"] == served.talk.handled
            assert served.wire.closed

    async def test_we_end_while_nothing_arrives(self) -> None:
        async with serving(MemoryWire()) as served:
            served.talk.channel.send(encode_result(1, "echo"))
            served.connection.close()
            served.connection.close()
            assert [reply(1)] == await served.wire.read_all()
            assert served.wire.closed

    async def test_a_peer_that_does_not_read_is_not_waited_for_for_ever(
        self, autojump_clock: trio.testing.MockClock
    ) -> None:
        async with serving(SlowPeer(room=1)) as served:
            served.talk.channel.send(encode_result(1, "echo"))
            served.flush()
            served.connection.close()
            began = trio.current_time()
            await served.wire.wait_closed()
            assert pytest.approx(CLOSE_GRACE_S, abs=0.01) == trio.current_time() - began

    @pytest.mark.parametrize("after", [0, 5, 30])
    async def test_the_peer_vanishes_in_the_middle_of_a_send(self, after: int) -> None:
        """A send cut short is the end: nothing is sent again, and everybody is told once."""
        async with serving(VanishingPeer(after=after)) as served:
            served.wire.feed(*[request(number) for number in range(10)])
            await trio.testing.wait_all_tasks_blocked()
            assert served.wire.closed
            assert after == sum(len(piece) for piece in served.wire.sends)
            assert 1 == served.talk.partings

    async def test_the_peer_vanishes_while_nothing_is_sent(self) -> None:
        async with serving(MemoryWire()) as served:
            served.wire.vanish()
            served.talk.channel.send(encode_result(1, "echo"))
            served.flush()
            await trio.testing.wait_all_tasks_blocked()
            assert served.wire.closed
            assert 1 == served.talk.partings

    async def test_sending_after_the_end_does_nothing(self) -> None:
        async with serving(MemoryWire()) as served:
            served.wire.end()
            await trio.testing.wait_all_tasks_blocked()
            served.talk.channel.send(encode_result(1, "echo"))
            served.talk.channel.notify(b"\x01")
            served.connection.close()
            served.connection.flush()
            assert [] == served.waiting
            assert [] == served.wire.sends


STAGES: dict[str, Callable[[Served], None]] = {
    "waiting to read": lambda _: None,
    "congested": lambda served: served.wire.feed(request(1, "congest")),
    "sending": lambda served: served.wire.feed(*[request(number) for number in range(5)]),
    "unsent over the bound": lambda served: served.wire.feed(*[request(number) for number in range(50)]),
    "ending": lambda served: served.wire.feed(*[request(number) for number in range(5)], b"\xc1"),
}


@pytest.mark.parametrize("stage", STAGES)
async def test_cancelled_wherever_it_waits(stage: str) -> None:
    """The wire is closed and the conversation told, once."""
    async with serving(SlowPeer(room=30), max_unsent=100) as served:
        STAGES[stage](served)
        await trio.testing.wait_all_tasks_blocked()
        wire = served.wire
        assert not wire.closed
    await wire.wait_closed()
    assert 1 == served.talk.partings


async def test_on_lost_is_kept_for_the_outbox() -> None:
    async with serving(MemoryWire()) as served:
        assert None is served.talk.channel.on_lost
        served.talk.channel.on_lost = bytes
        assert bytes is served.talk.channel.on_lost


async def test_repr() -> None:
    async with serving(MemoryWire()) as served:
        assert "<Connection agent pid 42 reading <Outbox 0 replies, 0 events>>" == repr(served.connection)
