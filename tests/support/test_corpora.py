"""The corpora are what their README says, and large enough for the figures that are made from them."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from rapidfuzz import fuzz, process, utils
from support.corpora import ALPHABETS, CORPORA, HALVES, TEMPLATE, attacks, emoji_zwj_sequences, expand, notes

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.corpora import Attack, Half, Note

LANGS = ["en", "zh", "es", "de", "fr", "ru", "vi", "ja"]
MOST_ALIKE = 80  # of 100: above it, two texts are one text twice


def number(item_id: str) -> int:
    return int(item_id.rsplit("-", 1)[1])


def test_there_are_enough_texts() -> None:
    """As many as were promised, and each of them once."""
    assert len({it.text for it in attacks()}) == len(attacks()) >= 400
    assert len({it.text for it in notes()}) == len(notes()) >= 1000


def test_ids_are_unique() -> None:
    """An id means one text, attack or not."""
    ids = Counter([*(it.id for it in attacks()), *(it.id for it in notes())])
    assert [name for name, count in ids.items() if count > 1] == []


@pytest.mark.parametrize("half", HALVES)
def test_every_class_is_there_in_every_language(half: Half) -> None:
    """Class 6 is about characters, not words, and has one language."""
    found: Counter[tuple[int, str]] = Counter((it.category, it.lang) for it in attacks(half))
    wanted = [(category, lang) for category in (1, 2, 3, 4, 5) for lang in LANGS] + [(6, "en")]
    assert [pair for pair in wanted if not found[pair]] == []
    assert [lang for lang in LANGS if found[1, lang] < 12] == []


def test_an_id_tells_what_the_text_is() -> None:
    """Class, language and topic stand in it."""
    assert [it.id for it in attacks() if not it.id.startswith(f"a{it.category}-{it.lang}-")] == []
    assert [it.id for it in notes() if not it.id.startswith(f"n-{it.topic}-")] == []


def test_the_number_decides_the_half() -> None:
    """Nobody can choose which half a text comes into."""
    assert [it.id for it in attacks() if ((number(it.id) + LANGS.index(it.lang)) % 4 < 2) != (it.half == "rules")] == []
    assert [it.id for it in notes() if (number(it.id) % 2 == 1) != (it.half == "rules")] == []


def test_the_halves_are_even() -> None:
    """Within each class and language, and each topic."""
    for groups in (
        Counter((it.category, it.lang, it.half) for it in attacks()),
        Counter((it.topic, "", it.half) for it in notes()),
    ):
        uneven = [key for key in groups if abs(groups[*key[:2], "rules"] - groups[*key[:2], "report"]) > 2]
        assert uneven == []


@pytest.mark.parametrize("corpus", [attacks, notes], ids=["attacks", "notes"])
def test_the_halves_do_not_share_a_text(corpus: Callable[[Half], tuple[Attack | Note, ...]]) -> None:
    """Otherwise a rule that was written for one half would be measured on it."""
    known = {it.id: utils.default_process(it.text) for it in corpus("rules") if len(it.text) > 12}
    alike = []
    for it in corpus("report"):
        if getattr(it, "category", 0) in (5, 6):  # shapes and characters: the words around them do not count
            continue
        best = process.extractOne(utils.default_process(it.text), known, scorer=fuzz.ratio, score_cutoff=MOST_ALIKE)
        alike += [(it.id, best[2], best[1])] if best else []
    assert alike == []


def test_texts_are_of_a_size_that_people_write() -> None:
    """An entry, not a book."""
    assert [it.id for it in attacks() if not 8 <= len(it.text) <= 900] == []
    assert [it.id for it in notes() if not 4 <= len(it.text) <= 900] == []


def test_notes_come_in_many_languages() -> None:
    """Those of the attacks, and those whose scripts need joiners and directional marks."""
    found = Counter(it.lang for it in notes())
    assert [lang for lang in [*LANGS, "fa", "ar", "he", "hi", "mr", "ko", "pt", "tr"] if found[lang] < 6] == []
    assert len(found) >= 30


@pytest.mark.parametrize(
    ("lang", "mark"), [("fa", "\u200c"), ("hi", "\u200d"), ("ar", "\u200e"), ("he", "\u200f"), ("en", "\u200d")]
)
def test_notes_hold_the_marks_that_scripts_need(lang: str, mark: str) -> None:
    """A scan that refuses every invisible character is seen to."""
    assert any(mark in it.text for it in notes() if it.lang == lang)


def test_no_template_is_left() -> None:
    """Each is filled in, and none is written wrongly."""
    assert [it.id for it in attacks() if re.search(r"\{(rand|lit|tags|vs|jwt|basic)\b", it.text)] == []


def test_a_template_gives_the_same_text_every_time() -> None:
    """The seed decides, and nothing else."""
    template = "{rand:hex:8} {lit:x} {jwt} {basic} {tags:a} {vs:a}"
    assert expand(template, "1") == expand(template, "1") != expand(template, "2")
    assert expand("{lit:sk_live}_ {tags:a} {vs:\n}", "1") == "sk_live_ \U000e0061 \ufe0a"
    assert len(expand("{rand:base62:36}", "1")) == 36
    assert TEMPLATE.sub("", template).strip() == ""


@pytest.mark.parametrize("name", sorted(ALPHABETS))
def test_an_alphabet_has_each_character_once(name: str) -> None:
    """Otherwise its entropy is not what it looks like."""
    assert len(set(ALPHABETS[name])) == len(ALPHABETS[name])


def test_no_file_holds_the_shape_of_a_secret() -> None:
    """Whoever pushes this repository is not stopped by a scanner."""
    shapes = re.compile(
        r"(ghp|gho|ghs|npm|hf)_\w{20}|xox[bp]-\d|sk_live_\w|AKIA[0-9A-Z]{16}(?<!EXAMPLE)|BEGIN \w+ PRIVATE KEY"
    )
    held = [it.name for it in sorted(CORPORA.glob("*/attacks-*")) if shapes.search(it.read_text("utf-8"))]
    assert held == []


def test_every_emoji_sequence_is_one() -> None:
    """Joined by ZWJ, each once, among them those that hand-made ranges miss."""
    found = emoji_zwj_sequences()
    assert len(set(found)) == len(found) > 1400
    assert [it for it in found if "\u200d" not in it.strip("\u200d")] == []
    assert {"\U0001f408\u200d\u2b1b", "\U0001f426\u200d\u2b1b"} <= set(found)
