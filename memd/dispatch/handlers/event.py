"""``events.*``: hearing of what happens.

What comes in: topics, a number to go on from. What goes out: events, as notifications or as the answer to a long poll.
What must not be here: how events travel (``memd/dispatch/hub.py``).
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import trio

from memd.dispatch import translate
from memd.dispatch.call import Answer
from memd.dispatch.hub import Subscription
from memd.dispatch.table import Method
from memd.errors import InvalidParams
from memd.protocol import params as p, results, types

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from memd.dispatch.context import Context
    from memd.store.records import EventRecord

REPLAYED = 900
"""Most events that a subscription replays: they have to fit into the queue of a connection beside some new ones."""

WAITED = 1000
"""Most events in one answer."""


def subscribe(context: Context, params: p.EventsSubscribe) -> Answer | Coroutine[Any, Any, Answer]:
    """Have events sent from now on, or from a number on. The one before is replaced."""
    topics = _topics(params.topics)
    profile = context.profile
    context.unsubscribe()
    subscription = Subscription(topics, context.notify, hold=True)
    context.subscription = subscription
    context.services.hub.subscribe(profile.name, subscription)
    if params.since_seq is None:
        return Answer(results.Subscribed(seq=profile.events.seq, lost=False), lambda: subscription.release([]))
    return _replay(context, subscription, since=params.since_seq, seq=profile.events.seq)


async def _replay(context: Context, subscription: Subscription, *, since: int, seq: int) -> Answer:
    profile = context.profile
    with contextlib.ExitStack() as failed:  # else what waits for its turn would pile up
        failed.callback(context.services.hub.unsubscribe, profile.name, subscription)
        found, lost = await profile.events.since(since, tuple(subscription.topics), limit=REPLAYED)
        failed.pop_all()
    return Answer(results.Subscribed(seq=seq, lost=lost), lambda: subscription.release(found))


def unsubscribe(context: Context, _params: p.EventsUnsubscribe) -> results.Empty:
    """Have no more sent."""
    context.unsubscribe()
    return results.Empty()


async def wait(context: Context, params: p.EventsWait) -> results.EventList:
    """Events after a number: those there are, else the first that come within the timeout."""
    topics = _topics(params.topics)
    events = context.profile.events
    with context.services.hub.waiter(context.profile.name, topics) as waiter:
        seq = events.seq
        since = seq if params.since_seq is None else params.since_seq
        if since != seq:
            found, lost = await events.since(since, tuple(topics), limit=WAITED)
            if found or lost:
                return _listed(found, seq=max(seq, *(record.seq for record in found), 0), lost=lost)
        with trio.move_on_after(params.timeout_ms / 1000):
            await waiter.wait_arrived()
        fresh = [record for record in waiter.events if record.seq > since]
        return _listed(fresh, seq=max([events.seq, *(record.seq for record in fresh)]), lost=False)


def _listed(found: Sequence[EventRecord], *, seq: int, lost: bool) -> results.EventList:
    return results.EventList(events=[translate.event(record) for record in found], seq=seq, lost=lost)


def _topics(names: list[str]) -> frozenset[str]:
    """The topics asked for; none means all.

    Raises:
        InvalidParams: One does not exist.
    """
    for name in names:
        if name not in types.TOPICS:
            msg = f"topics: no topic {name!r}; there are: {', '.join(types.TOPICS)}"
            raise InvalidParams(msg, field="topics")
    return frozenset(names)


METHODS = (
    Method("events.subscribe", p.EventsSubscribe, results.Subscribed, "read", subscribe, "task", once=True),
    Method("events.unsubscribe", p.EventsUnsubscribe, results.Empty, "read", unsubscribe, once=True),
    Method("events.wait", p.EventsWait, results.EventList, "read", wait, "task", waits=True),
)
