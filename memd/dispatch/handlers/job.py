"""``jobs.*``: reviews and flushes, as people and clients look at them.

What comes in: ids. What goes out: jobs. What must not be here: when a job runs, what it commits (``memd/jobs``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memd.dispatch import translate
from memd.dispatch.table import Method
from memd.errors import InvalidParams
from memd.protocol import jobs as p

if TYPE_CHECKING:
    from memd.dispatch.context import Context
    from memd.profile.stored import JobRecord

CANCELLED = "cancelled by a client"


async def list_jobs(context: Context, params: p.JobsList) -> p.JobList:
    """The newest."""
    queue = context.services.jobs.queue
    found = await queue.listed(context.profile.name, session=params.session, limit=params.limit)
    return p.JobList(jobs=[told(context, job) for job in found])


async def show(context: Context, params: p.JobsShow) -> p.Job:
    """One of them."""
    return told(context, await context.services.jobs.queue.get(context.profile.name, params.job))


async def wait(context: Context, params: p.JobsWait) -> p.Job:
    """One of them, once it has ended."""
    jobs = context.services.jobs
    return told(context, await jobs.wait(context.profile.name, params.job, params.timeout_ms / 1000))


async def cancel(context: Context, params: p.JobsCancel) -> p.Job:
    """End it, wherever it is."""
    jobs = context.services.jobs
    return told(context, await jobs.cancel(context.profile.name, params.job, reason=params.reason or CANCELLED))


async def run(context: Context, params: p.JobsRun) -> p.Job:
    """Have one run now."""
    if params.job is not None and params.session is not None:
        msg = "job, session: give one of the two"
        raise InvalidParams(msg, field="job")
    session = context.session(params.session).id if params.session is not None else None
    return told(context, await context.services.jobs.run_now(context.profile, job=params.job, session=session))


def told(context: Context, job: JobRecord) -> p.Job:
    """A job as the wire has it."""
    limit = context.profile.settings.turn.failure_budget
    return translate.job(job, context.profile.mask, failure_limit=limit)


METHODS = (
    Method("jobs.list", p.JobsList, p.JobList, "read", list_jobs, "task"),
    Method("jobs.show", p.JobsShow, p.Job, "read", show, "task"),
    Method("jobs.wait", p.JobsWait, p.Job, "read", wait, "task", waits=True),
    Method("jobs.cancel", p.JobsCancel, p.Job, "add", cancel, "task"),
    Method("jobs.run", p.JobsRun, p.Job, "add", run, "task", once=True),
)
