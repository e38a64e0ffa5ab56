"""The three-way merge of what others wrote."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace
from support.documents import OUTSIDE, files, ids, named, new_ids, store, stored_texts, texts

from memd.profile.entries import Document, Entry, parse, render
from memd.profile.merge import Merged, differences, merge, split_appended


def joined(
    base: Document, theirs: Document | str, ours: Document | None = None, *, protect: frozenset[str] = frozenset()
) -> Merged:
    """Merge a file into the head, which is the base unless another is given."""
    file = parse(theirs.encode()) if isinstance(theirs, str) else theirs
    return merge(base, file, ours or base, stamp=OUTSIDE, new_id=new_ids(), protect=protect)


def pairs(merged: Merged) -> list[tuple[str, str]]:
    return [(entry.id, entry.text) for entry in merged.document.entries]


def changed(document: Document, entry_id: str, text: str) -> Document:
    """The document with one entry changed."""
    entries = tuple(replace(one, text=text, raw=text) if one.id == entry_id else one for one in document.entries)
    return replace(document, entries=entries)


def with_added(document: Document, entry_id: str, text: str) -> Document:
    """The document with one entry more at its end."""
    entry = Entry(text, text, entry_id, 1, 1, "agent")
    gaps = (*document.gaps, "\n§\n") if document.entries else ()
    return replace(document, entries=(*document.entries, entry), gaps=gaps)


def without(document: Document, entry_id: str) -> Document:
    """The document without one entry."""
    entries = tuple(one for one in document.entries if one.id != entry_id)
    return replace(document, entries=entries, gaps=document.gaps[: max(0, len(entries) - 1)])


class TestFileAgainstHead:
    """Nothing happened here since the file's writer began."""

    def test_what_the_file_says_is_adopted(self) -> None:
        """New entries get ids, time and origin; those that stay keep theirs; those that are gone are listed."""
        merged = joined(store("alpha", "beta", "gamma"), "alpha\n§\nnew\n§\ngamma and more\n§\nlast\n")
        assert ["alpha", "new", "gamma and more", "last"] == texts(merged.document)
        assert not merged.rewrite
        fresh = merged.document.entries[3]
        assert (3_000_000, 3_000_000, "outside") == (fresh.created_us, fresh.updated_us, fresh.origin)
        assert ["e1", "e2"] == [entry.id for entry in merged.dropped]

    def test_an_altered_entry_keeps_its_id_if_it_is_the_only_one_in_its_gap(self) -> None:
        """Two altered side by side cannot be told apart."""
        base = store("a", "b", "c")
        assert [("e0", "a"), ("e1", "B"), ("e2", "c")] == pairs(joined(base, "a\n§\nB\n§\nc\n"))
        assert [("e0", "a"), ("n0", "B"), ("n1", "C")] == pairs(joined(base, "a\n§\nB\n§\nC\n"))
        assert [("e1", "b"), ("e2", "c"), ("n0", "A")] == pairs(joined(base, "b\n§\nc\n§\nA\n"))
        altered = joined(base, "a\n§\nB\n§\nc\n").document.entries[1]
        assert (1_000_000, 3_000_000, "outside") == (altered.created_us, altered.updated_us, altered.origin)

    def test_a_moved_entry_keeps_its_id_and_the_files_order_wins(self) -> None:
        """Also if another was altered meanwhile."""
        base = store("a", "b", "c")
        merged = joined(base, "c\n§\na\n§\nB\n")
        assert [("e2", "c"), ("e0", "a"), ("e1", "B")] == pairs(merged)
        two = joined(store("a", "x", "b", "c"), "a\n§\ny\n§\nc\n§\nz\n§\nb\n")
        assert ["e0", "n0", "e3", "n1", "e2"] == ids(two.document)
        assert not merged.rewrite

    def test_identical_entries_stay_separate_and_are_matched_in_order(self) -> None:
        """As many as the file has."""
        base = store("x", "y", "x")
        assert [("e0", "x"), ("e1", "y"), ("e2", "x")] == pairs(joined(base, "x\n§\ny\n§\nx\n"))
        assert [("e0", "x"), ("n0", "x"), ("e1", "y"), ("e2", "x")] == pairs(joined(base, "x\n§\nx\n§\ny\n§\nx\n"))
        assert [("e1", "y"), ("e2", "x")] == pairs(joined(base, "y\n§\nx\n"))

    def test_other_newlines_and_borders_are_no_change(self) -> None:
        """Normalising alone never writes; the document takes over the bytes."""
        data = "\ufeffalpha\r\n\r\n§\r\nbeta\r\n\r\n§\r\n\r\n§\r\ngamma".encode()
        merged = joined(store("alpha", "beta", "gamma"), parse(data))
        assert (False, (), False) == (merged.rewrite, merged.changes, merged.lossy)
        assert (data, ["e0", "e1", "e2"]) == (render(merged.document), ids(merged.document))

    @pytest.mark.parametrize("data", ["", "\n", "\ufeff", "§\n"])
    def test_an_emptied_file_is_an_empty_store(self, data: str) -> None:
        """Its bytes are kept, everything is listed as dropped."""
        merged = joined(store("a", "b"), data)
        assert ([], ["e0", "e1"]) == (texts(merged.document), [entry.id for entry in merged.dropped])
        assert (data.encode(), False) == (render(merged.document), merged.rewrite)
        assert ["remove", "remove"] == [change.action for change in merged.changes]

    def test_a_protected_entry_is_neither_dropped_nor_changed(self) -> None:
        """A restore from outside does not undo what was written in the same moment."""
        base = store("a", "b", "c")
        merged = joined(base, "A\n§\nb\n", protect=frozenset({"e0", "e2"}))
        assert [("e0", "a"), ("e1", "b"), ("e2", "c")] == pairs(merged)
        assert {"e0", "e2"} == {entry.id for entry in merged.kept}
        assert (True, True) == (merged.rewrite, merged.lossy)


