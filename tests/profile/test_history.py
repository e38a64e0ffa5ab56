"""History: pages, states of the past, what became of a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec import structs
from support.hosts import CALLER, Host, add, remove, replace

from memd.errors import InvalidParams, NoSuchRevision, NotFound
from memd.profile import history
from memd.profile.history import Chosen, Selector

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.hosts import Life
    from trio.testing import MockClock


@pytest.fixture
async def life(tmp_path: Path, autojump_clock: MockClock) -> AsyncIterator[Life]:
    """A host that is up."""
    async with Host(tmp_path).life() as found:
        yield found


class TestPages:
    async def test_who_did_what_when_and_why(self, life: Life, autojump_clock: MockClock) -> None:
        """Newest first."""
        await life.add("alpha")
        await life.do(replace("alpha", "beta"))
        rows, more = await life.profile.list_revisions()
        assert (2, None) == (len(rows), more)
        record = rows[0].record
        assert ("memory", "change", "agent", "test", 1, 2) == (
            rows[0].target, record.kind, record.origin, record.client, record.uid, record.pid
        )  # fmt: skip
        assert (b"alpha", b"beta") == (record.changes[0].before, record.changes[0].after)

    async def test_pages_of_any_size_give_the_whole(self, life: Life, autojump_clock: MockClock) -> None:
        """Each once, in order, also across the journal's own pages."""
        for number in range(7):
            await life.add(f"entry {number}")
        for size in (1, 2, 3, 7, 50):
            found: list[int] = []
            before = None
            while True:
                rows, before = await life.profile.list_revisions(limit=size, before=before)
                found += [row.record.revision for row in rows]
                if before is None:
                    break
            assert [7, 6, 5, 4, 3, 2, 1] == found

    async def test_of_one_store_or_one_entry(self, life: Life, autojump_clock: MockClock) -> None:
        """By target, by entry id."""
        await life.add("alpha")
        await life.do(add("who", target="user"))
        await life.do(replace("alpha", "beta"))
        rows, _ = await life.profile.list_revisions(target="user")
        assert [2] == [row.record.revision for row in rows]
        rows, _ = await life.profile.list_revisions(Chosen(entry=life.ids()["beta"]))
        assert [3, 1] == [row.record.revision for row in rows]
        rows, _ = await life.profile.list_revisions(Chosen(session="none"))
        assert [] == rows
        rows, _ = await life.profile.list_revisions(Chosen(origin="outside"))
        assert [] == rows
        rows, _ = await life.profile.list_revisions(Chosen(origin="agent"), target="user")
        assert [2] == [row.record.revision for row in rows]

    async def test_a_long_history_is_read_in_pages(self, life: Life, autojump_clock: MockClock) -> None:
        """An entry changed once, long ago."""
        await life.add("first")
        entry = life.ids()["first"]
        tickets = [life.submit(add(f"entry {number}")) for number in range(history.PAGE + 10)]
        for ticket in tickets:
            await ticket.wait()
        rows, _ = await life.profile.list_revisions(Chosen(entry=entry))
        assert [1] == [row.record.revision for row in rows]


class TestThePast:
    async def test_every_state_can_be_shown(self, life: Life, autojump_clock: MockClock) -> None:
        """Also one in the middle of a group, of which there is no rendering; both stores as they were then."""
        await life.do(add("who", target="user"))
        tickets = [
            life.submit(mutation)
            for mutation in (add("alpha"), add("beta"), replace("alpha", "gamma"), remove("beta"), add("delta"))
        ]
        revisions = [(await ticket.wait()).revision for ticket in tickets]
        states = []
        for revision in revisions:
            _, entries = await life.profile.show_revision(revision)
            states.append([entry.text for entry in entries["memory"]])
            assert ["who"] == [entry.text for entry in entries["user"]]
        assert [["alpha"], ["alpha", "beta"], ["gamma", "beta"], ["gamma"], ["gamma", "delta"]] == states
        with pytest.raises(NoSuchRevision):
            await life.profile.show_revision(99)

    async def test_differences(self, life: Life, autojump_clock: MockClock) -> None:
        """For people and for programs; from nothing, and to the head."""
        await life.add("alpha", "beta")
        await life.do(replace("alpha", "gamma"))
        text, changes = await life.profile.diff("memory", 0)
        assert (["add", "add"], True) == ([item.change.action for item in changes], "+gamma" in text)
        text, changes = await life.profile.diff("memory", 2, 3)
        assert [("alpha", "gamma")] == [(item.change.before, item.change.after) for item in changes]
        assert "-alpha" in text
        assert ("", ()) == await life.profile.diff("memory", 3, 3)
        with pytest.raises(NoSuchRevision):
            await life.profile.diff("memory", 1, 9)


