"""Import: exports, Markdown and foreign files; previews; what cannot be kept is said, what is damaged is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from msgspec.structs import replace
from support.hosts import CALLER, Host, remove

from memd.dispatch.translate import entry as wire_entry
from memd.errors import Conflict, InvalidContent, InvalidParams, OverLimit
from memd.profile.history import Selector
from memd.profile.importing import sources

if TYPE_CHECKING:
    from pathlib import Path

    from support.hosts import Life
    from trio.testing import MockClock

    from memd.profile.values import Undone

MARKDOWN = "# Notes\n\n## Tools\n\n- uses uv\n  - never pip\n- runs tests:\n\n```sh\n# no heading\n- no item\n```\n\n## People\n\nAnn is the lead.\n"
PIECES = [
    "Notes",
    "Tools: uses uv\n  - never pip",
    "Tools: runs tests:\n\n```sh\n# no heading\n- no item\n```",
    "People\nAnn is the lead.",
]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine with one profile."""
    return Host(tmp_path)


def names(done: Undone) -> list[str]:
    return [notice.name for notice in done.notices]


def told(done: Undone) -> tuple[Any, ...]:
    """What an import came to, without the time it was made at."""
    return ([replace(item.change, created_us=0) for item in done.changes], done.usage, done.notices)


async def exported(life: Life) -> dict[str, Any]:
    """What ``profile.export`` gives, as plain data."""
    stores = {target: life.profile.state(target).document.entries for target in ("memory", "user")}
    fields = ("id", "text", "chars", "hash", "origin", "created_us", "updated_us", "undecodable")
    entries = {
        target: [{name: getattr(wire_entry(item), name) for name in fields} for item in found]
        for target, found in stores.items()
    }
    rows, _ = await life.profile.list_revisions()
    return {
        "version": 1,
        "profile": "p",
        "entries": entries,
        "revisions": [{"revision": r.record.revision} for r in rows],
    }


