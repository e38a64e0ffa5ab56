"""``turn.*``: where a turn begins and ends.

What comes in: turn ids. What goes out: the failure budget, what has changed in memory meanwhile. What must not be here:
what a turn counts for (``memd/sessions``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memd.dispatch.call import Pending, after
from memd.dispatch.table import Method
from memd.protocol import params as p, results, types

if TYPE_CHECKING:
    from memd.dispatch.context import Context


def turn_begin(context: Context, params: p.TurnBegin) -> Pending:
    """Open a turn: a new failure budget, and the text on changes for the turn's prompt."""
    session = context.session(params.session)
    sessions = context.services.sessions
    ticket = sessions.begin_turn(session, params.turn, user=params.user, counted=context.may("add"))
    turn = session.turn_for(params.turn)

    def begun() -> results.TurnBegun:
        count = turn.budget.count(context.services.clock()) if turn is not None else 0
        return results.TurnBegun(
            turn=params.turn,
            failures=types.Failures(count=count, limit=context.profile.settings.turn.failure_budget),
            changes_text=sessions.changes(session, context.profile),
        )

    return after(ticket, begun)


def turn_end(context: Context, params: p.TurnEnd) -> Pending:
    """End a turn. Reviews are not there yet, so none is planned."""
    session = context.session(params.session)
    sessions = context.services.sessions
    return after(
        sessions.save_turns(session, sessions.end_turn(session, params.turn, params.status)), results.TurnEnded
    )


METHODS = (
    Method("turn.begin", p.TurnBegin, results.TurnBegun, "read", turn_begin, "deferred"),
    Method("turn.end", p.TurnEnd, results.TurnEnded, "read", turn_end, "deferred"),
)
