"""Encoded answers: given again only while they are true."""

from __future__ import annotations

import gc
import weakref

from support.fake_daemon import World
from support.fake_profile import mutation

from memd.profile.values import Operation
from memd.sessions import EMPTY_SNAPSHOT, OpenRequest


def test_a_store_is_encoded_once_until_it_changes() -> None:
    """Also when only its condition does."""
    world = World()
    answers = world.services.answers
    first = answers.store(world.profile, "memory")
    assert first is answers.store(world.profile, "memory")
    world.profile.put("memory", condition="stale")
    second = answers.store(world.profile, "memory")
    assert first is not second
    world.profile.submit(mutation(Operation("add", content="a")))
    assert second is not answers.store(world.profile, "memory")


def test_a_snapshot_is_encoded_once_until_a_store_changes_or_it_is_refreshed() -> None:
    """The staleness is part of the answer."""
    world = World()
    answers, sessions, profile = world.services.answers, world.sessions, world.profile
    session = sessions.open(profile, OpenRequest(), may_read=True).session

    def shown() -> object:
        return answers.snapshot(profile, session, session.frozen or EMPTY_SNAPSHOT, sessions)

    first = shown()
    assert first is shown()
    profile.submit(mutation(Operation("add", content="a")))
    second = shown()
    assert first is not second
    sessions.refresh(session, profile)
    assert second is not shown()


async def test_a_closed_session_is_not_kept() -> None:
    """The cache is no leak."""
    world = World()
    client = world.client()
    session = client.ok("session.open")["session"]
    client.ok("session.snapshot", session=session)
    gone = weakref.ref(world.sessions.get("default", session))
    client.ok("session.close", session=session)
    client.conversation.disconnected()
    gc.collect()
    assert gone() is None
    assert "<AnswerCache 0 stores>" == repr(world.services.answers)
