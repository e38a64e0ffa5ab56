"""The desk: operations tried on a copy, each pinned to the entry that it means."""

from __future__ import annotations

from typing import Any

from support.documents import store
from support.jobs import FakeProfile, review

from memd.jobs.ports import Attempt, Found
from memd.jobs.reviewers.desk import MOST_OPERATIONS, Desk


def desk(*texts: str, failures: int = 3, **sections: Any) -> tuple[Desk, Found]:
    """A desk over a store ``memory`` with these entries."""
    found, one = Found(), FakeProfile(**sections)
    one.documents["memory"] = store(*texts)
    return Desk(one, Attempt(review(), [], 1000, failures), found), found


def change(action: str, **fields: Any) -> dict[str, Any]:
    return {"action": action, "target": "memory", **fields}


def test_an_entry_that_was_there_is_named_by_id_and_by_what_it_said() -> None:
    """Once; after that the job's own change stands in between."""
    one, found = desk("the port is 8080", "builds use make")
    entry = store("the port is 8080", "builds use make").entries[0]
    one.call(change("replace", old_text="8080", content="the port is 9090"))
    one.call(change("edit", old_text="9090", new_text="9191"))
    one.call(change("remove", id=entry.id))
    named = [(it.action, it.id, it.if_hash, it.old_text) for it in found.operations]
    assert [
        ("replace", entry.id, entry.hash, None),
        ("edit", entry.id, None, "9090"),
        ("remove", entry.id, None, None),
    ] == named


def test_an_entry_that_the_job_made_is_named_by_its_text() -> None:
    """It has no id yet."""
    one, found = desk()
    answer = one.call(change("add", content="likes tea"))
    made = answer["current_entries"][0]["id"]
    one.call(change("replace", id=made, content="likes green tea"))
    one.call(change("edit", id=made, old_text="green", new_text="black"))
    assert [(None, None), (None, "likes tea"), (None, "green")] == [(it.id, it.old_text) for it in found.operations]


def test_what_changes_nothing_is_no_operation() -> None:
    """The answer says so."""
    one, found = desk("likes tea")
    assert "made no difference" in one.call(change("add", content="likes tea"))["message"]
    assert [] == found.operations
    assert ["likes tea"] == [it["text"] for it in one.call(change("read"))["current_entries"]]


def test_a_batch_is_all_or_nothing() -> None:
    """The operation that failed is the one that is listed."""
    one, found = desk("likes tea")
    batch = [{"action": "add", "content": "x y"}, {"action": "remove", "old_text": "nowhere to be found"}]
    answer = one.call({"target": "memory", "operations": batch})
    assert (False, "not_found", 1) == (answer["success"], answer["error"], found.failures)
    assert ([], ["remove"]) == (found.operations, [it.operation.action for it in found.refused])
    assert "current_entries" in answer


def test_the_limits_hold_here_already() -> None:
    """Of the store, of the job, of the turn."""
    one, found = desk("likes tea", limits={"memory": 20}, failures=2)
    assert "over_limit" == one.call(change("add", content="far too long for what is left"))["error"]
    many = [{"action": "add", "content": f"fact number {number}"} for number in range(MOST_OPERATIONS + 1)]
    answer = one.call({"target": "memory", "operations": many})
    assert ("invalid_params", True, True) == (answer["error"], answer["done"], one.exhausted)
    assert [] == found.operations


def test_a_store_that_is_off() -> None:
    """Is told, not tried."""
    one, _ = desk("likes tea", stores={"memory": False})
    assert "store_disabled" == one.call(change("add", content="x"))["error"]
