"""One call: exactly one reply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from memd.deferred import Ticket
from memd.dispatch.call import Answer, Call, after
from memd.errors import IoFailure, NotFound, WireError

if TYPE_CHECKING:
    from memd.protocol.types import ErrorsForm


class Noted:
    """Keeps what was answered."""

    def __init__(self, form: ErrorsForm = "map") -> None:
        self.errors_form: ErrorsForm = form
        self.messages: list[list[Any]] = []

    def answered(self, call: Call, message: bytes) -> None:
        assert call.done
        self.messages.append(msgspec.msgpack.decode(message))


def call(outlet: Noted, *, mutation: bool = False) -> Call:
    return Call(outlet, 7, "memory.add", mutation=mutation, size=1)


def test_it_is_answered_once() -> None:
    """What comes later, as after a deadline, is dropped."""
    outlet = Noted()
    item = call(outlet)
    item.reply({"a": 1})
    item.reply({"a": 2})
    item.fail(NotFound("late"))
    assert [[1, 7, None, {"a": 1}]] == outlet.messages
    assert "<Call 7 memory.add done>" == repr(item)


def test_what_follows_an_answer_happens_after_it() -> None:
    """And not at all if somebody answered before."""
    outlet, seen = Noted(), []
    item = call(outlet)
    item.reply(Answer({}, lambda: seen.append(len(outlet.messages))))
    item.reply(Answer({}, lambda: seen.append(99)))
    assert [1] == seen


@pytest.mark.parametrize(
    ("mutation", "outcome", "expected"),
    [(True, None, "none"), (True, "unknown", "unknown"), (False, None, None)],
)
def test_an_error_of_a_mutation_says_what_may_have_changed(
    *, mutation: bool, outcome: str | None, expected: str | None
) -> None:
    """Nothing, unless whoever raised it knows better."""
    outlet = Noted()
    call(outlet, mutation=mutation).fail(IoFailure("disk", outcome=outcome))
    assert expected == outlet.messages[0][2]["data"].get("outcome")


def test_errors_have_the_form_the_connection_asked_for() -> None:
    """Neovim's."""
    outlet = Noted("pair")
    call(outlet).fail(NotFound("nothing matches"))
    assert [[1, 7, [0, "not_found: nothing matches"], None]] == outlet.messages


def test_after_a_ticket_the_answer_is_made() -> None:
    """Or its error raised."""
    pending = after(Ticket(), lambda: "made")
    pending.ticket.finish(None)
    assert ("made", True) == (pending.settle(pending.ticket), pending.shared)
    failing = after(Ticket(), lambda: "made")
    failing.ticket.fail(IoFailure("disk"))
    with pytest.raises(WireError, match="disk"):
        failing.settle(failing.ticket)