class TestForeign:
    async def test_it_becomes_entries_as_one_revision_that_can_be_undone(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """Headings go before items and text, nested items and fenced code stay whole; undo brings the file's bytes back."""
        host.write(MARKDOWN)
        async with host.life() as life:
            assert "foreign" == life.profile.state("memory").condition
            done = await life.profile.import_entries({"foreign": ["memory"]}, CALLER)
            assert (PIECES, "ok") == (life.texts(), life.profile.state("memory").condition)
            assert (1, []) == (len(done.revisions), names(done))
            assert ["outside", "import"] == await life.kinds()
            await life.profile.undo(Selector(last=1), CALLER)
            assert MARKDOWN == host.read()

    async def test_a_preview_changes_nothing(self, host: Host, autojump_clock: MockClock) -> None:
        """It tells the changes and the usage after them, and the import then does just that."""
        host.write(MARKDOWN)
        async with host.life() as life:
            planned = life.profile.preview_import({"foreign": ["memory", "user"]}, CALLER)
            assert (MARKDOWN, ["outside"], ()) == (host.read(), await life.kinds(), planned.revisions)
            done = await life.profile.import_entries({"foreign": ["memory", "user"]}, CALLER)
            assert told(planned) == told(done)
            assert PIECES == [item.change.after for item in planned.changes if item.change.action == "add"]
            assert ["nothing_foreign"] == names(planned) == names(done)

    async def test_what_was_added_beside_it_stays(self, host: Host, autojump_clock: MockClock) -> None:
        """Also where one of the pieces says the same; the pieces stand where the foreign text stood."""
        host.write(MARKDOWN)
        async with host.life() as life:
            await life.add(PIECES[3], "mine")
            done = await life.profile.import_entries({"foreign": ["memory"]}, CALLER)
            assert [*PIECES[:3], PIECES[3], "mine"] == life.texts()
            assert [("duplicates", [PIECES[3]])] == [(n.name, n.data["texts"]) for n in done.notices]

    async def test_a_file_that_changed_since_the_preview_is_a_conflict(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """Nothing is done; with the new revision it is."""
        host.write(MARKDOWN)
        async with host.life() as life:
            seen = life.profile.state("memory").revision
            host.append("- by hand\n")
            with pytest.raises(Conflict):
                await life.profile.import_entries({"foreign": ["memory"]}, CALLER, if_revisions={"memory": seen})
            assert [MARKDOWN.strip(), "- by hand"] == life.texts()
            now = life.profile.state("memory").revision
            await life.profile.import_entries({"foreign": ["memory"]}, CALLER, if_revisions={"memory": now})
            assert any("by hand" in text for text in life.texts())

    async def test_twice_is_once(self, host: Host, autojump_clock: MockClock) -> None:
        """What is converted is foreign no more, nested items or not."""
        host.write(MARKDOWN)
        async with host.life() as life:
            await life.profile.import_entries({"foreign": ["memory"]}, CALLER)
            again = await life.profile.import_entries({"foreign": ["memory"]}, CALLER)
            assert ((), ["nothing_foreign"], PIECES) == (again.revisions, names(again), life.texts())

    async def test_bytes_that_are_not_utf_8_are_kept(self, host: Host, autojump_clock: MockClock) -> None:
        """In the piece they are in; the notices can be sent."""
        host.write(b"- one \xff\n- two\n- one \xff\n")
        async with host.life() as life:
            done = await life.profile.import_entries({"foreign": ["memory"]}, CALLER)
            assert (b"one \xff\n\xc2\xa7\ntwo\n", ["one \ufffd"]) == (
                host.memory.read_bytes(),
                done.notices[0].data["texts"],
            )


class TestMarkdown:
    async def test_any_text(self, host: Host, autojump_clock: MockClock) -> None:
        """Split like a foreign file; twice is once, and what repeats in it is there once."""
        async with host.life() as life:
            data = {"version": 1, "markdown": {"memory": MARKDOWN + "\n- more\n- more\n", "user": "just a text"}}
            done = await life.profile.import_entries(data, CALLER)
            assert ([*PIECES, "more"], ["just a text"]) == (life.texts(), life.texts("user"))
            assert (2, ["duplicates"]) == (len(done.revisions), names(done))
            assert () == (await life.profile.import_entries(data, CALLER)).revisions

    async def test_a_memory_file_has_its_entries_already(self, host: Host, autojump_clock: MockClock) -> None:
        """Borders are what separates them, with any newlines."""
        async with host.life() as life:
            await life.profile.import_entries({"markdown": {"memory": "- a\r\n- b\r\n§\r\nc\r\n"}}, CALLER)
            assert ["- a\n- b", "c"] == life.texts()

    @pytest.mark.parametrize("text", ["a\0b", "a\udc80"])
    async def test_what_no_entry_may_hold(self, host: Host, autojump_clock: MockClock, text: str) -> None:
        """Refused whole, also where only one of the pieces is bad; a preview says it too."""
        async with host.life() as life:
            data = {"markdown": {"memory": f"- good\n- {text}\n"}}
            with pytest.raises(InvalidContent):
                life.profile.preview_import(data, CALLER)
            with pytest.raises(InvalidContent):
                await life.profile.import_entries(data, CALLER)
            assert [] == life.texts()

    async def test_over_the_limit(self, host: Host, autojump_clock: MockClock) -> None:
        """Refused as a whole, both stores; a preview says by how much and what the usage would be."""
        async with host.life() as life:
            limit = life.profile.state("user").usage.limit
            data = {"markdown": {"memory": "- good\n- fine\n", "user": "x" * (limit + 25)}}
            with pytest.raises(OverLimit):
                await life.profile.import_entries(data, CALLER)
            assert ([], []) == (life.texts(), life.texts("user"))
            planned = life.profile.preview_import(data, CALLER)
            assert [("over_limit", {"target": "user", "excess": 25})] == [(n.name, n.data) for n in planned.notices]
            assert (limit + 25, 3) == (planned.usage["user"].chars, len(planned.changes))


class TestExport:
    async def test_round_trip(self, host: Host, tmp_path: Path, autojump_clock: MockClock) -> None:
        """Ids, texts, order, times, origins; identical entries stay several; twice is once. History stays in the file."""
        host.write("twin\n§\nfirst\n§\ntwin\n")
        async with host.life() as life:
            await life.add("second", "third")
            await life.do(remove("first"))
            data = await exported(life)
        (tmp_path / "other").mkdir()
        async with Host(tmp_path / "other").life() as life:
            await trio.sleep(60)
            done = await life.profile.import_entries(data, CALLER)
            assert data["entries"] == (await exported(life))["entries"]
            assert ["history_not_imported"] == names(done)
            again = await life.profile.import_entries(data, CALLER)
            assert ((), ["history_not_imported", "duplicates"]) == (again.revisions, names(again))
            assert ["twin", "twin", "second", "third"] == life.texts()

    async def test_identical_entries_are_counted(self, host: Host, autojump_clock: MockClock) -> None:
        """As many are added as are missing."""
        host.write("twin\n§\nother\n")
        async with host.life() as life:
            await life.profile.import_entries({"entries": {"memory": ["twin"] * 3}}, CALLER)
            assert ["twin", "other", "twin", "twin"] == life.texts()

    async def test_an_id_is_given_out_once(self, host: Host, autojump_clock: MockClock) -> None:
        """An id that another entry has or had is not taken; one that was taken over is never made again."""
        async with host.life() as life:
            await life.add("alpha")
            alpha = life.ids()["alpha"]
            await life.do(remove("alpha"))
            done = await life.profile.import_entries({"entries": {"memory": [{"text": "beta", "id": alpha}]}}, CALLER)
            beta = life.ids()["beta"]
            assert [("ids_not_kept", {alpha: beta})] == [(n.name, n.data["ids"]) for n in done.notices]
            taken = life.profile.preview_import({"markdown": {"memory": "gamma"}}, CALLER).changes[0].change.id
            await life.profile.import_entries({"entries": {"memory": [{"text": "delta", "id": taken}]}}, CALLER)
            await life.do(remove("delta"))
            await life.add("gamma")
            assert taken != life.ids()["gamma"]

    async def test_in_a_store_with_a_past_the_entries_are_new(self, host: Host, autojump_clock: MockClock) -> None:
        """So that an old file put back a moment later, by somebody who has not seen them, does not take them away."""
        async with host.life() as life:
            await life.add("alpha")
            old = host.read()
            await life.add("beta")
            data = {"entries": {"memory": [{"text": "gamma", "created_us": 5, "updated_us": 6, "origin": "user"}]}}
            await life.profile.import_entries(data, CALLER)
            entry = life.profile.state("memory").document.entries[-1]
            assert (5, "user") == (entry.created_us, entry.origin)
            host.write(old)
            await life.look()
            assert "gamma" in life.texts()

    @pytest.mark.parametrize(
        ("data", "field"),
        [
            ({}, "data"),
            ({"entries": {}, "foreign": []}, "data"),
            ({"foreign": "memory"}, "data"),
            ({"foreign": ["memory", "notes"]}, "data"),
            ({"markdown": {"memory": 3}}, "data.markdown.memory"),
            ({"markdown": ["x"]}, "data.markdown"),
            ({"entries": []}, "data.entries"),
            ({"entries": {"notes": []}}, "data"),
            ({"entries": {"memory": {}}}, "data.entries.memory"),
            ({"entries": {"memory": ["a", 3]}}, "data.entries.memory[1]"),
            ({"entries": {"user": [{"id": "x"}]}}, "data.entries.user[0]"),
            ({"entries": {"user": [{"text": "a", "id": ""}]}}, "data.entries.user[0].id"),
            ({"entries": {"user": [{"text": "a", "id": "?1"}]}}, "data.entries.user[0].id"),
            ({"entries": {"user": [{"text": "a", "origin": "root"}]}}, "data.entries.user[0].origin"),
            ({"entries": {"user": [{"text": "a", "origin": ["user"]}]}}, "data.entries.user[0].origin"),
            ({"entries": {"user": [{"text": "a", "created_us": "now"}]}}, "data.entries.user[0].created_us"),
            ({"entries": {"user": [{"text": "a", "updated_us": -1}]}}, "data.entries.user[0].updated_us"),
            ({"entries": {"user": [{"text": "a", "created_us": True}]}}, "data.entries.user[0].created_us"),
            ({"entries": {"user": [{"text": "a", "hash": "0" * 64}]}}, "data.entries.user[0]"),
            ({"entries": {"user": []}, "revisions": {}}, "data.revisions"),
            ({"entries": {"user": []}, "revisions": [1]}, "data.revisions"),
        ],
    )
    def test_what_is_damaged_is_refused(self, data: dict[str, Any], field: str) -> None:
        """With the place of the damage."""
        with pytest.raises(InvalidParams) as caught:
            sources(data)
        assert field == caught.value.extra["field"]
        assert caught.value.message.startswith(f"{field}: ")
