"""Domain values to wire structs."""

from __future__ import annotations

import msgspec
import pytest

from memd.dispatch import translate
from memd.profile.entries import make_entry
from memd.profile.history import RevisionRow
from memd.profile.values import Change, Undone, Usage
from memd.store.records import ChangeRecord, RevisionRecord


@pytest.mark.parametrize(
    ("text", "expected"), [(None, None), ("plain", "plain"), ("Grüße §", "Grüße §"), ("caf\udce9", "caf\ufffd")]
)
def test_texts_can_always_be_sent(text: str | None, expected: str | None) -> None:
    """Bytes that are not UTF-8 as U+FFFD."""
    assert expected == translate.shown(text)
    change = translate.change(Change("replace", "e1", text, text, 0), "memory")
    assert (expected, expected) == (change.before, change.after)
    msgspec.msgpack.encode(change)


def test_an_entry_that_is_not_utf8_keeps_its_size_and_is_marked() -> None:
    """Its hash is of what is shown."""
    wire = translate.entry(make_entry("caf\udce9"))
    assert ("caf\ufffd", 4, True) == (wire.text, wire.chars, wire.undecodable)


def test_usage_in_words() -> None:
    """As messages have it."""
    assert "31% — 1,688/2,200 chars" == translate.usage_line(Usage(1688, 2200, 512, 31, near_limit=False))


def test_a_revision_has_its_provenance_and_leaves_out_what_is_not_there() -> None:
    """Texts of the journal are bytes."""
    changes = [ChangeRecord("replace", "e1", b"caf\xe9", b"caf\xc3\xa9", 0, 0, "agent")]
    record = RevisionRecord(revision=7, store=1, us=0, origin="user", client="cli", changes=changes)
    plain = msgspec.to_builtins(translate.revision(RevisionRow(record, "user"), translate.as_it_is))
    always = {
        "revision",
        "target",
        "at",
        "us",
        "origin",
        "client",
        "uid",
        "pid",
        "kind",
        "changes",
        "undoes",
        "redacted",
    }
    assert always == set(plain)
    assert ("change", [], False) == (plain["kind"], plain["undoes"], plain["redacted"])
    assert ("caf\ufffd", "café") == (plain["changes"][0]["before"], plain["changes"][0]["after"])
    assert "1970-01-01T00:00:00.000000Z" == plain["at"]
    changes[0].redacted = True
    assert translate.revision(RevisionRow(record, "user"), translate.as_it_is).redacted


def test_an_undo_names_its_last_revision() -> None:
    """None if nothing was done."""
    assert 9 == translate.undo_result(Undone((8, 9), (), (), {}), translate.as_it_is).revision
    assert translate.undo_result(Undone((), (), (("e1", "r"),), {}), translate.as_it_is).revision is None
