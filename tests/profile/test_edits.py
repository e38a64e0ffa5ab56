"""The four verbs, one by one and as a batch."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support.documents import (
    LIMITS,
    do,
    do_all,
    do_within,
    ids,
    named,
    raws,
    store,
    texts,
)

from memd.errors import (
    AmbiguousMatch,
    Conflict,
    InvalidContent,
    InvalidParams,
    NotFound,
    OverLimit,
)
from memd.profile.edits import usage_line
from memd.profile.entries import Document, parse, render
from memd.profile.inverse import rewind
from memd.profile.values import Change, Limits, Operation, usage_of


class TestAdd:
    def test_an_entry_is_appended_with_id_time_and_origin(self) -> None:
        """Outer blanks are not stored; the message says how full the store is."""
        applied = do(store("one"), "add", content="  Project uses pytest -x  ")
        assert ["one", "Project uses pytest -x"] == texts(applied.document)
        entry = applied.document.entries[1]
        assert ("n0", 2_000_000, 2_000_000, "agent") == (entry.id, entry.created_us, entry.updated_us, entry.origin)
        assert (Change("add", "n0", None, entry.text, 1, 2_000_000, "agent"),) == applied.changes
        assert "Added. 1% — 28/2,200 chars." == applied.message

    def test_an_exact_duplicate_changes_nothing(self) -> None:
        """It succeeds, with the id of the entry that is there."""
        document = store("one", "two")
        applied = do(document, "add", content=" two\n")
        assert document is applied.document
        assert ("unchanged", "e1", ()) == (applied.steps[0].status, applied.steps[0].id, applied.changes)
        assert applied.message.startswith("Already stored; nothing changed.")

    def test_a_near_duplicate_is_told_and_stored(self) -> None:
        """It is a notice, never a refusal."""
        applied = do(store("Timezone is UTC"), "add", content="timezone is utc")
        assert 2 == len(applied.document.entries)
        (notice,) = applied.notices
        assert ("near_duplicate", "e0", "Timezone is UTC") == (notice.name, notice.data["id"], notice.data["text"])

    def test_new_text_follows_the_newline_of_the_file(self) -> None:
        """In a CRLF file lines inside an entry end with CRLF too, and what was there stays as it was."""
        document = named(parse("alpha one\r\n§\r\nbeta\r\n".encode()))
        applied = do(document, "add", content="two\nlines")
        assert "alpha one\r\n§\r\nbeta\r\n§\r\ntwo\r\nlines\r\n".encode() == render(applied.document)

    @pytest.mark.parametrize("content", ["", " ", "a\n§\nb", "a\0"])
    def test_what_cannot_be_an_entry_is_refused(self, content: str) -> None:
        """The store is not touched."""
        with pytest.raises(InvalidContent):
            do(store("one"), "add", content=content)


class TestReplace:
    def test_the_whole_entry_is_replaced_and_keeps_id_and_place(self) -> None:
        """Even if only a part of it was named; the others keep their bytes."""
        document = store("one", "Server is Debian 12", "three")
        applied = do(document, "replace", old_text="Debian", content="Server is Debian 13")
        assert ["one", "Server is Debian 13", "three"] == texts(applied.document)
        assert ids(document) == ids(applied.document)
        before, after = document.entries[1], applied.document.entries[1]
        assert (before.created_us, 2_000_000) == (after.created_us, after.updated_us)
        assert (Change("replace", "e1", before.text, after.text, 1, 1_000_000, "agent"),) == applied.changes

    def test_sections_of_a_long_entry_go_with_it(self) -> None:
        """That is what tells replace from edit."""
        document = store("Section A\nfoo\n\nSection B\nbar\n\nSection C\nbaz")
        assert ["Section B\nnew"] == texts(
            do(document, "replace", old_text="Section B\nbar", content="Section B\nnew").document
        )

    def test_the_same_text_again_changes_nothing(self) -> None:
        """It is no error."""
        document = store("one")
        applied = do(document, "replace", id="e0", content="one ")
        assert (document, "unchanged") == (applied.document, applied.steps[0].status)

    def test_an_entry_that_becomes_equal_to_another_is_merged_with_it(self) -> None:
        """The replaced entry keeps its id, the other goes, and the answer says so."""
        document = store("tea", "coffee", "water")
        applied = do(document, "replace", id="e2", content="tea")
        assert [("e1", "coffee"), ("e2", "tea")] == [(entry.id, entry.text) for entry in applied.document.entries]
        assert ["replace", "remove"] == [change.action for change in applied.changes]
        assert ("merged", ["e0"]) == (applied.notices[0].name, applied.notices[0].data["merged"])
        assert "the two are one now" in applied.message

    def test_of_identical_entries_the_first_is_replaced(self) -> None:
        """The others stay."""
        assert ["y", "x"] == texts(do(store("x", "x"), "replace", old_text="x", content="y").document)

    def test_a_match_after_folding_shows_the_text_found(self) -> None:
        """So that the caller sees what it replaced."""
        applied = do(store("it\u2019s  here"), "replace", old_text="it's here", content="gone")
        assert ("folded_match", "it\u2019s  here") == (applied.notices[0].name, applied.notices[0].data["text"])

    def test_neither_id_nor_text_is_an_error_of_the_call(self) -> None:
        """Blanks are no text."""
        for old_text in ("", " "):
            with pytest.raises(InvalidParams) as caught:
                do(store("one"), "replace", content="x", old_text=old_text)
            assert "old_text" == caught.value.extra["field"]

    def test_an_outside_entry_that_is_replaced_takes_the_origin_of_the_writer(self) -> None:
        """The text is the writer's now."""
        applied = do(store("one", origin="outside"), "replace", id="e0", content="two")
        assert "agent" == applied.document.entries[0].origin


