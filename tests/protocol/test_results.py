"""The results: nothing that a reply promises can be left out."""

from __future__ import annotations

import msgspec
import pytest
from support.structs import lossless, structs

from memd.protocol import results
from memd.protocol.results import HelloResult, RevisionShown, UndoResult
from memd.protocol.types import SomeStores


@pytest.mark.parametrize("struct", structs(results), ids=lambda struct: struct.__name__)
def test_leaving_out_defaults_drops_none_only(struct: type[msgspec.Struct]) -> None:
    """A default of any other value would vanish from the wire."""
    assert lossless(struct)


def test_an_undo_that_conflicts_has_no_revision() -> None:
    """And everything else, empty or not."""
    result = UndoResult(revisions=[], changes=[], conflicts=[], usage=SomeStores(), replayed=False)
    assert {"revisions": [], "changes": [], "conflicts": [], "usage": {}, "replayed": False} == msgspec.to_builtins(
        result
    )


def test_a_shown_revision_is_a_revision() -> None:
    assert set(RevisionShown.__struct_fields__) > {"revision", "target", "at", "us", "changes"}


def test_hello_has_all_that_clients_are_promised() -> None:
    assert {
        "protocol", "server", "profile", "role", "context", "access", "limits", "features", "stores", "notices",
    } == set(HelloResult.__struct_fields__)  # fmt: skip
