"""Copies of messages: what is kept of a conversation for a job, and what a reviewer gets to see of it.

What comes in: what was said, as dispatch has it from the wire; records from the journal. What goes out: records to keep, texts to
have masked before that. What must not be here: finding secrets (``profile``), the journal, the wire.

System messages are not kept: they are the host's instructions and hold the memory itself. Bodies of tools and documents are kept apart,
since a reviewer sees their size only; the commit needs them to tell whether an operation merely repeats them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from memd.profile.stored import MessageRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True)
class Said:
    """One message as it was handed over. ``body``: what a tool or a document says, not a person or a model."""

    role: str
    text: str = ""
    body: str = ""
    synthetic: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """Whose messages they are. ``first``: the number of the first; ``turn`` and ``user_turn``: the turn they belong to."""

    profile: str
    owner: str
    first: int
    us: int
    turn: str | None = None
    user_turn: bool = False


def texts_of(messages: Iterable[Said]) -> list[str]:
    """Every text that is kept of these, to be masked."""
    return [text for one in messages if _kept(one) for text in (one.text, one.body) if text]


def records_of(messages: Sequence[Said], masked: Iterable[str], source: Source) -> list[MessageRecord]:
    """What is kept: ``masked`` are the texts of ``texts_of``, in that order. Numbers count what is not kept, too."""
    texts = iter(masked)
    return [
        MessageRecord(
            owner=source.owner,
            number=number,
            profile=source.profile,
            us=source.us,
            role=one.role,
            turn=source.turn,
            user_turn=source.user_turn or (source.turn is None and one.role == "user" and not one.synthetic),
            synthetic=one.synthetic,
            text=next(texts) if one.text else "",
            withheld=next(texts) if one.body else "",
        )
        for number, one in enumerate(messages, source.first)
        if _kept(one)
    ]


def shown(record: MessageRecord, *, bodies: bool) -> str:
    """What a reviewer sees of a message: with ``bodies`` all of it, else their sizes."""
    if not record.withheld:
        return record.text
    what = "tool result" if record.role == "tool" else "document"
    body = record.withheld if bodies else f"[{what}, {len(record.withheld)} characters]"
    return f"{record.text}\n{body}" if record.text else body


def _kept(message: Said) -> bool:
    return message.role != "system" and bool(message.text or message.body)
