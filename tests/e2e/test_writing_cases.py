"""Field cases about finding entries, room and retries, over the wire: each is one kind of trouble, put right.

FR-22 a section sign in a sentence; FR-67 a part of an entry; FR-68 what several entries hold; FR-70 ids; FR-71 and FR-76 a model that
tries again and again; FR-73 names of arguments; FR-74 a fact said otherwise; FR-78 failures over days; FR-79 a full store in a chat;
FR-82 a store over its limit; FR-83 what is counted. ``tests/data/cases.toml`` lists all cases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.rpc import RpcError

if TYPE_CHECKING:
    from support.daemon import DaemonProcess
    from support.rpc import Peer

pytestmark = pytest.mark.slow


def entries(memd: DaemonProcess) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = memd.call("memory.read")["stores"]["memory"]["entries"]
    return found


def texts(memd: DaemonProcess) -> list[str]:
    return [entry["text"] for entry in entries(memd)]


def add(memd: DaemonProcess, *contents: str) -> None:
    for content in contents:
        memd.call("memory.add", target="memory", content=content)


def refused(peer: Peer | DaemonProcess, method: str, **params: Any) -> dict[str, Any]:
    with pytest.raises(RpcError) as caught:
        peer.call(method, target="memory", **params)
    error: dict[str, Any] = caught.value.error
    return error


def test_a_section_sign_in_a_sentence_is_no_border(memd: DaemonProcess) -> None:
    """FR-22, also after the file was read anew."""
    add(memd, "Cite statutes as § 12 and §§ 14–16")
    memd.restart()
    assert ["Cite statutes as § 12 and §§ 14–16"] == texts(memd)
    assert "Cite statutes as § 12 and §§ 14–16\n".encode() == memd.memory.read_bytes()


def test_a_part_is_edited_and_a_whole_is_replaced(memd: DaemonProcess) -> None:
    """FR-67: the reply shows the entry before and after, and what a replacement took along comes back by undo."""
    whole = "Section A\nfoo\n\nSection B\nbar\n\nSection C\nbaz"
    add(memd, whole)
    done = memd.call("memory.edit", target="memory", old_text="Section B\nbar", new_text="Section B\nnew")
    edited = whole.replace("bar", "new")
    assert [edited] == texts(memd)
    assert [(whole, edited)] == [(change["before"], change["after"]) for change in done["changes"]]
    done = memd.call("memory.replace", target="memory", old_text="Section B\nnew", content="Section B\nold")
    assert [(edited, "Section B\nold")] == [(change["before"], change["after"]) for change in done["changes"]]
    memd.call("history.undo", last=1)
    assert [edited] == texts(memd)


def test_an_ambiguous_text_names_the_entry_that_has_it_already(memd: DaemonProcess) -> None:
    """FR-68."""
    add(memd, "likes dark mode in the editor", "likes dark mode on the phone", "likes dark mode everywhere")
    error = refused(memd, "memory.replace", old_text="likes dark mode", content="likes dark mode everywhere")
    assert "ambiguous_match" == error["name"]
    assert 3 == len(error["data"]["matches"])
    assert entries(memd)[2]["id"] in error["message"]


def test_an_id_stands_for_the_exact_words(memd: DaemonProcess) -> None:
    """FR-70; and one blank too many does no harm to verbs on whole entries."""
    add(memd, "The staging host is  web-2", "other")
    first, second = entries(memd)
    memd.call(
        "memory.replace", target="memory", old_text="The staging host is web-2", content="The staging host is web-3"
    )
    memd.call("memory.remove", target="memory", id=second["id"])
    assert [(first["id"], "The staging host is web-3")] == [(entry["id"], entry["text"]) for entry in entries(memd)]


def test_misses_are_helped_three_times_and_then_ended(memd: DaemonProcess) -> None:
    """FR-71."""
    add(memd, "alpha one", "beta two", "gamma three", "delta four")
    with memd.connect() as peer:
        misses = [refused(peer, "memory.replace", old_text=f"nothing like it {n}", content="x") for n in range(5)]
    assert ["not_found"] * 3 + ["turn_budget_exhausted"] * 2 == [error["name"] for error in misses]
    assert [3, 3, 3] == [len(error["data"]["nearest"]) for error in misses[:3]]
    assert all(entry["id"] for entry in misses[0]["data"]["nearest"])
    assert "not_found" == misses[3]["data"]["cause"]


def test_shortening_again_and_again_is_told_the_exact_excess(memd: DaemonProcess) -> None:
    """FR-76: and a change that fits goes through at any time."""
    add(memd, "n" * 2198)
    with memd.connect() as peer:
        tries = [refused(peer, "memory.add", content="x" * length) for length in (300, 290, 280, 270)]
        assert [301, 291, 281] == [error["data"]["excess"] for error in tries[:3]]
        assert [[2198]] * 3 == [[entry["chars"] for entry in error["data"]["entries"]] for error in tries[:3]]
        assert (2198, 2200, 2, True) == tuple(
            tries[0]["data"]["usage"][key] for key in ("chars", "limit", "free", "near_limit")
        )
        assert "turn_budget_exhausted" == tries[3]["name"]
        assert peer.call("memory.replace", target="memory", old_text="n" * 2198, content="short")["changed"]


@pytest.mark.parametrize(
    "names",
    [
        {"old_string": "port is 80", "new_string": "port is 81"},
        {"old_text": "port is 80", "new_text": "port is 81"},
        {"old": "port is 80", "new": "port is 81"},
        {"old_text": "port is 80", "content": "port is 81", "new_text": "port is 81"},
        {"old_text": "port is 80", "text": "port is 81"},
    ],
)
@pytest.mark.parametrize("path", ["call", "batch", "tool"])
def test_every_way_knows_the_same_names(memd: DaemonProcess, names: dict[str, str], path: str) -> None:
    """FR-73."""
    add(memd, "port is 80")
    operation = {"action": "replace", **names}
    if path == "call":
        memd.call("memory.replace", target="memory", **names)
    elif path == "batch":
        memd.call("memory.apply", target="memory", operations=[operation])
    else:
        assert memd.call("memory.tool", arguments={"target": "memory", **operation})["success"]
    assert ["port is 81"] == texts(memd)


def test_names_that_contradict_each_other_are_an_error(memd: DaemonProcess) -> None:
    """FR-73: nobody knows which was meant."""
    add(memd, "port is 80")
    error = refused(memd, "memory.replace", old_text="port is 80", content="port is 81", new_text="port is 82")
    assert "invalid_params" == error["name"]
    assert ["port is 80"] == texts(memd)


def test_a_fact_in_other_letters_is_a_notice(memd: DaemonProcess) -> None:
    """FR-74: stored all the same, and a digit or a negation makes another fact."""
    add(memd, "Timezone is UTC", "User prefers Python 3.12")
    told = memd.call("memory.add", target="memory", content="timezone is utc")
    assert (True, ["near_duplicate"]) == (told["changed"], [notice["name"] for notice in told["notices"]])
    other = memd.call("memory.add", target="memory", content="User prefers Python 3.13")
    assert (True, []) == (other["changed"], other["notices"])


def test_failures_in_several_turns_never_shut_memory(memd: DaemonProcess) -> None:
    """FR-78, FR-79: each is an event for whoever talks to the person; the valid change goes through."""
    add(memd, "n" * 2190)
    with memd.connect() as peer:
        seq = peer.call("events.subscribe", topics=["memory.refused"])["seq"]
        session = peer.call("session.open", key="chat")["session"]
        for turn in ("t1", "t2", "t3", "t4"):
            peer.call("turn.begin", session=session, turn=turn, user=True)
            for _ in range(3):
                error = refused(peer, "memory.add", session=session, content="x" * 300)
                assert "over_limit" == error["name"]
            peer.call("turn.end", session=session, turn=turn, status="completed", messages=[])
        assert peer.call("memory.add", target="memory", content="short")["changed"]
        told = peer.call("events.wait", topics=["memory.refused"], since_seq=seq, timeout_ms=60_000)["events"]
    assert {"over_limit"} == {event["data"]["name"] for event in told}
    assert {session} == {event["session"] for event in told}


def test_a_store_over_its_limit_shrinks_by_any_operation(memd: DaemonProcess) -> None:
    """FR-82: even where one entry alone is larger than the limit."""
    memd.memory.parent.mkdir(parents=True, exist_ok=True)
    memd.memory.write_text("n" * 2300 + "\n§\nshort one\n")
    memd.restart()
    done = memd.call("memory.remove", target="memory", old_text="short one")
    assert (True, 2300) == (done["changed"], done["usage"]["chars"])


def test_characters_are_code_points(memd: DaemonProcess) -> None:
    """FR-83: neither bytes nor UTF-16 units nor what is drawn as one."""
    add(memd, "你好世界", "\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467")
    assert [4, 1, 5] == [entry["chars"] for entry in entries(memd)]
    assert 10 + 2 * len("\n§\n") == memd.call("memory.read")["stores"]["memory"]["usage"]["chars"]
