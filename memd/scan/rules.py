"""The rules as data: concepts in many languages, and what must come together for a rule to fire.

What comes in: ``rules.toml``. What goes out: frozen rules and compiled patterns. What must not be here: texts, findings.

A concept is a list of words: a blank stands for any white space, ``*`` at a word's end for the rest of it, and everything else is
a regular expression. Words are folded like texts are, so that they may be written as people write them.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Literal

from memd.errors import InternalError
from memd.scan.folding import folded

CLASSES = ("override", "exfiltration", "persistence", "command-and-control", "secrets", "invisible")
MENTION = "mention"  # the concept of a sentence that talks about an attack
Reach = Literal[1, 2]
# White space between the words of a concept, with the hyphens and quotation marks that people put there.
GAP = r"[\s,\"'-]+"


@dataclass(frozen=True, slots=True)
class Pattern:
    """Concepts that have to stand in one sentence (``reach`` 2: in two that follow each other), in any order or in this one."""

    concepts: tuple[str, ...]
    ordered: bool
    reach: Reach
    absent: frozenset[str]


@dataclass(frozen=True, slots=True)
class Shape:
    """A secret's own form: ``hint`` is found in lower case, ``form`` confirms it; its group, if any, is the secret."""

    hint: str
    form: str
    entropy: float


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; it has patterns, or shapes, or is found by the detector of its id (``invisible.py``)."""

    id: str
    class_: str
    severity: Literal["refuse", "stage", "warn"]
    reason: str
    languages: tuple[str, ...]
    patterns: tuple[Pattern, ...]
    shapes: tuple[Shape, ...]
    examples: tuple[str, ...]
    counters: tuple[str, ...]
    quotable: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class RuleBook:
    """Concepts as regular expressions, rules by id, and a version that changes with the data."""

    concepts: dict[str, str]
    rules: dict[str, Rule]
    version: str
    by_key: dict[str, tuple[tuple[Rule, Pattern], ...]] = field(repr=False)


def parse(data: bytes) -> RuleBook:
    """The book in TOML.

    Raises:
        InternalError: A rule names a concept or a class that there is not, or there are two of one id. Nothing is kept.
    """
    raw = tomllib.loads(data.decode())
    concepts = {name: expression(words) for name, words in raw["concepts"].items()}
    rules: dict[str, Rule] = {}
    for it in raw["rules"]:
        rule = _rule(it)
        _check(rule, rules, concepts)
        rules[rule.id] = rule
    by_key: dict[str, list[tuple[Rule, Pattern]]] = {}
    for rule in rules.values():
        for pattern in rule.patterns:
            by_key.setdefault(pattern.concepts[0], []).append((rule, pattern))
    keyed = {key: tuple(found) for key, found in by_key.items()}
    return RuleBook(concepts, rules, hashlib.sha256(data).hexdigest()[:16], keyed)


@cache
def packaged() -> RuleBook:
    """The rules that come with memd."""
    return parse(resources.files("memd.scan").joinpath("rules.toml").read_bytes())


def _rule(raw: dict[str, Any]) -> Rule:
    return Rule(
        id=raw["id"],
        class_=raw["class"],
        severity=raw["severity"],
        reason=raw["reason"],
        languages=tuple(raw.get("languages", ())),
        patterns=tuple(pattern(it) for it in raw.get("patterns", ())),
        shapes=tuple(
            Shape(folded(it["hint"]), folded(it["form"]), it.get("entropy", 0.0)) for it in raw.get("shapes", ())
        ),
        examples=tuple(raw["examples"]),
        counters=tuple(raw["counters"]),
        quotable=raw.get("quotable", False),
    )


def _check(rule: Rule, known: dict[str, Rule], concepts: dict[str, str]) -> None:
    named = {name for it in rule.patterns for name in (*it.concepts, *it.absent)}
    wrong = sorted(named - concepts.keys())
    if wrong or rule.id in known or rule.class_ not in CLASSES:
        message = (
            f"rule {rule.id!r}: unknown concepts {wrong}, a second rule of this id, or unknown class {rule.class_!r}"
        )
        raise InternalError(message)


def pattern(source: str) -> Pattern:
    """``a + b - c`` (any order, without c), ``a > b`` (in this order); ``2: `` in front: within two sentences."""
    reach: Reach = 1
    if source.startswith("2: "):
        reach, source = 2, source[3:]
    wanted, *absent = source.split(" - ")
    ordered = " > " in wanted
    return Pattern(tuple(re.split(r" [+>] ", wanted)), ordered, reach, frozenset(absent))


def expression(words: list[str]) -> str:
    """The concept as one regular expression over folded text in lower case."""
    return "(?:" + "|".join(_word(it) for it in words) + ")"


def _word(word: str) -> str:
    raw = word.startswith("re:")
    source = word[3:] if raw else folded(word).lower()
    if raw:
        return source
    source = re.sub(r" \*(?=\()", " ", re.sub(r"[ ,]\*$", "", source))
    source = source.replace(" * ", f" (?:\\S+{GAP}){{0,2}}")
    source = re.sub(r"(?<=[\w)|])(?<! \))\*", r"\\pL*", source)
    source = source.replace(" ", GAP)
    head = r"\b" if re.match(r"[(?:]*[a-z0-9]", source) else r"(?:^|[^\pL])" if re.match(r"[(?:]*[а-я]", source) else ""
    tail = (
        r"\b" if re.search(r"[a-z0-9][)?]*$", source) else r"(?:$|[^\pL])" if re.search(r"[а-я][)?]*$", source) else ""
    )
    return f"{head}(?:{source}){tail}"
