"""What waits to be sent: replies for ever, events up to a bound."""

from __future__ import annotations

from memd.transport.outbox import Outbox


def test_nothing() -> None:
    outbox = Outbox()
    assert not outbox
    assert b"" == outbox.take()


def test_replies_leave_before_events() -> None:
    """And both in their order."""
    outbox = Outbox()
    outbox.add_event(b"e1")
    outbox.add_reply(b"r1")
    outbox.add_event(b"e2")
    outbox.add_reply(b"r2")
    assert 8 == outbox.size
    assert b"r1r2e1e2" == outbox.take()
    assert (0, False) == (outbox.size, bool(outbox))


def test_one_reply_is_not_copied() -> None:
    outbox = Outbox()
    reply = bytes(range(10))
    outbox.add_reply(reply)
    assert reply is outbox.take()


def test_too_many_events_become_one() -> None:
    """All that waited are dropped, one message says so, and later ones follow it."""
    outbox = Outbox(max_events=3)
    outbox.on_lost = lambda: b"LOST"
    outbox.add_reply(b"r")
    for number in range(5):
        outbox.add_event(b"e%d" % number)
    assert len(b"rLOSTe4") == outbox.size
    assert b"rLOSTe4" == outbox.take()


def test_too_many_events_over_and_over_become_one() -> None:
    """However many are dropped, the bound holds and a single message stands for them."""
    outbox = Outbox(max_events=3)
    outbox.on_lost = lambda: b"LOST"
    for number in range(100):
        outbox.add_event(b"e%d" % number)
    assert 1 == outbox.take().count(b"LOST")


def test_without_a_message_for_it_events_are_just_dropped() -> None:
    outbox = Outbox(max_events=1)
    outbox.add_event(b"e1")
    outbox.add_event(b"e2")
    assert b"" == outbox.take()


def test_repr() -> None:
    outbox = Outbox()
    outbox.add_reply(b"r")
    assert "<Outbox 1 replies, 0 events>" == repr(outbox)
