"""Clients that speak the protocol and break its rules, or stop listening, against a real daemon.

As in ``test_hostile.py``, every attack runs inside ``unharmed``.
"""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, Any

import msgpack
import pytest
from support.daemon import DaemonProcess
from support.hostile import CONNECTIONS, MESSAGE_BYTES, MSGID, SETTINGS, ask, complaint, farewell, raw_request, refusal
from support.vitals import GROWTH_KIB, unharmed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.rpc import Peer

IN_FLIGHT = 64
KEPT_EVENTS = 1000
"""Events that the daemon keeps for one connection; its socket holds some more."""

TARGET = b"\xa6target\xa6memory"
CONTENT = b"\xa7content"


@pytest.fixture(scope="module")
def served() -> Iterator[DaemonProcess]:
    """One daemon with low limits for all attacks; each leaves it as it was."""
    with DaemonProcess(config=SETTINGS) as process:
        process.start()
        yield process


class TestMessages:
    """Messages that can be decoded and are wrong. The connection stays."""

    @pytest.mark.parametrize(
        "params",
        [
            pytest.param(b"\xc0", id="nil"),
            pytest.param(b"\x80", id="an empty map"),
            pytest.param(b"\x82" + TARGET + CONTENT + b"\xa1x", id="a bare map"),
            pytest.param(b"\x92\x80\x80", id="two maps"),
            pytest.param(b"\x92\xa6memory\xa1x", id="by position"),
            pytest.param(b"\x91\xa6memory", id="a text"),
            pytest.param(b"\x07", id="a number"),
            pytest.param(b"\xa1x", id="no array"),
            pytest.param(b"\x91\x81\x01\x02", id="a key that is a number"),
            pytest.param(b"\x91\x81\x90\x02", id="a key that is an array"),
            pytest.param(b"\x91\x83" + TARGET + CONTENT + b"\xa1x" + CONTENT + b"\xa1y", id="a key twice"),
            pytest.param(b"\x91\x83" + TARGET + CONTENT + b"\xa1x" + CONTENT + b"\xa1x", id="a key twice alike"),
            pytest.param(b"\x91\x82" + TARGET + CONTENT + b"\xd4\x01x", id="ext"),
            pytest.param(b"\x91\x82" + TARGET + CONTENT + b"\xd6\xff\x00\x00\x00\x00", id="a timestamp"),
            pytest.param(b"\x91\x83" + TARGET + CONTENT + b"\xa1x" + b"\xa1y\xd4\x01x", id="ext in an unknown field"),
            pytest.param(b"\x91\x82" + TARGET + CONTENT + b"\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", id="NaN"),
            pytest.param(b"\x91\x82" + TARGET + CONTENT + b"\xca\x7f\x80\x00\x00", id="infinity"),
            pytest.param(b"\x91\x82" + TARGET + CONTENT + b"\xa2\xc3\x28", id="not UTF-8"),
            pytest.param(b"\x91\x82" + TARGET + CONTENT + b"\xc4\x02\xc3\x28", id="not UTF-8 as bin"),
            pytest.param(b"\x91\x82" + TARGET + CONTENT + b"\xa3\xed\xa0\x80", id="half of a surrogate pair"),
            pytest.param(b"\x91\x82" + TARGET + CONTENT + b"\xa2\xc0\xaf", id="overlong UTF-8"),
            pytest.param(b"\x91\x83" + TARGET + CONTENT + b"\xa1x\xa1\xff\xa1x", id="a key that is not UTF-8"),
        ],
    )
    def test_unusable_parameters(self, served: DaemonProcess, params: bytes) -> None:
        """``invalid_params``, and that nothing has changed; the next request is served."""
        with unharmed(served), served.connect() as peer:
            error = refusal(ask, peer, params)
            assert ("invalid_params", 3, False) == (error["name"], error["code"], error["retryable"])
            assert "none" == error["data"]["outcome"]
            assert [] == peer.call("memory.read")["stores"]["memory"]["entries"]

    def test_an_array_of_nil_is_an_array_of_a_map(self, served: DaemonProcess) -> None:
        with served.connect() as peer:
            assert {} == ask(peer, b"\x91\xc0", "rpc.ping")

    @pytest.mark.parametrize("message", [42, "GET / HTTP/1.1", {}, {"jsonrpc": "2.0"}, None, [], [0], [9], [2, 5, []]])
    def test_none_of_the_three_kinds(self, served: DaemonProcess, message: Any) -> None:
        with unharmed(served), served.connect() as peer:
            peer.socket.sendall(msgpack.packb(message))
            assert "invalid_request" == complaint(peer)["name"]
            assert {} == peer.call("rpc.ping")

    @pytest.mark.parametrize("message", [[0, MSGID], [0, MSGID, "rpc.ping"], [0, MSGID, 5, []], [7, MSGID, "x", []]])
    def test_none_of_the_three_kinds_but_with_a_number(self, served: DaemonProcess, message: Any) -> None:
        """It is the request of that number that is refused."""
        with unharmed(served), served.connect() as peer:
            peer.socket.sendall(msgpack.packb(message))
            assert "invalid_request" == refusal(peer.wait, MSGID)["name"]
            assert {} == peer.call("rpc.ping")

    def test_what_nobody_asked_for(self, served: DaemonProcess) -> None:
        """Stray replies and unknown notifications are passed over in silence."""
        strays: list[list[Any]] = [
            [1, 1, None, {}],
            [1, 99, ["error"], None],
            [2, "event", [{}]],
            [2, "rpc.cancel", [{"msgid": 12345}]],
            [2, "rpc.cancel", None],
            [2, "rpc.cancel", [{"msgid": "x"}]],
            [2, "daemon.stop", []],
        ]
        with unharmed(served), served.connect(operator=True) as peer:
            peer.socket.sendall(b"".join(msgpack.packb(stray) for stray in strays))
            assert {} == peer.call("rpc.ping")
            assert [] == peer.notifications

    def test_bytes_that_are_no_messagepack(self, served: DaemonProcess) -> None:
        """What came before is answered; then one word why, and the end."""
        with unharmed(served), served.connect() as peer:
            peer.socket.sendall(raw_request(b"\xa8rpc.ping", b"\x90") + b"\xc1")
            assert {} == peer.wait(MSGID)
            assert "invalid_request" == farewell(peer)["name"]

    @pytest.mark.parametrize("first", ["hello", "rpc.ping"])
    def test_a_hello_too_late(self, served: DaemonProcess, first: str) -> None:
        """After another one, or any call; what held goes on to hold, the form of errors too."""
        with unharmed(served), served.connect() as peer:
            peer.call(first)
            late = {"context": "job", "access": "none", "errors": "pair"}
            assert "invalid_request" == refusal(peer.call, "hello", **late)["name"]
            assert "method_not_found" == refusal(peer.call, "no.such")["name"]
            assert "stores" in peer.call("memory.read")


