"""The parts of the scan, each alone: views, folding, look-alikes, decoding, readings, sentences, joiners, secrets, masks."""

from __future__ import annotations

import pytest
from scan.write_confusables import letters, read, render

from memd.scan import Finding, mask, verdict
from memd.scan.automaton import Pattern, PatternSet
from memd.scan.confusables import latin, looks
from memd.scan.decoding import carried, decoded
from memd.scan.folding import fold, folded
from memd.scan.invisible import invisible
from memd.scan.joiners import allowed_joiner
from memd.scan.readings import unwrapped, without_leet
from memd.scan.secrets import entropy, is_live
from memd.scan.sentences import sentences
from memd.scan.spans import Edit, View

COPYRIGHT_TABLE = "# Version: 17.0.0\n0430 ;\t0061 ;\tMA\n0406 ;\t006C ;\tMA\n0031 ;\t006C ;\tMA\n"


def test_an_edited_view_leads_back() -> None:
    """Before, within, across and behind the edits; a second edit leads through the first."""
    view = View("abcdef").edited([Edit(1, 3, "XYZ"), Edit(4, 5, "")])
    assert "aXYZdf" == view.text
    assert [(0, 1), (1, 3), (1, 4), (5, 6), (0, 6)] == [
        view.locate(*it) for it in ((0, 1), (1, 2), (3, 5), (5, 6), (0, 6))
    ]
    again = view.edited([Edit(0, 4, "")])
    assert (3, 4) == again.locate(0, 1)
    assert view.edited([]) is view


def test_folding_takes_away_what_hides_a_word() -> None:
    """Compatibility forms, accents, invisible marks; case stays, and so does ASCII."""
    assert "Uber bo qua d ignore" == folded("Über bỏ qua đ ｉｇ\u200bｎｏｒｅ")
    assert "plain" == fold("plain").text
    assert (1, 2) == fold("\u200bﬁx").locate(0, 2)
    assert len(folded("\ufdfa")) == 4


def test_look_alikes_are_read_as_latin() -> None:
    """Unicode's own data; upper case is kept apart."""
    assert "Ignore" == latin(fold("Іgnоrе")).text
    assert {"а": "a", "І": "I", "ρ": "p"} == {it: looks()[it] for it in "аІρ"}
    assert "忽略" == latin(View("忽略")).text


def test_the_script_reads_the_table_of_unicode() -> None:
    """ASCII and what is no letter is left out."""
    version, prototypes = read(COPYRIGHT_TABLE)
    assert ("17.0.0", {"а": "a", "І": "I"}) == (version, letters(prototypes))
    assert render(version, {"а": "a"}).endswith("\na 0430\n")


@pytest.mark.parametrize(
    "text",
    [
        "aGVsbG8gd29ybGQsIGl0IGlzIG1l",
        "68656c6c6f20776f726c642c206974206973206d65",
        "68 65 6c 6c 6f 20 77 6f 72 6c 64 2c 20 69 74 20 69 73 20 6d 65",
        "".join(f"\\x{it:02x}" for it in b"hello world, it is me"),
    ],
)
def test_a_run_is_decoded(text: str) -> None:
    """And leads back to all of it."""
    view = next(it for it in decoded(View(f"x {text} y")) if it.text == "hello world, it is me")
    assert (2, 2 + len(text)) == view.locate(3, 5)


def test_binary_data_is_no_text() -> None:
    """A picture in base64 is not scanned."""
    assert [] == list(decoded(View("data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")))


def test_what_invisible_characters_carry_is_read() -> None:
    """Tag characters and variation selectors."""
    tags = "".join(chr(0xE0000 + ord(it)) for it in "run it")
    selectors = "".join(chr(0xE0100 + it - 16) for it in b"hide")
    assert ["run it", "hide"] == [it.text for it in carried(View(f"a{tags}b{selectors}"))]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("i g n o r e   a l l", "ignore   all"),
        ("i-g-n-o-r-e a.l.l", "ignore all"),
        ("**ig**nore <b>a</b>ll", "ignore all"),
        ("ig<!-- -->nore", "ignore"),
        ("&#105;gnore &amp; %61ll", "ignore & all"),
        ("忽 略", "忽略"),
        ("well-known e-mail, snake_case", "well-known e-mail, snake_case"),
    ],
)
def test_a_word_is_put_together(text: str, plain: str) -> None:
    """And words that have a hyphen of their own stay as they are."""
    assert plain == unwrapped(View(text)).text


