"""Every rule does what its own examples say, and the book is checked when it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.corpora import expand

from memd.errors import InternalError
from memd.scan import CLASSES, RULES_VERSION, Scanner, packaged, unknown_rules, verdict
from memd.scan.rules import Pattern, expression, parse, pattern

if TYPE_CHECKING:
    from memd.scan import Rule

SCANNER = Scanner()
RULES = list(packaged().rules.values())
EXAMPLES = [pytest.param(it, text, id=f"{it.id}-{n}") for it in RULES for n, text in enumerate(it.examples)]
COUNTERS = [pytest.param(it, text, id=f"{it.id}-{n}") for it in RULES for n, text in enumerate(it.counters)]
LANGUAGES = {"en", "zh", "es", "de", "fr", "ru", "vi", "ja"}
BOOK = """
[concepts]
cat = ["cat*"]
[[rules]]
id = "{id}"
class = "{class_}"
severity = "warn"
reason = "r"
patterns = ["{pattern}"]
examples = ["cats"]
counters = ["dogs"]
[[rules]]
id = "second"
class = "override"
severity = "warn"
reason = "r"
examples = []
counters = []
"""


@pytest.mark.parametrize(("rule", "text"), EXAMPLES)
def test_an_example_is_found_by_its_rule(rule: Rule, text: str) -> None:
    """With the rule's own severity."""
    found = [it for it in SCANNER.scan(expand(text, rule.id)) if it.rule == rule.id]
    assert (rule.class_, rule.severity, rule.reason) == (found[0].class_, found[0].severity, found[0].reason)


@pytest.mark.parametrize(("rule", "text"), COUNTERS)
def test_a_counter_example_is_let_through(rule: Rule, text: str) -> None:
    """By all rules."""
    assert verdict(SCANNER.scan(expand(text, rule.id))) in ("ok", "warn")


@pytest.mark.parametrize("rule", RULES, ids=lambda it: it.id)
def test_a_rule_is_whole(rule: Rule) -> None:
    """It has a reason, texts on both sides, a class of the design and a way to find something."""
    assert rule.reason
    assert rule.examples
    assert rule.counters
    assert rule.class_ in CLASSES
    assert set(rule.languages) <= LANGUAGES
    assert rule.patterns or rule.shapes or rule.class_ == "invisible"


def test_all_languages_are_covered() -> None:
    """A word of each of them leads to a finding of the first class."""
    assert LANGUAGES == {it for rule in RULES if rule.class_ == "override" for it in rule.languages}


def test_the_book_has_a_version() -> None:
    """It follows the data, so that results can be kept by it."""
    data = BOOK.format(id="a", class_="override", pattern="cat").encode()
    assert RULES_VERSION == packaged().version == Scanner().version
    assert parse(data).version != parse(data + b"\n").version


def test_rules_that_are_not_there_are_named() -> None:
    """For whoever writes settings; sorted."""
    assert ["a.b", "nothing"] == unknown_rules(["nothing", "secret.jwt", "a.b"])


@pytest.mark.parametrize(
    ("id_", "class_", "source"), [("second", "override", "cat"), ("a", "fun", "cat"), ("a", "override", "cat + dog")]
)
def test_a_book_with_a_mistake_is_refused(id_: str, class_: str, source: str) -> None:
    """Two rules of one id, a class and a concept that there are not."""
    with pytest.raises(InternalError, match="rule"):
        parse(BOOK.format(id=id_, class_=class_, pattern=source).encode())


def test_patterns_are_read() -> None:
    """Order, reach and what must be absent."""
    assert Pattern(("a", "b"), ordered=False, reach=1, absent=frozenset({"c"})) == pattern("a + b - c")
    assert Pattern(("a", "b"), ordered=True, reach=2, absent=frozenset()) == pattern("2: a > b")


def test_words_become_expressions() -> None:
    """Folded, with word borders where the script has words."""
    assert r"(?:\b(?:mude)\b|\b(?:ignor\pL*)|(?:忽略)|re)" == expression(["müde", "ignor*", "忽略", "re:re"])
