"""Who reviews: the reviewers of a profile as the runner sees them.

What comes in: a profile's settings. What goes out: workers, the chosen one first. What must not be here: when they work, how they do.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from memd.jobs.reviewers.anthropic import AnthropicReviewer
from memd.jobs.reviewers.command import CommandReviewer
from memd.jobs.reviewers.openai import OpenAiReviewer
from memd.jobs.reviewers.rules import RulesReviewer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from memd.config import ProfileSettings
    from memd.jobs.ports import JobProfile, Worker

_RULES = RulesReviewer()
_KINDS: Mapping[str, Callable[[ProfileSettings], Worker]] = {
    "rules": lambda _: _RULES,
    "openai": OpenAiReviewer,
    "anthropic": AnthropicReviewer,
    "command": CommandReviewer,
}


def workers_for(profile: JobProfile) -> Sequence[Worker]:
    """Those that can be used in this profile: what ``[review] reviewer`` says, then ``fallback`` in its order.

    A client that reviews by itself and lets its time go by leaves the job to the fall-backs, and without any to ``rules``. None where
    nothing of what is set can be used: its jobs wait then.
    """
    return _workers(profile.settings)


@lru_cache(maxsize=64)
def _workers(settings: ProfileSettings) -> Sequence[Worker]:
    review = settings.review
    wanted = [kind for kind in dict.fromkeys((review.reviewer, *review.fallback)) if kind != "off"]
    if wanted == ["client"]:
        wanted.append("rules")
    return tuple(_KINDS[kind](settings) for kind in wanted if kind in _KINDS)
