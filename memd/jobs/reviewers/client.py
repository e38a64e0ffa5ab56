"""The reviewer ``client``: what the session that is warm gets for its own model, and what is made of what that wants.

What comes in: a job that was claimed, its messages; what a client submits, unchecked. What goes out: prompts; operations that were tried as
the daemon's own reviewers try theirs. What must not be here: claims (``clients``), the wire.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memd.jobs.ports import Attempt, Found, Used
from memd.jobs.reviewers.desk import Desk
from memd.jobs.reviewers.prompting import conversation, stores, system_prompt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from memd.jobs.ports import JobProfile
    from memd.profile.stored import JobRecord, MessageRecord

ALL_TOKENS = 1_000_000
"""A client counts its own tokens: it gets the conversation whole."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What a client's model is told: the task, what is in memory, the conversation, which a warm one has in its context already."""

    system: str
    memory: str
    conversation: str


def offer(profile: JobProfile, job: JobRecord, messages: Sequence[MessageRecord]) -> Offer:
    """The prompts of a job.

    Raises:
        ReviewFailed: The person's own prompt cannot be read.
    """
    attempt = Attempt(job, messages, ALL_TOKENS, 1)
    return Offer(system_prompt(profile, job.kind), stores(profile, attempt), conversation(profile, attempt))


def tried(
    profile: JobProfile, job: JobRecord, operations: Iterable[Mapping[str, Any]], used: Used, failures: int
) -> Found:
    """What a client submits, each operation tried on what is in memory now. Tries end when the turn has no ``failures`` left."""
    found = Found(used=used)
    desk = Desk(profile, Attempt(job, (), ALL_TOKENS, max(1, failures)), found)
    for operation in operations:
        desk.call(dict(operation))
        if desk.exhausted:
            break
    return found