class TestSelectors:
    @pytest.mark.parametrize("selector", [Selector(), Selector(revision=1, last=1), Selector(last=0)])
    async def test_exactly_one_is_needed(self, life: Life, selector: Selector, autojump_clock: MockClock) -> None:
        """And ``last`` is positive."""
        with pytest.raises(InvalidParams):
            await life.profile.undo(selector, CALLER)

    async def test_a_redo_takes_the_undo_or_what_was_undone(self, life: Life, autojump_clock: MockClock) -> None:
        """Both name the same; what was never undone cannot be redone."""
        await life.add("alpha", "beta")
        undone = await life.profile.undo(Selector(revision=2), CALLER)
        await life.profile.undo(Selector(revision=2), CALLER, redo=True)
        assert ["alpha", "beta"] == life.texts()
        with pytest.raises(NoSuchRevision):
            await life.profile.undo(Selector(revision=undone.revisions[0]), CALLER, redo=True)
        with pytest.raises(NoSuchRevision):
            await life.profile.undo(Selector(revision=1), CALLER, redo=True)

    async def test_a_session_is_undone_and_redone_by_name(self, life: Life, autojump_clock: MockClock) -> None:
        """Whoever undid it; both stores, again and again."""
        caller = structs.replace(CALLER, session="s")
        for mutation in (add("theirs"), add("who", target="user")):
            await life.do(structs.replace(mutation, caller=caller))
        await life.add("other")
        for _ in range(2):
            await life.profile.undo(Selector(session="s"), CALLER)
            assert (["other"], []) == (life.texts(), life.texts("user"))
            await life.profile.undo(Selector(session="s"), CALLER, redo=True)
            assert (["theirs", "other"], ["who"]) == (life.texts(), life.texts("user"))
        with pytest.raises(NoSuchRevision, match="no undo of session 's' that could be redone"):
            await life.profile.undo(Selector(session="s"), CALLER, redo=True)

    async def test_a_session_is_not_redone_with_others(self, life: Life, autojump_clock: MockClock) -> None:
        """What took back theirs in one revision with another's is redone by its number."""
        await life.do(structs.replace(add("theirs"), caller=structs.replace(CALLER, session="s")))
        await life.add("other")
        await life.profile.undo(Selector(last=2), CALLER)
        with pytest.raises(NoSuchRevision, match="no undo of session"):
            await life.profile.undo(Selector(session="s"), CALLER, redo=True)


class TestExplain:
    async def test_what_became_of_a_text(self, life: Life, autojump_clock: MockClock) -> None:
        """Stored, removed, refused: when and by whom; a refused one only by its hash."""
        await life.add("alpha is here", "beta was here")
        await life.do(remove("beta was here"))
        with pytest.raises(NotFound):
            await life.do(replace("nothing", "gamma"))
        await life.add("delta")
        (stored,) = await life.profile.explain("alpha")
        assert ("stored", "memory", life.ids()["alpha is here"]) == (stored.state, stored.target, stored.id)
        (removed,) = await life.profile.explain("beta")
        assert ("removed", 3) == (removed.state, removed.revision)
        (refused,) = await life.profile.explain(" gamma ")
        assert ("refused", "refused: not_found") == (refused.state, refused.reason)
        assert [] == await life.profile.explain("gamm")
