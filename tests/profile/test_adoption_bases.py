"""What the writer of a file is taken to have started from, where others write at the same time."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memd.profile.adoption import RECENT_US, Older, adopt, identify, needs_base
from memd.profile.entries import Document, parse, render
from memd.profile.values import Stamp

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW_US = 10**15
LONG_AGO_US = 1


def file(*texts: str) -> bytes:
    return ("\n§\n".join(texts) + "\n").encode()


def stored(ids: dict[str, str], *, updated_us: int = LONG_AGO_US) -> Document:
    """A document of these entries, by id."""
    document = parse(file(*ids.values()))
    named = zip(document.entries, ids, strict=True)
    entries = [replace(entry, id=name, updated_us=updated_us, origin="agent") for entry, name in named]
    return replace(document, entries=tuple(entries))


def older(*documents: Document, us: int = 0) -> list[Older]:
    return [Older(render(document), document, us) for document in documents]


def adopted(
    head: Document,
    data: bytes,
    bases: Sequence[Older],
    *,
    last: Document | None = None,
    written_us: int = 0,
    revive: frozenset[str] = frozenset(),
) -> list[str]:
    """The entries after somebody saved ``data``."""
    counter = itertools.count()
    merged = adopt(
        head,
        data,
        older=bases,
        changed_us=NOW_US,
        stamp=Stamp(NOW_US, "outside"),
        new_id=lambda _: f"n{next(counter)}",
        last=last,
        written_us=written_us,
        revive=revive,
    )
    return [entry.text for entry in merged.document.entries]


READ = stored({"a": "alpha is first", "b": "beta is second", "c": "gamma is third"})


def test_an_editor_brings_nothing_back_that_was_removed_since_it_read() -> None:
    """Although its file only adds to the head: an entry of its own, and one that it did not know to be gone."""
    head = stored({"a": "alpha is first", "c": "gamma is third"})
    saved = file("alpha is first", "beta is second", "gamma is third", "delta by hand")
    assert needs_base(head, saved)
    assert ["alpha is first", "gamma is third", "delta by hand"] == adopted(head, saved, older(READ))


def test_an_old_wording_is_no_edit() -> None:
    """Two entries were reworded by memd; the editor, which had read before, changed a third."""
    head = stored({"a": "alpha is foremost", "b": "beta is second", "c": "gamma is third!"})
    saved = file("alpha is first", "beta is second or so", "gamma is third")
    assert ["alpha is foremost", "beta is second or so", "gamma is third!"] == adopted(head, saved, older(READ))


def test_an_editor_may_start_from_what_it_saved_itself() -> None:
    """memd merged its first save with a removal at once, so that no version ever looked like it."""
    saved = parse(file("alpha is first", "beta is second", "gamma is third", "delta by hand"))
    head = stored({"a": "alpha is first", "c": "gamma is third", "d": "delta by hand", "e": "epsilon added"})
    base = Older(None, identify(saved, head, READ))
    again = file("alpha is first", "beta is second", "gamma is third", "delta by hand", "zeta by hand")
    expected = ["alpha is first", "gamma is third", "delta by hand", "epsilon added", "zeta by hand"]
    assert sorted(expected) == sorted(adopted(head, again, [base, *older(READ)]))


def test_what_a_person_saved_is_not_restored_by_saving_it_again() -> None:
    """It says nothing new, so that what others added since stays."""
    head = stored({"a": "alpha is first", "d": "delta by hand", "e": "epsilon added"})
    first = file("alpha is first", "delta by hand")
    base = Older(None, identify(parse(first), head))
    assert ["alpha is first", "delta by hand", "epsilon added"] == adopted(head, first, [base])


def test_who_read_before_the_newest_entry_came_did_not_take_it_out() -> None:
    """``sed -i`` over one of several alike, read a moment before memd put another entry in: either version would be as near."""
    texts = ["sed wrote number 79.", "client1 wrote number 3.", "sed wrote number 1250."]
    before = stored(dict(zip("abc", texts, strict=True)))
    saved = file("sed wrote number 1300.", *texts[1:])
    for age_us, stays in ((1_800_000, True), (RECENT_US, False)):
        newest = stored({"d": "client0 wrote number 1297."}, updated_us=NOW_US - age_us).entries[0]
        head = replace(before, entries=(*before.entries, newest), gaps=(*before.gaps, "\n§\n"))
        expected = ["sed wrote number 1300.", *texts[1:], *(["client0 wrote number 1297."] if stays else [])]
        assert expected == adopted(head, saved, older(before))


def test_the_beginning_of_an_older_version_neither_drops_nor_brings_back() -> None:
    """A script writes what it read long ago, and is held up amid it: a version from before looks more like that."""
    grown = stored({name: f"{name} is fact {at}" for at, name in enumerate("abcdefgh")})
    before = replace(grown, entries=grown.entries[:3], gaps=grown.gaps[:2])
    head = stored({name: f"{name} is fact {'abcdefgh'.index(name)}" for name in "acefgh"} | {"i": "new here"})
    there = [entry.text for entry in head.entries]
    for count in range(2, 8):
        cut = file(*(entry.text for entry in grown.entries[:count]))
        if count != len(before.entries):
            assert sorted(there) == sorted(adopted(head, cut, older(grown, before)))


def test_the_end_of_the_file_can_be_taken_out() -> None:
    """It is the beginning of what was in it, and of older versions too."""
    head = stored({"a": "alpha is first", "b": "beta is second", "c": "gamma is third"})
    longer = stored({"a": "alpha is first", "b": "beta is second", "d": "delta", "e": "epsilon"})
    assert ["alpha is first", "beta is second"] == adopted(
        head, file("alpha is first", "beta is second"), older(longer)
    )


def test_a_new_file_replaces_the_old_one_but_for_what_it_cannot_have_seen() -> None:
    """It shares nothing with any version; an entry that memd put in seconds ago stays."""
    head = stored({"a": "alpha is first", "b": "beta is second"})
    assert ["quite", "new"] == adopted(head, file("quite", "new"), older(stored({"a": "alpha is first"})))
    fresh = stored({"a": "alpha is first"}, updated_us=NOW_US - RECENT_US + 1)
    assert {"alpha is first", "new"} == set(adopted(fresh, file("new"), []))


def test_an_emptied_file_is_empty_whatever_it_once_was() -> None:
    """The version with one entry differs least, but nobody who empties a file has it in mind."""
    head = stored({"a": "alpha is first", "b": "beta is second"})
    assert [] == adopted(head, b"\n", older(stored({"a": "alpha is first"})))


def test_nothing_starts_from_what_was_written_later() -> None:
    """A displaced save comes to light after the next one was taken in: it does not take that one back."""
    next_one = stored({"a": "alpha changed later", "b": "beta is second", "c": "gamma is third"})
    displaced = file("alpha is first", "beta changed first", "gamma is third")
    expected = ["alpha changed later", "beta changed first", "gamma is third"]
    bases = [*older(next_one, us=NOW_US), *older(READ, us=LONG_AGO_US)]
    assert expected == adopted(next_one, displaced, bases, last=READ, written_us=NOW_US // 2)


def test_displaced_bytes_may_be_older_than_what_they_displaced() -> None:
    """An editor read before an entry was added, and its save was displaced after: the entry stays."""
    seen = stored({**{entry.id: entry.text for entry in READ.entries}, "d": "delta was added"})
    saved = file("alpha is first", "beta is second", "gamma is third", "epsilon by hand")
    expected = {entry.text for entry in seen.entries} | {"epsilon by hand"}
    assert expected == set(adopted(seen, saved, older(seen, READ), last=seen))


def test_a_file_that_was_believed_too_soon_goes_on() -> None:
    """Its first line alone stood for all of it; what that dropped is there again, and not what was removed before."""
    before = stored({"a": "alpha is first", "c": "gamma is third"})
    head = stored({"x": "xi by a script", "d": "delta was added"})
    saved = file("xi by a script", "alpha is first", "beta is second")
    beginning = replace(head, entries=head.entries[:1], gaps=())
    found = adopted(head, saved, older(before, READ), last=beginning, revive=frozenset({"a", "c"}))
    assert ["xi by a script", "delta was added", "alpha is first"] == found


def test_entries_are_known_by_their_texts() -> None:
    """In the first document that has them, each once; the others are nobody's."""
    found = identify(
        parse(file("same", "same", "old", "none")), stored({"a": "same"}), stored({"a": "old", "b": "same"})
    )
    assert ["a", "b", "?2", "?3"] == [entry.id for entry in found.entries]
