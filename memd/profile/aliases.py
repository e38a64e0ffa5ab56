"""The one normaliser for operations, whatever names their sender is used to.

What comes in: plain maps as clients and models send them, the latter unchecked. What goes out: ``Operation`` values, or
``InvalidParams`` that names the field and the valid values. What must not be here: wire types, matching, content rules.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from memd.errors import InvalidParams
from memd.profile.content import has_surrogates
from memd.profile.values import TARGETS, Action, Operation, Target

ACTIONS: tuple[Action, ...] = ("add", "replace", "edit", "remove")
READ = "read"
BATCH_NAMES = frozenset({"apply", "batch"})

_OLD = {"old_text": ("old", "old_string")}
_CONTENT = {"content": ("new", "new_string", "new_text", "new_content", "text")}
ALIASES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "add": _CONTENT,
    "replace": {**_CONTENT, **_OLD},
    "edit": {"new_text": ("new", "new_string", "content"), **_OLD},
    "remove": _OLD,
}
"""For each action the names of its texts and what else they may be called."""

_FIELDS: Mapping[str, tuple[str, ...]] = {
    "add": ("content",),
    "replace": ("content", "old_text", "id", "if_hash"),
    "edit": ("old_text", "new_text", "id", "if_hash"),
    "remove": ("old_text", "id", "if_hash"),
}
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "add": ("content",),
    "replace": ("content",),
    "edit": ("old_text", "new_text"),
    "remove": (),
}
_ALL_NAMES = frozenset(
    name for table in ALIASES.values() for canonical, others in table.items() for name in (canonical, *others)
) | {"id"}


def normalise(arguments: Mapping[str, object], *, action: str | None) -> dict[str, object]:
    """The arguments under their own names, those that are null left out.

    Raises:
        InvalidParams: A field and its alias are both there and differ.
    """
    found = {key: value for key, value in arguments.items() if value is not None}
    for name, others in ALIASES.get(action or "", {}).items():
        for other in others:
            if other not in found:
                continue
            value = _text(found.pop(other), other)
            if _text(found.setdefault(name, value), name) != value:
                msg = f"{name} and {other} mean the same and differ; send one of them"
                raise InvalidParams(msg, field=name)
    return found


def operation(arguments: Mapping[str, object]) -> Operation:
    """One operation from its map, ``action`` included. Fields that the action does not use are ignored.

    Raises:
        InvalidParams: Unknown action, a missing field, or one that is no text; ``field`` names it.
    """
    action = _action(arguments.get("action"))
    found = normalise(arguments, action=action)
    given = {name: _text(found[name], name) for name in _FIELDS[action] if name in found}
    for name in ("id", "if_hash"):
        # An empty one is how a sender that has to fill in every field says that it has none.
        if not given.get(name, "-"):
            del given[name]
    for name in _NEEDED[action]:
        if name not in given:
            msg = f"{name} is needed for {action}"
            raise InvalidParams(msg, field=name)
    _check_place(action, given)
    return Operation(action, **given)


def tool_operations(arguments: object) -> tuple[Target, list[Operation], bool]:
    """What a model asks for: the store, the operations, and whether they are a batch.

    The arguments may be anything. Operations that were encoded twice, as a JSON string, are understood. For ``read``
    the list is empty and it is no batch.

    Raises:
        InvalidParams: The arguments make no sense; the message says what would. Nothing else is ever raised.
    """
    plain = _map(arguments, "arguments")
    action = plain.get("action")
    items = _items(plain.get("operations"))
    if not items:
        _refuse_empty_batch(action, items)
        target = _target(plain.get("target"))
        return target, [] if action == READ else [operation(plain)], False
    _refuse_both(plain)
    # An action beside the list is what its items inherit that name none themselves.
    unnamed = action is None or (isinstance(action, str) and action in {"", *BATCH_NAMES})
    inherited = None if unnamed else _action(action)
    target = _common_target(plain.get("target"), items)
    return target, [_item(index, item, inherited) for index, item in enumerate(items)], True


def _items(value: object) -> list[Mapping[str, object]] | None:
    """The operations of a batch as maps; None if there is no batch."""
    value = _decoded(value, "operations")
    if value is None or value == "":
        return None
    if isinstance(value, Mapping):
        value = [value]
    if not isinstance(value, list):
        msg = "operations must be an array of operations"
        raise InvalidParams(msg, field="operations")
    return [_map(item, f"operations[{index}]") for index, item in enumerate(value)]


def _item(index: int, item: Mapping[str, object], inherited: Action | None) -> Operation:
    """One operation of a batch; its errors name its place."""
    if item.get("action") is None and inherited is not None:
        item = {**item, "action": inherited}
    try:
        return operation(item)
    except InvalidParams as error:
        msg = f"operations[{index}]: {error.message}"
        field = f"operations[{index}].{error.extra.get('field')}"
        raise InvalidParams(msg, **{**error.extra, "field": field}) from None


def _check_place(action: str, given: Mapping[str, str]) -> None:
    """An entry has to be named by id or by text, and the text must not be empty."""
    if action == "add":
        return
    old_text = given.get("old_text", "")
    if action == "edit" and not old_text:
        msg = "old_text may not be empty; it is the part of the entry to exchange"
        raise InvalidParams(msg, field="old_text")
    if not (old_text.strip() or given.get("id") or action == "edit"):
        msg = f"old_text or id is needed for {action}, to say which entry is meant"
        raise InvalidParams(msg, field="old_text")


def _action(value: object) -> Action:
    for action in ACTIONS:
        if value == action:
            return action
    got = "is missing" if value is None else f"{_shown(value)} is unknown"
    msg = f"action {got}; it must be one of {', '.join(ACTIONS)}"
    raise InvalidParams(msg, field="action", valid=list(ACTIONS))


def _target(value: object, field: str = "target") -> Target:
    for target in TARGETS:
        if value == target:
            return target
    got = "is missing" if value is None else f"{_shown(value)} is unknown"
    msg = f"{field} {got}; it must be one of {', '.join(TARGETS)}"
    raise InvalidParams(msg, field=field, valid=list(TARGETS))


def _common_target(value: object, items: Sequence[Mapping[str, object]]) -> Target:
    """The one store of a batch, from the batch itself or from its items."""
    named = [
        (f"operations[{at}].target", item["target"]) for at, item in enumerate(items) if item.get("target") is not None
    ]
    if value is None and named:
        value = named[0][1]
    target = _target(value)
    for field, other in named:
        if _target(other, field) != target:
            msg = f"{field} is another store than the batch's {target}; send one batch for each store"
            raise InvalidParams(msg, field=field)
    return target


def _refuse_both(plain: Mapping[str, object]) -> None:
    """One operation and a list of them at once: which is meant cannot be known."""
    for name in sorted(_ALL_NAMES):
        if plain.get(name) is not None and plain[name] != "":
            msg = f"{name} stands beside operations; send either one operation or a list of them"
            raise InvalidParams(msg, field=name)


def _refuse_empty_batch(action: object, items: object) -> None:
    if (isinstance(action, str) and action in BATCH_NAMES) or (items is not None and action is None):
        msg = "operations is empty; it must be an array of at least one operation"
        raise InvalidParams(msg, field="operations")


def _map(value: object, field: str) -> Mapping[str, object]:
    value = _decoded(value, field)
    if not isinstance(value, Mapping):
        msg = f"{field} must be a map with an action and its texts, not {_shown(value)}"
        raise InvalidParams(msg, field=field)
    return {key: item for key, item in value.items() if isinstance(key, str)}


def _decoded(value: object, field: str) -> Any:
    """The value itself, or what a JSON string of an array or map holds."""
    if not isinstance(value, str) or value.lstrip()[:1] not in {"[", "{"}:
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        msg = f"{field} is a string that is not valid JSON; send it as an array or map"
        raise InvalidParams(msg, field=field) from None


def _text(value: object, field: str) -> str:
    if not isinstance(value, str):
        msg = f"{field} must be text, not {_shown(value)}"
        raise InvalidParams(msg, field=field)
    # Content is judged where all content is; any other text with one could only meet bytes it cannot name.
    if field not in {"content", "new_text"} and has_surrogates(value):
        msg = f"{field} holds a lone surrogate, which is no character; send valid Unicode text"
        raise InvalidParams(msg, field=field)
    return value


def _shown(value: object) -> str:
    """A value in a message: short, and in characters that any encoding has."""
    if isinstance(value, str | int | float | bool | None):
        return ascii(value)[:60]
    return f"a {'map' if isinstance(value, Mapping) else 'list' if isinstance(value, list) else type(value).__name__}"
