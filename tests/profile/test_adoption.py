"""When foreign bytes may be believed, and what becomes of them: values only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.documents import OUTSIDE, new_ids, store, texts

from memd.profile.adoption import (
    BUILDING_MOST_S,
    GOES_ON_S,
    SETTLE_EMPTY_S,
    SETTLE_MOST_S,
    SETTLE_S,
    Believed,
    Older,
    Unsettled,
    adopt,
    identify,
    looks_cut,
    mark,
    needs_base,
    would_drop,
)
from memd.profile.entries import Document, parse, render

if TYPE_CHECKING:
    from memd.profile.merge import Merged

NOW = 10_000_000


def _adopt(head: Document, text: str, *older: Document, changed_us: int = 100 * NOW) -> Merged:
    return adopt(
        head,
        text.encode(),
        older=[Older(render(document), document) for document in older],
        changed_us=changed_us,
        stamp=OUTSIDE,
        new_id=new_ids(),
    )


class TestSettling:
    def test_text_is_believed_once_it_stood_still(self) -> None:
        """100 ms after the last change."""
        unsettled = Unsettled(b"half", 10.0, 10.0)
        assert pytest.approx(10.0 + SETTLE_S) == unsettled.settles_at()
        unsettled.observe(b"half", 10.05)
        assert pytest.approx(10.1) == unsettled.settles_at()
        unsettled.observe(b"all of it", 10.06)
        assert pytest.approx(10.16) == unsettled.settles_at()

    @pytest.mark.parametrize("data", [b"", b" \n", None])
    def test_nothing_takes_longer(self, data: bytes | None) -> None:
        """Empty, blank or missing: that is how a restore begins."""
        assert pytest.approx(10.0 + SETTLE_EMPTY_S) == Unsettled(data, 10.0, 10.0).settles_at()

    def test_but_not_for_ever(self) -> None:
        """A file that never stands still is believed after two seconds as it is."""
        unsettled = Unsettled(b"0", 10.0, 10.0)
        for number in range(1, 60):
            unsettled.observe(b"%d" % number, 10.0 + number * 0.05)
        assert pytest.approx(10.0 + SETTLE_MOST_S) == unsettled.settles_at()
        assert (False, True) == (unsettled.overdue(11.9), unsettled.overdue(12.0))

    def test_what_grows_is_not_complete(self) -> None:
        """It has to stand still for longer, and may take a minute; nobody has to wait for it that long."""
        unsettled = Unsettled(b"", 10.0, 10.0)
        for number in range(1, 100):
            unsettled.observe(b"x" * number, 10.0 + number * 0.4)
        assert pytest.approx(10.0 + 99 * 0.4 + SETTLE_EMPTY_S) == unsettled.settles_at()
        assert (False, True) == (unsettled.overdue(11.9), unsettled.overdue(12.0))
        unsettled.observe(b"y", 69.9)
        assert pytest.approx(10.0 + SETTLE_MOST_S) == unsettled.settles_at()
        unsettled.observe(b"yy", 69.95)
        assert pytest.approx(10.0 + BUILDING_MOST_S) == unsettled.settles_at()

    def test_nor_is_what_ends_in_the_middle(self) -> None:
        """The rest may come."""
        unsettled = Unsettled(b"a", 10.0, 10.0, cut=True)
        assert pytest.approx(10.0 + SETTLE_EMPTY_S) == unsettled.settles_at()

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", False),
            ("alpha\n", True),
            ("alpha\n§\nbet", True),
            ("alpha\n§\nbeta\n", True),
            ("alpha\n§\ngamma\n", False),
            ("alpha\n§\nremoved\n", True),
            ("alpha\n§\nnew\n", False),
            ("new\n§\nalpha\n", True),
        ],
    )
    def test_where_a_file_ends(self, text: str, expected: bool) -> None:
        """With the last entry or a new one it may be complete."""
        assert expected == looks_cut(store("alpha", "beta", "gamma"), text.encode(), {mark("removed")})
        assert not looks_cut(Document(), text.encode())

    def test_a_file_goes_on_if_it_is_the_same_one_soon_after(self) -> None:
        """What its beginning seemed to drop may have been dropped wrongly."""
        believed, more = Believed(7, b"alpha\n", 10.0, frozenset({"e1"})), "alpha\n§\nbeta\n".encode()
        assert {"e1"} == believed.wrongly(7, more, 10.0 + GOES_ON_S)
        assert not believed.wrongly(8, more, 10.0)
        assert not believed.wrongly(7, "omega\n§\nbeta\n".encode(), 10.0)
        assert not believed.wrongly(7, more, 10.1 + GOES_ON_S)
        assert {"e1"} == believed.observe(7, more, 14.0).wrongly(7, more, 14.0 + GOES_ON_S)
        assert not believed.observe(8, more, 14.0).wrongly(7, more, 14.0 + GOES_ON_S)


class TestQuestions:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("a\n§\nb\n", False),
            ("b\n§\na\n", False),
            ("a\n§\nb\n§\nc\n", False),
            ("a\n§\nb\nglued on by a shell\n", False),
            ("a\n", True),
            ("a\n§\nB\n", True),
            ("a\n§\na\n", True),
            ("", True),
        ],
    )
    def test_whether_an_entry_would_go(self, text: str, expected: bool) -> None:
        """Moved ones, more of them, and what a shell glued on do not make one go."""
        assert expected == would_drop(store("a", "b"), text.encode())

    def test_a_missing_file_drops_what_there_is(self) -> None:
        """Of an empty store nothing."""
        assert would_drop(store("a"), None)
        assert not would_drop(Document(), None)

    def test_what_was_taken_away_comes_back_only_after_it_stood_still(self) -> None:
        """An old version, written line by line, need not be all of it."""
        gone = {mark("b")}
        assert would_drop(store("a"), "a\n§\nb\n".encode(), gone)
        assert not would_drop(store("a"), "a\n§\nc\n".encode(), gone)
        assert not would_drop(store("a", "b"), "a\n§\nb\n§\nc\n".encode(), gone)

    @pytest.mark.parametrize(
        ("text", "expected"), [("a\n§\nb\nc\n", False), ("", False), ("a\n", True), ("a\n§\nx\n", True)]
    )
    def test_whether_older_versions_have_to_be_looked_at(self, text: str, expected: bool) -> None:
        """Not for what was appended to the last one, and not for an empty file."""
        assert expected == needs_base(store("a", "b"), text.encode())


class TestAdopt:
    def test_an_editor_deletes_nothing_that_it_never_showed(self) -> None:
        """It was opened before ``c`` was added, and saved with another ``b`` after."""
        old, head = store("a", "b"), store("a", "b", "c")
        assert ["a", "bb", "c"] == texts(_adopt(head, "a\n§\nbb\n", old).document)

    def test_an_older_version_is_a_deliberate_restore(self) -> None:
        """Obeyed, whatever final newline it has."""
        old, head = store("a", "b"), store("a", "b", "c")
        for text in ("a\n§\nb\n", "a\n§\nb", "a\n\n§\n\nb\n\n"):
            merged = _adopt(head, text, old)
            assert (["a", "b"], ["c"]) == (texts(merged.document), [entry.text for entry in merged.dropped])

    def test_what_memd_wrote_in_the_last_moments_survives_a_restore(self) -> None:
        """5 s before the file was changed: nobody can have meant it."""
        old, head = store("a"), store("a", "c")
        assert 1_000_000 == head.entries[1].updated_us
        assert ["a", "c"] == texts(_adopt(head, "a\n", old, changed_us=5_999_999).document)
        assert ["a"] == texts(_adopt(head, "a\n", old, changed_us=6_000_000).document)

    def test_whoever_empties_the_file_means_all_of_it(self) -> None:
        """Whatever older version is nearest to nothing."""
        merged = _adopt(store("a", "b", "c"), "", store("a"))
        assert ([], ["a", "b", "c"]) == (texts(merged.document), [entry.text for entry in merged.dropped])

    def test_what_a_shell_appends_is_an_entry_of_its_own(self) -> None:
        """Also without a newline between (FR-39)."""
        head = store("alpha", "beta", end="")
        merged = _adopt(head, "alpha\n§\nbetagamma\n")
        assert ["alpha", "beta", "gamma"] == texts(merged.document)
        assert merged.rewrite

    def test_normalising_is_no_reason_to_write(self) -> None:
        """The bytes a person chose stay (FR-47)."""
        text = "alpha\n§\n\n§\nbeta"
        merged = _adopt(store("alpha", "beta"), text)
        assert (text.encode(), False) == (render(merged.document), merged.rewrite)

    def test_an_altered_entry_keeps_its_id(self) -> None:
        """It is the only one in its gap."""
        merged = _adopt(store("a", "port 8080", "c"), "a\n§\nport 9090\n§\nc\n")
        assert ["e0", "e1", "e2"] == [entry.id for entry in merged.document.entries]


def test_identify_gives_known_texts_their_ids() -> None:
    """In order, each once; the rest is nobody's."""
    found = identify(parse(b"b\n\xc2\xa7\nx\n\xc2\xa7\na\n\xc2\xa7\nb\n"), store("a", "b"))
    assert ["e1", "?1", "e0", "?3"] == [entry.id for entry in found.entries]
