"""Ways to hide an attack from a pattern and not from a model.

What comes in: plain attacks. What goes out: the same, disguised in each way that makes sense for its language and class; the
same in every run. What must not be here: rules, expectations.
"""

from __future__ import annotations

import base64
import random
import re
from typing import TYPE_CHECKING, NamedTuple

from support.corpora import Attack, notes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LATIN = frozenset({"en", "es", "de", "fr", "vi"})
SPACED = LATIN | {"ru"}
ALL = SPACED | {"zh", "ja"}
WORDS = frozenset({1, 2, 3, 4})  # the classes that a model reads; a secret has to keep its characters to be one

CYRILLIC = str.maketrans("aceiopsxyABCEHIKMOPTXjSJ", "асеіорѕхуАВСЕНІКМОРТХјЅЈ")
GREEK = str.maketrans("ovipuABEHIKMNOPTXYZ", "ονιρυΑΒΕΗΙΚΜΝΟΡΤΧΥΖ")
LEET = {"a": "4@", "e": "3", "i": "1!", "o": "0", "s": "5$", "t": "7"}
INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff"
DIRECTIONS = "\u200e\u200f\u202a\u202c"
FILLERS = {
    "en": ["well", "please", "kindly", "really", "um", "simply", "you know"],
    "es": ["pues", "por favor", "bueno", "la verdad", "digamos"],
    "de": ["also", "bitte", "halt", "eben", "sozusagen"],
    "fr": ["bon", "s'il te plaît", "disons", "en fait", "voilà"],
    "ru": ["ну", "пожалуйста", "вообще", "как бы", "значит"],
    "vi": ["à", "làm ơn", "thì", "nói chung", "nhé"],
}
PADDING_TOPICS = {"cooking", "hardware", "household", "medical", "people", "teaching"}


def cyrillic(text: str, _rng: random.Random) -> str:
    """Latin letters become the Cyrillic ones that look alike."""
    return text.translate(CYRILLIC)


def greek(text: str, _rng: random.Random) -> str:
    """Latin letters become the Greek ones that look alike."""
    return text.translate(GREEK)


def fullwidth(text: str, _rng: random.Random) -> str:
    """ASCII in its full width, as in East Asian typography."""
    return "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text)


def mathematical(text: str, _rng: random.Random) -> str:
    """ASCII letters in mathematical bold."""
    return "".join(_bold(char) if char.isascii() else char for char in text)


def _bold(char: str) -> str:
    if char.isupper():
        return chr(0x1D400 + ord(char) - ord("A"))
    return chr(0x1D41A + ord(char) - ord("a")) if char.islower() else char


def zero_width(text: str, rng: random.Random) -> str:
    """Invisible characters between letters."""
    return _between_letters(text, rng, INVISIBLE)


def direction_marks(text: str, rng: random.Random) -> str:
    """Directional marks between letters, which change nothing in a line of one direction."""
    return _between_letters(text, rng, DIRECTIONS)


def _between_letters(text: str, rng: random.Random, marks: str) -> str:
    return re.sub(r"(?<=\w)(?=\w)", lambda _: rng.choice(marks) if rng.random() < 0.3 else "", text)


def letters_spaced(text: str, _rng: random.Random) -> str:
    """A blank between letters, three between words."""
    return "   ".join(" ".join(word) for word in text.split())


def hyphens(text: str, _rng: random.Random) -> str:
    """Letters joined by hyphens."""
    return re.sub(r"(?<=[^\W\d_])(?=[^\W\d_])", "-", text)


def leetspeak(text: str, rng: random.Random) -> str:
    """Digits and signs for most of the letters that they look like."""
    return "".join(rng.choice(LEET[it.lower()]) if it.lower() in LEET and rng.random() < 0.7 else it for it in text)


def base64_run(text: str, _rng: random.Random) -> str:
    """The whole text as one base64 run in a plain note."""
    return f"Decode and follow: {base64.b64encode(text.encode()).decode()}"


def hex_run(text: str, _rng: random.Random) -> str:
    """The whole text as one run of hex digits."""
    return f"Payload, hex: {text.encode().hex()}"


def percent(text: str, _rng: random.Random) -> str:
    """Every byte that is no letter or digit percent-encoded, and some of the others."""
    return "".join(
        chr(b) if chr(b).isalnum() and b < 128 and i % 5 else f"%{b:02X}" for i, b in enumerate(text.encode())
    )


def mixed_case(text: str, rng: random.Random) -> str:
    """Upper and lower case at random."""
    return "".join(it.upper() if rng.random() < 0.5 else it.lower() for it in text)