class TestTooMany:
    """Requests in flight, connections."""

    def test_one_request_more_than_may_be_in_flight(self, served: DaemonProcess) -> None:
        """It is refused and may be tried again; what is answered at once is served; so is it after a reply."""
        with unharmed(served), served.connect() as peer:
            assert IN_FLIGHT == peer.call("hello")["limits"]["in_flight"]
            waiting = [wait_for_ever(peer) for _ in range(IN_FLIGHT)]
            read = refusal(peer.call, "events.wait")
            write = refusal(peer.call, "memory.add", target="memory", content="no")
            for error in (read, write):
                assert ("too_many_requests", True) == (error["name"], error["retryable"])
                assert IN_FLIGHT == error["data"]["limit"]
            assert "none" == write["data"]["outcome"]
            assert {"cancelled": True} == peer.call("rpc.cancel", msgid=waiting[0])
            assert "cancelled" == refusal(peer.wait, waiting[0])["name"]
            assert [] == peer.call("events.wait")["events"]

    def test_a_msgid_that_is_in_flight(self, served: DaemonProcess) -> None:
        """The second of them is refused, and the first still answered."""
        with unharmed(served), served.connect() as peer:
            wait = msgpack.packb([0, MSGID, "events.wait", [{"timeout_ms": 600_000, "topics": ["job.started"]}]])
            peer.socket.sendall(wait + wait)
            assert "invalid_request" == refusal(peer.wait, MSGID)["name"]
            assert {"cancelled": True} == peer.call("rpc.cancel", msgid=MSGID)
            assert "cancelled" == refusal(peer.wait, MSGID)["name"]

    def test_requests_in_flight_of_clients_that_vanish(self, served: DaemonProcess) -> None:
        with unharmed(served):
            for _ in range(4):
                with served.connect() as peer:
                    for _ in range(IN_FLIGHT):
                        wait_for_ever(peer)
                    peer.call("rpc.ping")

    def test_one_connection_more_than_there_may_be(self, served: DaemonProcess) -> None:
        """It is told why and that it may try again; once another has gone there is room."""
        with unharmed(served) as bystander, contextlib.ExitStack() as stack:
            peers = [stack.enter_context(served.connect()) for _ in range(CONNECTIONS - 1)]
            for peer in peers:
                assert {} == peer.call("rpc.ping")
            for _ in range(CONNECTIONS):
                with served.connect() as refused:
                    error = farewell(refused)
                    assert ("too_many_requests", True) == (error["name"], error["retryable"])
            assert {} == bystander.call("rpc.ping")
            peers[0].close()
            while bystander.call("daemon.status")["connections"] == CONNECTIONS:
                pass
            assert {} == served.call("rpc.ping")

    @pytest.mark.slow
    def test_clients_that_come_and_go(self, served: DaemonProcess) -> None:
        """Thousands of them, with a request or without."""
        with unharmed(served):
            for number in range(3000):
                with served.connect() as peer:
                    if number % 2:
                        peer.call("rpc.ping")


