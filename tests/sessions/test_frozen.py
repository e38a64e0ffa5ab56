"""Frozen snapshots: bytes that stay, and what has changed since."""

from __future__ import annotations

from support.fake_profile import MemoryProfile, mutation
from support.judged import ATTACK

from memd.profile.entries import Document, parse
from memd.profile.values import Limits, Operation, Target, usage_of
from memd.sessions.frozen import EMPTY_SNAPSHOT, Fence, FrozenSnapshot, decode, describe_changes, freeze

FENCE = Fence("<note 1>", "</note 1>")


def profile_with(*texts: str, target: Target = "memory") -> MemoryProfile:
    profile = MemoryProfile()
    for text in texts:
        profile.submit(mutation(Operation("add", content=text), target=target))
    return profile


def test_both_stores_are_rendered_memory_first() -> None:
    """Blocks, headers and revisions belong together."""
    profile = profile_with("Server is Debian 12")
    profile.submit(mutation(Operation("add", content="Prefers short answers"), target="user"))
    frozen = freeze(profile)
    assert frozen.text == frozen.blocks["memory"] + "\n\n" + frozen.blocks["user"]
    assert {"memory": 1, "user": 2} == frozen.revisions
    assert "MEMORY (your personal notes) [0% — 19/2,200 chars]" == frozen.headers["memory"]
    assert frozen.headers["memory"] in frozen.text


def test_the_id_follows_from_the_text_and_the_record_id_from_everything() -> None:
    """The same text at another revision is another record of the same snapshot id."""
    profile = profile_with("a")
    first = freeze(profile)
    profile.submit(mutation(Operation("add", content="b")))
    profile.submit(mutation(Operation("remove", old_text="b")))
    second = freeze(profile)
    assert first.id == second.id
    assert first.record_id != second.record_id


def test_an_empty_profile_freezes_to_nothing() -> None:
    """The same id as for a connection without access."""
    frozen = freeze(MemoryProfile())
    assert "" == frozen.text
    assert EMPTY_SNAPSHOT.id == frozen.id


def test_the_stored_form_gives_the_same_snapshot_back() -> None:
    """Byte for byte, over a restart."""
    frozen = freeze(profile_with("Grüße 你好", "zweite"))
    again: FrozenSnapshot = decode(frozen.encode())
    assert frozen == again
    assert frozen.record_id == again.record_id


def test_nothing_changed_says_nothing() -> None:
    """Also when there are entries."""
    profile = profile_with("a")
    assert "" == describe_changes(freeze(profile), profile, FENCE)


def test_changes_are_cumulative_and_inside_the_fence() -> None:
    """Compared with the snapshot, not with the last look."""
    profile = profile_with("Server is Debian 12", "Port is 1")
    frozen = freeze(profile)
    profile.submit(mutation(Operation("replace", id="e1", content="Server is Debian 13")))
    profile.submit(mutation(Operation("add", content="Uses uv")))
    text = describe_changes(frozen, profile, FENCE)
    assert text.startswith(FENCE.open)
    assert text.endswith(FENCE.close)
    assert "Debian 13" in text
    assert "Uses uv" in text
    assert "Port is 1" not in text


def test_a_change_that_was_taken_back_is_none() -> None:
    """Stale is what reads differently, not what has a newer number."""
    profile = profile_with("a")
    frozen = freeze(profile)
    profile.submit(mutation(Operation("add", content="b")))
    profile.submit(mutation(Operation("remove", old_text="b")))
    assert "" == describe_changes(frozen, profile, FENCE)


def test_what_is_gone_is_not_told_with_a_text_that_no_prompt_gets() -> None:
    """The rules may be others than when the snapshot was frozen: removing an attack must not bring it into each turn."""
    profile = profile_with(ATTACK, "port is 80")
    frozen = freeze(profile)
    assert ATTACK in frozen.text
    profile.submit(mutation(Operation("remove", old_text=ATTACK)))
    profile.submit(mutation(Operation("remove", old_text="port is 80")))
    lines = describe_changes(frozen, profile, FENCE).splitlines()
    entry = frozen.entries["memory"][0][0]
    marker = f"[BLOCKED: entry {entry} withheld, rule override.earlier-orders. Ask the user to review it.]"
    assert [f"- memory: {marker}", "- memory: port is 80"] == lines[2:-1]


def test_changes_fit_a_thousand_characters() -> None:
    """The fence included, however much has changed."""
    profile = MemoryProfile()
    frozen = freeze(profile)
    for number in range(30):
        profile.submit(mutation(Operation("add", content=f"{number} " + "long " * 13)))
    text = describe_changes(frozen, profile, FENCE)
    assert len(text) <= 1000
    assert text.endswith(FENCE.close)


def test_what_does_not_fit_the_limit_is_left_out_and_counted() -> None:
    """A file that others let grow over its limit."""
    profile = MemoryProfile()
    document: Document = parse(("x" * 2000 + "\n§\n" + "y" * 500).encode())
    profile.put("memory", document=document, usage=usage_of(document.chars, Limits(2200)))
    frozen = freeze(profile)
    assert {"memory": 1, "user": 0} == frozen.left_out
    assert frozen.text.endswith("[1 newest entries left out: over the limit]")
