"""``hello``: what a connection is, settled once.

What comes in: the client's name, protocol versions, profile, context, access. What goes out: the same as it came out,
with the daemon's limits and features. What must not be here: what follows from access (``access.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memd.dispatch import access, translate
from memd.dispatch.notices import store_notices
from memd.dispatch.table import Method
from memd.errors import InvalidParams, InvalidRequest, UnsupportedVersion
from memd.profile.values import Notice
from memd.protocol import params as p, results, types

if TYPE_CHECKING:
    from memd.dispatch.context import Context
    from memd.dispatch.ports import Control

FEATURES = (
    "approval",
    "approval.entries",
    "errors.pair",
    "events",
    "history",
    "history.preview",
    "history.redact",
    "memory",
    "memory.tool",
    "profiles",
    "request_id",
    "rpc.certify",
    "scan",
    "scan.check",
    "sessions",
    "snapshot.changes",
    "snapshot.fence",
    "snapshot.withheld",
    "turns",
)
"""Capabilities that a client may ask for by name. Parts that are not there yet are not named."""


def hello(context: Context, params: p.Hello) -> results.HelloResult:
    """Settle what the connection is."""
    if context.settled:
        msg = "hello comes once and first; its defaults hold since the first call. Connect anew to change them"
        raise InvalidRequest(msg)
    _check_version(params.protocol)
    context.settle(profile=params.profile, context=params.context, access=params.access, client=params.client.name)
    services = context.services
    notices = [*store_notices(context.profile), *services.control.notices()]
    if params.access is not None and params.access != context.access:
        notices.append(_capped(params.access, context.access, params.context))
    return results.HelloResult(
        protocol=types.PROTOCOL_VERSION,
        server=server_info(services.control),
        profile=context.profile.name,
        role=context.role,
        context=context.context,
        access=context.access,
        limits=_limits(context),
        features=list(FEATURES),
        stores=translate.store_infos(context.profile),
        notices=[translate.notice(item) for item in notices],
    )


def server_info(control: Control) -> results.ServerInfo:
    """Who answers."""
    return results.ServerInfo(name="memd", version=control.version, pid=control.pid, instance=control.instance)


def _check_version(span: list[int] | None) -> None:
    if span is None:
        return
    low, high = span
    if low > high:
        msg = f"protocol: [lowest, highest] expected, got [{low}, {high}]"
        raise InvalidParams(msg, field="protocol")
    if not low <= types.PROTOCOL_VERSION <= high:
        msg = f"this memd speaks protocol {types.PROTOCOL_VERSION}, the client {low} to {high}"
        raise UnsupportedVersion(msg, supported=[types.PROTOCOL_VERSION, types.PROTOCOL_VERSION])


def _limits(context: Context) -> results.WireLimits:
    wire = context.services.settings().wire
    return results.WireLimits(
        message_bytes=wire.message_bytes,
        in_flight=wire.in_flight,
        connections=wire.connections,
        deadline_ms=wire.deadline_ms,
    )


def _capped(claimed: access.Access, given: access.Access, context: str) -> Notice:
    message = f"access {claimed!r} was asked for; the settings give {given!r} to context {context!r}"
    return Notice("access_capped", message, {"claimed": claimed, "access": given})


METHODS = (Method("hello", p.Hello, results.HelloResult, "none", hello, once=True),)