class TestEdit:
    def test_only_the_matched_part_changes(self) -> None:
        """The other sections stay."""
        document = store("Section A\nfoo\n\nSection B\nbar\n\nSection C\nbaz")
        applied = do(document, "edit", old_text="Section B\nbar", new_text="Section B\nnew")
        assert ["Section A\nfoo\n\nSection B\nnew\n\nSection C\nbaz"] == texts(applied.document)
        assert ["edit"] == [change.action for change in applied.changes]

    def test_blanks_in_both_texts_count(self) -> None:
        """They are taken as they are; the entry that results is stripped."""
        applied = do(store("count 1 of 3"), "edit", old_text=" 1 ", new_text=" 2 ")
        assert ["count 2 of 3"] == texts(applied.document)
        with pytest.raises(NotFound):
            do(applied.document, "edit", old_text=" 1 ", new_text=" 2 ")
        assert ["count 2"] == texts(do(applied.document, "edit", old_text="of 3", new_text="").document)

    def test_two_places_in_one_entry_are_ambiguous(self) -> None:
        """Nothing changes."""
        with pytest.raises(AmbiguousMatch):
            do(store("tick tock tick"), "edit", old_text="tick", new_text="tack")

    def test_an_edit_that_leaves_nothing_removes_the_entry(self) -> None:
        """And says so."""
        applied = do(store("one", "two"), "edit", old_text="one", new_text=" ")
        assert ["two"] == texts(applied.document)
        assert (Change("remove", "e0", "one", None, 0, 1_000_000, "agent"),) == applied.changes
        assert applied.message.startswith("Removed")

    def test_an_edit_that_makes_two_equal_merges_them(self) -> None:
        """As replace does."""
        applied = do(store("Port is 1", "Port is 2"), "edit", old_text="2", new_text="1")
        assert [("e1", "Port is 1")] == [(entry.id, entry.text) for entry in applied.document.entries]

    def test_crlf_in_the_call_is_lf_in_the_text(self) -> None:
        """Callers on any system can name several lines."""
        applied = do(store("one\ntwo", newline="\r\n"), "edit", old_text="one\r\ntwo", new_text="1\r\n2")
        assert (["1\n2"], ["1\r\n2"]) == (texts(applied.document), raws(applied.document))

    @pytest.mark.parametrize("new_text", ["\n§\n", "\0", chr(0xD800), chr(0xDCE9)])
    def test_what_cannot_be_in_an_entry_is_refused(self, new_text: str) -> None:
        """A border through the back door, a NUL, a lone surrogate."""
        with pytest.raises(InvalidContent):
            do(store("one two"), "edit", old_text=" ", new_text=new_text)

    def test_bytes_that_are_not_utf8_survive_an_edit_of_the_rest(self) -> None:
        """The entry can be repaired by hand or by another edit."""
        document = named(parse(b"caf\xe9 is open\n\xc2\xa7\nother"))
        applied = do(document, "edit", old_text="open", new_text="shut")
        assert b"caf\xe9 is shut\n\xc2\xa7\nother" == render(applied.document)

    def test_a_foreign_text_stays_foreign_when_a_part_of_it_is_edited(self) -> None:
        """A small match does not swallow it afterwards either."""
        document = store("# Notes\n- boiler is in the cellar\n- bins go out Tuesday", origin="outside")
        with pytest.raises(AmbiguousMatch):
            do(document, "replace", old_text="bins go out Tuesday", content="bins go out Friday")
        edited = do(document, "edit", old_text="Tuesday", new_text="Friday").document
        assert edited.entries[0].text.endswith("bins go out Friday")
        with pytest.raises(AmbiguousMatch):
            do(edited, "remove", old_text="bins")
        assert (
            "agent"
            == do(store("plain", origin="outside"), "edit", old_text="plain", new_text="x").document.entries[0].origin
        )

    @pytest.mark.parametrize("fields", [{"new_text": "x"}, {"old_text": "", "new_text": "x"}, {"old_text": "one"}])
    def test_missing_texts_are_errors_of_the_call(self, fields: dict[str, str]) -> None:
        """An empty old_text is missing, an empty new_text is not."""
        with pytest.raises(InvalidParams):
            do(store("one"), "edit", **fields)


