"""What people do to the newest entries of a file, whatever memd wrote just before."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
import trio
from msgspec.structs import replace
from support.hosts import Host, remove

from memd.profile.adoption import RECENT_US, Older, adopt
from memd.profile.entries import Document, parse, render
from memd.profile.values import Stamp

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock

LATER_US = 10**15


def stored(*texts: str, updated_us: int = 1) -> Document:
    """A head with ids, entries long in the file."""
    document = parse(("\n§\n".join(texts) + "\n").encode())
    entries = tuple(
        replace(entry, id=f"e{index}", created_us=1, updated_us=updated_us, origin="agent")
        for index, entry in enumerate(document.entries)
    )
    return replace(document, entries=entries)


def adopted(texts: list[str], data: str) -> list[str]:
    """The head grew entry by entry; then somebody saved ``data``."""
    return merged(stored(*texts), [stored(*texts[:count]) for count in range(len(texts) - 1, 0, -1)], data)


def merged(head: Document, older: list[Document], data: str) -> list[str]:
    """The entries after somebody saved ``data``."""
    counter = itertools.count()
    found = adopt(
        head,
        data.encode(),
        older=[Older(render(document), document) for document in older],
        changed_us=LATER_US,
        stamp=Stamp(LATER_US, "outside"),
        new_id=lambda _: f"n{next(counter)}",
    )
    return [entry.text for entry in found.document.entries]


PORT, HOST, TABS = GROWN = ["The port is 8080", "Builds run on host alpha", "Prefers tabs over spaces"]
PORT2, HOST2, TABS2 = "The port is 9090", "Builds run on host omega", "Prefers tabs over blanks"
LUNCH, BACKUP = "Lunch is at noon on workdays", "Backups go to the second disk"


@pytest.mark.parametrize("position", range(len(GROWN)))
def test_a_reworded_entry_replaces_the_old_wording(position: int) -> None:
    """Also where the version before the entry was added differs less: the editor showed all of the file."""
    wanted = [text.upper() if index == position else text for index, text in enumerate(GROWN)]
    assert wanted == adopted(GROWN, "\n§\n".join(wanted) + "\n")


@pytest.mark.parametrize(
    ("saved", "expected"),
    [
        # The newest reworded, and something else done in the same save: whoever rewords it has seen it.
        pytest.param([PORT, HOST, TABS2, LUNCH], [PORT, HOST, TABS2, LUNCH], id="reworded, and one added behind"),
        pytest.param([LUNCH, PORT, HOST, TABS2], [LUNCH, PORT, HOST, TABS2], id="reworded, and one added before all"),
        pytest.param([PORT, HOST, LUNCH, TABS2], [PORT, HOST, LUNCH, TABS2], id="reworded, and one added before it"),
        pytest.param([PORT, HOST, TABS2, LUNCH, BACKUP], [PORT, HOST, TABS2, LUNCH, BACKUP], id="reworded, two added"),
        pytest.param([PORT2, HOST, TABS2], [PORT2, HOST, TABS2], id="the newest and the oldest reworded"),
        pytest.param([PORT, HOST2, TABS2, LUNCH], [PORT, HOST2, TABS2, LUNCH], id="the two newest reworded, one added"),
        pytest.param([HOST, TABS2], [HOST, TABS2], id="reworded, and the oldest deleted"),
        pytest.param([HOST, TABS2, LUNCH], [HOST, TABS2, LUNCH], id="reworded, the oldest deleted, one added"),
        # What only somebody can have saved who had the newest: it is there, or something that came with it.
        pytest.param([HOST, TABS, LUNCH], [HOST, TABS, LUNCH], id="the oldest deleted, one added"),
        pytest.param([PORT, TABS], [PORT, TABS], id="the second deleted"),
        pytest.param([PORT, TABS, LUNCH], [PORT, TABS, LUNCH], id="the second deleted, one added"),
        # The newest not there, and one there that is nothing like it: by somebody who had deleted it, or had never seen it.
        # Nobody can tell; it stays, and both the reply and the event say so.
        pytest.param([PORT, HOST, LUNCH], [PORT, HOST, LUNCH, TABS], id="stale or deleted, and one added behind"),
        pytest.param([LUNCH, PORT, HOST], [LUNCH, PORT, HOST, TABS], id="stale or deleted, and one added before all"),
        pytest.param([PORT, HOST2], [PORT, HOST2, TABS], id="stale or deleted, and an older one reworded"),
        pytest.param([HOST, LUNCH], [HOST, TABS, LUNCH], id="stale or deleted, the oldest deleted and one added"),
        # Nothing but the newest not there: the file as it was before, which is a restore.
        pytest.param([PORT, HOST], [PORT, HOST], id="the newest deleted"),
        pytest.param([PORT], [PORT], id="the two newest deleted"),
    ],
)
def test_what_became_of_the_newest_entry(saved: list[str], expected: list[str]) -> None:
    """Old, new, expected: three entries came one by one, long ago; then somebody saved."""
    assert sorted(expected) == sorted(adopted(GROWN, "\n§\n".join(saved) + "\n"))


def test_a_writer_whose_file_has_what_came_after_had_the_newest_entry() -> None:
    """An older entry was changed after the newest came, and the file has that wording: what it lacks was deleted."""
    head = stored(PORT2, HOST, TABS)
    bases = [stored(PORT, HOST, TABS), stored(PORT, HOST), stored(PORT)]
    assert [PORT2, HOST, LUNCH] == merged(head, bases, f"{PORT2}\n§\n{HOST}\n§\n{LUNCH}\n")


def test_an_editor_rewords_what_was_the_newest_when_it_read() -> None:
    """memd added one since. The new wording is like nothing else in the file, so that the old one goes; the added one stays."""
    head = stored(PORT, HOST, TABS, LUNCH)
    bases = [stored(PORT, HOST, TABS), stored(PORT, HOST), stored(PORT)]
    assert {PORT, HOST, TABS2, LUNCH} == set(merged(head, bases, f"{PORT}\n§\n{HOST}\n§\n{TABS2}\n"))


def test_one_more_of_a_kind_takes_nothing_away() -> None:
    """A stale editor adds a line like those it has; one like it was added after it had read, and another one after that."""
    kind = [f"Project {name} uses port {number}" for name, number in (("alpha", 8080), ("beta", 8081), ("gamma", 8082))]
    head = stored(kind[0], kind[1], LUNCH)
    bases = [stored(*kind[:2]), stored(kind[0])]
    assert {*kind, LUNCH} == set(merged(head, bases, f"{kind[0]}\n§\n{kind[2]}\n"))


def test_a_person_may_reword_one_of_many_of_a_kind() -> None:
    """In the file as it is, nothing has to speak for it but that it stands in the place of another."""
    kind = [f"Project {name} uses port {number}" for name, number in (("one", 8080), ("ten", 8081), ("ten", 8082))]
    assert [kind[0], kind[2]] == merged(stored(*kind[:2]), [stored(kind[0])], f"{kind[0]}\n§\n{kind[2]}\n")


def test_a_person_may_bring_an_old_wording_back() -> None:
    """Beside an entry that came later: who has that one has seen what the old wording became."""
    bases = [stored(PORT2, HOST), stored(PORT, HOST), stored(PORT)]
    assert [PORT, HOST, TABS] == merged(stored(PORT2, HOST, TABS), bases, f"{PORT}\n§\n{HOST}\n§\n{TABS}\n")
    assert [PORT, HOST] == merged(stored(PORT2, HOST), [stored(PORT2), stored(PORT)], f"{PORT}\n§\n{HOST}\n")


def test_an_entry_of_the_last_moments_is_nobodys_old_wording() -> None:
    """A program added one that happens to be like it, and had read the file before: both stay."""
    newest = "client 1 saw event 41"
    head = stored(PORT, HOST, newest, updated_us=LATER_US - RECENT_US + 1)
    saved = f"{PORT}\n§\n{HOST}\n§\nclient 2 saw event 42\n"
    assert {PORT, HOST, newest, "client 2 saw event 42"} == set(merged(head, [stored(PORT, HOST)], saved))
    old = replace(head, entries=tuple(replace(entry, updated_us=LATER_US - RECENT_US) for entry in head.entries))
    assert [PORT, HOST, "client 2 saw event 42"] == merged(old, [stored(PORT, HOST)], saved)


def test_a_file_that_goes_on_behind_an_older_version_is_no_append_to_it() -> None:
    """A border stands before what follows, so that nothing was appended by a shell; a dropped entry stays dropped."""
    wanted = [GROWN[0], GROWN[2]]
    assert wanted == adopted(GROWN, "\n§\n".join(wanted) + "\n")


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
