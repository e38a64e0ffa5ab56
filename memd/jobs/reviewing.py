"""Who reviews: the reviewers of a profile as the runner sees them.

What comes in: a profile's settings. What goes out: workers, the chosen one first. What must not be here: when they work, how they do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memd.jobs.ports import JobProfile, Worker


def workers_for(profile: JobProfile) -> Sequence[Worker]:
    """Those that can be used in this profile; none while there is no reviewer, and its jobs wait then."""
    del profile
    return ()