class TestRemove:
    def test_the_entry_goes_and_the_others_keep_their_bytes(self) -> None:
        """A part of its text is enough."""
        document = named(parse("\ufeffone\r\n\r\n§\r\ntwo\r\n§\r\nthree".encode()))
        assert "\ufeffone\r\n\r\n§\r\nthree".encode() == render(do(document, "remove", old_text="tw").document)

    def test_identical_entries_go_together_by_text_and_one_by_one_by_id(self) -> None:
        """A text that was removed is gone; an id means one entry."""
        document = store("x", "y", "x", "x")
        applied = do(document, "remove", old_text="x")
        assert (["y"], ["e3", "e2", "e0"]) == (texts(applied.document), [change.id for change in applied.changes])
        assert applied.message.startswith("Removed 3 identical entries.")
        assert document.entries == rewind(applied.document.entries, reversed(applied.changes))
        assert ["x", "y", "x"] == texts(do(document, "remove", id="e2").document)

    def test_the_last_entry_leaves_an_empty_file(self) -> None:
        """Not even a newline."""
        assert b"" == render(do(store("only"), "remove", id="e0").document)


class TestLimits:
    def test_the_refusal_says_by_how_much_and_what_there_is(self) -> None:
        """Excess, usage before, every entry with id and size, and what to do."""
        with pytest.raises(
            OverLimit, match="25 too many; remove, shorten or merge entries in the same batch"
        ) as caught:
            do_within(Limits(1_375), Document(), "add", content="y" * 1400)
        assert 25 == caught.value.extra["excess"]
        with pytest.raises(OverLimit) as caught:
            do(store("x" * 2_000, "n"), "add", content="y" * 300)
        data = caught.value.data()
        assert {"chars": 2_004, "limit": 2_200, "free": 196, "percent": 91, "near_limit": True} == data["usage"]
        assert [("e0", 2_000), ("e1", 1)] == [(entry["id"], entry["chars"]) for entry in data["entries"]]

    def test_a_store_at_its_limit_is_full_and_not_over(self) -> None:
        """The limit itself is allowed."""
        assert 2_200 == do(Document(), "add", content="x" * 2_200).document.chars

    def test_a_store_over_its_limit_accepts_whatever_does_not_grow_it(self) -> None:
        """Remove, shorten, exchange for the same size; also an add that changes nothing."""
        document = store("n" * 2_300, "short one")
        assert 1 == len(do(document, "remove", old_text="short one").document.entries)
        assert "shrt one" == do(document, "edit", old_text="short", new_text="shrt").document.entries[1].text
        assert "SHORT one" == do(document, "edit", old_text="short", new_text="SHORT").document.entries[1].text
        assert document is do(document, "add", content="short one").document
        for action, fields in (
            ("add", {"content": "x"}),
            ("edit", {"old_text": "short", "new_text": "shorter"}),
        ):
            with pytest.raises(OverLimit):
                do(document, action, **fields)

    def test_the_number_of_entries_is_limited_too(self) -> None:
        """With a message of its own; exchanging is still possible."""
        limits = Limits(2_200, entries=2)
        with pytest.raises(OverLimit, match="would hold 3 entries and may hold 2, 1 too many"):
            do_within(limits, store("a", "b"), "add", content="c")
        with pytest.raises(OverLimit) as caught:
            do_all(
                store("a", "b"),
                *[Operation("add", content="c"), Operation("edit", id="e0", old_text="a", new_text="A")],
                limits=limits,
            )
        assert 0 == caught.value.extra["index"]
        assert ["c", "b"] == texts(do_within(limits, store("a", "b"), "replace", id="e0", content="c").document)

    @pytest.mark.parametrize(
        ("chars", "line"),
        [
            (688, "31% — 688/2,200 chars."),
            (2_010, "91% — 2,010/2,200 chars, nearly full."),
            (2_300, "104% — 2,300/2,200 chars, over the limit."),
        ],
    )
    def test_usage_in_words(self, chars: int, line: str) -> None:
        """Percent is the floor and not capped."""
        assert line == usage_line(usage_of(chars, LIMITS))


