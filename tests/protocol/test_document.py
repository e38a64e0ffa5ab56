"""The generated parts of ``client/PROTOCOL.md``, and that the page has them as the code says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import msgpack
import pytest
from support.vectors import VECTORS, load

from memd.dispatch.handlers import method_table
from memd.errors import wire_errors
from memd.protocol import params as p, results
from memd.protocol.document import METHOD_ERRORS, OPERATION_FIELDS, blocks, errors, fill, method, states, types

PAGE = VECTORS.parent / "PROTOCOL.md"


class Described(NamedTuple):
    """A row of a method table."""

    name: str
    params: Any
    result: Any
    access: str = "read"
    mutation: bool = False


def page() -> str:
    return Path(PAGE).read_text(encoding="utf-8")


class TestThePage:
    def test_it_is_what_the_code_says(self) -> None:
        """If not: ``python client/write_protocol.py``."""
        assert fill(page(), blocks(method_table(), load("transcripts"))) == page()

    def test_the_dumps_are_the_messages_they_say(self) -> None:
        """Byte by byte, comments aside."""
        dump = page().partition("One of each, byte by byte:\n\n```\n")[2].partition("```")[0]
        found = re.findall(r"^ *((?:[0-9a-f]{2} )*[0-9a-f]{2})(?: {2,}|$)", dump, re.MULTILINE)
        unpacker = msgpack.Unpacker()
        unpacker.feed(bytes.fromhex("".join(found)))
        assert [
            [0, 1, "memory.add", [{"target": "user", "content": "Prefers vim"}]],
            [1, 1, None, {}],
            [1, 2, [0, "not_found: nothing matches"], None],
            [2, "rpc.cancel", [{"msgid": 1}]],
        ] == list(unpacker)

    def test_no_table_speaks_of_what_is_not_there(self) -> None:
        names = {row.name for row in method_table()}
        assert set() == {*METHOD_ERRORS, *OPERATION_FIELDS} - names
        known = {error.wire_name for error in wire_errors()}
        assert set() == {name for found in METHOD_ERRORS.values() for name in found} - known


class TestFill:
    def test_marked_parts_are_replaced(self) -> None:
        """What stands around them stays, and filling twice changes nothing."""
        text = "a\n<!-- generated: x -->\nold\n<!-- end: x -->\nb\n"
        filled = "a\n<!-- generated: x -->\n\nnew \\1\n\n<!-- end: x -->\nb\n"
        assert filled == fill(text, {"x": "new \\1"})
        assert filled == fill(filled, {"x": "new \\1"})

    @pytest.mark.parametrize("parts", [{}, {"x": "", "y": ""}])
    def test_a_mark_without_part_or_a_part_without_mark(self, parts: dict[str, str]) -> None:
        with pytest.raises(ValueError, match="marks and parts differ"):
            fill("<!-- generated: x -->\n<!-- end: x -->\n", parts)


class TestMethod:
    def test_all_of_it(self) -> None:
        """Paragraph, parameters, result, access, errors, transcript."""
        exchange = {
            "method": "history.show",
            "msgid": 3,
            "params": {"revision": 7},
            "error": {"name": "no_such_revision", "message": "x" * 200, "list": [1, 2, 3, 4, 5]},
        }
        row = Described("history.show", p.HistoryShow, results.Empty)
        assert [
            "### `history.show`",
            "",
            "One revision, and the entries of both stores as they stood after it.",
            "",
            "| parameter | type | |",
            "|---|---|---|",
            "| `revision` | `int` | required |",
            "",
            "Result: `{}`. Access: read.",
            "",
            "Errors: `no_such_revision`.",
            "",
            "```",
            'C: [0, 3, "history.show", [{"revision": 7}]]',
            f'S: [1, 3, {{"name": "no_such_revision", "message": "{"x" * 120}…", "list": [1, 2, 3, 4, "…"]}}, null]',
            "```",
        ] == method(row, [exchange]).splitlines()

    def test_without_parameters(self) -> None:
        assert "Parameters: none." in method(Described("rpc.ping", p.RpcPing, results.Empty), [])

    def test_only_those_of_every_mutation(self) -> None:
        row = Described("x", p.MutationParams, results.Empty, mutation=True)
        assert "Parameters: the parameters of every mutation." in method(row, [])

    def test_operations_show_what_they_take_and_not_the_aliases(self) -> None:
        text = method(Described("memory.remove", p.MemoryRemove, results.Empty, mutation=True), [])
        assert "| `id` | `str` | this or `old_text` |" in text
        assert "new_string" not in text
        assert "And the parameters of every mutation, and the aliases." in text

    def test_defaults(self) -> None:
        text = method(Described("history.list", p.HistoryList, results.Empty), [])
        assert "| `limit` | `int` | default `50` |" in text
        assert "| `before` | `int` | optional |" in text

    def test_a_result_that_is_a_plain_map(self) -> None:
        assert "Result: `map`." in method(Described("x", p.RpcPing, dict[str, Any]), [])


def test_states() -> None:
    """The page's table is the code's."""
    assert "| open | broken framing | broken |" in states().splitlines()


def test_errors() -> None:
    assert "| 34 | `io_error` | yes | Any other failure of the disk or the journal. |" in errors().splitlines()


def test_types_are_those_that_more_than_one_method_is_made_of() -> None:
    """What belongs to a single method is shown there."""
    text = types([Described("memory.read", p.MemoryRead, results.ReadResult)])
    assert "Usage = {chars, limit, free, percent: int, near_limit: bool}" in text.splitlines()
    assert "ReadResult" not in text
