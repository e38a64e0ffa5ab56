"""Stories for the state machine of a profile: what clients and hands do, and the model of what has to be there then.

What it is: strategies and ``Model``. What comes in: nothing. What goes out: operations as tuples, expectations. What must not
be here: a daemon.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hypothesis import strategies as st
from support.faults import FSYNC, FULL

if TYPE_CHECKING:
    from memd.profile.values import Mutation

CRASHES = ("after_temp", "before_swap", "mid_swap", "after_swap")
FAULTS = (
    ("INSERT OR REPLACE INTO revision", FSYNC, False, 0),
    ("COMMIT", FSYNC, False, 0),
    ("COMMIT", FSYNC, True, 0),
    ("COMMIT", FULL, False, 0),
    ("COMMIT", FSYNC, False, 2),
    ("COMMIT", FSYNC, True, 2),
)
BY_HAND = frozenset({"append", "edit", "delete", "open_editor", "save_editor", "truncate"})
_index = st.integers(0, 7)
WRITES = st.one_of(
    st.tuples(st.just("add")),
    st.tuples(st.just("burst"), st.integers(2, 4)),
    st.tuples(st.just("replace"), _index),
    st.tuples(st.just("remove"), _index),
)
FAULTY = st.one_of(
    st.tuples(st.just("fault"), st.sampled_from(FAULTS), WRITES),
    st.tuples(st.just("torn_swap"), WRITES),
    st.tuples(st.just("raced"), WRITES),
)
CALLS = st.one_of(
    st.tuples(st.just("again"), _index),
    st.tuples(st.just("reuse"), _index),
    st.tuples(st.just("refused")),
    st.tuples(st.just("undo_redo")),
    st.tuples(st.just("wait"), st.sampled_from([0.01, 0.3, 2.0, 12.0])),
    st.tuples(st.just("look")),
)
HANDS = st.one_of(
    st.tuples(st.just("append")),
    st.tuples(st.just("edit"), _index),
    st.tuples(st.just("delete"), _index),
    st.tuples(st.just("open_editor")),
    st.tuples(st.just("save_editor")),
    st.tuples(st.just("truncate")),
)
OPERATIONS = st.lists(st.one_of(WRITES, WRITES, HANDS, HANDS, CALLS, FAULTY), min_size=1, max_size=6)
ENDINGS = st.sampled_from(["stop", "stop", "crash", *CRASHES])


@dataclass
class Model:
    """What has to be there. ``pending``: a write of unknown outcome, to be repeated under its id."""

    present: list[str] = field(default_factory=list)
    never: set[str] = field(default_factory=set)
    acknowledged: dict[str, Mutation] = field(default_factory=dict)
    pending: list[Mutation] = field(default_factory=list)
    opened: list[str] | None = None
    saved: list[set[str]] = field(default_factory=list)
    number: int = 0
    by_hand: set[str] = field(default_factory=set)

    def text(self) -> str:
        """A text that is like no other."""
        self.number += 1
        return "note " + hashlib.sha256(str(self.number).encode()).hexdigest()[:20]

    def request(self) -> str:
        """A request id that was never used."""
        self.number += 1
        return f"request-{self.number}"

    def apply(self, mutation: Mutation) -> None:
        """A write was acknowledged."""
        operation = mutation.operations[0]
        if operation.old_text is not None:
            at = self.present.index(operation.old_text)
            self.present[at : at + 1] = [operation.content] if operation.content else []
        elif operation.content is not None:
            self.present.append(operation.content)
        assert mutation.request_id is not None
        self.acknowledged[mutation.request_id] = mutation
