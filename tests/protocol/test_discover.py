"""Self-description."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec
from support.vectors import VECTORS

from memd.dispatch.handlers import method_table
from memd.errors import wire_errors
from memd.protocol import params as p, results
from memd.protocol.discover import discovery, schema
from memd.protocol.types import PROTOCOL_VERSION, TOPICS


class Described(NamedTuple):
    """A row of a method table."""

    name: str
    params: Any
    result: Any
    access: str
    mutation: bool = False
    once: bool = False


ROWS = (
    Described("rpc.ping", p.RpcPing, results.Empty, "none"),
    Described("memory.tool_schema", p.MemoryToolSchema, dict[str, Any], "none"),
    Described("memory.read", p.MemoryRead, results.ReadResult, "read"),
)


def test_methods_by_name() -> None:
    found = discovery(ROWS)
    assert ["memory.read", "memory.tool_schema", "rpc.ping"] == [item.name for item in found.methods]
    assert ["read", "none", "none"] == [item.access for item in found.methods]


def test_parameters_and_results_are_whole_schemas() -> None:
    """Every reference leads inside of the same schema, and the method's paragraph is with it."""
    read = discovery(ROWS).methods[0]
    for described in (read.params, read.result):
        references = [text for text in str(described).split("'") if text.startswith("#/$defs/")]
        assert references
        assert all(reference.removeprefix("#/$defs/") in described["$defs"] for reference in references)
    assert "The stores as they are now" in read.params["$defs"]["MemoryRead"]["description"]


def test_what_may_be_called_again() -> None:
    """Mutations with their ``request_id``, reads always, the rest never."""
    rows = [
        Described("a", p.RpcPing, results.Empty, "none"),
        Described("b", p.RpcPing, results.Empty, "none", mutation=True),
        Described("c", p.RpcPing, results.Empty, "none", once=True),
    ]
    found = [(item.mutation, item.repeatable) for item in discovery(rows).methods]
    assert [(False, True), (True, False), (False, False)] == found


def test_a_plain_map() -> None:
    assert {"type": "object"} == schema(dict[str, Any])


def test_a_schema_is_made_once() -> None:
    """Describing everything anew would hold up the event loop."""
    assert schema(results.ReadResult) is schema(results.ReadResult)


def test_the_schema_file_is_what_the_daemon_says() -> None:
    """If not: ``python client/write_protocol.py``."""
    written = json.loads((VECTORS.parent / "schema.json").read_text(encoding="utf-8"))
    assert {"protocol": PROTOCOL_VERSION, **msgspec.to_builtins(discovery(method_table()))} == written


def test_errors_and_topics_are_complete() -> None:
    found = discovery(ROWS)
    assert [(error.wire_name, error.code) for error in wire_errors()] == [
        (item.name, item.code) for item in found.errors
    ]
    assert list(TOPICS) == found.events


def test_it_can_be_sent() -> None:
    """Schemas hold nothing that MessagePack lacks."""
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(discovery(ROWS)))["events"]
