"""What a request id stands for, and which calls are the same call."""

from __future__ import annotations

import msgspec

from memd.dispatch.writes import fingerprint
from memd.protocol.params import MemoryAdd, MemoryApply, OpParams


def add(**fields: object) -> MemoryAdd:
    return msgspec.convert({"target": "memory", "content": "a", **fields}, MemoryAdd)


def test_the_deadline_and_the_id_itself_are_not_compared() -> None:
    """A client that asks again has less time left."""
    assert fingerprint("memory.add", add()) == fingerprint("memory.add", add(deadline_ms=5, request_id="r"))


def test_everything_else_is() -> None:
    """Method and parameters."""
    marks = {
        fingerprint("memory.add", add()),
        fingerprint("memory.tool", add()),
        fingerprint("memory.add", add(content="b")),
        fingerprint("memory.add", add(target="user")),
        fingerprint("memory.add", add(if_revision=1)),
        fingerprint("memory.add", add(origin="tool")),
        fingerprint("memory.add", add(reason="r")),
    }
    assert 7 == len(marks)
    assert {32} == {len(mark) for mark in marks}


def test_the_order_of_operations_is() -> None:
    """A batch is done in order."""
    one, other = OpParams(action="add", content="a"), OpParams(action="add", content="b")
    first = MemoryApply(target="memory", operations=[one, other])
    second = MemoryApply(target="memory", operations=[other, one])
    assert fingerprint("memory.apply", first) != fingerprint("memory.apply", second)
