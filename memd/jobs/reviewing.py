"""Who reviews: the reviewers of a profile as the runner sees them.

What comes in: a profile's settings. What goes out: workers, the chosen one first. What must not be here: when they work, how they do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memd.jobs.reviewers.rules import RulesReviewer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memd.jobs.ports import JobProfile, Worker

_RULES = RulesReviewer()


def workers_for(profile: JobProfile) -> Sequence[Worker]:
    """Those that can be used in this profile: what ``[review] reviewer`` says, then ``fallback`` in its order.

    A client that reviews by itself and lets its time go by leaves the job to the fall-backs, and without any to ``rules``. None where
    nothing of what is set can be used: its jobs wait then.
    """
    review = profile.settings.review
    wanted = [kind for kind in (review.reviewer, *review.fallback) if kind != "off"]
    if wanted == ["client"]:
        wanted.append("rules")
    return [_RULES] if "rules" in wanted else []
