"""A profile: mutations under request ids, wipe, undo, restore, import, and looks at the files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from support.hosts import CALLER, Host, add, change, remove, replace

from memd.errors import Conflict, InvalidContent, InvalidParams, NoSuchRevision, NotFound, OverLimit
from memd.profile.history import Selector
from memd.settings import Limits

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine with one profile."""
    return Host(tmp_path)


class TestRequests:
    async def test_a_repeat_is_not_done_again(self, host: Host, autojump_clock: MockClock) -> None:
        """The answer is as it was, the usage too; also after a restart."""
        async with host.life() as life:
            first = await life.do(add("alpha", request_id="r"))
            await life.add("beta")
            again = await life.do(add("alpha", request_id="r"))
            assert (True, first.revision, first.entry, first.changes) == (
                again.replayed, again.revision, again.entry, again.changes
            )  # fmt: skip
        async with host.life() as life:
            assert (await life.do(add("alpha", request_id="r"))).replayed
            assert ["alpha", "beta"] == life.texts()

    async def test_a_repeat_in_flight_waits_for_the_first(self, host: Host, autojump_clock: MockClock) -> None:
        """One is done, both are answered."""
        async with host.life() as life:
            tickets = [life.submit(add("alpha", request_id="r")) for _ in range(3)]
            assert [False, True, True] == [(await ticket.wait()).replayed for ticket in tickets]
            assert ["change"] == await life.kinds()

    async def test_a_no_op_is_remembered_too(self, host: Host, autojump_clock: MockClock) -> None:
        """It has a row like any success, and answers with the head it found."""
        async with host.life() as life:
            done = await life.add("alpha")
            first = await life.do(add("alpha", request_id="r"))
            await life.do(remove("alpha"))
        async with host.life() as life:
            again = await life.do(add("alpha", request_id="r"))
            assert (False, True, done.revision, []) == (again.changed, again.replayed, first.revision, life.texts())

    async def test_a_refusal_is_not_remembered(self, host: Host, autojump_clock: MockClock) -> None:
        """The repaired state may let it through."""
        async with host.life() as life:
            mutation = replace("alpha", "beta", request_id="r")
            with pytest.raises(NotFound):
                await life.do(mutation)
            await life.add("alpha")
            assert not (await life.do(mutation)).replayed

    async def test_other_parameters_are_a_conflict(self, host: Host, autojump_clock: MockClock) -> None:
        """In flight and afterwards; nothing is done."""
        async with host.life() as life:
            first = life.submit(add("alpha", request_id="r"))
            for _ in range(2):
                with pytest.raises(Conflict) as caught:
                    await life.do(add("beta", request_id="r"))
                assert "request_id_reused" == caught.value.extra["reason"]
                await first.wait()
            assert ["alpha"] == life.texts()

    async def test_undo_restore_and_import_are_repeated_safely(self, host: Host, autojump_clock: MockClock) -> None:
        """A second undo under the same id does not undo one more."""
        async with host.life() as life:
            done = await life.add("alpha", "beta", "gamma")
            for _ in range(2):
                await life.profile.undo(Selector(last=1), CALLER, request_id="u", fingerprint=b"u")
            assert ["alpha", "beta"] == life.texts()
            for _ in range(2):
                await life.profile.restore("memory", done.revision, CALLER, request_id="v", fingerprint=b"v")
                await life.do(change("add", content="delta"))
            assert ["alpha", "beta", "gamma", "delta"] == life.texts()
            for number in range(2):
                data = {"entries": {"memory": ["epsilon"], "user": [{"text": "zeta"}]}}
                found = await life.profile.import_entries(data, CALLER, request_id="w", fingerprint=b"w")
                assert bool(number) == found.replayed
            assert (["zeta"], 1) == (life.texts("user"), life.texts().count("epsilon"))


