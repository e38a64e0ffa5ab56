"""What a store promises, as code: the invariants of a commit under faults.

What comes in: what was asked and answered, what a hand saved, and what is there after recovery. What goes out: sentences
about what is broken, none if nothing is. What must not be here: files, daemons, faults.

Acknowledged is recovered, once. What was definitely refused does not reappear. What nobody knows may be either, but not
half. What changes in one transaction is there together or not at all. What a hand saved is in the file or in the journal. The file says what is published. No temp file is left. Everybody
is answered, and the next write works.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Outcome = Literal["done", "none", "unknown"]


@dataclass
class Ledger:
    """What has to be there, in every text's own words. Each text is written once."""

    present: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)
    either: set[str] = field(default_factory=set)
    by_hand: set[str] = field(default_factory=set)
    stops: list[str] = field(default_factory=list)
    units: list[list[str]] = field(default_factory=list)
    states: dict[str, set[str | None]] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)
    _before: dict[str, set[str | None]] = field(default_factory=dict)

    def asked(self, come: str | None, gone: str | None) -> None:
        """A change is under way: until it is answered, both texts may be there or not."""
        for text in (come, gone):
            if text is not None:
                self._move(text, self.either)

    def answered(self, come: str | None, gone: str | None, outcome: Outcome) -> None:
        """It was answered."""
        if outcome == "unknown":
            return
        done = outcome == "done"
        if come is not None:
            self._move(come, self.present if done else self.absent)
        if gone is not None:
            self._move(gone, self.absent if done else self.present)

    def as_one(self, *texts: str) -> None:
        """These come or go together."""
        self.units.append(list(texts))

    def becoming(self, thing: str, state: str | None) -> None:
        """Something other than an entry is under way to a state; None: gone."""
        self._before[thing] = before = self.states.get(thing, {None})
        self.states[thing] = {*before, state}

    def became(self, thing: str, state: str | None, outcome: Outcome) -> None:
        """It was answered."""
        if outcome == "done":
            self.states[thing] = {state}
        elif outcome == "none":
            self.states[thing] = self._before[thing]

    def redacted(self, text: str) -> None:
        """It was answered that this is in no file any more."""
        self.hidden.add(text)

    def keeping(self, digest: str) -> None:
        """A damaged file with this SHA-256 is not destroyed, whatever it is called."""
        self.kept.add(digest)

    def saved(self, text: str) -> None:
        """A hand wrote this into the file."""
        self.by_hand.add(text)

    def stopped(self, reason: str) -> None:
        """A store has stopped writing until the next start, and said why."""
        self.stops.append(reason)

    def _move(self, text: str, to: set[str]) -> None:
        for group in (self.present, self.absent, self.either):
            group.discard(text)
        to.add(text)


@dataclass(frozen=True)
class Found:
    """What is there after recovery. ``file``: the entries read from the file; ``recorded``: every text of any revision or
    pre-image; ``trouble``: what the daemon said that it should never have to say; ``states``: of proposals, sessions and
    texts in prompts, by what ``Ledger.becoming`` calls them.
    """

    published: tuple[str, ...]
    file: tuple[str, ...]
    recorded: str
    trouble: tuple[str, ...] = ()
    states: Mapping[str, str] = field(default_factory=dict)


def broken(ledger: Ledger, found: Found) -> list[str]:
    """Every promise that was not kept."""
    counts = Counter(found.published)
    return [
        *(f"acknowledged and gone: {text}" for text in sorted(ledger.present - counts.keys())),
        *(f"refused or removed, and there: {text}" for text in sorted(ledger.absent & counts.keys())),
        *(f"there {count} times: {text}" for text, count in sorted(counts.items()) if count > 1),
        *(f"saved by hand and lost: {text}" for text in sorted(ledger.by_hand) if text not in found.recorded),
        *(f"saved by hand and not shown: {text}" for text in sorted(ledger.by_hand - counts.keys() - ledger.absent)),
        *(f"nobody wrote this: {text}" for text in sorted(counts.keys() - _known(ledger))),
        *([f"the file says {found.file}, memd {found.published}"] if found.file != found.published else []),
        *_half_done(ledger, counts),
        *_states(ledger, found),
        *found.trouble,
    ]


def _half_done(ledger: Ledger, there: Mapping[str, int]) -> list[str]:
    return [
        f"half done: of {unit}, only {sorted(there.keys() & set(unit))} are there"
        for unit in ledger.units
        if 0 < len(there.keys() & set(unit)) < len(unit)
    ]


def _states(ledger: Ledger, found: Found) -> list[str]:
    return [
        f"{thing} is {found.states.get(thing)}, and should be one of {sorted(map(str, allowed))}"
        for thing, allowed in sorted(ledger.states.items())
        if found.states.get(thing) not in allowed
    ] + [
        f"{thing} is {state}, and its text is {'' if proposed(thing) in found.published else 'not '}there"
        for thing, state in sorted(found.states.items())
        if proposed(thing) and (state == "approved") != (proposed(thing) in found.published)
    ]


def proposed(thing: str) -> str:
    """The text of a proposal, by what it is called; ``""`` for anything else."""
    return thing.removeprefix("proposal: ") if thing.startswith("proposal: ") else ""


def _known(ledger: Ledger) -> set[str]:
    return ledger.present | ledger.absent | ledger.either | ledger.by_hand
