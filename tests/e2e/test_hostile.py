"""Clients that send nonsense, too much, or nothing, against a real daemon: it says what is wrong and goes on.

Every attack runs inside ``unharmed``: afterwards the daemon is alive, serves others, and holds no more than before.
"""

from __future__ import annotations

import contextlib
import random
from typing import TYPE_CHECKING, Any

import msgpack
import pytest
from support.daemon import DaemonProcess
from support.fuzzing import Shape
from support.hostile import MESSAGE_BYTES, MSGID, SETTINGS, ask, complaint, farewell, raw_request, refusal, shout
from support.rpc import Peer, RpcError
from support.vitals import unharmed

if TYPE_CHECKING:
    from collections.abc import Iterator

BIG_KIB = 48 * 1024
"""Memory that may stay after messages of 8 MiB: the allocator keeps some of that size for the next ones."""

NEVER_AGAIN = {"daemon.stop", "daemon.handover", "profile.create"}
"""Calls that would end the daemon under test, or make directories anywhere."""


@pytest.fixture(scope="module")
def served() -> Iterator[DaemonProcess]:
    """One daemon with low limits for all attacks; each leaves it as it was."""
    with DaemonProcess(config=SETTINGS) as process:
        process.start()
        yield process


@pytest.fixture(scope="module")
def discovered(served: DaemonProcess) -> dict[str, Any]:
    """What ``rpc.discover`` says: the methods' shapes, and the errors' codes by name."""
    found = served.call("rpc.discover")
    return {
        "methods": {method["name"]: Shape(method["params"]) for method in found["methods"]},
        "codes": {error["name"]: error["code"] for error in found["errors"]},
    }


def assert_well_formed(messages: list[Any]) -> None:
    """Each is a reply or a notification of the contract; an event only where a damaged request asked for it."""
    for message in messages:
        if message[0] == 1:
            assert 4 == len(message)
            assert isinstance(message[1], int)
            assert message[2] is None or isinstance(message[2]["name"], str)
        elif message[1] == "rpc.protocol_error":
            assert message[2][0]["name"] in {"invalid_request", "too_large"}
        else:
            assert [2, "event"] == message[:2]
            assert "topic" in message[2][0]


