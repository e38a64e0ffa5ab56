"""The parameters: safe to keep, described, and there for every method."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgpack
import pytest
from support.structs import structs

from memd.dispatch.handlers import method_table
from memd.errors import InvalidParams
from memd.protocol import params
from memd.protocol.decode import decode_params
from memd.protocol.params import MAX_WAIT_MS, EventsWait, HistoryList, MutationParams, Params

if TYPE_CHECKING:
    import msgspec

    from memd.dispatch.table import Method


@pytest.mark.parametrize("struct", structs(params), ids=lambda struct: struct.__name__)
def test_they_cannot_be_changed(struct: type[msgspec.Struct]) -> None:
    """Decoded parameters are kept and compared."""
    assert struct.__struct_config__.frozen


@pytest.mark.parametrize("row", [*method_table()], ids=lambda row: row.name)
def test_the_class_is_named_after_the_method(row: Method) -> None:
    assert "".join(word.capitalize() for word in row.name.replace(".", "_").split("_")) == row.params.__name__
    assert row.params.__doc__


@pytest.mark.parametrize("row", [*method_table()], ids=lambda row: row.name)
def test_mutations_take_what_every_mutation_takes(row: Method) -> None:
    """But for ``memory.tool``, whose calls come from models."""
    if row.mutation and row.name != "memory.tool":
        assert issubclass(row.params, MutationParams)


@pytest.mark.parametrize(
    ("struct", "fields"),
    [
        (EventsWait, {"timeout_ms": MAX_WAIT_MS + 1}),
        (EventsWait, {"deadline_ms": -1}),
        (HistoryList, {"limit": 0}),
        (HistoryList, {"limit": 1001}),
    ],
)
def test_bounds(struct: type[Params], fields: dict[str, int]) -> None:
    with pytest.raises(InvalidParams) as caught:
        decode_params(msgpack.packb([fields]), struct)
    assert {"field": next(iter(fields))} == caught.value.data()