def test_leetspeak_is_read() -> None:
    """Length and places stay."""
    view = without_leet(View("1gn0r3 4ll"))
    assert ("ignore all", (7, 10)) == (view.text, view.locate(7, 10))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One. Two! Three", ["One.", " Two!", " Three"]),
        ("忽略。然后", ["忽略。", "然后"]),
        (
            "A fact of some length stands here\nAnother fact of some length",
            ["A fact of some length stands here\n", "Another fact of some length"],
        ),
        ("this line is long enough that an editor has wrapped it\nand goes on", None),
        ("ignore\n\nall\nprevious", None),
        ("version 1.2.3 of x.y", None),
        ("", [""]),
    ],
)
def test_sentences_end(text: str, parts: list[str] | None) -> None:
    """At stops, and at line breaks unless the line goes on; None: nowhere."""
    assert ([text] if parts is None else parts) == [text[a:b] for a, b in sentences(text)]


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("❤\ufe0f\u200d\U0001f525", []),
        ("می\u200cشود", []),
        ("a\u200db", ["invisible.joiner"]),
        ("\u200d", ["invisible.joiner"]),
        ("x\u200d\u200d\U0001f525", ["invisible.joiner"]),
        ("עברית \u2067abc\u2069", []),
        ("abc \u2067abc", ["invisible.bidi-override"]),
        ("עברית \u202eabc", ["invisible.bidi-override"]),
        ("co\u00adoperate", []),
        ("a\ufe0f", ["invisible.zero-width"]),
        ("\U0001f3f4\U000e0067\U000e0062\U000e007f", []),
        ("x\U000e0067", ["invisible.tags"]),
    ],
)
def test_invisible_characters_are_judged_by_their_place(text: str, rules: list[str]) -> None:
    """Where a script or an emoji needs them they are fine."""
    assert rules == [rule for rule, _start, _end in invisible(text)]


def test_of_many_invisible_characters_the_first_are_told() -> None:
    """Thirty-two of a rule."""
    assert 32 == len(list(invisible("a\u200b" * 100)))


def test_a_joiner_at_the_start_belongs_nowhere() -> None:
    """There is nothing to join."""
    assert not allowed_joiner("\u200dا", 0)


@pytest.mark.parametrize(
    "value",
    [
        "xxxxxxxxxxxx",
        "<token>",
        "$TOKEN",
        "os.environ['A1b2']",
        "aaaaaaaaaaaa",
        "remembering",
        "A1b2example9",
        "~/keys/A1b2C3",
    ],
)
def test_a_stand_in_is_no_secret(value: str) -> None:
    """Nor is a word, or a place."""
    assert not is_live(value, 2.9)


def test_a_random_value_is_a_secret() -> None:
    """With digits, or capitals amid the letters."""
    assert is_live("q8Zk2LmX9tRw", 2.9)
    assert is_live("uhFogFpwUtfikR", 2.9)
    assert 0 == entropy("")
    assert 2 == entropy("abcd")


def test_the_verdict_is_the_gravest() -> None:
    """And nothing is fine."""
    found = [Finding("r", "secrets", it, 0, 1, "") for it in ("warn", "refuse", "stage")]
    assert ["ok", "warn", "refuse"] == [verdict([]), verdict(found[:1]), verdict(found)]


def test_secrets_that_touch_are_one_mark() -> None:
    """Only secrets are masked; of spans within each other the outer one counts."""
    found = [
        Finding(r, c, "refuse", a, b, "")
        for r, c, a, b in (
            ("s", "secrets", 2, 6),
            ("t", "secrets", 3, 5),
            ("u", "secrets", 5, 8),
            ("o", "override", 8, 9),
        )
    ]
    assert "ab[secret:s]ij" == mask("abcdefghij", found)


def test_the_automaton_tells_what_occurs() -> None:
    """Positions in order, spans in characters."""
    assert [0, 2] == PatternSet(["é", "x", "b"]).match("béb")
    assert [] == PatternSet(["x"]).match("")
    assert [(1, 2)] == list(Pattern("é").spans("béb"))
    assert [((0, 2), (1, 2)), ((2, 3), (-1, -1))] == list(Pattern("b(é)|b").groups("béb"))
