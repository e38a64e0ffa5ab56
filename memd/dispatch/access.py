"""Who may call what, as data: levels, contexts and the rule that a claim only lowers.

What comes in: a connection's role and level, a method's level. What goes out: ``PermissionDenied`` or nothing. What must
not be here: the methods themselves (each row of the table says its level), settings, connections.

Every level includes the ones before it; the operator socket adds to ``full`` and never to less, so that an operator who
asked for ``read`` gets just that.
"""

from __future__ import annotations

from typing import Literal

from memd.errors import PermissionDenied

Access = Literal["none", "read", "add", "full"]
Level = Literal["none", "read", "add", "full", "operator"]
Role = Literal["agent", "operator"]

RANK: dict[Level, int] = {"none": 0, "read": 1, "add": 2, "full": 3, "operator": 4}


def lower(given: Access, claimed: Access | None) -> Access:
    """What a connection gets: what its context gives, or less if it asked for less."""
    return given if claimed is None or RANK[claimed] >= RANK[given] else claimed


def rank_of(access: Access, role: Role) -> int:
    """What a connection may call, as a number to compare with ``RANK``."""
    return RANK["operator"] if role == "operator" and access == "full" else RANK[access]


def require(name: str, level: Level, *, access: Access, role: Role) -> None:
    """Refuse a call that the connection may not make.

    Raises:
        PermissionDenied: With ``needs`` and ``access`` in its data.
    """
    if RANK[level] <= rank_of(access, role):
        return
    if level == "operator":
        message = f"{name} may only be called on the operator socket with full access"
    else:
        message = f"{name} needs access {level!r}; this connection has {access!r}"
    raise PermissionDenied(message, needs=level, access=access)