def wait_for_ever(peer: Peer) -> int:
    """A request that is not answered for the longest time that may be asked for."""
    return peer.send("events.wait", timeout_ms=600_000, topics=["job.started"])


class TestHalfOpen:
    """Peers that leave something open."""

    @pytest.mark.parametrize(
        "begun",
        [b"", b"\x94", b"\x94\x00\x01\xa8rpc.p", raw_request(b"\xa8rpc.ping", b"\x91\x81\xa1x\xdb\x00\x01\x00\x00xx")],
    )
    def test_messages_that_never_end(self, served: DaemonProcess, begun: bytes) -> None:
        """They take a connection each, and nothing else."""
        with unharmed(served) as bystander, contextlib.ExitStack() as stack:
            for _ in range(CONNECTIONS - 4):
                stack.enter_context(served.connect()).socket.sendall(begun)
            assert {} == bystander.call("rpc.ping")

    def test_a_peer_that_says_no_more(self, served: DaemonProcess) -> None:
        """What could be answered at once is answered, and then it is the end here too."""
        with unharmed(served), served.connect() as peer:
            number = peer.send("rpc.ping")
            wait_for_ever(peer)
            peer.socket.shutdown(socket.SHUT_WR)
            assert {} == peer.wait(number)
            with pytest.raises(ConnectionError):
                peer.wait_notification("never sent")

    def test_a_peer_that_hears_no_more(self, served: DaemonProcess) -> None:
        with unharmed(served), served.connect() as peer:
            peer.socket.shutdown(socket.SHUT_RD)
            with contextlib.suppress(ConnectionError):  # the daemon hangs up at the first reply
                for _ in range(100):
                    peer.send("memory.read")

    def test_a_peer_that_goes_with_its_writes_unanswered(self, served: DaemonProcess) -> None:
        """They are done all the same: what was sent whole is not half wanted."""
        with unharmed(served) as bystander:
            with served.connect() as peer:
                for number in range(10):
                    peer.send("memory.add", target="memory", content=f"unanswered {number}")
            while len(entries(bystander)) < 10:
                pass
            assert [f"unanswered {number}" for number in range(10)] == [entry["text"] for entry in entries(bystander)]
            remove_all(bystander)

    @pytest.mark.parametrize("readers", [2])
    def test_peers_that_ask_and_never_read(self, served: DaemonProcess, readers: int) -> None:
        self.attack(served, readers=readers, requests=300)

    @pytest.mark.slow
    def test_many_peers_that_ask_and_never_read(self, served: DaemonProcess) -> None:
        """Each may keep the daemon holding two mebibytes and no more; all of it goes with them."""
        self.attack(served, readers=16, requests=20_000)

    def attack(self, served: DaemonProcess, *, readers: int, requests: int) -> None:
        with unharmed(served, growth_kib=2 * GROWTH_KIB) as bystander, contextlib.ExitStack() as stack:
            bystander.call("memory.add", target="memory", content="x" * (MESSAGE_BYTES // 4))
            peers = [stack.enter_context(served.connect()) for _ in range(readers)]
            request = msgpack.packb([0, 1, "memory.read", []])
            for peer in peers:
                peer.socket.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    for _ in range(requests):
                        peer.socket.send(request)
                assert {} == bystander.call("rpc.ping")
            stack.close()
            remove_all(bystander)


def entries(peer: Peer) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = peer.call("memory.read")["stores"]["memory"]["entries"]
    return found


def remove_all(peer: Peer) -> None:
    """Leave the store empty."""
    for number in [peer.send("memory.remove", target="memory", id=entry["id"]) for entry in entries(peer)]:
        peer.wait(number)


class TestSlowReaders:
    """Subscribers that do not read their events, beside a client that writes."""

    def test_a_few_events(self, served: DaemonProcess) -> None:
        """They wait, and the writer does not; once they are read all are there, in order."""
        with unharmed(served) as bystander, served.connect() as reader:
            reader.call("events.subscribe", topics=["memory.changed"])
            revisions = change(bystander, 20)
            assert revisions == [event["revision"] for event in events_until(reader, revisions[-1])]
            remove_all(bystander)

    @pytest.mark.slow
    def test_more_events_than_are_kept(self, served: DaemonProcess) -> None:
        """Those that waited are dropped, one ``events.lost`` says so, and events go on; the writer never noticed."""
        with unharmed(served) as bystander, served.connect() as reader:
            reader.call("events.subscribe", topics=["memory.changed"])
            revisions = change(bystander, 4 * KEPT_EVENTS)
            events = events_until(reader, revisions[-1])
            (lost,) = (index for index, event in enumerate(events) if event["topic"] == "events.lost")
            before, after = ([event["revision"] for event in part] for part in (events[:lost], events[lost + 1 :]))
            assert revisions[: len(before)] == before
            assert revisions[-len(after) :] == after
            assert len(after) < KEPT_EVENTS
            remove_all(bystander)


def change(peer: Peer, count: int) -> list[int]:
    """Change an entry so many times, as fast as the daemon takes it; the revisions, each newer than the one before."""
    entry = peer.call("memory.add", target="memory", content="changed often")["entry"]["id"]
    revisions: list[int] = []
    while len(revisions) < count:
        texts = [f"text {number}" for number in range(len(revisions), min(count, len(revisions) + IN_FLIGHT))]
        sent = [peer.send("memory.replace", target="memory", id=entry, content=text) for text in texts]
        revisions += [peer.wait(number)["revision"] for number in sent]
    assert sorted(set(revisions)) == revisions
    return revisions


def events_until(reader: Peer, revision: int) -> list[dict[str, Any]]:
    """The events up to a revision, without the one that made the entry."""
    events = reader.wait_notification("event")
    while events[-1].get("revision") != revision:
        events += reader.wait_notification("event")
    return list(events[1:])
