"""The reviewer ``rules``: deterministic, without a model and without a network.

What comes in: copies of messages, the entries there are. What goes out: adds, and replacements where a correction names what was wrong.
What must not be here: the phrases themselves (``phrases.toml``), the commit.

Only a person's own words count, sentence by sentence, and only where they say plainly that something is to be kept or is lasting: what
is quoted, fenced, asked, supposed, told of others or meant for this once is left alone. Anything unsure is not saved.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

import trio

from memd.jobs.reviewers.phrases import languages
from memd.profile.near import near_duplicate
from memd.profile.stored import DeskRecord
from memd.profile.values import TARGETS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from memd.jobs.ports import Attempt, Found, JobProfile
    from memd.jobs.reviewers.phrases import Kept
    from memd.profile.entries import Entry
    from memd.profile.stored import MessageRecord
    from memd.profile.values import Target

LONGEST_SENTENCE = 300
"""Characters; a longer one is an argument or a paste, not a fact to keep."""
MOST = 10
"""Operations of one review: ten turns that hold more are an import."""
SAME = 0.75
"""Two facts that share so much of the shorter one's words are taken for one."""

_FENCES = re.compile(r"(?ms)^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)")
_QUOTED_LINES = re.compile(r"(?m)^[ \t]*(?:>|\||\$ |[-*] \[).*$")
_QUOTES = re.compile(r"[\"“”„«»「」]")
_END = re.compile(r"(?<=[.!?])[)\"'”]*\s+|(?<=[。！？])|\n+")
_QUESTION = ("?", "？")
_EDGES = " \t.!。！,，;；:："
_WORD = re.compile(r"[\w./:-]*\w")


class RulesReviewer:
    """Reads what people said by rules."""

    kind = "rules"
    endpoint: str | None = None

    def __repr__(self) -> str:
        return "<RulesReviewer>"

    async def attempt(self, profile: JobProfile, attempt: Attempt, found: Found) -> str:
        """Review the messages; fills ``found`` as it goes. Returns what it found, a line each, ``""`` if nothing.

        Never fails. Between messages others get their turn.
        """
        entries = {target: profile.state(target).document.entries for target in TARGETS}
        review = profile.settings.review
        said: list[str] = []
        for message in attempt.messages:
            await trio.lowlevel.checkpoint()
            if not _spoken(message):
                continue
            for kept in facts(message.text):
                about = kept.text.casefold()
                wanted = not review.topics_allow or any(topic.casefold() in about for topic in review.topics_allow)
                denied = any(topic.casefold() in about for topic in review.topics_deny)
                if wanted and not denied and len(said) < MOST and not _known(kept, entries, said):
                    found.operations.append(_operation(kept, entries[kept.target], message.number))
                    said.append(kept.text)
        return "\n".join(said)


def facts(text: str) -> Iterator[Kept]:
    """What a message of a person asks to keep, in order."""
    text = _QUOTED_LINES.sub("\n", _FENCES.sub("\n", unicodedata.normalize("NFC", text)))
    if any(language.spoiled(text) for language in languages()):
        return
    for sentence in _sentences(text):
        found = next((kept for language in languages() if (kept := language.kept(sentence))), None)
        if found is not None:
            yield type(found)(found.target, _tidy(found.text), found.wrong)


def _spoken(message: MessageRecord) -> bool:
    """Whether a person typed it."""
    return message.role == "user" and message.user_turn and not message.synthetic


def _sentences(text: str) -> Iterator[str]:
    for part in _END.split(text):
        sentence = part.strip()
        if not sentence or len(sentence) > LONGEST_SENTENCE or sentence.endswith(_QUESTION) or "¿" in sentence:
            continue
        if not _QUOTES.search(sentence):
            yield sentence.strip(_EDGES)


def _tidy(text: str) -> str:
    text = text.strip(_EDGES)
    return text[:1].upper() + text[1:]


def _known(kept: Kept, entries: dict[Target, tuple[Entry, ...]], said: Sequence[str]) -> bool:
    """Whether it is there already, in either store or of this review, in much the same words.

    A correction shares most of its words with what it corrects: it is known only if it is there as it is.
    """
    every = [entry for some in entries.values() for entry in some]
    if kept.text in said or near_duplicate(kept.text, every) is not None:
        return True
    if kept.wrong:
        return any(entry.text == kept.text for entry in every)
    mine = _words(kept.text)
    return any(_overlap(mine, _words(other)) >= SAME for other in (*(entry.text for entry in every), *said))


def _operation(kept: Kept, entries: Iterable[Entry], number: int) -> DeskRecord:
    """An add; or the replacement of the one entry that holds what was wrong and speaks of the same."""
    if kept.wrong:
        mine = _words(kept.text)
        wrong = kept.wrong.casefold()
        meant = [
            entry
            for entry in entries
            if wrong in _words(entry.text) and len(_words(entry.text) & mine - {wrong}) >= 2  # one word may be chance
        ]
        if len(meant) == 1:
            return DeskRecord(
                kept.target, "replace", kept.text, id=meant[0].id, if_hash=meant[0].hash, evidence=[number]
            )
    return DeskRecord(kept.target, "add", kept.text, evidence=[number])


def _words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _WORD.findall(text))


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    shorter = min(len(one), len(other))
    return len(one & other) / shorter if shorter else 0.0
