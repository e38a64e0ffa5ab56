"""The scan: all rules over all readings of a text.

What comes in: a text, and which rules are off or only warn. What goes out: findings, sorted by place. What must not be here: words
of rules, settings, I/O.

Each reading is passed once through one automaton that knows every concept of every rule; only if the concepts of some rule are all
there, the reading is cut into sentences and those are passed through it too. So the time is linear in the text.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal

from memd.scan import decoding, readings
from memd.scan.confusables import latin
from memd.scan.findings import Finding, Severity
from memd.scan.folding import fold, without_surrogates
from memd.scan.invisible import invisible
from memd.scan.machine import Machine, compiled, machine
from memd.scan.rules import MENTION, Pattern, Rule, RuleBook, Shape, packaged
from memd.scan.secrets import is_live
from memd.scan.sentences import belong_together, sentences
from memd.scan.spans import View

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

Where = Literal["memory", "context"]
RULES_VERSION = packaged().version


class Scanner:
    """Finds what the rules forbid; safe to share between threads, and holds nothing of the texts.

    Args:
        rules: The rules, by default those that come with memd.
        off: Ids of rules that find nothing.
        warn: Ids of rules whose findings are only ``warn``.
    """

    def __init__(
        self,
        rules: RuleBook | None = None,
        off: Collection[str] = frozenset(),
        warn: Collection[str] = frozenset(),
    ) -> None:
        self._book = rules or packaged()
        self._off, self._warn = frozenset(off), frozenset(warn)

    def __repr__(self) -> str:
        return f"<Scanner {self._book.version}, {len(self._off)} off, {len(self._warn)} warn>"

    @property
    def version(self) -> str:
        """The version of its rules; a result may be kept for a text as long as this and the switches are the same."""
        return self._book.version

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All its rules, those that are off too, in the order of the book."""
        return tuple(self._book.rules.values())

    @cached_property
    def _machine(self) -> Machine:
        return machine(self._book)

    def scan(self, text: str, where: Where = "memory") -> tuple[Finding, ...]:
        """All findings in the text; never an error, whatever the text.

        A rule of words is reported at the first place where it holds, secrets and invisible characters at each. The time is
        linear in the text's length: check that against a limit first. ``where`` tells memory entries from other text that
        enters a prompt; all rules are for both.
        """
        del where
        return Run(self._machine, self.effective).findings(text)

    def effective(self, rule: Rule) -> Severity | None:
        """The severity that a finding of the rule has here, None if it is off."""
        if rule.id in self._off:
            return None
        return "warn" if rule.id in self._warn else rule.severity


def unknown_rules(ids: Iterable[str]) -> list[str]:
    """The ids that no rule has, for whoever writes them into settings."""
    return sorted(set(ids) - packaged().rules.keys())


class Run:
    """One scan of one text."""

    def __init__(self, rules: Machine, effective: Callable[[Rule], Severity | None]) -> None:
        self._machine, self._effective = rules, effective
        self._found: dict[tuple[str, int, int], Finding] = {}
        self._done: set[str] = set()
        self._secrets: set[int] = set()

    def findings(self, text: str) -> tuple[Finding, ...]:
        """All findings in the text, sorted by place; a run is for one text."""
        if not text.isascii():
            text = without_surrogates(text)
            self._unseen(View(text))
        self._readings(fold(text))
        for carried in decoding.carried(View(text)):
            self._readings(_refolded(carried), decode=False)
        return tuple(sorted(self._found.values(), key=lambda it: (it.start, it.end, it.rule)))

    def _readings(self, view: View, *, decode: bool = True) -> None:
        """The view, and the readings of it for which it has a trigger."""
        triggers = self._look(view)
        if "control" in triggers:
            self._unseen(view)
        if decode and "encoded" in triggers:
            for inner in decoding.decoded(view):
                self._readings(_refolded(inner), decode=False)
        if triggers & {"wrapped", "joined"}:
            view = self._another(view, readings.unwrapped(view), secrets=True)
        if not view.text.isascii():
            view = self._another(view, latin(view))
        if "leet" in triggers:
            self._another(view, readings.without_leet(view))

    def _another(self, before: View, view: View, *, secrets: bool = False) -> View:
        if view is not before:
            self._look(view, secrets=secrets)
        return view

    def _look(self, view: View, *, secrets: bool = True) -> frozenset[str]:
        """Everything that the rules find in this reading; the triggers that it has.

        Where letters were replaced, no secret is looked for: what it would show is not what the text holds.
        """
        hits = self._machine.hits(view.low)
        if self._machine.patterns(hits.concepts):
            self._sentences(view, hits.concepts)
        if secrets:
            for rule, shape in hits.shapes:
                self._secret(view, rule, shape)
        return hits.triggers

    def _sentences(self, view: View, present: frozenset[str]) -> None:
        spans = sentences(view.text)
        before: frozenset[str] = frozenset()
        for n, (start, end) in enumerate(spans):
            here = present if len(spans) == 1 else self._machine.hits(view.low[start:end]).concepts
            self._match(view, (start, end), here, reach=1)
            if before and here and belong_together(view.text, spans[n - 1]):
                self._match(view, (spans[n - 1][0], end), before | here, reach=2)
            before = here

    def _match(self, view: View, span: tuple[int, int], here: frozenset[str], reach: int) -> None:
        for rule, pattern in self._machine.patterns(here):
            near = pattern.reach >= reach and here.isdisjoint(pattern.absent)
            if near and rule.id not in self._done:
                self._confirm(view, span, rule, pattern, quoted=rule.quotable and MENTION in here)

    def _confirm(self, view: View, span: tuple[int, int], rule: Rule, pattern: Pattern, *, quoted: bool) -> None:
        """Put the finding down if the concepts are in order, with the span from the first to the last of them."""
        sentence = view.low[slice(*span)]
        at, start, end = 0, len(sentence), 0
        for name in pattern.concepts:
            place = self._machine.place(name, sentence, at)
            if place is None:
                return
            start, end = min(start, place[0]), max(end, place[1])
            at = place[0] + 1 if pattern.ordered else 0  # concepts may overlap
        self._put(rule, view.locate(span[0] + start, span[0] + end), quoted=quoted)
        if not quoted:
            self._done.add(rule.id)

    def _secret(self, view: View, rule: Rule, shape: Shape) -> None:
        for whole, group in compiled(shape.form).groups(view.text):
            start, end = group if group[0] >= 0 else whole
            span = view.locate(start, end)
            # Rules of known tokens come first; one that only sees a secret's name does not speak of them again.
            if is_live(view.text[start:end], shape.entropy) and not (shape.entropy and span[0] in self._secrets):
                self._put(rule, span)
                self._secrets.add(span[0])

    def _unseen(self, view: View) -> None:
        for name, start, end in invisible(view.text):
            if name in self._machine.book.rules:
                self._put(self._machine.book.rules[name], view.locate(start, end))

    def _put(self, rule: Rule, span: tuple[int, int], *, quoted: bool = False) -> None:
        severity = self._effective(rule)
        if severity is not None:
            found = Finding(rule.id, rule.class_, "warn" if quoted else severity, *span, rule.reason)
            self._found.setdefault((rule.id, *span), found)


def _refolded(view: View) -> View:
    """What was decoded, folded like any text; all of it leads back to the whole run."""
    return fold(view.text).over(view)