class TestUndo:
    async def test_back_and_forth(self, host: Host, autojump_clock: MockClock) -> None:
        """Entries get their ids and places back; a redo undoes an undo."""
        async with host.life() as life:
            await life.add("alpha", "beta", "gamma")
            ids = life.ids()
            await life.do(remove("beta"))
            done = await life.profile.undo(Selector(last=1), CALLER)
            assert (ids, ["alpha", "beta", "gamma"], 1) == (life.ids(), life.texts(), len(done.revisions))
            await life.profile.undo(Selector(last=1), CALLER, redo=True)
            assert ["alpha", "gamma"] == life.texts()
            assert ["change"] * 4 + ["undo", "redo"] == await life.kinds()

    async def test_the_file_is_as_it_was_to_the_byte(self, host: Host, autojump_clock: MockClock) -> None:
        """Borders and blanks that others like; after a redo as well. What was changed since keeps its borders."""
        odd = "\ufeffalpha\r\n\r\n§\r\n\r\nbeta  \r\n  §\r\ngamma"
        host.write(odd)
        async with host.life() as life:
            await life.look()
            await life.do(remove("beta"))
            removed = host.memory.read_bytes()
            await life.profile.undo(Selector(last=1), CALLER)
            assert odd.encode() == host.memory.read_bytes()
            await life.profile.undo(Selector(last=1), CALLER, redo=True)
            assert removed == host.memory.read_bytes()
            await life.add("delta")
            await life.profile.undo(Selector(revision=2), CALLER)
            assert ["alpha", "beta", "gamma", "delta"] == life.texts()

    async def test_a_preview_leaves_everything(self, host: Host, autojump_clock: MockClock) -> None:
        """It says what undo, redo and restore would do, refuses as they would, and uses no number."""
        async with host.life() as life:
            first = await life.add("alpha")
            await life.do(remove("alpha"))
            seen = (host.memory.read_bytes(), await life.kinds(), life.profile.head())
            planned = await life.profile.preview_undo(Selector(last=1), CALLER)
            restored = await life.profile.preview_restore("memory", first.revision, CALLER)
            assert [("add", "alpha")] * 2 == [
                (one.changes[0].change.action, one.changes[0].change.after) for one in (planned, restored)
            ]
            assert ((), ()) == (planned.revisions, restored.revisions)
            assert (await life.profile.preview_undo(Selector(revision=first.revision), CALLER)).conflicts == ()
            with pytest.raises(NoSuchRevision):
                await life.profile.preview_undo(Selector(last=1), CALLER, redo=True)
            with pytest.raises(Conflict):
                await life.profile.preview_undo(Selector(last=1), CALLER, if_revision=1)
            assert seen == (host.memory.read_bytes(), await life.kinds(), life.profile.head())
            assert seen[2][0] + 1 == (await life.add("beta")).revision

    async def test_the_last_skips_what_is_undone(self, host: Host, autojump_clock: MockClock) -> None:
        """So that pressing undo three times undoes three changes, over both stores."""
        async with host.life() as life:
            await life.add("alpha")
            await life.do(add("who", target="user"))
            await life.add("beta")
            for expected in ((["alpha"], ["who"]), (["alpha"], []), ([], [])):
                await life.profile.undo(Selector(last=1), CALLER)
                assert expected == (life.texts(), life.texts("user"))
            with pytest.raises(NoSuchRevision, match="no change that could be undone"):
                await life.profile.undo(Selector(last=1), CALLER)
            await life.profile.undo(Selector(last=3), CALLER, redo=True)
            assert (["alpha", "beta"], ["who"]) == (life.texts(), life.texts("user"))
            with pytest.raises(NoSuchRevision, match="no undo that could be redone"):
                await life.profile.undo(Selector(last=1), CALLER, redo=True)

    async def test_a_conflict_leaves_everything(self, host: Host, autojump_clock: MockClock) -> None:
        """In both stores: nothing is done and the reasons are told."""
        async with host.life() as life:
            first = await life.add("alpha")
            await life.do(replace("alpha", "beta"))
            done = await life.profile.undo(Selector(revision=first.revision), CALLER)
            assert ((), (), 1) == (done.revisions, done.changes, len(done.conflicts))
            assert (["beta"], ["change", "change"]) == (life.texts(), await life.kinds())

    async def test_an_outside_edit_can_be_undone(self, host: Host, autojump_clock: MockClock) -> None:
        """Like any change."""
        host.lag_s = 60
        async with host.life() as life:
            await life.add("alpha", "beta")
            host.write("alpha, edited\n")
            await life.look()
            await life.profile.undo(Selector(last=1), CALLER)
            assert (["alpha", "beta"], "alpha\n§\nbeta\n") == (life.texts(), host.read())

    async def test_it_passes_the_limit_like_any_change(self, tmp_path: Path, autojump_clock: MockClock) -> None:
        """What does not fit any more is refused as a whole."""
        host = Host(tmp_path, limits=Limits(memory=20, user=20))
        async with host.life() as life:
            await life.add("x" * 15)
            await life.do(remove("x" * 15))
            await life.add("y" * 15)
            with pytest.raises(OverLimit):
                await life.profile.undo(Selector(revision=2), CALLER)
            assert ["y" * 15] == life.texts()

    async def test_if_revision_names_one_store(self, host: Host, autojump_clock: MockClock) -> None:
        """It is compared in its turn."""
        async with host.life() as life:
            done = await life.add("alpha")
            with pytest.raises(Conflict):
                await life.profile.undo(Selector(last=1), CALLER, if_revision=done.revision + 1)
            await life.do(add("who", target="user"))
            with pytest.raises(InvalidParams, match="both stores"):
                await life.profile.undo(Selector(last=2), CALLER, if_revision=done.revision)
            await life.profile.undo(Selector(revision=done.revision), CALLER, if_revision=done.revision)
            assert [] == life.texts()

    async def test_unknown_revisions(self, host: Host, autojump_clock: MockClock) -> None:
        """Of another profile they are unknown, too."""
        async with host.life() as life:
            for redo in (False, True):
                with pytest.raises(NoSuchRevision):
                    await life.profile.undo(Selector(revision=7), CALLER, redo=redo)