class TestConditions:
    def test_if_hash_must_be_the_entrys(self) -> None:
        """A mismatch tells the text that is there now."""
        document = store("Port is 8080")
        stale = document.entries[0].hash
        document = do(document, "replace", id="e0", content="Port is 9090", if_hash=stale).document
        for action, fields in (("remove", {}), ("edit", {"old_text": "9090", "new_text": "1"})):
            with pytest.raises(Conflict) as caught:
                do(document, action, id="e0", if_hash=stale, **fields)
            assert {"reason": "if_hash", "current": "Port is 9090", "id": "e0"} == caught.value.extra


class TestBatch:
    def test_the_limit_is_checked_on_the_final_state_only(self) -> None:
        """Add first and make room later in the same batch."""
        applied = do_all(
            store("x" * 1_300),
            Operation("add", content="y" * 200),
            Operation("remove", old_text="xxx"),
            limits=Limits(1_375),
        )
        assert ["y" * 200] == texts(applied.document)
        assert "All 2 operations applied. 14% — 200/1,375 chars." == applied.message

    def test_a_failure_undoes_everything_and_says_so(self) -> None:
        """The failing operation is refused, the others were not tried, and only what is stored is shown."""
        document = store("one")
        with pytest.raises(NotFound, match="operation 2 of 3 failed and nothing was applied") as caught:
            do_all(
                document,
                *[
                    Operation("add", content="z"),
                    Operation("remove", old_text="nowhere"),
                    Operation("add", content="q"),
                ],
            )
        data = caught.value.data()
        assert (0, 1) == (data["applied"], data["index"])
        assert ["not_tried", "refused", "not_tried"] == [result["status"] for result in data["results"]]
        assert ["e0"] == [near["id"] for near in data["nearest"]]

    def test_over_the_limit_the_last_operation_that_grows_the_store_is_named(self) -> None:
        """Not the one that shrinks it a little afterwards."""
        with pytest.raises(OverLimit) as caught:
            do_all(
                store("a" * 1_000, "b"),
                Operation("add", content="c" * 1_000),
                Operation("add", content="d" * 1_000),
                Operation("remove", old_text="b"),
            )
        assert (1, 804 - 4) == (caught.value.extra["index"], caught.value.extra["excess"] - 6)

    def test_operations_see_what_those_before_them_did(self) -> None:
        """In the order given."""
        applied = do_all(
            Document(),
            Operation("add", content="one"),
            Operation("edit", old_text="one", new_text="two"),
            Operation("add", content="two"),
        )
        assert ["two"] == texts(applied.document)
        assert ["applied", "applied", "unchanged"] == [step.status for step in applied.steps]
        assert applied.message.startswith("2 of 3 operations applied, the others made no difference.")

    def test_one_operation_in_a_batch(self) -> None:
        """Reads well too."""
        assert do_all(Document(), Operation("add", content="one")).message.startswith("The operation is applied.")

    def test_a_conflict_in_a_batch_stays_a_conflict(self) -> None:
        """With what it carries."""
        with pytest.raises(Conflict) as caught:
            do_all(store("one"), Operation("remove", id="e0", if_hash="0" * 64))
        assert ("if_hash", 0) == (caught.value.extra["reason"], caught.value.extra["index"])


def test_an_edit_that_would_join_bad_bytes_into_a_border_is_refused() -> None:
    """The file would read back as two entries."""
    document = named(parse(b"a\n\xc2-\xa7\nb"))
    with pytest.raises(InvalidContent):
        do(document, "edit", old_text="-", new_text="")
    document = replace(named(parse(b"a \xc3-\xa9")))
    assert ["a é"] == texts(do(document, "edit", old_text="-", new_text="").document)
