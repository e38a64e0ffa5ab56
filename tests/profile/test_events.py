"""Events of a profile: in the order of the journal, and none skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.hosts import Host, add, replace

from memd.errors import CurationError
from memd.profile.events import EventStream
from memd.store.records import EventRecord

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock


def _events(*numbers: int) -> list[EventRecord]:
    return [EventRecord(seq=number, us=number, topic="t", profile="p") for number in numbers]


class TestOrder:
    @pytest.fixture
    def stream(self) -> EventStream:
        """A stream that nobody asks for the past."""
        return EventStream("p", None, seq=0)  # type: ignore[arg-type]  # only ``since`` needs a committer

    def test_a_later_event_is_held_back(self, stream: EventStream) -> None:
        """Until the earlier ones are visible, so that ``since_seq`` never skips one."""
        seen: list[int] = []
        stream.subscribe(lambda event: seen.append(event.seq))
        first, second, third = _events(1, 2, 3)
        stream.expect([first, second])
        stream.expect([third])
        stream.release([third])
        stream.release([second])
        assert ([], 0) == (seen, stream.seq)
        assert "2 held" not in repr(stream)
        stream.release([first])
        assert ([1, 2, 3], 3) == (seen, stream.seq)

    def test_what_was_not_expected_is_not_released(self, stream: EventStream) -> None:
        """Nor released twice."""
        (event,) = _events(1)
        stream.release([event])
        assert 0 == stream.seq
        stream.expect([event])
        stream.release([event])
        stream.release([event])
        assert 1 == stream.seq

    def test_a_subscriber_may_leave(self, stream: EventStream) -> None:
        """Even while it is called, and twice."""
        seen: list[int] = []

        def once(event: EventRecord) -> None:
            seen.append(event.seq)
            leave()

        leave = stream.subscribe(once)
        events = _events(1, 2)
        stream.expect(events)
        stream.release(events)
        leave()
        assert [1] == seen


class TestOfAProfile:
    async def test_a_change_is_told_once_it_is_visible(self, tmp_path: Path, autojump_clock: MockClock) -> None:
        """With who did what to which entry, never with its text."""
        host = Host(tmp_path)
        async with host.life() as life:
            seen: list[list[str]] = []
            life.profile.events.subscribe(lambda _: seen.append(life.texts()))
            done = await life.add("alpha")
            (event,) = life.events
            assert [["alpha"]] == seen
            assert ("memory.changed", "memory", done.revision) == (event.topic, event.target, event.revision)
            assert done.entry is not None
            expected = {
                "kind": "change",
                "origin": "agent",
                "client": "test",
                "changes": [{"action": "add", "id": done.entry.id}],
            }
            assert expected == event.data
            assert "alpha" not in str(event)

    async def test_the_past_is_replayed_from_the_journal(self, tmp_path: Path, autojump_clock: MockClock) -> None:
        """After a restart too; of the wanted topics; what does not fit is said to be lost."""
        host = Host(tmp_path)
        async with host.life() as life:
            await life.add("alpha", "beta", "gamma")
            newest = life.profile.events.seq
        async with host.life() as life:
            stream = life.profile.events
            assert newest == stream.seq
            found, lost = await stream.since(0)
            assert ([1, 2, 3], False) == ([event.revision for event in found], lost)
            found, lost = await stream.since(found[0].seq, ["memory.changed"])
            assert ([2, 3], False) == ([event.revision for event in found], lost)
            assert ([], False) == await stream.since(0, ["store.state"])
            found, lost = await stream.since(0, limit=2)
            assert ([1, 2], True) == ([event.revision for event in found], lost)
            assert ([], True) == await stream.since(newest + 100)

    async def test_a_refusal_is_told_without_its_text(self, tmp_path: Path, autojump_clock: MockClock) -> None:
        """Although nobody waits for it, and with the next group at the latest."""
        host = Host(tmp_path)
        async with host.life() as life:
            with pytest.raises(CurationError):
                await life.do(replace("nothing", "a secret"))
            await life.add("alpha")
            assert ["memory.refused", "memory.changed"] == life.topics()
            assert {"name": "not_found", "client": "test", "turn": None} == life.events[0].data
            assert b"a secret" not in host.journal_path.read_bytes()

    async def test_nearly_full_is_told_once(self, tmp_path: Path, autojump_clock: MockClock) -> None:
        """When a change makes it so."""
        host = Host(tmp_path)
        async with host.life() as life:
            await life.do(add("x" * 17_000))
            await life.add("more")
            assert ["memory.changed", "memory.near_limit", "memory.changed"] == life.topics()

    async def test_what_a_layer_above_emits_is_journaled_first(self, tmp_path: Path, autojump_clock: MockClock) -> None:
        """With the next group."""
        host = Host(tmp_path)
        async with host.life() as life:
            life.profile.emit("snapshot.stale", target="memory", session="s", id="x", data={"a": 1})
            assert [] == life.events
            await life.add("alpha")
            assert ["snapshot.stale", "memory.changed"] == life.topics()
            event = life.events[0]
            assert ("s", "x", {"a": 1}) == (event.session, event.id, event.data)
