"""``session.*``: frozen snapshots of agent sessions.

What comes in: session ids and keys. What goes out: snapshots, and what has changed since. What must not be here: how a
session is kept (``memd/sessions``).

A connection without access gets a session with an empty snapshot: the host's code need not know that memory is off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memd.dispatch import translate
from memd.dispatch.call import Pending, after
from memd.dispatch.handlers.compaction import flush_at_reset
from memd.dispatch.notices import snapshot_notices, store_notices
from memd.dispatch.table import Method
from memd.dispatch.tool_schema import tool_schema
from memd.protocol import params as p, results
from memd.sessions import EMPTY_SNAPSHOT, OpenRequest

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    import msgspec

    from memd.dispatch.context import Context
    from memd.profile.values import Notice
    from memd.protocol.types import Message
    from memd.sessions import Opened, Session


def session_open(
    context: Context, params: p.SessionOpen
) -> results.SessionOpened | Pending | Coroutine[Any, Any, results.SessionOpened]:
    """Open or resume a session; what others wrote until now is in a new snapshot."""
    if context.may("read") and context.profile.look_due():
        return _look_and_open(context, params)
    opened = _open(context, params)
    if opened.session.saved is None:
        return _opened(context, opened, params)
    return after(opened.session.saved, lambda: _opened(context, opened, params))


async def _look_and_open(context: Context, params: p.SessionOpen) -> results.SessionOpened:
    await context.profile.look()
    opened = _open(context, params)
    if opened.session.saved is not None:
        await opened.session.saved.wait()
    return _opened(context, opened, params)


def _open(context: Context, params: p.SessionOpen) -> Opened:
    request = OpenRequest(params.session, params.key, params.parent, params.endpoint)
    opened = context.services.sessions.open(context.profile, request, may_read=context.may("read"))
    context.watch(opened.session)
    return opened


def _opened(context: Context, opened: Opened, params: p.SessionOpen) -> results.SessionOpened:
    session = opened.session
    frozen, changes, pending = EMPTY_SNAPSHOT, "", (0, 0)
    notices: list[Notice] = []
    if context.may("read"):
        frozen = session.frozen or EMPTY_SNAPSHOT
        pending = context.profile.approvals.pending()
        changes = context.services.sessions.changes(session, context.profile)
        # Those of the daemon too, for a host that says no hello: rules that are switched off are told at each session's start.
        notices = [*store_notices(context.profile), *context.services.control.notices()]
        notices += snapshot_notices(frozen, redacted=session.redacted)
    return results.SessionOpened(
        session=session.id,
        resumed=opened.resumed,
        snapshot=translate.snapshot(frozen),
        stale=bool(changes),
        changes_text=changes,
        fence=results.Fence(open=session.fence.open, close=session.fence.close),
        tool=tool_schema(params.style),
        pending=results.Pending(count=pending[0], oldest_s=pending[1]),
        notices=[translate.notice(item) for item in notices],
    )


def session_snapshot(context: Context, params: p.SessionSnapshot) -> msgspec.Raw:
    """The frozen snapshot again."""
    session = context.session(params.session)
    services = context.services
    return services.answers.snapshot(context.profile, session, session.frozen or EMPTY_SNAPSHOT, services.sessions)


def session_refresh(
    context: Context, params: p.SessionRefresh
) -> Pending | Coroutine[Any, Any, results.SessionRefreshed]:
    """Freeze the stores anew, at a boundary of the conversation."""
    session = context.session(params.session)
    if context.profile.look_due():
        return _look_and_refresh(context, session)
    return after(context.services.sessions.refresh(session, context.profile), lambda: _refreshed(session))


async def _look_and_refresh(context: Context, session: Session) -> results.SessionRefreshed:
    await context.profile.look()
    await context.services.sessions.refresh(session, context.profile).wait()
    return _refreshed(session)


def _refreshed(session: Session) -> results.SessionRefreshed:
    return results.SessionRefreshed(snapshot=translate.snapshot(session.frozen or EMPTY_SNAPSHOT))


def session_close(context: Context, params: p.SessionClose) -> Pending | Coroutine[Any, Any, results.SessionClosed]:
    """Forget a session; what no review has seen of it is left to the profile, in one with that.

    What a session that is thrown away holds is flushed before, if it is handed over.
    """
    session = context.session(params.session)
    if params.reason == "reset" and params.messages and context.may("add"):
        return _flush_and_close(context, session, params.messages)
    return _close(context, session, None)


async def _flush_and_close(context: Context, session: Session, messages: Sequence[Message]) -> results.SessionClosed:
    flush = await flush_at_reset(context, session, messages)
    pending = _close(context, session, flush)
    await pending.ticket.wait()
    return pending.settle(pending.ticket)  # type: ignore[no-any-return]  # what _close makes


def _close(context: Context, session: Session, flush: str | None) -> Pending:
    jobs = context.services.jobs
    counted = jobs.session_closed(context.profile, session.id)
    ticket = context.services.sessions.close(session, counted.work)
    ticket.on_done(lambda done: jobs.settle(counted, durable=done.error is None))

    def closed() -> results.SessionClosed:
        if counted.job is None:
            return results.SessionClosed(flush=flush)
        plan = results.ReviewPlan(job=counted.job.id, placement=jobs.placement(counted.job.id))
        return results.SessionClosed(review=plan, flush=flush)

    return after(ticket, closed)


METHODS = (
    Method("session.open", p.SessionOpen, results.SessionOpened, "none", session_open, "task"),
    Method("session.snapshot", p.SessionSnapshot, results.SessionShown, "read", session_snapshot),
    Method("session.refresh", p.SessionRefresh, results.SessionRefreshed, "read", session_refresh, "task"),
    Method("session.close", p.SessionClose, results.SessionClosed, "read", session_close, "task"),
)