class TestWipeAndRestore:
    async def test_a_wipe_is_a_change_that_can_be_undone(self, host: Host, autojump_clock: MockClock) -> None:
        """The file is empty, not gone."""
        async with host.life() as life:
            await life.add("alpha", "beta")
            done = await life.profile.wipe("memory", CALLER).wait()
            assert (True, [], "", True) == (done.changed, life.texts(), host.read(), host.memory.exists())
            assert not (await life.profile.wipe("memory", CALLER).wait()).changed
            await life.profile.undo(Selector(last=1), CALLER)
            assert ["alpha", "beta"] == life.texts()

    async def test_a_restore_brings_a_state_back(self, host: Host, autojump_clock: MockClock) -> None:
        """Ids included, as a new revision; the present state is no change."""
        async with host.life() as life:
            done = await life.add("alpha", "beta")
            ids = life.ids()
            await life.do(remove("alpha"))
            await life.add("gamma")
            restored = await life.profile.restore("memory", done.revision, CALLER)
            assert (ids, ["alpha", "beta"], "restore") == (life.ids(), life.texts(), (await life.kinds())[-1])
            assert done.revision < restored.revisions[0]
            assert () == (await life.profile.restore("memory", done.revision, CALLER)).revisions
            with pytest.raises(NoSuchRevision):
                await life.profile.restore("memory", 99, CALLER)
            with pytest.raises(Conflict):
                await life.profile.restore("memory", done.revision, CALLER, if_revision=1)


class TestImport:
    async def test_entries_are_added_once(self, host: Host, autojump_clock: MockClock) -> None:
        """Equal ones are there already; ids and creation times are taken over where they are free."""
        async with host.life() as life:
            await life.add("alpha")
            data = {"entries": {"memory": [{"text": "alpha"}, {"text": "beta", "id": "b", "created_us": 5}]}}
            done = await life.profile.import_entries(data, CALLER)
            assert (1, ["alpha", "beta"], "b") == (len(done.revisions), life.texts(), life.ids()["beta"])
            entry = life.profile.state("memory").document.entries[1]
            assert ("import", 5) == (entry.origin, entry.created_us)

    @pytest.mark.parametrize("entries", [{"memory": [3]}, {"memory": [{"id": "x"}]}])
    async def test_what_is_no_export_is_refused(
        self, host: Host, entries: dict[str, list[object]], autojump_clock: MockClock
    ) -> None:
        """The place of the fault is named."""
        async with host.life() as life:
            with pytest.raises(InvalidParams, match=r"data\.entries\.memory\[0\]"):
                await life.profile.import_entries({"entries": entries}, CALLER)

    async def test_all_or_nothing(self, host: Host, autojump_clock: MockClock) -> None:
        """One bad entry in one store leaves both."""
        async with host.life() as life:
            data = {"entries": {"memory": ["good"], "user": ["a\n§\nb"]}}
            with pytest.raises(InvalidContent):
                await life.profile.import_entries(data, CALLER)
            assert ([], []) == (life.texts(), life.texts("user"))


class TestLooks:
    async def test_a_read_sees_edits_made_before_it(self, host: Host, autojump_clock: MockClock) -> None:
        """One look is good enough for a moment; while the files are as they were, nobody is waited for."""
        async with host.life() as life:
            await life.add("alpha")
            await life.profile.look()
            assert not life.profile.look_due()
            await trio.sleep(0.05)
            assert life.profile.look_due()
            host.append("by hand\n")
            await life.profile.look()
            assert ["alpha", "by hand"] == life.texts()

    async def test_it_does_not_wait_for_ever(self, host: Host, autojump_clock: MockClock) -> None:
        """A file that does not stand still is read as it was."""
        async with host.life() as life:
            await life.add("alpha", "beta")
            begun = trio.current_time()
            host.write("")
            await life.profile.look()
            assert trio.current_time() - begun <= 0.75
            assert f"<Profile p in {host.directory}: revisions (2, 0)>" == repr(life.profile)
