"""The one method table: what each method takes, gives, needs, and who handles it.

What comes in: rows from ``memd.dispatch.handlers``. What goes out: a row by name, and descriptions for ``rpc.discover`` and the
documents. What must not be here: handling, authorising.

A handler is a plain function of (context, params). By its ``kind`` it gives a result (``sync``), ``Pending`` around a ticket
(``deferred``), or is an ``async def`` whose coroutine runs as a task (``task``); the latter two may give a result at once
where there is nothing to wait for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from memd.dispatch.access import Level
    from memd.protocol.params import Params

Kind = Literal["sync", "deferred", "task"]


@dataclass(frozen=True, slots=True)
class Method:
    """One row.

    ``waits``: the caller says with ``timeout_ms`` or ``wait_ms`` how long, and its deadline is that much later. ``once``: after a lost reply a
    client must not simply call it again, because it belongs to its connection or does something anew each time.
    """

    name: str
    params: type[Params]
    result: Any
    access: Level
    handler: Callable[[Any, Any], Any]
    kind: Kind = "sync"
    mutation: bool = False
    waits: bool = False
    once: bool = False


class MethodTable:
    """All rows by name.

    Raises:
        ValueError: Two rows have the same name.
    """

    def __init__(self, rows: Iterable[Method]) -> None:
        self._rows: dict[str, Method] = {}
        for row in rows:
            if row.name in self._rows:
                msg = f"two methods are called {row.name!r}"
                raise ValueError(msg)
            self._rows[row.name] = row

    def __repr__(self) -> str:
        return f"<MethodTable {len(self._rows)} methods>"

    def __iter__(self) -> Iterator[Method]:
        return iter(self._rows.values())

    def get(self, name: str) -> Method | None:
        """The row of this name."""
        return self._rows.get(name)
