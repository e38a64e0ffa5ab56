"""The certification of a client: a fixed sequence of calls in which each reply holds the next call's argument.

What comes in: what a client sends to one step after the other. What goes out: the value that it has to hand to the next, or what
was wrong with it. What must not be here: connections, memory.

The idea is varlink's ``org.varlink.certification``: a client that hands every value on unchanged has shown that it reads and
writes all that the protocol uses. Every step is ``rpc.certify.X {id, value}`` and answers ``{id, value}``, but for one
that answers with an error, whose ``data.value`` is handed on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memd.protocol.params import Params
from memd.protocol.types import WireStruct

INTS = [
    *(0, 1, 127, 128, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 - 1),
    *(-1, -32, -33, -128, -129, -32768, -32769, -(2**31), -(2**31) - 1, 1 - 2**53),
]
"""Both sides of every border between widths. Beyond 2^53 - 1 JavaScript's numbers lose digits, and nothing in memd is larger."""

TEXTS = [
    "",
    "x" * 31,
    "x" * 32,
    "x" * 255,
    "x" * 256,
    "x" * 65535,
    "x" * 65536,
    'quotes " and \\, a tab\t, lines\r\nand\u2028their ends, NUL \0, DEL \x7f',
    "§ Größe, naïve, Việt, 日本語, हिन्दी, עברית, نیم‌فاصله",
    "e\u0301 is not \u00e9, and \u212b is not \u00c5",
    "👩‍👩‍👧‍👦 🏳️‍🌈 ☁️ \U0010ffff \ufeff",
]
"""Both sides of every border between widths, and texts that a careless encoder changes. All are valid UTF-8."""

LISTS = [[], [[]], [1, "two", True, ["three", [4, [5, [6]]]]], list(range(15)), list(range(16)), list(range(300))]
MAPS = {
    "": "an empty key",
    "ключ § 鍵": {"inner": {"deeper": {"deepest": [{}, {"a": 1}]}}},
    "fifteen": {f"k{n}": n for n in range(15)},
    "sixteen": {f"k{n}": n for n in range(16)},
    "a key of more than thirty-one bytes, for another header": False,
}
ERROR_VALUE = "what an error's data hold is data like any other"
DONE = "certified"


class RpcCertifyStart(Params, kw_only=True, frozen=True):
    """Begin to certify this client: the reply has the argument of ``rpc.certify.flag``, whose reply has the next one's, and so on."""


class RpcCertifyStep(Params, kw_only=True, frozen=True):
    """A step of the certification: the reply before it, handed on."""

    id: str
    value: Any


class RpcCertifyFlag(RpcCertifyStep, kw_only=True, frozen=True):
    """Hand on a boolean; it gives ints of every width."""


class RpcCertifyInts(RpcCertifyStep, kw_only=True, frozen=True):
    """Hand on ints; it gives texts of every width, with all that a careless encoder changes."""


class RpcCertifyTexts(RpcCertifyStep, kw_only=True, frozen=True):
    """Hand on texts; it gives nested lists."""


class RpcCertifyLists(RpcCertifyStep, kw_only=True, frozen=True):
    """Hand on lists; it gives nested maps."""


class RpcCertifyMaps(RpcCertifyStep, kw_only=True, frozen=True):
    """Hand on maps; it gives a boolean."""


class RpcCertifyError(RpcCertifyStep, kw_only=True, frozen=True):
    """Hand on a boolean; it always fails, with ``conflict``, and the next argument is ``data.value`` of the error."""


class RpcCertifyEnd(RpcCertifyStep, kw_only=True, frozen=True):
    """Hand on the error's value; ``"certified"`` says that the client has passed."""


class CertifyResult(WireStruct, kw_only=True, frozen=True):
    """Methods ``rpc.certify.*``: the run, and what to hand on."""

    id: str
    value: Any


@dataclass(frozen=True, slots=True)
class Step:
    """One call. ``takes``: the value that it has to be called with. ``gives``: the value of its reply."""

    params: type[RpcCertifyStep]
    takes: Any
    gives: Any
    fails: bool = False

    @property
    def name(self) -> str:
        """The method's."""
        return f"rpc.certify.{self.params.__name__.removeprefix('RpcCertify').lower()}"


STEPS = (
    Step(RpcCertifyFlag, takes=True, gives=INTS),
    Step(RpcCertifyInts, takes=INTS, gives=TEXTS),
    Step(RpcCertifyTexts, takes=TEXTS, gives=LISTS),
    Step(RpcCertifyLists, takes=LISTS, gives=MAPS),
    Step(RpcCertifyMaps, takes=MAPS, gives=False),
    Step(RpcCertifyError, takes=False, gives=ERROR_VALUE, fails=True),
    Step(RpcCertifyEnd, takes=ERROR_VALUE, gives=DONE),
)
"""In order, after ``rpc.certify.start``, which gives ``STEPS[0].takes``."""


class Certification:
    """One run of a client through ``STEPS``."""

    def __init__(self, run: str) -> None:
        self.id = run
        self._next = 0

    def __repr__(self) -> str:
        return f"<Certification {self.id}, next {self.expected}>"

    @property
    def expected(self) -> str | None:
        """The method to call now; None when all are through."""
        return STEPS[self._next].name if self._next < len(STEPS) else None

    def problem(self, value: Any) -> str | None:
        """What is wrong with the argument of the step that is next; None if nothing is, and then the next one is."""
        problem = difference(STEPS[self._next].takes, value)
        if problem is None:
            self._next += 1
        return problem


def difference(expected: Any, got: Any, where: str = "value") -> str | None:
    """The first place where two plain values differ, in words; None if they are the same, types included."""
    if type(expected) is not type(got):
        return f"{where}: {_shown(expected)} expected, got {_shown(got)}"
    if isinstance(expected, dict):
        return _maps(expected, got, where)
    if isinstance(expected, list):
        if len(expected) != len(got):
            return f"{where}: {len(expected)} items expected, got {len(got)}"
        found = (
            difference(one, other, f"{where}[{at}]") for at, (one, other) in enumerate(zip(expected, got, strict=True))
        )
        return next((problem for problem in found if problem), None)
    return None if expected == got else f"{where}: {_shown(expected)} expected, got {_shown(got)}"


def _maps(expected: dict[str, Any], got: dict[str, Any], where: str) -> str | None:
    if expected.keys() != got.keys():
        missing, surplus = sorted(expected.keys() - got.keys()), sorted(map(str, got.keys() - expected.keys()))
        return f"{where}: keys missing: {_shown(missing)}, keys too many: {_shown(surplus)}"
    found = (difference(one, got[key], f"{where}[{key!r}]") for key, one in expected.items())
    return next((problem for problem in found if problem), None)


def _shown(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 80 else f"{text[:60]}… ({type(value).__name__})"