class TestBothSides:
    """The file's writer began from an older rendering."""

    def test_what_was_added_or_changed_here_since_stays(self) -> None:
        """An editor opened ten minutes ago deletes nothing that it never showed."""
        base = store("alpha", "beta")
        ours = with_added(changed(base, "e0", "alpha v2"), "n9", "memd's own")
        merged = joined(base, "alpha\n§\nbeta\n§\nby hand\n", ours)
        assert ["alpha v2", "beta", "memd's own", "by hand"] == texts(merged.document)
        assert {"e0", "n9"} == {entry.id for entry in merged.kept}
        assert (True, True) == (merged.rewrite, merged.lossy)
        assert ["add"] == [change.action for change in merged.changes]

    def test_deleted_there_and_changed_here_stays(self) -> None:
        """The change wins over the deletion."""
        base = store("a", "b")
        merged = joined(base, "a\n", changed(base, "e1", "b v2"))
        assert [("e0", "a"), ("e1", "b v2")] == pairs(merged)
        assert (("e1",), ()) == (tuple(entry.id for entry in merged.kept), merged.dropped)

    def test_deleted_here_and_changed_there_stays(self) -> None:
        """As a new entry, for an id is never given out again."""
        base = store("a", "b")
        merged = joined(base, "a\n§\nb v2\n", without(base, "e1"))
        assert [("e0", "a"), ("n0", "b v2")] == pairs(merged)
        assert not merged.rewrite

    def test_deleted_here_and_untouched_there_stays_deleted(self) -> None:
        """The file's bytes are worth keeping then."""
        base = store("a", "b")
        merged = joined(base, "a\n§\nb\n§\nc\n", without(base, "e1"))
        assert [("e0", "a"), ("n0", "c")] == pairs(merged)
        assert (True, True) == (merged.rewrite, merged.lossy)

    def test_changed_on_both_sides_both_stay(self) -> None:
        """The file's text keeps place and id; ours follows under a new one, and it is told."""
        base = store("a", "Port is 1", "z")
        merged = joined(base, "a\n§\nPort is 2\n§\nz\n", changed(base, "e1", "Port is 3"))
        assert [("e0", "a"), ("e1", "Port is 2"), ("n0", "Port is 3"), ("e2", "z")] == pairs(merged)
        (notice,) = merged.notices
        assert ("outside_conflict", "e1", "n0") == (notice.name, notice.data["id"], notice.data["kept"]["id"])
        assert {("replace", "e1"), ("add", "n0")} == {(change.action, change.id) for change in merged.changes}

    def test_the_same_change_on_both_sides_is_one(self) -> None:
        """No notice, nothing to write; likewise for the same new entry."""
        base = store("a", "b", "c")
        ours = with_added(changed(changed(base, "e1", "B"), "e2", "C"), "n9", "d")
        merged = joined(base, "a\n§\nB\n§\nC\n§\nd\n", ours)
        assert [("e0", "a"), ("e1", "B"), ("e2", "C"), ("n9", "d")] == pairs(merged)
        assert (False, (), ()) == (merged.rewrite, merged.changes, merged.notices)

    def test_changed_here_into_what_was_added_there_is_one(self) -> None:
        """It is there once in either, so that two would be one too many."""
        base = store("alpha", "beta")
        merged = joined(base, "alpha\n§\nbeta\n§\nnew\n", changed(base, "e0", "new"))
        assert [("e0", "new"), ("e1", "beta")] == pairs(merged)
        assert merged.rewrite

    def test_what_is_kept_stands_where_it_stood(self) -> None:
        """Behind the entry that it stood behind here; at the beginning if there was none."""
        base = store("b")
        ours = store("first", "b", "second", "third")
        ours = replace(
            ours, entries=tuple(replace(one, id=one.id if one.text != "b" else "e0") for one in ours.entries)
        )
        ours = replace(ours, entries=(replace(ours.entries[0], id="k1"), *ours.entries[1:]))
        assert ["first", "b", "second", "third", "by hand"] == texts(joined(base, "b\n§\nby hand\n", ours).document)

    def test_an_emptied_file_does_not_take_what_it_never_showed(self) -> None:
        """Ours comes back into a file of its own style."""
        base = store("a")
        merged = joined(base, "", with_added(base, "n9", "new"))
        assert (b"new\n", True) == (render(merged.document), merged.rewrite)

    def test_everything_deleted_here_empties_the_file(self) -> None:
        """But for its byte-order mark."""
        base = store("a", "b")
        merged = merge(base, parse("\ufeffb\n".encode()), Document(), stamp=OUTSIDE, new_id=new_ids())
        assert ("\ufeff".encode(), True) == (render(merged.document), merged.rewrite)


