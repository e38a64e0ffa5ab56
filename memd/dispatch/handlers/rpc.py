"""``rpc.*``: about calls themselves.

What comes in: message ids, nothing. What goes out: whether a call was taken out, the self-description. What must not be
here: memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memd.dispatch.table import Method
from memd.protocol import params as p, results

if TYPE_CHECKING:
    from memd.dispatch.context import Context


def ping(_context: Context, _params: p.RpcPing) -> results.Empty:
    """Say that we are here."""
    return results.Empty()


def cancel(context: Context, params: p.RpcCancel) -> results.CancelResult:
    """Take out a call of the same connection."""
    return results.CancelResult(cancelled=context.cancel(params.msgid))


def discover(context: Context, _params: p.RpcDiscover) -> results.Discovery:
    """Describe methods, errors and events."""
    return context.services.describe()


METHODS = (
    Method("rpc.ping", p.RpcPing, results.Empty, "none", ping),
    Method("rpc.cancel", p.RpcCancel, results.CancelResult, "none", cancel, once=True),
    Method("rpc.discover", p.RpcDiscover, results.Discovery, "none", discover),
)