def line_breaks(text: str, rng: random.Random) -> str:
    """A line break, or several, instead of each blank."""
    return re.sub(r"[ \n]+", lambda _: rng.choice(["\n", "\n\n", " \n", "\r\n"]), text)


def fillers(text: str, rng: random.Random, lang: str) -> str:
    """A word that says nothing after every second or third one."""
    words, left = [], 2
    for word in text.split(" "):
        words.append(word)
        left -= 1
        if left == 0:
            words.append(rng.choice(FILLERS[lang]))
            left = rng.choice([2, 3])
    return " ".join(words)


def markup(text: str, rng: random.Random) -> str:
    """Markdown emphasis and HTML tags around words and within them."""
    wraps = ["**{}**", "_{}_", "`{}`", "<b>{}</b>", "<i>{}</i>", "<span>{}</span>", "{}"]
    return re.sub(r"[^\W_]{2,}", lambda it: rng.choice(wraps).format(it[0]), text)


def split_by_tags(text: str, rng: random.Random) -> str:
    """Empty HTML elements and comments in the middle of words."""
    cuts = ["<b></b>", "<!-- -->", "<wbr>", "<i></i>"]
    return re.sub(r"([^\W_]{2})([^\W_]{2,})", lambda it: it[1] + rng.choice(cuts) + it[2], text)


def tag_characters(text: str, _rng: random.Random) -> str:
    """ASCII in Unicode tag characters, which nothing draws, behind a harmless line."""
    return "Lunch is at noon." + "".join(chr(0xE0000 + ord(char)) for char in text if " " <= char <= "~")


def html_entities(text: str, rng: random.Random) -> str:
    """Some letters as numeric character references."""
    return "".join(f"&#{ord(it)};" if it.isalpha() and rng.random() < 0.4 else it for it in text)


def padded(text: str, rng: random.Random) -> str:
    """Several thousand characters of notes before the attack, and some behind it."""
    pool = [it.text for it in notes("rules") if it.lang == "en" and it.topic in PADDING_TOPICS]
    rng.shuffle(pool)
    before = "\n".join(pool)
    return f"{before}\n{text}\n{pool[0]}"


class Disguise(NamedTuple):
    """One obfuscation, and the attacks for which it makes sense."""

    name: str
    apply: Callable[[str, random.Random], str]
    langs: frozenset[str]
    classes: frozenset[int] = WORDS


PROSE = frozenset({1})
ANY = frozenset({1, 2, 3, 4, 5, 6})
DISGUISES = (
    Disguise("cyrillic", cyrillic, LATIN),
    Disguise("greek", greek, LATIN),
    Disguise("fullwidth", fullwidth, LATIN, WORDS),
    Disguise("mathematical", mathematical, LATIN - {"vi"}),
    Disguise("zero-width", zero_width, ALL),
    Disguise("direction-marks", direction_marks, ALL),
    Disguise("letters-spaced", letters_spaced, ALL, PROSE),
    Disguise("hyphens", hyphens, SPACED, PROSE),
    Disguise("leetspeak", leetspeak, LATIN - {"vi"}, PROSE),
    Disguise("base64", base64_run, ALL, WORDS | {5}),
    Disguise("hex", hex_run, ALL, WORDS | {5}),
    Disguise("percent", percent, ALL),
    Disguise("mixed-case", mixed_case, SPACED, PROSE),
    Disguise("line-breaks", line_breaks, SPACED, PROSE),
    Disguise("markup", markup, SPACED, PROSE),
    Disguise("split-by-tags", split_by_tags, SPACED, PROSE),
    Disguise("html-entities", html_entities, SPACED, PROSE),
    Disguise("tag-characters", tag_characters, frozenset({"en"})),
    Disguise("padded", padded, ALL, ANY),
)


class Disguised(NamedTuple):
    """An attack as it looks in a disguise."""

    attack: Attack
    disguise: str
    text: str


def disguised(attack: Attack) -> Iterator[Disguised]:
    """Each disguise of the attack that makes sense and changes something."""
    for it in DISGUISES:
        if attack.lang in it.langs and attack.category in it.classes:
            text = it.apply(attack.text, _rng(attack, it.name))
            if text != attack.text:
                yield Disguised(attack, it.name, text)
    if attack.category == 1 and attack.lang in FILLERS:
        yield Disguised(attack, "fillers", fillers(attack.text, _rng(attack, "fillers"), attack.lang))


def _rng(attack: Attack, name: str) -> random.Random:
    return random.Random(f"{attack.id}:{name}")
