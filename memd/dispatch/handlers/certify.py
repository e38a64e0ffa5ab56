"""``rpc.certify.*``: a client proves itself against a running daemon.

What comes in: the calls of the sequence in ``memd.protocol.certify``, in order. What goes out: the next call's argument, or what
was wrong with this one's. What must not be here: the sequence, memory; nothing is stored and nothing else is touched.

A run belongs to its connection. A wrong argument leaves it where it is, a call out of order too; ``start`` begins a new one.
"""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING

from memd.dispatch.table import Method
from memd.errors import Conflict, InvalidParams, InvalidRequest
from memd.protocol.certify import STEPS, Certification, CertifyResult, RpcCertifyStart

if TYPE_CHECKING:
    from memd.dispatch.context import Context
    from memd.protocol.certify import RpcCertifyStep, Step


def start(context: Context, _params: RpcCertifyStart) -> CertifyResult:
    """Begin a run."""
    context.certification = run = Certification(secrets.token_hex(8))
    return CertifyResult(id=run.id, value=STEPS[0].takes)


def take(step: Step, context: Context, params: RpcCertifyStep) -> CertifyResult:
    """Compare what was handed on, and give what to hand on next."""
    run = context.certification
    if run is None or run.id != params.id:
        msg = "id: not the id of this connection's run; rpc.certify.start begins one"
        raise InvalidParams(msg, field="id")
    if run.expected != step.name:
        msg = f"{step.name} is not next, {run.expected or 'nothing'} is; rpc.certify.start begins anew"
        raise InvalidRequest(msg)
    problem = run.problem(params.value)
    if problem is not None:
        raise InvalidParams(problem, field="value")
    if step.fails:
        msg = "this step fails on purpose: hand data.value on to the next one"
        raise Conflict(msg, id=run.id, value=step.gives)
    return CertifyResult(id=run.id, value=step.gives)


METHODS = (
    Method("rpc.certify.start", RpcCertifyStart, CertifyResult, "none", start, once=True),
    *(Method(step.name, step.params, CertifyResult, "none", partial(take, step), once=True) for step in STEPS),
)
