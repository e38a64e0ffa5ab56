"""The method table."""

from __future__ import annotations

import inspect

import msgspec
import pytest

from memd.dispatch import Method, MethodTable, method_table
from memd.protocol.params import Params, RpcPing
from memd.protocol.results import Empty

MUTATIONS = {
    *(f"memory.{verb}" for verb in ("add", "replace", "edit", "remove", "apply", "wipe")),
    *(f"history.{verb}" for verb in ("undo", "redo", "restore", "redact")),
    "approval.approve",
    "approval.reject",
    "profile.create",
    "profile.import",
}
"""As the protocol lists them, those that exist."""


def row(name: str = "a.b") -> Method:
    return Method(name, RpcPing, Empty, "none", lambda _context, _params: Empty())


def test_a_name_twice_is_an_error_at_start() -> None:
    """Else the second would hide the first."""
    with pytest.raises(ValueError, match=r"two methods are called 'a\.b'"):
        MethodTable([row(), row("c"), row()])


def test_rows_are_found_by_name() -> None:
    """Unknown ones are None."""
    table = MethodTable([row(), row("c")])
    assert ["a.b", "c"] == [item.name for item in table]
    assert table.get("d") is None
    assert "<MethodTable 2 methods>" == repr(table)


@pytest.mark.parametrize("item", list(method_table()), ids=lambda item: item.name)
def test_every_row_is_whole(item: Method) -> None:
    """Its params are named after it; a coroutine function is a task."""
    assert issubclass(item.params, Params)
    assert "".join(part.title().replace("_", "") for part in item.name.split(".")) == item.params.__name__
    assert isinstance(item.result, type) or item.result == dict[str, object] or msgspec.json.schema(item.result)
    if inspect.iscoroutinefunction(item.handler):
        assert "task" == item.kind
    if item.waits:
        assert {"timeout_ms", "wait_ms"} & {*item.params.__struct_fields__}


def test_mutations_are_those_of_the_protocol() -> None:
    """And the model's tool, whose errors say what may have changed, too."""
    assert MUTATIONS | {"memory.tool"} == {item.name for item in method_table() if item.mutation}
