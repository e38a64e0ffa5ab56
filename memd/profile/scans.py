"""Scans: what the rules say about texts, each asked once.

What comes in: texts, a scanner. What goes out: findings, texts with their secrets masked. What must not be here: what
follows from a finding (``policy``), tasks, I/O.

Results are kept by text. A new generation begins when the present one is full, and what is asked for again moves into it, so
that the texts of live entries stay and passing ones go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from memd.scan import Finding, Scanner, Verdict, mask, verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


__all__ = ["Finding", "Findings", "ScanPool", "Scanning", "Scans", "Verdict", "is_slow", "verdict"]

GENERATION_CHARS = 8 * 1024 * 1024
"""Characters of the texts in one of the two generations: more than a thousand profiles with full stores have."""
TEXT_US = 30
CHARS_A_US = 2
"""What scanning costs on a slow machine with hard texts: so much a text, and one microsecond for so many characters."""
INLINE_US = 1000
"""What takes longer than this is scanned in a thread, not on the event loop."""

Findings = tuple[Finding, ...]


class Scanning(Protocol):
    """What is needed of a scanner; it may be called from any thread."""

    def scan(self, text: str) -> Findings:
        """Everything that the rules find in a text."""
        ...


class Warmth:
    """Whether the rules are compiled, which takes half a second of a processor."""

    def __init__(self, *, cold: bool = False) -> None:
        self.cold = cold


class Scans:
    """The results of one scanner."""

    def __init__(self, scanner: Scanning, *, chars: int = GENERATION_CHARS, warmth: Warmth | None = None) -> None:
        self._scanner = scanner
        self._most = chars
        self._warmth = warmth or Warmth()
        self._chars = 0
        self._new: dict[str, Findings] = {}
        self._old: dict[str, Findings] = {}

    def __repr__(self) -> str:
        return f"<Scans of {self._scanner!r}, {len(self._new)} and {len(self._old)} texts>"

    def findings(self, text: str) -> Findings:
        """What is found in a text; scanned now if it is not known."""
        found = self._new.get(text)
        if found is not None:
            return found
        found = self._old.get(text)
        if found is None:
            found = self._scanner.scan(text)
        self._put(text, found)
        return found

    def unknown(self, texts: Iterable[str]) -> list[str]:
        """Those that would have to be scanned, each once."""
        return list(dict.fromkeys(text for text in texts if text not in self._new and text not in self._old))

    def is_slow(self, texts: Collection[str]) -> bool:
        """True if scanning all of these now would hold up the event loop."""
        return bool(texts) and (self._warmth.cold or is_slow(texts))

    def scan_all(self, texts: Iterable[str]) -> dict[str, Findings]:
        """Scan texts without keeping the results; for a thread, whose results ``keep`` takes."""
        return {text: self._scanner.scan(text) for text in texts}

    def keep(self, results: Mapping[str, Findings]) -> None:
        """Keep what ``scan_all`` found."""
        for text, found in results.items():
            self._put(text, found)

    def masked(self, text: str) -> str:
        """The text with every secret in it as ``[secret:RULE]``, to be shown or kept where secrets must not be."""
        found = self.findings(text)
        return mask(text, found) if found else text

    def mask_all(self, texts: Iterable[str]) -> list[str]:
        """Texts masked without keeping anything of them; for a thread, too."""
        return [mask(text, found) if found else text for text in texts for found in (self._scanner.scan(text),)]

    def _put(self, text: str, found: Findings) -> None:
        if text in self._new:
            return
        self._new[text] = found
        self._chars += len(text)
        if self._chars > self._most:
            self._old, self._new, self._chars = self._new, {}, 0


class ScanPool:
    """The ``Scans`` of all profiles: those whose settings are the same share one."""

    def __init__(self) -> None:
        self._known: dict[tuple[frozenset[str], frozenset[str]], Scans] = {}
        self._warmth = Warmth(cold=True)

    def __repr__(self) -> str:
        return f"<ScanPool of {len(self._known)}>"

    def scans(self, off: Iterable[str] = (), warn: Iterable[str] = ()) -> Scans:
        """Those of all rules but those that are off; the ones in ``warn`` only warn."""
        key = frozenset(off), frozenset(warn)
        if key not in self._known:
            self._known[key] = Scans(Scanner(off=key[0], warn=key[1]), warmth=self._warmth)
        return self._known[key]

    def compile(self) -> None:
        """Compile what every text needs, in a thread; until that is done everything is scanned in threads."""
        Scanner().scan("")
        self._warmth.cold = False


def is_slow(texts: Iterable[str]) -> bool:
    """True if scanning all of these would hold up the event loop."""
    cost = 0.0
    for text in texts:
        cost += TEXT_US + len(text) / CHARS_A_US
    return cost > INLINE_US
