"""The real neighbours and the fakes fulfil what dispatch asks of them. mypy is the test; this file gives it the cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.fake_daemon import FakeChannel, FakeControl, MemoryJournal
from support.fake_profile import MemoryProfile

if TYPE_CHECKING:
    from collections.abc import Callable

    from memd.dispatch import Conversation, Dispatcher, ports
    from memd.profile.profile import Profile
    from memd.sessions import ProfileView, SessionJournal
    from memd.transport import connection


def real_profile(profile: Profile) -> tuple[ports.Profile, ProfileView]:
    """A profile with files."""
    return profile, profile


def real_connection(dispatcher: Dispatcher) -> Callable[[connection.Channel], connection.Conversation]:
    """What the transport is given."""
    return dispatcher.open_conversation


def real_conversation(conversation: Conversation) -> connection.Conversation:
    """One of them."""
    return conversation


def test_the_fakes_fit() -> None:
    """At run time there is nothing to see."""
    profile: ports.Profile = MemoryProfile()
    channel: ports.Channel = FakeChannel()
    control: ports.Control = FakeControl()
    journal: SessionJournal = MemoryJournal()
    assert all((profile, channel, control, journal))
