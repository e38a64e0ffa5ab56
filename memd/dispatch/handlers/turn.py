"""``turn.*``: where a turn begins and ends.

What comes in: turn ids, the messages of a turn that ends. What goes out: the failure budget, what has changed in memory meanwhile, the
review that a turn's end brings about. What must not be here: what a turn counts for (``memd/sessions``, ``memd/jobs``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import trio

from memd.dispatch.call import Pending, after
from memd.dispatch.copies import said
from memd.dispatch.table import Method
from memd.jobs import Source, TurnEnd, records_of, texts_of
from memd.protocol import params as p, results, types

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from memd.dispatch.context import Context
    from memd.jobs import Said
    from memd.profile.stored import MessageRecord, TurnRecord
    from memd.sessions import Session


def turn_begin(context: Context, params: p.TurnBegin) -> Pending:
    """Open a turn: a new failure budget, and the text on changes for the turn's prompt."""
    session = context.session(params.session)
    sessions = context.services.sessions
    ticket = sessions.begin_turn(session, params.turn, user=params.user, counted=context.may("add"))
    context.services.jobs.turn_began(session.id, session.endpoint)
    turn = session.turn_for(params.turn)

    def begun() -> results.TurnBegun:
        count = turn.budget.count(context.services.clock()) if turn is not None else 0
        return results.TurnBegun(
            turn=params.turn,
            failures=types.Failures(count=count, limit=context.profile.settings.turn.failure_budget),
            changes_text=sessions.changes(session, context.profile),
        )

    return after(ticket, begun)


def turn_end(context: Context, params: p.TurnEnd) -> Pending | Coroutine[Any, Any, results.TurnEnded]:
    """End a turn. Its messages, its count and the review that is due become durable in one with it.

    It has ended at once, so that what is sent behind it finds it so; masking long messages takes a thread.
    """
    session, sessions, jobs = context.session(params.session), context.services.sessions, context.services.jobs
    before = session.completed
    turns = sessions.end_turn(session, params.turn, params.status)
    counts = session.completed > before
    ended = TurnEnd(context.profile.name, session.id, params.turn, counts=counts, endpoint=session.endpoint)
    ending = _Ending(context, session, ended, turns)
    if not turns:
        return ending.save(())
    jobs.turn_over(session.id)
    if not (context.may("add") and jobs.keeps_messages(context.profile)):
        return ending.save(())
    messages = said(params.messages)
    first = jobs.counting.take_numbers(context.profile.name, session.id, len(messages))
    source = Source(
        context.profile.name, session.id, first, context.services.clock(), turn=params.turn, user_turn=turns[0].user
    )
    texts = texts_of(messages)
    if context.profile.masking_is_slow(texts):
        return ending.mask_and_save(messages, texts, source)
    return ending.save(records_of(messages, context.profile.mask_all(texts), source))


@dataclass(frozen=True, slots=True)
class _Ending:
    """A turn that has ended and has to become durable. ``turns`` is empty if it had ended before."""

    context: Context
    session: Session
    ended: TurnEnd
    turns: Sequence[TurnRecord]

    async def mask_and_save(self, messages: Sequence[Said], texts: Sequence[str], source: Source) -> results.TurnEnded:
        with trio.CancelScope(
            shield=True
        ):  # the turn has ended already: a caller that gives up must not lose its messages
            masked = await self.context.profile.masked(texts)
        pending = self.save(records_of(messages, masked, source))
        await pending.ticket.wait()
        return self._answer()

    def save(self, messages: Sequence[MessageRecord]) -> Pending:
        services = self.context.services
        counted = services.jobs.turn_ended(self.context.profile, self.ended, messages, repeated=not self.turns)
        ticket = services.sessions.save_turns(self.session, self.turns, counted.work)
        ticket.on_done(lambda done: services.jobs.settle(counted, durable=done.error is None))
        return after(ticket, self._answer)

    def _answer(self) -> results.TurnEnded:
        jobs = self.context.services.jobs
        job = jobs.counting.planned(self.ended.profile, self.ended.session, self.ended.turn)
        return results.TurnEnded(
            review=None if job is None else results.ReviewPlan(job=job, placement=jobs.placement(job))
        )


METHODS = (
    Method("turn.begin", p.TurnBegin, results.TurnBegun, "read", turn_begin, "deferred"),
    Method("turn.end", p.TurnEnd, results.TurnEnded, "read", turn_end, "task"),
)
