"""Domain values to wire structs: the only place where the one becomes the other.

What comes in: entries, changes, usages, notices, revisions, snapshots. What goes out: ``memd.protocol`` structs. What must
not be here: decisions; anything that is not a change of shape.

Texts leave as people see them: bytes that are not UTF-8 as U+FFFD.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from memd.profile.content import display
from memd.profile.snapshot import withheld_marker
from memd.protocol import approval, jobs, results, types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from memd.dispatch.ports import Profile
    from memd.profile.approvals import Listed
    from memd.profile.entries import Entry
    from memd.profile.history import Explanation, RevisionRow
    from memd.profile.scans import Finding
    from memd.profile.stored import JobRecord, RefusedRecord
    from memd.profile.values import (
        Change,
        Committed,
        Notice,
        Operation,
        StoreState,
        Target,
        TargetChange,
        Undone,
        Usage,
    )
    from memd.sessions import FrozenSnapshot
    from memd.store.records import ChangeRecord, EventRecord

    Mask = Callable[[str], str]

T = TypeVar("T")
NONE: Mapping[str, Sequence[Finding]] = MappingProxyType({})


def shown(text: str | None) -> str | None:
    """A text that can be sent, or none."""
    return text if text is None or text.isascii() else display(text)


def _decoded(data: bytes | None, mask: Mask) -> str | None:
    return None if data is None else shown(mask(data.decode("utf-8", "surrogateescape")))


def usage(value: Usage) -> types.Usage:
    """How full a store is."""
    return types.Usage(
        chars=value.chars,
        limit=value.limit,
        free=value.free,
        percent=value.percent,
        near_limit=value.near_limit,
    )


def usage_line(value: Usage) -> str:
    """How full a store is, for a model: ``31% — 688/2,200 chars``."""
    return f"{value.percent}% — {value.chars:,}/{value.limit:,} chars"


def finding(value: Finding) -> types.Finding:
    """One thing that the scan found."""
    return types.Finding(
        rule=value.rule,
        class_=value.class_,
        severity=value.severity,
        start=value.start,
        end=value.end,
        reason=value.reason,
    )


def as_it_is(text: str) -> str:
    """The text, with nothing masked."""
    return text


def entry(value: Entry, findings: Sequence[Finding] = ()) -> types.Entry:
    """One entry, and what the scan finds in it."""
    return types.Entry(
        id=value.id,
        text=value.shown,
        chars=value.chars,
        hash=value.hash,
        origin=value.origin,
        created_at=types.rfc3339(value.created_us),
        created_us=value.created_us,
        updated_at=types.rfc3339(value.updated_us),
        updated_us=value.updated_us,
        findings=[finding(one) for one in findings],
        undecodable=value.undecodable,
    )


def past_entry(value: Entry, mask: Mask) -> types.Entry:
    """One entry of the past, with its secrets masked; the hash is that of what is shown."""
    text = mask(value.text)
    return entry(value if text == value.text else replace(value, raw=text, text=text))


def entry_ref(value: Entry, state: StoreState) -> types.EntryRef:
    """One entry as a model gets it: what is kept out of prompts is named and not shown."""
    rule = state.withheld.get(value.id)
    text = value.shown if rule is None else withheld_marker(value.id, rule)
    return types.EntryRef(id=value.id, chars=value.chars, text=text)


def notice(value: Notice) -> types.Notice:
    """Something worth telling."""
    return types.Notice(name=value.name, message=value.message, data=dict(value.data))


def change(value: Change, target: Target, mask: Mask = as_it_is) -> types.Change:
    """One change."""
    before, after = (shown(text and mask(text)) for text in (value.before, value.after))
    return types.Change(action=value.action, target=target, id=value.id, before=before, after=after)


def target_changes(values: Iterable[TargetChange], mask: Mask) -> list[types.Change]:
    """Changes of both stores, with secrets masked."""
    return [change(value.change, value.target, mask) for value in values]


def mutation(
    value: Committed, mask: Mask, notices: Sequence[Notice] = (), findings: Mapping[str, Sequence[Finding]] = NONE
) -> types.Mutation:
    """The answer to a change; ``notices`` are those of dispatch itself, ``findings`` those of the store, by entry id."""
    return types.Mutation(**_mutation_fields(value, mask, notices, findings))


def apply_result(value: Committed, mask: Mask, notices: Sequence[Notice] = ()) -> types.ApplyResult:
    """The answer to a batch."""
    rows = [types.OpResult(index=index, status=step.status, id=step.id) for index, step in enumerate(value.steps)]
    fields = _mutation_fields(value, mask, notices, NONE)
    fields["entry"] = None
    return types.ApplyResult(**fields, applied=sum(row.status == "applied" for row in rows), results=rows)


def _mutation_fields(
    value: Committed, mask: Mask, notices: Sequence[Notice], findings: Mapping[str, Sequence[Finding]]
) -> dict[str, Any]:
    return {
        "changed": value.changed,
        "target": value.target,
        "revision": value.revision,
        "changes": [change(item, value.target, mask) for item in value.changes],
        "usage": usage(value.usage),
        "message": value.message,
        "notices": [notice(item) for item in (*value.notices, *notices)],
        "replayed": value.replayed,
        "entry": None if value.entry is None else entry(value.entry, findings.get(value.entry.id, ())),
        "staged": value.staged,
    }


def undo_result(value: Undone, mask: Mask) -> results.UndoResult:
    """The answer to undo, redo and restore."""
    return results.UndoResult(
        revisions=list(value.revisions),
        changes=target_changes(value.changes, mask),
        conflicts=[results.UndoConflict(id=entry_id, reason=mask(reason)) for entry_id, reason in value.conflicts],
        usage=some_stores({target: usage(item) for target, item in value.usage.items()}),
        replayed=value.replayed,
        revision=value.revisions[-1] if value.revisions else None,
    )


def some_stores(values: Mapping[Target, T]) -> types.SomeStores[T]:
    """One value for each store that is concerned."""
    return types.SomeStores(memory=values.get("memory"), user=values.get("user"))


def store_content(value: StoreState) -> results.StoreContent:
    """A store as it is now."""
    return results.StoreContent(
        entries=[entry(item, value.findings.get(item.id, ())) for item in value.document.entries],
        usage=usage(value.usage),
        revision=value.revision,
        state=value.condition,
        path=value.path,
        detail=value.detail or None,
    )


def store_info(value: StoreState) -> types.StoreInfo:
    """Where a store stands."""
    return types.StoreInfo(
        path=value.path,
        state=value.condition,
        usage=usage(value.usage),
        revision=value.revision,
        detail=value.detail or None,
    )


def store_infos(profile: Profile) -> types.PerStore[types.StoreInfo]:
    """Where both stores of a profile stand."""
    return types.PerStore(memory=store_info(profile.state("memory")), user=store_info(profile.state("user")))


def profile_info(profile: Profile) -> results.ProfileInfo:
    """A profile and where it lives."""
    return results.ProfileInfo(name=profile.name, dir=profile.dir, stores=store_infos(profile))


def snapshot(value: FrozenSnapshot) -> types.Snapshot:
    """The frozen bytes of a session."""
    return types.Snapshot(
        id=value.id,
        text=value.text,
        blocks=_per_store(value.blocks),
        headers=_per_store(value.headers),
        revisions=_per_store(value.revisions),
        withheld=[types.Withheld(target=item.target, id=item.id, rule=item.rule) for item in value.withheld],
        left_out=_per_store(value.left_out),
    )


def _per_store(values: Mapping[str, T]) -> types.PerStore[T]:
    return types.PerStore(memory=values["memory"], user=values["user"])


def revision(row: RevisionRow, mask: Mask) -> types.Revision:
    """One accepted change with its provenance, its secrets masked."""
    return types.Revision(**revision_fields(row, mask))


def revision_fields(row: RevisionRow, mask: Mask) -> dict[str, Any]:
    """The fields of a revision, for the structs that have more of them."""
    record = row.record
    return {
        "revision": record.revision,
        "target": row.target,
        "at": types.rfc3339(record.us),
        "us": record.us,
        "origin": record.origin,
        "client": record.client,
        "uid": record.uid,
        "pid": record.pid,
        "changes": [_change_record(item, row.target, mask) for item in record.changes],
        "session": record.session,
        "turn": record.turn,
        "job": record.job,
        "reason": record.reason and mask(record.reason),
        "undone_by": record.undone_by,
        "kind": record.kind,
        "undoes": list(record.undoes),
        "redacted": any(item.redacted for item in record.changes),
    }


def _change_record(value: ChangeRecord, target: Target, mask: Mask) -> types.Change:
    return types.Change(
        action=value.action,  # type: ignore[arg-type]  # only actions are stored
        target=target,
        id=value.id,
        before=_decoded(value.before, mask),
        after=_decoded(value.after, mask),
    )


def proposal(listed: Listed, now_us: int, mask: Mask) -> approval.Proposal:
    """A change that waits for a person, tried out."""
    value, trial = listed.proposal, listed.trial
    said = trial.problem or value.problem if value.is_open else str(value.settled.get("reason") or "")
    return approval.Proposal(
        id=value.id,
        state=value.state if not value.is_open else "needs_review" if trial.problem else "pending",
        target=value.target,
        operations=[_operation(one, mask) for one in value.operations],
        diff=display(mask(trial.diff)) if value.is_open else "",
        findings=[finding(one) for one in value.findings],
        origin=value.origin,
        base=value.base,
        at=types.rfc3339(value.us),
        us=value.us,
        age_s=value.age_s(now_us),
        client=value.client,
        job=value.job,
        session=value.session,
        reason=mask(said) or None,
        proposed=value.reason and mask(value.reason),
    )


def _operation(value: Operation, mask: Mask) -> types.Op:
    content, old_text, new_text = (
        shown(text and mask(text)) for text in (value.content, value.old_text, value.new_text)
    )
    return types.Op(
        action=value.action,
        content=content,
        old_text=old_text,
        new_text=new_text,
        id=value.id,
        if_hash=value.if_hash,
    )


def job(value: JobRecord, mask: Mask, *, failure_limit: int) -> jobs.Job:
    """A review or a flush, its secrets masked; ``failure_limit`` is that of a turn."""
    return jobs.Job(
        id=value.id,
        kind=value.kind,  # type: ignore[arg-type]  # the journal holds words that memd wrote
        session=value.session,
        state=value.state,  # type: ignore[arg-type]  # as above
        outcome=value.outcome,  # type: ignore[arg-type]  # as above
        reviewer=value.reviewer,
        model=value.model,
        attempts=value.attempts,
        steps=value.steps,
        failures=types.Failures(count=value.failures, limit=failure_limit),
        tokens=jobs.Tokens(input=value.input, cached=value.cached, output=value.output),
        committed=list(value.committed),
        staged=list(value.staged),
        refused=[_refused(one, mask) for one in value.refused],
        conflicts=[_refused(one, mask) for one in value.conflicts],
        reason=value.reason and mask(value.reason),
        turns=value.turns,
        epoch=value.epoch,
        at=types.rfc3339(value.us),
        us=value.us,
        started_at=None if value.started_us is None else types.rfc3339(value.started_us),
        started_us=value.started_us,
        done_at=None if value.done_us is None else types.rfc3339(value.done_us),
        done_us=value.done_us,
        summary=display(mask(value.summary)),
    )


def _refused(value: RefusedRecord, mask: Mask) -> jobs.RefusedOp:
    operation = value.operation
    texts = [shown(text and mask(text)) for text in (operation.content, operation.old_text, operation.new_text)]
    action: Any = operation.action  # the journal holds words that memd wrote
    op = types.Op(
        action=action,
        content=texts[0],
        old_text=texts[1],
        new_text=texts[2],
        id=operation.id,
        if_hash=operation.if_hash,
    )
    return jobs.RefusedOp(op=op, name=value.name)


def explanation(value: Explanation, mask: Mask) -> results.ExplainMatch:
    """What became of a text."""
    return results.ExplainMatch(
        state=value.state,
        target=value.target,
        at=types.rfc3339(value.us),
        us=value.us,
        reason=mask(value.reason),
        id=value.id,
        revision=value.revision,
        rule=value.rule,
    )


def event(record: EventRecord) -> types.Event:
    """Something that happened."""
    return types.Event(
        seq=record.seq,
        at=types.rfc3339(record.us),
        us=record.us,
        topic=record.topic,
        profile=record.profile,
        data=record.data,
        target=record.target,  # type: ignore[arg-type]  # only targets are stored
        revision=record.revision,
        session=record.session,
        job=record.job,
        id=record.id,
    )
