"""memd_client.record and memd_client.types: annotations are the schema."""

from __future__ import annotations

import msgspec
import pytest

from memd.protocol import approval, results, types as wire
from memd_client import proposals, redacted, tool, types
from memd_client.record import Record

RENAMED: dict[str, type[msgspec.Struct]] = {
    "Hello": results.HelloResult,
    "Status": results.StatusResult,
    "Undone": results.UndoResult,
    "Exported": results.ProfileExported,
    "SessionSnapshot": results.SessionShown,
    "Refreshed": results.SessionRefreshed,
    "ProfileList": results.ProfileListed,
    "Explained": results.ExplainResult,
    "Events": results.EventList,
    "Diff": results.DiffResult,
}


def pairs() -> list[tuple[type[Record], type[msgspec.Struct]]]:
    """Each record of the client with the daemon's struct of the same name, or of the name it has there."""
    found = []
    for name, kind in (pair for module in (types, tool, proposals, redacted) for pair in vars(module).items()):
        struct = (
            RENAMED.get(name)
            or getattr(wire, name, None)
            or getattr(results, name, None)
            or getattr(approval, name, None)
        )
        if isinstance(kind, type) and issubclass(kind, Record) and kind is not Record and struct is not None:
            found.append((kind, struct))
    return found


PAIRS = pairs()


def fields_of(kind: type[Record]) -> dict[str, str]:
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if issubclass(base, Record) and base is not Record:
            found.update(base.__annotations__)
    return found


@pytest.mark.parametrize(("kind", "struct"), PAIRS, ids=repr)
def test_every_field_is_one_that_the_daemon_sends(kind: type[Record], struct: type[msgspec.Struct]) -> None:
    """A misspelt field would be an AttributeError in somebody's agent."""
    sent = {field.name for field in msgspec.structs.fields(struct)}
    assert set() == set(fields_of(kind)) - sent


@pytest.mark.parametrize(("kind", "struct"), PAIRS, ids=repr)
def test_every_field_that_the_daemon_sends_is_typed(kind: type[Record], struct: type[msgspec.Struct]) -> None:
    """Else it is there and nobody's editor knows."""
    sent = {field.encode_name.replace("class", "class_") for field in msgspec.structs.fields(struct)}
    assert set() == sent - set(fields_of(kind))


@pytest.mark.parametrize(("kind", "struct"), PAIRS, ids=repr)
def test_what_may_be_absent_has_a_default(kind: type[Record], struct: type[msgspec.Struct]) -> None:
    absent = {field.name for field in msgspec.structs.fields(struct) if not field.required}
    assert set() == {name for name in fields_of(kind) if name in absent and getattr(kind, name, 0) is not None}


def test_nested_maps_become_records() -> None:
    undone = types.Undone({"usage": {"memory": {"chars": 1}, "user": None}, "conflicts": [{"id": "e1", "reason": "r"}]})
    assert 1 == undone.usage["memory"].chars
    assert {"memory"} == set(undone.usage)
    assert "r" == undone.conflicts[0].reason


def test_maps_of_lists_become_records() -> None:
    shown = types.RevisionShown({"entries": {"memory": [{"text": "x"}], "user": []}, "changes": [{"action": "add"}]})
    assert "x" == shown.entries["memory"][0].text
    assert "add" == shown.changes[0].action


def test_a_field_named_like_a_keyword_has_an_underscore() -> None:
    assert "secret" == types.Finding({"class": "secret"}).class_


def test_unknown_fields_are_kept() -> None:
    usage = types.Usage({"chars": 1, "future": 2})
    assert {"chars": 1, "future": 2} == usage.as_dict()


def test_records_with_the_same_fields_are_equal() -> None:
    assert types.Usage({"chars": 1}) == types.Usage({"chars": 1})
    assert types.Usage({"chars": 1}) != types.Fence({"chars": 1})
    assert "<Usage chars=1>" == repr(types.Usage({"chars": 1}))