class TestAppended:
    """Bytes behind the last rendering."""

    @pytest.mark.parametrize(
        ("start", "more", "expected"),
        [
            ("alpha\n§\nbeta\n", "gamma", ["alpha", "beta", "gamma"]),
            ("beta", "gamma", ["beta", "gamma"]),
            ("alpha\n§\nbeta", "\nadded by a shell\n", ["alpha", "beta", "added by a shell"]),
            ("beta\n", "§\ngamma\n§\ndelta\n", ["beta", "gamma", "delta"]),
            ("a\r\n§\r\nb\r\n", "c\r\n", ["a", "b", "c"]),
            ("a\n§", "b", ["a", "b"]),
            ("a\n§\n", "\nb\n§\n", ["a", "b"]),
        ],
    )
    def test_they_are_entries_of_their_own(self, start: str, more: str, expected: list[str]) -> None:
        """With a border or without, with a newline or without; the ones before stay what they were."""
        base = named(parse(start.encode()))
        split = split_appended(base, (start + more).encode())
        assert split is not None
        assert (start + more).encode() == render(split)
        merged = joined(base, split)
        assert expected == texts(merged.document) == texts(parse(render(merged.document)))
        assert ids(base) == ids(merged.document)[: len(base.entries)]
        assert not merged.lossy
        assert merged.rewrite == (expected != texts(parse((start + more).encode())))

    def test_a_border_that_the_bytes_have_already_is_not_written_again(self) -> None:
        """The file is left alone."""
        base = named(parse(b"beta\n"))
        split = split_appended(base, "beta\n§\ngamma".encode())
        assert split is not None
        assert not joined(base, split).rewrite

    def test_a_replace_after_an_append_keeps_the_appended_text(self) -> None:
        """What a shell wrote is never dropped unseen."""
        base = named(parse("alpha\n§\nbeta".encode()))
        split = split_appended(base, "alpha\n§\nbeta\nadded by a shell\n".encode())
        assert split is not None
        merged = joined(base, split, changed(base, "e1", "beta v2"))
        assert ["alpha", "beta v2", "added by a shell"] == texts(merged.document)

    @pytest.mark.parametrize(
        ("start", "data"),
        [("a\n", "a\n"), ("a\n", "b\nc\n"), ("a\n", "a\n\n  \n"), ("a", "a\n§\n"), ("", "a\n"), ("abc", "ab")],
    )
    def test_nothing_else_is_an_append(self, start: str, data: str) -> None:
        """The same bytes, other bytes, blanks and borders alone, a file that was empty."""
        assert split_appended(parse(start.encode()), data.encode()) is None

    def test_half_a_character_does_not_join_the_next(self) -> None:
        """The bytes before and behind stay in their own entries."""
        base = named(parse(b"caf\xc3"))
        split = split_appended(base, b"caf\xc3\xa9t")
        assert split is not None
        merged = joined(base, split)
        assert b"caf\xc3\n\xc2\xa7\n\xa9t" == render(merged.document)


