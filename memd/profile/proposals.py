"""Proposals: changes that wait for a person, as values and as a table of those of one profile.

What comes in: operations with their provenance, records from the journal, documents to try them on. What goes out: proposals,
what they would do, why they cannot be done any more. What must not be here: I/O, clocks, who may settle one.

A proposal, by state::

    state         store changed, still fits   no longer fits   approve           reject     too old
    ------------  --------------------------  ---------------  ----------------  ---------  --------
    pending       stays                       → needs_review   → approved        → rejected → expired
    needs_review  → pending                   stays            → approved if it  → rejected → expired
                                                               fits after all
    approved, rejected, expired: stay
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import asdict, astuple, replace

from memd.errors import NoSuchProposal, WireError
from memd.profile.edits import apply_batch, apply_operation
from memd.profile.inverse import text_diff
from memd.profile.policy import gravest, new_texts
from memd.profile.values import Operation, Stamp, Target
from memd.scan import Finding
from memd.store.records import FindingRecord, OperationRecord, ProposalRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from memd.profile.entries import Document
    from memd.profile.scans import Scans
    from memd.profile.values import Applied, Caller, Limits

State = Literal["pending", "needs_review", "approved", "rejected", "expired"]
OPEN = ("pending", "needs_review")
ID_LENGTH = 6
MOST_PENDING = 200
"""Proposals of one profile that may wait: more than anybody reviews, few enough to be tried out on every change."""
DAY_US = 86_400_000_000
REDACTED = "a text in it was redacted: reject it, or approve it with a text of your own (content)"
"""Why a proposal whose texts were masked cannot be applied: nobody has proposed what stands there now."""


class Proposal(Struct, frozen=True, kw_only=True):
    """One atomic change that waits for a person, or waited.

    ``base`` is the store's revision when it was staged, ``problem`` why it cannot be applied as it is, ``settled`` by whom
    and how it was settled, ``revision`` what an approval became. ``redacted``: its texts are not what was proposed any more.
    """

    id: str
    profile: str
    store: int
    target: Target
    us: int
    base: int
    operations: tuple[Operation, ...]
    findings: tuple[Finding, ...]
    origin: str
    state: State = "pending"
    problem: str = ""
    client: str = ""
    uid: int = 0
    pid: int = 0
    session: str | None = None
    turn: str | None = None
    job: str | None = None
    reason: str | None = None
    settled_us: int | None = None
    settled: dict[str, Any] = {}
    revision: int | None = None
    redacted: bool = False

    @property
    def is_open(self) -> bool:
        """True while it waits."""
        return self.state in OPEN

    def texts(self) -> list[str]:
        """Every text that it would put in."""
        return [text for one in self.operations for text in (one.content, one.new_text) if text]

    def age_s(self, now_us: int) -> int:
        """How long it has been there."""
        return max(0, now_us - self.us) // 1_000_000


@dataclass(frozen=True, slots=True)
class Trial:
    """What a proposal would do to a store now, or why it cannot be applied."""

    before: Document
    after: Document | None
    problem: str = ""

    @property
    def diff(self) -> str:
        """The difference it would make; ``""`` if it cannot be applied."""
        return "" if self.after is None else text_diff(self.before, self.after)


class Proposals:
    """The proposals of one profile: those that wait, and those settled not too long ago."""

    def __init__(self, records: Iterable[ProposalRecord] = ()) -> None:
        self._known = {record.id: from_record(record) for record in records if record.state != "withdrawn"}
        self._claimed: set[str] = set()

    def __repr__(self) -> str:
        return f"<Proposals {len(self.waiting())} waiting of {len(self._known)}>"

    def everything(self) -> tuple[Proposal, ...]:
        """All of them, settled ones too."""
        return tuple(self._known.values())

    def waiting(self) -> list[Proposal]:
        """Those that wait for a person, oldest first."""
        return [one for one in self._known.values() if one.state in OPEN]

    def find(self, proposal_id: str) -> Proposal | None:
        """The one with this id, None if there is none."""
        return self._known.get(proposal_id)

    def require_open(self, proposal_id: str) -> Proposal:
        """One that still waits.

        Raises:
            NoSuchProposal: Unknown, or settled already; the message says how.
        """
        found = self._known.get(proposal_id)
        if found is None:
            raise NoSuchProposal(proposal_id)
        if not found.is_open:
            raise NoSuchProposal(proposal_id, settled=found.state)
        return found

    def same(self, target: Target, operations: Sequence[Operation]) -> Proposal | None:
        """One that waits and would do the very same."""
        wanted = tuple(operations)
        return next((one for one in self.waiting() if one.target == target and one.operations == wanted), None)

    def put(self, proposal: Proposal) -> None:
        """Keep what is durable."""
        self._known[proposal.id] = proposal

    def claim(self, proposal_id: str) -> bool:
        """True, once, until ``release``: nobody else is settling it."""
        if proposal_id in self._claimed:
            return False
        self._claimed.add(proposal_id)
        return True

    def release(self, proposal_id: str) -> None:
        """It is settled, or stays as it was."""
        self._claimed.discard(proposal_id)

    def count(self, now_us: int) -> tuple[int, int]:
        """How many wait, and for how many seconds the oldest (0 if none does)."""
        waiting = self.waiting()
        return len(waiting), max((one.age_s(now_us) for one in waiting), default=0)

    def due(self, now_us: int, days: int) -> list[Proposal]:
        """Those that have waited for longer than so many days."""
        return [one for one in self.waiting() if now_us - one.us > days * DAY_US]

    def new_id(self, seed: str) -> str:
        """An id that no proposal here has, derived so that it does not depend on chance."""
        number = 0
        while True:
            digest = hashlib.sha256(f"{seed}\0{number}".encode("utf-8", "surrogatepass")).digest()
            found = "p-" + base64.b32encode(digest).decode().lower()[:ID_LENGTH]
            if found not in self._known:
                return found
            number += 1

    def redact(self, mask: Callable[[str], str]) -> None:
        """Mask texts wherever they are."""
        for one in list(self._known.values()):
            hidden = tuple(replace(op, **_masked(op, mask)) for op in one.operations)
            self._known[one.id] = replace(
                one,
                operations=hidden,
                redacted=one.redacted or hidden != one.operations,
                problem=mask(one.problem),
                reason=one.reason and mask(one.reason),
                settled={key: mask(value) if isinstance(value, str) else value for key, value in one.settled.items()},
            )


def _masked(operation: Operation, mask: Callable[[str], str]) -> dict[str, str]:
    """The texts of an operation, masked, by the names of their fields."""
    texts = {"content": operation.content, "old_text": operation.old_text, "new_text": operation.new_text}
    return {name: mask(text) for name, text in texts.items() if text}


def attempt(
    document: Document,
    operations: Sequence[Operation],
    *,
    limits: Limits,
    stamp: Stamp,
    new_id: Callable[[str], str],
) -> Applied:
    """Apply a proposal's operations: one alone, or several as a batch.

    Raises:
        WireError: As ``apply_operation`` or ``apply_batch``.
    """
    if len(operations) == 1:
        return apply_operation(document, operations[0], limits=limits, stamp=stamp, new_id=new_id)
    return apply_batch(document, operations, limits=limits, stamp=stamp, new_id=new_id)


def problem_of(error: WireError) -> str:
    """Why a proposal cannot be applied, for whoever reviews it: without the advice and the lists that only a caller gets."""
    return error.message.partition("; ")[0]


def try_out(document: Document, proposal: Proposal, *, limits: Limits, scans: Scans) -> Trial:
    """What a proposal would do to a document, scanned by the rules of now."""
    if proposal.redacted:
        return Trial(document, None, REDACTED)
    try:
        applied = attempt(
            document, proposal.operations, limits=limits, stamp=Stamp(0, proposal.origin), new_id=lambda _: "new"
        )
    except WireError as error:
        return Trial(document, None, problem_of(error))
    worst = gravest(one for text in new_texts(applied.changes) for one in scans.findings(text))
    if worst is not None and worst.severity == "refuse":
        return Trial(document, None, f"the scan refuses it now: {worst.reason} (rule {worst.rule})")
    return Trial(document, applied.document)


def with_content(proposal: Proposal, content: str | None) -> tuple[Operation, ...]:
    """The operations, with another text where a person wants one.

    Raises:
        ValueError: There is not exactly one text that it could take the place of.
    """
    if content is None:
        return proposal.operations
    names = {"add": "content", "replace": "content", "edit": "new_text"}
    if len(proposal.operations) != 1 or proposal.operations[0].action not in names:
        raise ValueError(proposal.id)
    only = proposal.operations[0]
    return (replace(only, **{names[only.action]: content}),)


def staged(proposal_id: str, *, store: int, caller: Caller, profile: str, **fields: Any) -> Proposal:
    """A new proposal with the provenance of its caller."""
    return Proposal(
        id=proposal_id,
        profile=profile,
        store=store,
        origin=caller.origin,
        client=caller.client,
        uid=caller.uid,
        pid=caller.pid,
        session=caller.session,
        turn=caller.turn,
        job=caller.job,
        reason=caller.reason,
        **fields,
    )


def to_record(proposal: Proposal) -> ProposalRecord:
    """The stored form."""
    plain = asdict(proposal)
    plain["operations"] = [OperationRecord(*astuple(one)) for one in proposal.operations]
    plain["findings"] = [
        FindingRecord(one.rule, one.class_, one.severity, one.start, one.end, one.reason) for one in proposal.findings
    ]
    return ProposalRecord(**plain)


def from_record(record: ProposalRecord) -> Proposal:
    """A proposal from its stored form."""
    plain = asdict(record)
    plain["operations"] = tuple(Operation(*astuple(one)) for one in record.operations)
    plain["findings"] = tuple(Finding(*astuple(one)) for one in record.findings)
    return Proposal(**plain)