class TestBytes:
    """What is no conversation at all."""

    @pytest.mark.parametrize("seed", range(3))
    def test_random_bytes(self, served: DaemonProcess, seed: int) -> None:
        """Whatever arrives, what is answered has the shape of answers, and the end is answered with the end."""
        self.attack(served, random.Random(seed), streams=8)

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", range(100, 110))
    def test_random_bytes_for_long(self, served: DaemonProcess, seed: int) -> None:
        self.attack(served, random.Random(seed), streams=300)

    def attack(self, served: DaemonProcess, rng: random.Random, *, streams: int) -> None:
        with unharmed(served):
            for _ in range(streams):
                assert_well_formed(shout(served, rng.randbytes(rng.randrange(1, 2000))))

    @pytest.mark.parametrize("seed", range(3))
    def test_damaged_requests(self, served: DaemonProcess, seed: int) -> None:
        """Requests in which some bytes were flipped, cut out or doubled."""
        self.attack_damaged(served, random.Random(seed), streams=8)

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", range(100, 110))
    def test_damaged_requests_for_long(self, served: DaemonProcess, seed: int) -> None:
        self.attack_damaged(served, random.Random(seed), streams=300)

    def attack_damaged(self, served: DaemonProcess, rng: random.Random, *, streams: int) -> None:
        requests = [
            [0, 1, "hello", [{"client": {"name": "x", "version": "1"}, "protocol": [1, 1]}]],
            [0, 2, "memory.add", [{"target": "memory", "content": "damaged"}]],
            [0, 3, "memory.read", []],
            [0, 4, "events.subscribe", [{"topics": ["job.started"]}]],
            [2, "rpc.cancel", [{"msgid": 4}]],
            [0, 5, "history.list", [{"limit": 2}]],
            [0, 6, "rpc.ping", []],
        ]
        whole = b"".join(msgpack.packb(request) for request in requests)
        with unharmed(served):
            for _ in range(streams):
                assert_well_formed(shout(served, damaged(whole, rng)))

    @pytest.mark.parametrize("junk", [b"\xc0", b"\x90", b"\x91\xc0", msgpack.packb([0, 1, "x", []])])
    def test_a_flood_of_tiny_messages(self, served: DaemonProcess, junk: bytes) -> None:
        """Complaints are a hundred times as long as what they are about; nobody reads them."""
        with unharmed(served) as bystander, served.connect() as flood:
            flood.socket.setblocking(False)
            for _ in range(15):
                with contextlib.suppress(BlockingIOError):
                    flood.socket.send(junk * (65536 // len(junk)))
                bystander.call("rpc.ping")


def damaged(data: bytes, rng: random.Random) -> bytes:
    """The same with a few bytes flipped, cut out or doubled."""
    found = bytearray(data)
    for _ in range(rng.randrange(1, 5)):
        at, size = rng.randrange(len(found)), rng.randrange(1, 9)
        kind = rng.randrange(3)
        if kind == 0:
            found[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del found[at : at + size]
        else:
            found[at:at] = found[at : at + size]
    return bytes(found)


class TestFields:
    """What ``rpc.discover`` does not allow, and the nastiest of what it does."""

    def test_every_field_of_every_method_with_every_wrong_type(
        self, served: DaemonProcess, discovered: dict[str, Any]
    ) -> None:
        """It is ``invalid_params`` that names the field; nothing changes, the connection stays."""
        with unharmed(served), served.connect(operator=True) as peer:
            before = peer.call("memory.read")
            for method, shape in discovered["methods"].items():
                sent = [(field, peer.send(method, **params)) for field, params in shape.mistyped()]
                assert sent
                for field, number in sent:
                    error = refusal(peer.wait, number)
                    assert (method, "invalid_params") == (method, error["name"])
                    assert error["data"]["field"].startswith(field)
            assert before == peer.call("memory.read")

    @pytest.mark.parametrize("seed", range(3))
    def test_nasty_values(self, served: DaemonProcess, discovered: dict[str, Any], seed: int) -> None:
        """Every answer is a result or an error of the table, and never ``internal``."""
        self.attack(served, discovered, random.Random(seed), rounds=1)

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", range(100, 105))
    def test_nasty_values_for_long(
        self, served: DaemonProcess, discovered: dict[str, Any], suite_profile: str, seed: int
    ) -> None:
        rounds = 2000 if suite_profile == "long" else 60
        self.attack(served, discovered, random.Random(seed), rounds=rounds)

    def attack(self, served: DaemonProcess, discovered: dict[str, Any], rng: random.Random, *, rounds: int) -> None:
        real: dict[str, list[Any]] = {"timeout_ms": [0], "revision": [1, 2], "last": [1], "confirm": ["default"]}
        with unharmed(served):
            for _ in range(rounds):
                with served.connect(operator=True) as peer:
                    real["session"] = [peer.call("session.open")["session"]]
                    for method, shape in discovered["methods"].items():
                        if method not in NEVER_AGAIN:
                            assert_typed(peer, discovered["codes"], method, shape.nasty(rng, real))

    @pytest.mark.parametrize("name", ["", ".", "..", "../x", "/x", "a/b", "x\x00", "x" * 300, "\n", "a b"])
    def test_names_that_lead_elsewhere(self, served: DaemonProcess, name: str) -> None:
        """A profile's name becomes a directory's."""
        with unharmed(served), served.connect(operator=True) as peer:
            before = sorted(served.home.rglob("*/"))
            assert "invalid_params" == refusal(peer.call, "profile.create", name=name)["name"]
            assert before == sorted(served.home.rglob("*/"))


def assert_typed(peer: Peer, codes: dict[str, int], method: str, params: dict[str, Any]) -> None:
    """The answer is a result, or an error that the daemon describes."""
    try:
        peer.call(method, **params)
    except RpcError as refused:
        error = refused.error
        assert codes[error["name"]] == error["code"]
        assert "internal" != error["name"], (method, params)


class TestSizes:
    """Too deep, too long."""

    @pytest.mark.parametrize("levels", [17, 1025, 100_000])
    @pytest.mark.parametrize("level", [b"\x91", b"\x81\xa1x"])
    def test_nested_parameters(self, served: DaemonProcess, level: bytes, levels: int) -> None:
        """The error says how deep is allowed; the connection stays."""
        with unharmed(served), served.connect() as peer:
            error = refusal(ask, peer, nested(level, levels), "rpc.ping")
            assert "invalid_params" == error["name"]
            assert "16 levels" in error["message"]
            assert {} == peer.call("rpc.ping")

    @pytest.mark.parametrize("level", [b"\x91", b"\x81\xa1x"])
    def test_sixteen_levels_are_fine(self, served: DaemonProcess, level: bytes) -> None:
        with served.connect() as peer:
            assert {} == ask(peer, nested(level, 16), "rpc.ping")

    @pytest.mark.parametrize("levels", [17, 1025, pytest.param(100_000, marks=pytest.mark.slow)])
    def test_nested_elsewhere(self, served: DaemonProcess, levels: int) -> None:
        """As the whole message, as the kind, as the method, as what a stray reply or a notification says."""
        bomb = b"\x91" * levels + b"\xc0"
        with unharmed(served), served.connect() as peer:
            for message in (bomb, b"\x94" + bomb + b"\x01\xa1x\x90"):
                peer.socket.sendall(message)
                assert "invalid_request" == complaint(peer)["name"]
            peer.socket.sendall(raw_request(bomb, b"\x90"))
            assert "invalid_request" == refusal(peer.wait, MSGID)["name"]
            peer.socket.sendall(b"\x94\x01\x05" + bomb + b"\xc0" + b"\x93\x02\xaarpc.cancel" + bomb)
            assert {} == peer.call("rpc.ping")

    @pytest.mark.parametrize(
        "header",
        [
            b"\xdb\x80\x00\x00\x00",  # text of 2 GiB
            b"\xc6\x80\x00\x00\x00",  # bin
            b"\xc9\x80\x00\x00\x00\x01",  # ext
            b"\xdd\x80\x00\x00\x00",  # array of 2 Gi objects
            b"\xdf\xff\xff\xff\xff",  # map of 4 Gi pairs
        ],
    )
    @pytest.mark.parametrize("inside", [b"", raw_request(b"\xa8rpc.ping", b"\x91\x81\xa1x")])
    def test_a_header_that_declares_gigabytes(self, served: DaemonProcess, inside: bytes, header: bytes) -> None:
        """It is refused when it is declared: nothing else has to arrive."""
        with unharmed(served), served.connect() as peer:
            peer.socket.sendall(inside + header)
            error = farewell(peer)
            assert ("too_large", MESSAGE_BYTES) == (error["name"], error["data"]["limit"])

    def test_a_message_of_the_limit_and_one_byte_more(self, served: DaemonProcess) -> None:
        """The first is served, the second ends the connection."""
        with unharmed(served), served.connect() as peer:
            assert {} == ask(peer, padding(MESSAGE_BYTES), "rpc.ping")
            with contextlib.suppress(ConnectionError):  # it hangs up before everything is sent
                peer.socket.sendall(raw_request(b"\xa8rpc.ping", padding(MESSAGE_BYTES + 1)))
            assert "too_large" == farewell(peer)["name"]

    @pytest.mark.slow
    def test_messages_of_eight_mebibytes_and_one_byte_more(self, daemon: DaemonProcess) -> None:
        """With the limit as it comes, again and again; nothing of them stays."""
        daemon.start()
        limit = 8 * 1024 * 1024
        with daemon.connect() as peer:
            assert {} == ask(peer, padding(limit), "rpc.ping")
        with unharmed(daemon, growth_kib=BIG_KIB):
            for _ in range(20):
                with daemon.connect() as peer:
                    assert {} == ask(peer, padding(limit), "rpc.ping")
                    with contextlib.suppress(ConnectionError):  # it hangs up before everything is sent
                        peer.socket.sendall(raw_request(b"\xa8rpc.ping", padding(limit + 1)))
                    assert "too_large" == farewell(peer)["name"]

    @pytest.mark.slow
    def test_eight_mebibytes_of_nesting(self, daemon: DaemonProcess) -> None:
        daemon.start()
        levels = 8 * 1024 * 1024 - 64
        with unharmed(daemon, growth_kib=BIG_KIB), daemon.connect() as peer:
            assert "invalid_params" == refusal(ask, peer, nested(b"\x91", levels), "rpc.ping")["name"]
            assert {} == peer.call("rpc.ping")


def nested(level: bytes, levels: int) -> bytes:
    """Parameters of a request that is nested this deep in all: its own array, the parameters and their map are three."""
    return b"\x91\x81\xa1x" + level * (levels - 3) + b"\xc0"


def padding(message_bytes: int) -> bytes:
    """Parameters that make a ``rpc.ping`` this long, in pieces whose headers do not give it away."""
    head = len(raw_request(b"\xa8rpc.ping", b"\x91\x81\xa1x\xdd\x00\x00\x00\x00"))
    pieces, rest = divmod(message_bytes - head, 1000)
    piece: bytes = msgpack.packb("x" * 997)
    return b"\x91\x81\xa1x\xdd" + (pieces + rest).to_bytes(4, "big") + piece * pieces + b"\xc0" * rest