def _nearest(theirs: Document, candidates: list[Document]) -> int:
    return min(differences(theirs, candidates))[1]


class TestBase:
    """Which rendering the writer of the file began from."""

    def test_the_one_that_differs_least_is_taken(self) -> None:
        """Whatever its age."""
        candidates = [store("a", "b", "c"), store("a", "b"), store("a")]
        assert 0 == _nearest(store("a", "b", "c", "d"), candidates)
        assert 1 == _nearest(store("a", "b"), candidates)
        assert 2 == _nearest(store("a"), candidates)

    def test_the_newest_is_taken_on_a_tie(self) -> None:
        """Order does not count."""
        assert 0 == _nearest(store("a", "b"), [store("b", "a"), store("a", "b")])
        assert 0 == _nearest(store("x"), [store("a"), store("b")])

    def test_identical_entries_count_each(self) -> None:
        """A file with two of them is nearer to one with two."""
        assert 1 == _nearest(store("x", "x"), [store("x"), store("x", "x")])

    def test_those_that_cannot_be_it_are_left_out(self) -> None:
        """Their length alone says so; and behind an equal one nothing is looked at."""
        file = store("a", "b", "x")
        assert [(1, 0), (2, 2)] == differences(file, [store("a", "b"), store("a"), store("a", "b", "c"), store()])
        assert [(1, 0), (0, 1)] == differences(file, [store("a", "b"), file, store("a", "b", "y")])


class TestIdentical:
    """Entries with the same text, of which one side has fewer."""

    @pytest.mark.parametrize("left", ["e0", "e1"])
    @pytest.mark.parametrize("other", [None, "changed"])
    def test_each_side_left_one_out(self, left: str, other: str | None) -> None:
        """Whichever it was here, and gone or changed, the text that both still have stays, once."""
        base = store("same", "same")
        found = [(entry_id, "same" if entry_id == left else other) for entry_id in ("e0", "e1")]
        ours = as_head([(entry_id, text) for entry_id, text in found if text is not None], base)
        merged = joined(base, parse(b"same"), ours)
        assert sorted(["same", *([other] if other else [])]) == sorted(texts(merged.document))
        assert {left} == {entry.id for entry in merged.document.entries if entry.text == "same"}


def heads() -> st.SearchStrategy[list[tuple[str, str]]]:
    """(id, text) pairs of a head that shares some ids with any base of ``stored``."""
    entry_ids = st.sampled_from(["e0", "e1", "e2", "e3", "k0", "k1", "k2"])
    return st.lists(st.tuples(entry_ids, stored_texts()), max_size=6, unique_by=lambda pair: pair[0])


