"""Reviews and flushes: what is worth keeping of a conversation, found by a job that outlives its client.

What comes in: copies of messages, turns that end, compactions, settings. What goes out: jobs, and what they commit through the
profile's writer like anybody else. What must not be here: wire types, files, SQL.
"""

from __future__ import annotations

from memd.jobs.copies import Said, Source, records_of, texts_of
from memd.jobs.counting import TurnEnd
from memd.jobs.flushing import Compacting, Flushing, Receipt, receipt
from memd.jobs.ports import Found, JobCommit, Used
from memd.jobs.reviewers.client import offer, tried
from memd.jobs.service import Jobs, JobStatistics, Parts

__all__ = [
    "Compacting",
    "Flushing",
    "Found",
    "JobCommit",
    "JobStatistics",
    "Jobs",
    "Parts",
    "Receipt",
    "Said",
    "Source",
    "TurnEnd",
    "Used",
    "offer",
    "receipt",
    "records_of",
    "texts_of",
    "tried",
]
