"""memd.cli.worddiff: what goes and what comes, word by word."""

from __future__ import annotations

from hypothesis import given, strategies as st

from memd.cli.worddiff import Run, word_diff


def test_only_the_words_that_changed_differ() -> None:
    expected = [Run("same", "Server is Debian "), Run("old", "12"), Run("new", "13")]
    assert expected == list(word_diff("Server is Debian 12", "Server is Debian 13"))


def test_text_without_blanks_is_compared_by_character() -> None:
    expected = [Run("same", "服务器是"), Run("old", "旧"), Run("new", "新"), Run("same", "的")]
    assert expected == list(word_diff("服务器是旧的", "服务器是新的"))


def test_a_new_text_is_all_new() -> None:
    assert [Run("new", "one fact")] == list(word_diff("", "one fact"))
    assert [Run("old", "one fact")] == list(word_diff("one fact", ""))
    assert [] == list(word_diff("", ""))


def test_texts_too_long_to_compare_are_compared_at_their_ends() -> None:
    """A file of a megabyte without borders is one entry."""
    same, other = "same " * 2000, "other " * 3000
    runs = list(word_diff(f"{same}old {same}", f"{same}{other}{same}"))
    assert ["same", "old", "new", "same"] == [run.kind for run in runs]
    assert ("old ", other) == (runs[1].text, runs[2].text)
    assert [Run("same", other * 2)] == list(word_diff(other * 2, other * 2))


@given(st.text(), st.text())
def test_both_texts_can_be_read_off(before: str, after: str) -> None:
    runs = list(word_diff(before, after))
    assert before == "".join(run.text for run in runs if run.kind != "new")
    assert after == "".join(run.text for run in runs if run.kind != "old")
