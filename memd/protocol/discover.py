"""Self-description: what ``rpc.discover`` answers, made from the method table.

What comes in: rows with name, params type, result type and access. What goes out: JSON Schemas of them, the error
table and the topics. What must not be here: the table itself.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from memd.errors import wire_errors
from memd.protocol.results import Discovery, ErrorDescription, MethodDescription
from memd.protocol.types import TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterable


class Row(Protocol):
    """A row of the method table, as far as it is described."""

    @property
    def name(self) -> str:
        """As clients call it."""

    @property
    def params(self) -> Any:
        """The struct of its parameters."""

    @property
    def result(self) -> Any:
        """What it gives."""

    @property
    def access(self) -> str:
        """The level it needs."""

    @property
    def mutation(self) -> bool:
        """True if it takes a ``request_id``."""

    @property
    def once(self) -> bool:
        """True if calling it again is not the same as calling it once."""


def discovery(rows: Iterable[Row]) -> Discovery:
    """Describe every method, error and event. The schemas are self-contained (``$defs`` inside each)."""
    return Discovery(
        methods=[
            MethodDescription(
                name=row.name,
                params=schema(row.params),
                result=schema(row.result),
                access=row.access,
                mutation=row.mutation,
                repeatable=not (row.mutation or row.once),
            )
            for row in sorted(rows, key=lambda row: row.name)
        ],
        errors=[ErrorDescription(name=error.wire_name, code=error.code) for error in wire_errors()],
        events=list(TOPICS),
    )


@cache
def schema(kind: Any) -> dict[str, Any]:
    """The JSON Schema of one type; shared, so it must not be changed.

    All of them together take some 40 ms, which an event loop should not spend on every call.
    """
    return msgspec.json.schema(kind)