def stored() -> st.SearchStrategy[Document]:
    return st.lists(stored_texts(), max_size=4).map(lambda found: store(*found) if found else Document())


def as_head(found: list[tuple[str, str]], base: Document) -> Document:
    """A head in which entries that have an id of base sometimes say the same as there."""
    entries = tuple(Entry(text, text, entry_id, 5, 5, "agent") for entry_id, text in found)
    return replace(base, entries=entries, gaps=("\n§\n",) * max(0, len(entries) - 1), tail="\n" if entries else "")


@given(stored(), files(), heads())
def test_nothing_that_is_new_on_either_side_is_lost(base: Document, data: bytes, found: list[tuple[str, str]]) -> None:
    """Entries of the file that base does not have, and entries of ours added or changed since base, are all there."""
    ours, theirs = as_head(found, base), parse(data)
    merged = joined(base, theirs, ours)
    result = Counter(texts(merged.document))
    new_there = set(texts(theirs)) - set(texts(base))
    known = {entry.id: entry.text for entry in base.entries}
    new_here = {entry.text for entry in ours.entries if known.get(entry.id) != entry.text}
    assert new_there | new_here <= result.keys()
    kept = {entry.text for entry in theirs.entries} & {e.text for e in ours.entries if known.get(e.id) == e.text}
    assert kept <= result.keys()


@given(stored(), files(), heads())
def test_a_merged_document_is_whole(base: Document, data: bytes, found: list[tuple[str, str]]) -> None:
    """It reads back, ids are unique, the file is written only if it says something else, and losses are known."""
    theirs = parse(data)
    merged = joined(base, theirs, as_head(found, base))
    assert texts(merged.document) == texts(parse(render(merged.document)))
    assert len(set(ids(merged.document))) == len(merged.document.entries)
    assert all(ids(merged.document))
    assert merged.rewrite == (texts(merged.document) != texts(theirs))
    if not merged.rewrite:
        assert data == render(merged.document)
    assert merged.lossy == bool(Counter(texts(theirs)) - Counter(texts(merged.document)))


@given(stored(), files(), heads())
def test_no_text_is_there_more_often_than_in_either(base: Document, data: bytes, found: list[tuple[str, str]]) -> None:
    theirs, ours = parse(data), as_head(found, base)
    merged = joined(base, theirs, ours)
    assert Counter(texts(merged.document)) <= Counter(texts(theirs)) | Counter(texts(ours))


@given(stored(), files())
def test_if_nothing_happened_here_the_file_is_right(base: Document, data: bytes) -> None:
    """base == ours: the result is theirs, byte for byte."""
    merged = joined(base, parse(data))
    assert (data, False, False) == (render(merged.document), merged.rewrite, merged.lossy)


@given(stored(), heads(), st.sampled_from(["\n", "\r\n"]))
def test_if_the_file_brings_nothing_the_head_is_right(
    base: Document, found: list[tuple[str, str]], newline: str
) -> None:
    """theirs == base: the result is ours, in order and with its ids, and nothing has changed."""
    ours = as_head(found, base)
    theirs = parse(render(base).replace(b"\n", newline.encode()))
    merged = joined(base, theirs, ours)
    assert [(entry.id, entry.text) for entry in ours.entries] == pairs(merged)
    assert ((), ()) == (merged.changes, merged.dropped)


@given(files(), files(), heads())
def test_any_append_to_any_file_is_adopted_whole(start: bytes, more: bytes, found: list[tuple[str, str]]) -> None:
    """What was there and what came behind it are all in the result, which reads back."""
    base = named(parse(start))
    split = split_appended(base, start + more)
    if split is None:
        return
    assert start + more == render(split)
    merged = joined(base, split)
    assert texts(base) + texts(parse(more)) == texts(merged.document) == texts(parse(render(merged.document)))
    assert () == merged.dropped
