"""What people do to the newest entries of a file, whatever memd wrote just before."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
import trio
from msgspec.structs import replace
from support.hosts import Host, remove

from memd.profile.adoption import Older, adopt, only_altered
from memd.profile.entries import Document, parse, render
from memd.profile.values import Stamp

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock

LATER_US = 10**15


def stored(*texts: str) -> Document:
    """A head with ids, entries long in the file."""
    document = parse(("\n§\n".join(texts) + "\n").encode())
    entries = tuple(
        replace(entry, id=f"e{index}", created_us=1, updated_us=1, origin="agent")
        for index, entry in enumerate(document.entries)
    )
    return replace(document, entries=entries)


def adopted(texts: list[str], data: str) -> list[str]:
    """The head grew entry by entry; then somebody saved ``data``."""
    head = stored(*texts)
    older = [stored(*texts[:count]) for count in range(len(texts) - 1, 0, -1)]
    counter = itertools.count()
    merged = adopt(
        head,
        data.encode(),
        older=[Older(render(document), document) for document in older],
        changed_us=LATER_US,
        stamp=Stamp(LATER_US, "outside"),
        new_id=lambda _: f"n{next(counter)}",
    )
    return [entry.text for entry in merged.document.entries]


GROWN = ["The port is 8080", "Builds run on host alpha", "Prefers tabs over spaces"]


@pytest.mark.parametrize("position", range(len(GROWN)))
def test_a_reworded_entry_replaces_the_old_wording(position: int) -> None:
    """Also where the version before the entry was added differs less: the editor showed all of the file."""
    wanted = [text.upper() if index == position else text for index, text in enumerate(GROWN)]
    assert wanted == adopted(GROWN, "\n§\n".join(wanted) + "\n")


def test_an_editor_that_never_showed_the_newest_entry_drops_nothing() -> None:
    """Its new entry is nothing like the one that it has in its place, so that both stay."""
    data = "\n§\n".join([*GROWN[:2], "Lunch is at noon on workdays"]) + "\n"
    assert {*GROWN, "Lunch is at noon on workdays"} == set(adopted(GROWN, data))


def test_a_file_that_goes_on_behind_an_older_version_is_no_append_to_it() -> None:
    """A border stands before what follows, so that nothing was appended by a shell; a dropped entry stays dropped."""
    wanted = [GROWN[0], GROWN[2]]
    assert wanted == adopted(GROWN, "\n§\n".join(wanted) + "\n")


def test_rewording_is_judged_place_by_place() -> None:
    """Another number of entries, or an entry that is another one, is no mere rewording."""
    head = stored("port 8080", "host alpha")
    assert only_altered(head, parse("port 8081\n§\nhost alpha".encode()))
    assert not only_altered(head, parse(b"port 8081"))
    assert not only_altered(head, parse("host alpha\n§\nport 8080".encode()))


async def test_an_old_version_that_is_still_being_written_brings_nothing_back(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """A script writes what it read long ago line by line, then a line of its own: what was removed since stays removed."""
    host = Host(tmp_path)
    async with host.life() as life:
        await life.add("alpha", "beta", "gamma")
        old = host.read()
        await life.do(remove("beta"))
        await life.do(remove("gamma"))
        host.write(old)
        look = life.profile.writer.look()
        await trio.sleep(0.05)
        assert ["alpha"] == life.texts()
        host.append("§\nnew\n")
        await look.wait()
        assert ["alpha", "new"] == life.texts()
        host.write(old)  # and now it stays like that: a restore
        await life.look()
        assert ["alpha", "beta", "gamma"] == [text for text in life.texts() if text != "new"]


def test_a_restore_that_came_to_light_late_brings_nothing_back_that_was_removed_since() -> None:
    """It was a restore of what was in the file then; and what was added since stays."""
    last = stored("alpha", "beta", "gamma")
    old = replace(last, entries=last.entries[:2], gaps=last.gaps[:1])
    new = replace(last.entries[0], id="e9", raw="new", text="new")
    merged = adopt(
        replace(last, entries=(last.entries[0], last.entries[2], new)),  # beta was removed, and new was added
        render(old),
        older=[Older(render(old), old)],
        changed_us=LATER_US,
        stamp=Stamp(LATER_US, "outside"),
        new_id=lambda text: f"n-{text}",
        last=last,
    )
    assert ["alpha", "new"] == [entry.text for entry in merged.document.entries]
