"""``history.*``: what was changed, by whom, and taking it back.

What comes in: revision numbers and selectors. What goes out: revisions, differences, what an undo did. What must not be
here: how history is stored or inverted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from memd.dispatch import translate
from memd.dispatch.table import Method
from memd.dispatch.withholding import hide
from memd.dispatch.writes import fingerprint
from memd.errors import Conflict, InvalidParams
from memd.profile.history import Chosen, Selector
from memd.protocol import params as p, results, types

if TYPE_CHECKING:
    from memd.dispatch.context import Context


async def list_revisions(context: Context, params: p.HistoryList) -> results.RevisionList:
    """Revisions, newest first."""
    rows, following = await context.profile.list_revisions(
        Chosen(params.session, params.job, params.origin, params.entry),
        target=params.target,
        limit=params.limit,
        before=params.before,
    )
    return results.RevisionList(
        revisions=[translate.revision(row, context.profile.mask) for row in rows], next=following
    )


async def show(context: Context, params: p.HistoryShow) -> results.RevisionShown:
    """One revision, and what stood after it."""
    row, entries = await context.profile.show_revision(params.revision)
    stores = types.PerStore(
        memory=[translate.past_entry(item, context.profile.mask) for item in entries["memory"]],
        user=[translate.past_entry(item, context.profile.mask) for item in entries["user"]],
    )
    return results.RevisionShown(**translate.revision_fields(row, context.profile.mask), entries=stores)


async def diff(context: Context, params: p.HistoryDiff) -> results.DiffResult:
    """What differs between two revisions of a store."""
    text, changes = await context.profile.diff(params.target, params.from_, params.to)
    mask = context.profile.mask
    return results.DiffResult(text=mask(text), changes=translate.target_changes(changes, mask))


async def undo(context: Context, params: p.HistoryUndo) -> results.UndoResult:
    """Take changes back."""
    try:
        return await _undo(context, params, redo=False)
    except Conflict as error:
        raise hide(context, error) from None


async def redo(context: Context, params: p.HistoryRedo) -> results.UndoResult:
    """Take an undo back."""
    try:
        return await _undo(context, params, redo=True)
    except Conflict as error:
        raise hide(context, error) from None


async def restore(context: Context, params: p.HistoryRestore) -> results.UndoResult:
    """Make a store what it was."""
    try:
        return await _restore(context, params)
    except Conflict as error:
        raise hide(context, error) from None


async def _restore(context: Context, params: p.HistoryRestore) -> results.UndoResult:
    writing = context.writing(params)
    if params.preview:
        planned = await context.profile.preview_restore(
            params.target, params.revision, writing.caller, if_revision=params.if_revision
        )
        return translate.undo_result(planned, context.profile.mask)
    undone = await context.profile.restore(
        params.target,
        params.revision,
        writing.caller,
        request_id=params.request_id,
        fingerprint=fingerprint("history.restore", params),
        if_revision=params.if_revision,
    )
    return translate.undo_result(undone, context.profile.mask)


async def redact(context: Context, params: p.HistoryRedact) -> results.Redacted:
    """Take a text out of everything memd keeps."""
    if (params.text is None) == (params.revision is None):
        msg = "text: give either the text to redact or the revision that holds it"
        raise InvalidParams(msg, field="text")
    if params.if_revision is not None:
        msg = "if_revision: a redaction concerns every store and all of history; leave it out"
        raise InvalidParams(msg, field="if_revision")
    writing = context.writing(params)
    done = await context.services.control.redact(
        context.profile.name, writing.caller, text=params.text, revision=params.revision
    )
    return results.Redacted(
        tables=dict(done.tables),
        revisions=list(done.revisions),
        notices=[translate.notice(item) for item in (*done.notices, *writing.notices)],
    )


async def _undo(context: Context, params: p.SelectorParams, *, redo: bool) -> results.UndoResult:
    selector, mark = _selector(params), fingerprint("history.redo" if redo else "history.undo", params)
    if selector.session is not None:  # it says which changes, and may be closed long since
        params = msgspec.structs.replace(params, session=None, turn=None)
    writing = context.writing(params)
    if params.preview:
        planned = await context.profile.preview_undo(
            selector, writing.caller, redo=redo, if_revision=params.if_revision
        )
        return translate.undo_result(planned, context.profile.mask)
    undone = await context.profile.undo(
        selector,
        writing.caller,
        redo=redo,
        request_id=params.request_id,
        fingerprint=mark,
        if_revision=params.if_revision,
    )
    return translate.undo_result(undone, context.profile.mask)


def _selector(params: p.SelectorParams) -> Selector:
    """Which changes are meant; ``session`` selects only where nothing else does, else it says who asks.

    Raises:
        InvalidParams: None or several are named.
    """
    named = [name for name in ("revision", "job", "last") if getattr(params, name) is not None]
    if len(named) > 1:
        msg = f"{named[1]}: give one of revision, job, session or last, not several"
        raise InvalidParams(msg, field=named[1])
    if not named and params.session is None:
        msg = "revision: one of revision, job, session or last says what to undo"
        raise InvalidParams(msg, field="revision")
    session = None if named else params.session
    return Selector(revision=params.revision, session=session, job=params.job, last=params.last)


METHODS = (
    Method("history.list", p.HistoryList, results.RevisionList, "read", list_revisions, "task"),
    Method("history.show", p.HistoryShow, results.RevisionShown, "read", show, "task"),
    Method("history.diff", p.HistoryDiff, results.DiffResult, "read", diff, "task"),
    Method("history.undo", p.HistoryUndo, results.UndoResult, "full", undo, "task", mutation=True),
    Method("history.redo", p.HistoryRedo, results.UndoResult, "full", redo, "task", mutation=True),
    Method("history.restore", p.HistoryRestore, results.UndoResult, "full", restore, "task", mutation=True),
    Method("history.redact", p.HistoryRedact, results.Redacted, "operator", redact, "task", mutation=True),
)
