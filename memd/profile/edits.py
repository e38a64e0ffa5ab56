"""The four verbs on a document, one by one or as a batch.

What comes in: a document, operations, limits, and who does it when. What goes out: ``Applied`` with the new document
and what happened in words, or an error after which nothing has changed. What must not be here: I/O, scanning, policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memd.errors import Conflict, InvalidContent, InvalidParams, OverLimit, WireError
from memd.profile import layout
from memd.profile.content import accept, accept_edited, has_surrogates
from memd.profile.entries import Entry, as_text, strip_outer
from memd.profile.foreign import foreign_entry
from memd.profile.matching import describe, find
from memd.profile.near import near_duplicate
from memd.profile.values import Applied, Change, Limits, Notice, Operation, Stamp, Step, Usage, usage_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memd.profile.entries import Document
    from memd.profile.matching import Match
    from memd.profile.values import Action


@dataclass(frozen=True, slots=True)
class _Frame:
    """What every verb needs beside the document and the operation."""

    stamp: Stamp
    new_id: Callable[[str], str]


def apply_operation(
    document: Document, operation: Operation, *, limits: Limits, stamp: Stamp, new_id: Callable[[str], str]
) -> Applied:
    """Do one thing to a store.

    Args:
        document: The store as it is.
        operation: What to do.
        limits: The store's bounds.
        stamp: When and by whom.
        new_id: Makes the id of a new entry from its text.

    Raises:
        InvalidContent: The text cannot be an entry.
        NotFound: Nothing matches.
        AmbiguousMatch: More than one place matches.
        OverLimit: The store would grow over its limit.
        Conflict: ``if_hash`` is not the entry's.
        InvalidParams: A field is missing or empty.
    """
    after, step = _VERBS[operation.action](document, operation, _Frame(stamp, new_id))
    usage = check_limits(document, after, limits)
    return Applied(after, (step,), f"{step.message} {usage_line(usage)}", step.notices)


def apply_batch(
    document: Document,
    operations: Sequence[Operation],
    *,
    limits: Limits,
    stamp: Stamp,
    new_id: Callable[[str], str],
) -> Applied:
    """Do several things to one store, all or nothing; the limit holds for the final state only.

    Raises:
        WireError: The failing operation's own error, as in ``apply_operation``, with ``applied``, ``index`` and
            ``results`` in its data. Over the limit, ``index`` is the last operation that grows the store.
    """
    frame = _Frame(stamp, new_id)
    after, steps = document, []
    sizes = [(document.chars, len(document.entries))]
    for index, operation in enumerate(operations):
        try:
            after, step = _VERBS[operation.action](after, operation, frame)
        except WireError as error:
            raise aborted(error, index, len(operations), document) from None
        steps.append(step)
        sizes.append((after.chars, len(after.entries)))
    try:
        usage = check_limits(document, after, limits)
    except OverLimit as error:
        measure = 0 if after.chars > max(limits.chars, document.chars) else 1
        index = max(at for at in range(len(operations)) if sizes[at + 1][measure] > sizes[at][measure])
        raise aborted(error, index, len(operations), document) from None
    notices = tuple(notice for step in steps for notice in step.notices)
    return Applied(after, tuple(steps), f"{_batch_message(steps)} {usage_line(usage)}", notices)


def check_limits(before: Document, after: Document, limits: Limits) -> Usage:
    """The usage after a change.

    Raises:
        OverLimit: The change makes the store larger than it was and larger than it may be.
    """
    usage = usage_of(after.chars, limits)
    if usage.chars > limits.chars and usage.chars > before.chars:
        excess = usage.chars - limits.chars
        msg = f"the store would hold {usage.chars:,} of {limits.chars:,} chars, {excess:,} too many"
        raise _over_limit(msg, excess, before, limits)
    count = len(after.entries)
    if count > limits.entries and count > len(before.entries):
        excess = count - limits.entries
        msg = f"the store would hold {count:,} entries and may hold {limits.entries:,}, {excess:,} too many"
        raise _over_limit(msg, excess, before, limits)
    return usage


def usage_line(usage: Usage) -> str:
    """How full a store is, in words."""
    line = f"{usage.percent}% — {usage.chars:,}/{usage.limit:,} chars"
    if usage.chars > usage.limit:
        return line + ", over the limit."
    return line + (", nearly full." if usage.near_limit else ".")


def usage_map(usage: Usage) -> dict[str, int | bool]:
    """Usage as error data."""
    return {
        "chars": usage.chars,
        "limit": usage.limit,
        "free": usage.free,
        "percent": usage.percent,
        "near_limit": usage.near_limit,
    }


def _add(document: Document, operation: Operation, frame: _Frame) -> tuple[Document, Step]:
    text = accept(_given(operation.content, "content"))
    for entry in document.entries:
        if entry.text == text:
            return document, Step("unchanged", entry.id, (), "Already stored; nothing changed.")
    notices: tuple[Notice, ...] = ()
    near = near_duplicate(text, document.entries)
    if near is not None:
        message = f"The entry {near.id} says nearly the same; replace or remove one of them if they mean the same."
        notices = (Notice("near_duplicate", message, describe(near)),)
    stamp = frame.stamp
    raw = layout.in_style(text, document.newline)
    entry = Entry(raw, text, frame.new_id(text), stamp.us, stamp.us, stamp.origin)
    place = len(document.entries)
    change = Change("add", entry.id, None, text, place, stamp.us, stamp.origin)
    return layout.insert(document, place, entry), Step("applied", entry.id, (change,), "Added.", notices)


def _replace(document: Document, operation: Operation, frame: _Frame) -> tuple[Document, Step]:
    text = accept(_given(operation.content, "content"))
    match = _find_whole(document, operation, text)
    found = _folded_notice(document, match)
    return _rewrite(document, match.index, text, operation.action, frame, found)


def _edit(document: Document, operation: Operation, frame: _Frame) -> tuple[Document, Step]:
    old_text = as_text(_given(operation.old_text, "old_text"))
    new_text = as_text(_given(operation.new_text, "new_text", empty=True))
    if has_surrogates(new_text):
        msg = "new_text holds a lone surrogate, which is no character; send valid Unicode text"
        raise InvalidContent(msg)
    match = find(document, entry_id=operation.id, old_text=old_text, whole=False)
    entry = document.entries[match.index]
    _check_hash(entry, operation)
    text = accept_edited(entry.text[: match.start] + new_text + entry.text[match.end :])
    if text:
        return _rewrite(document, match.index, text, operation.action, frame, ())
    message = "Removed: the edit left nothing of the entry."
    return layout.delete(document, match.index), Step("applied", entry.id, (_removal(entry, match.index),), message)


def _remove(document: Document, operation: Operation, _: _Frame) -> tuple[Document, Step]:
    match = _find_whole(document, operation, None)
    notices = _folded_notice(document, match)
    entry = document.entries[match.index]
    changes = []
    # From the last to the first, so that each place is also the one in the document as it was.
    for index in reversed(match.indices):
        changes.append(_removal(document.entries[index], index))
        document = layout.delete(document, index)
    message = "Removed." if len(changes) == 1 else f"Removed {len(changes)} identical entries."
    return document, Step("applied", entry.id, tuple(changes), message, notices)


_VERBS = {"add": _add, "replace": _replace, "edit": _edit, "remove": _remove}


def _rewrite(
    document: Document, index: int, text: str, action: Action, frame: _Frame, notices: tuple[Notice, ...]
) -> tuple[Document, Step]:
    """Give an entry another text; entries that it becomes equal to are merged into it."""
    entry = document.entries[index]
    if entry.text == text:
        return document, Step("unchanged", entry.id, (), "It already says that; nothing changed.", notices)
    verb = "Replaced" if action == "replace" else "Edited"
    twins = [at for at, other in enumerate(document.entries) if other.text == text]
    changed = replace(
        entry,
        raw=layout.in_style(text, document.newline),
        text=text,
        updated_us=frame.stamp.us,
        # A foreign text of which a part was edited is still foreign: the guard against swallowing it goes by origin.
        origin=entry.origin if action == "edit" and foreign_entry(entry) else frame.stamp.origin,
    )
    changes = [Change(action, entry.id, entry.text, text, index, entry.created_us, entry.origin)]
    document = layout.exchange(document, index, changed)
    for at in reversed(twins):
        changes.append(_removal(document.entries[at], at))
        document = layout.delete(document, at)
    if not twins:
        return document, Step("applied", entry.id, tuple(changes), f"{verb}.", notices)
    merged = f"{verb}. The text equals another entry; the two are one now, with the id {entry.id}."
    data = {"id": entry.id, "merged": [change.id for change in changes[1:]]}
    notices = (*notices, Notice("merged", "The new text equals another entry; the two are one now.", data))
    return document, Step("applied", entry.id, tuple(changes), merged, notices)


def _find_whole(document: Document, operation: Operation, wanted: str | None) -> Match:
    """The entry that replace or remove is about, its hash checked."""
    old_text = strip_outer(as_text(operation.old_text or "")) or None
    if old_text is None and operation.id is None:
        msg = "old_text or id is needed to say which entry is meant"
        raise InvalidParams(msg, field="old_text")
    match = find(document, entry_id=operation.id, old_text=old_text, whole=True, wanted=wanted)
    _check_hash(document.entries[match.index], operation)
    return match


def _check_hash(entry: Entry, operation: Operation) -> None:
    if operation.if_hash is not None and operation.if_hash != entry.hash:
        msg = f"the entry {entry.id} has changed since you read it; its text now is in data.current"
        raise Conflict(msg, reason="if_hash", current=entry.shown, id=entry.id)


def _folded_notice(document: Document, match: Match) -> tuple[Notice, ...]:
    if not match.folded:
        return ()
    found = describe(document.entries[match.index])
    message = f"old_text matched but for quotes, dashes or blanks; the entry said: {found['text']}"
    return (Notice("folded_match", message, found),)


def _given(value: str | None, name: str, *, empty: bool = False) -> str:
    if value is None or not (value or empty or name == "content"):
        msg = f"{name} is needed"
        raise InvalidParams(msg, field=name)
    return value


def _removal(entry: Entry, place: int) -> Change:
    return Change("remove", entry.id, entry.text, None, place, entry.created_us, entry.origin)


def _over_limit(msg: str, excess: int, before: Document, limits: Limits) -> OverLimit:
    advice = "remove, shorten or merge entries in the same batch"
    entries = [{"id": entry.id, "chars": entry.chars, "text": entry.shown} for entry in before.entries]
    usage = usage_map(usage_of(before.chars, limits))
    return OverLimit(f"{msg}; {advice}", excess=excess, usage=usage, entries=entries, advice=advice)


def aborted(error: WireError, index: int, count: int, document: Document) -> WireError:
    """The error of a batch from the error of one operation; what it shows is the store as it still is."""
    known = {entry.id for entry in document.entries}
    extra = {
        key: [item for item in value if item["id"] in known] if key in {"nearest", "matches"} else value
        for key, value in error.extra.items()
    }
    results = [{"index": at, "status": "refused" if at == index else "not_tried"} for at in range(count)]
    msg = f"operation {index + 1} of {count} failed and nothing was applied: {error.message}"
    return type(error)(msg, outcome=error.outcome, **{**extra, "applied": 0, "index": index, "results": results})


def _batch_message(steps: Sequence[Step]) -> str:
    applied = sum(1 for step in steps if step.status == "applied")
    if applied == len(steps):
        return f"All {applied} operations applied." if applied != 1 else "The operation is applied."
    return f"{applied} of {len(steps)} operations applied, the others made no difference."
