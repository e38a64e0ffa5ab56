"""The sample files: every one is read, edited and written with untouched entries byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.documents import OUTSIDE, STAMP, do, do_within, entry_of, named, new_ids, texts

from memd.errors import AmbiguousMatch
from memd.profile.edits import apply_operation
from memd.profile.entries import BOM, Document, Entry, parse, render
from memd.profile.foreign import is_foreign, split_foreign
from memd.profile.inverse import Taken, invert
from memd.profile.merge import merge, split_appended
from memd.profile.snapshot import render_block
from memd.profile.values import Limits, Operation

DATA = Path(__file__).parents[1] / "data"
FILES = {path.stem: path.read_bytes() for path in sorted(DATA.glob("*.md")) if path.stem != "README"}
WIDE = Limits(100_000)

COUNTS = {
    "blank": 0, "bom": 2, "borders-everywhere": 2, "chinese": 3, "cr": 3, "crlf": 3, "emoji": 3, "empty": 0,
    "foreign": 1, "forty": 40, "identical": 3, "leading-border": 2, "mixed-newlines": 4, "no-final-newline": 2,
    "non-utf8": 3, "odd-separators": 3, "over-limit": 2, "vietnamese": 3,
}  # fmt: skip
EVERY_ENTRY = [(name, f"e{index}") for name, count in COUNTS.items() for index in range(count)]


def sample(name: str) -> Document:
    return named(parse(FILES[name]))


def in_bytes(entry: Entry) -> bytes:
    return entry.raw.encode("utf-8", "surrogateescape")


def assert_untouched(before: Document, after: Document, touched: str) -> None:
    """Every entry but one has the bytes it had, in a file that begins as it began and reads back."""
    for entry in before.entries:
        if entry.id != touched:
            assert entry == entry_of(after, entry.id)
            assert in_bytes(entry) in render(after)
    assert texts(after) == texts(parse(render(after)))
    assert before.head.startswith(BOM) == render(after).startswith(BOM.encode())


def test_every_sample_is_expected() -> None:
    """A new file says here how many entries it has."""
    assert {name: len(parse(data).entries) for name, data in FILES.items()} == COUNTS


@pytest.mark.parametrize("name", FILES)
def test_reading_and_writing_gives_the_same_bytes(name: str) -> None:
    """Nothing is normalised."""
    assert FILES[name] == render(parse(FILES[name]))


@pytest.mark.parametrize("name", FILES)
def test_an_add_leaves_everything_that_was_there(name: str) -> None:
    """Newline style, final newline, borders and BOM stay; the file only gains the entry and one border."""
    before = sample(name)
    after = do_within(WIDE, before, "add", content="new\nentry").document
    assert_untouched(before, after, "n0")
    raw = "new\nentry".replace("\n", before.newline).encode()
    end = before.tail.encode() if before.entries else before.newline.encode()
    assert render(after).endswith(raw + end)
    if before.entries:
        assert FILES[name][: len(FILES[name]) - len(before.tail.encode())] == render(after)[
            : -len(raw + end)
        ].removesuffix(f"{before.newline}§{before.newline}".encode())


@pytest.mark.parametrize(("name", "entry_id"), EVERY_ENTRY)
def test_each_entry_can_be_replaced_edited_and_removed(name: str, entry_id: str) -> None:
    """And undoing it gives the texts back."""
    before = sample(name)
    first = entry_of(before, entry_id).text[:1]
    for operation in (
        Operation("replace", id=entry_id, content="new\nentry"),
        Operation("edit", id=entry_id, old_text=entry_of(before, entry_id).shown, new_text=f"{first}\nnew"),
        Operation("remove", id=entry_id),
    ):
        applied = apply_operation(before, operation, limits=WIDE, stamp=STAMP, new_id=new_ids())
        assert_untouched(before, applied.document, entry_id)
        undone = invert([Taken(1, applied.changes)], applied.document, stamp=STAMP).document
        assert texts(before) == texts(undone) == texts(parse(render(undone)))


@pytest.mark.parametrize("name", FILES)
def test_text_appended_by_a_shell_becomes_an_entry(name: str) -> None:
    """Whatever the file looked like; the entries before keep their bytes and ids."""
    before, data = sample(name), FILES[name] + b"by a shell\n"
    theirs = split_appended(before, data) or parse(data)
    merged = merge(before, theirs, before, stamp=OUTSIDE, new_id=new_ids())
    assert [*texts(before), "by a shell"] == texts(merged.document)
    assert_untouched(before, merged.document, "n0")


@pytest.mark.parametrize("name", FILES)
def test_a_snapshot_of_every_sample_is_valid_text(name: str) -> None:
    """Undecodable entries are not in it, equal ones once."""
    block = render_block("memory", sample(name), WIDE, {})
    block.text.encode()
    assert len({text for _, text in block.entries}) == len(block.entries)
    assert "caf" not in block.text


def test_replacing_in_a_crlf_file_touches_one_entry() -> None:
    """Not one line end more than that."""
    after = do(sample("crlf"), "replace", old_text="beta", content="beta NEW").document
    assert "alpha one\r\n§\r\nbeta NEW\r\n§\r\ngamma three".encode() == render(after)


def test_the_foreign_sample_is_shown_whole_guarded_and_can_be_split() -> None:
    """A small match does not replace it, an edit works, an import has one entry for each item."""
    foreign = named(parse(FILES["foreign"]), origin="outside")
    assert is_foreign(foreign)
    with pytest.raises(AmbiguousMatch):
        do(foreign, "replace", old_text="bins go out Tuesday", content="bins go out Friday")
    edited = do(foreign, "edit", old_text="Tuesday", new_text="Friday").document
    assert FILES["foreign"].replace(b"Tuesday", b"Friday") == render(edited)
    assert [
        "House notes: boiler is in the cellar",
        "House notes: bins go out Tuesday",
        "Garden: water the beans",
        "Garden: shed key hangs by the door\n\n```sh\n# not a heading\nopen shed\n```",
    ] == split_foreign(foreign.entries[0].text)


def test_the_over_limit_sample_shrinks_and_does_not_grow() -> None:
    """Removing works although an entry is larger than the limit."""
    assert ["n" * 2_300] == texts(do(sample("over-limit"), "remove", old_text="short one").document)
