"""Planning a group: on drafts only, so that it can be thrown away and planned anew."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace as with_fields
from support.hosts import CALLER, add, change, replace

from memd.errors import IoFailure, NotFound
from memd.profile.content import text_hash
from memd.profile.draft import Draft
from memd.profile.editing import Edit
from memd.profile.group import GROUP_OPERATIONS, Group, plan_group
from memd.profile.importing import Import, Source
from memd.profile.memory_store import MemoryStore
from memd.profile.values import TARGETS, Limits, Mutation, Operation
from memd.profile.work import Work
from memd.store.files import Files, Image
from memd.store.place import locate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from memd.errors import StoreError


@pytest.fixture
def stores(tmp_path: Path) -> tuple[MemoryStore, MemoryStore]:
    """Both stores of a profile, never written."""
    places = (locate(str(tmp_path), name) for name in ("MEMORY.md", "USER.md"))
    memory, user = (
        MemoryStore(target=target, place=place, limits=Limits(1000), files=Files(), profiles=["p"])
        for target, place in zip(TARGETS, places, strict=True)
    )
    memory.id, user.id = 1, 2
    return memory, user


def _plan(
    stores: Sequence[MemoryStore],
    queue: Sequence[Work],
    *,
    data: bytes | None = None,
    failed: Mapping[MemoryStore, StoreError] | None = None,
) -> Group:
    numbers = itertools.count(1)
    drafts = {
        store: Draft(store, Image(data), 5, lambda: next(numbers)) for store in stores if store not in (failed or {})
    }
    return plan_group(queue, drafts, now_us=5, failed=failed or {})


def _work(store: MemoryStore, mutation: Mutation) -> Work:
    return Work(Edit(store, mutation), "p", CALLER, mutation.request_id, mutation.fingerprint)


def test_operations_build_on_each_other(stores: tuple[MemoryStore, MemoryStore]) -> None:
    """Results, no-ops and refusals alike; the store itself is as it was."""
    memory, _ = stores
    queue = [
        _work(memory, mutation) for mutation in (add("alpha"), replace("alpha", "beta"), add("beta"), replace("x", "y"))
    ]
    group = _plan([memory], queue)
    assert [True, True, False] == [answer.result.changed for answer in group.answers[:3] if answer.result]  # type: ignore[union-attr]  # Committed
    assert isinstance(group.answers[3].error, NotFound)
    assert ["beta"] == [entry.text for entry in group.drafts[memory].document.entries]
    assert ((), 0, set()) == (memory.document.entries, memory.revision, memory.used_ids)
    assert not any(work.ticket.done for work in queue)
    again = _plan([memory], queue)
    assert [answer.result for answer in group.answers] == [answer.result for answer in again.answers]


def test_one_rendering_for_each_store_of_a_group(stores: tuple[MemoryStore, MemoryStore]) -> None:
    """However many revisions; ids that were given out are recorded."""
    memory, user = stores
    group = _plan(
        stores, [_work(memory, add("alpha")), _work(memory, add("beta")), _work(user, add("who", target="user"))]
    )
    data = {draft.target: draft.finish() for draft in group.drafts.values()}
    part = group.part(5)
    assert {"memory": "alpha\n§\nbeta\n".encode(), "user": b"who\n"} == data
    assert ([1, 2, 3], [2, 3]) == ([r.revision for r in part.revisions], [r.revision for r in part.renderings])
    assert 3 == len(part.entry_ids)


def test_work_on_a_store_that_is_not_ready_waits_and_so_does_what_stands_behind(
    stores: tuple[MemoryStore, MemoryStore],
) -> None:
    """A change to both files is in its place in both queues."""
    memory, user = stores
    both = Work(Import({memory: Source(), user: Source()}, CALLER), "p", CALLER)
    behind = _work(user, add("behind", target="user"))
    group = _plan([user], [_work(user, add("first", target="user")), both, behind])
    assert ["first"] == [entry.text for entry in group.drafts[user].document.entries]
    assert 1 == len(group.answers)


def test_work_on_a_store_that_fell_out_is_answered_with_why(stores: tuple[MemoryStore, MemoryStore]) -> None:
    """The other store's goes on."""
    memory, user = stores
    error = IoFailure("disk", outcome="none")
    group = _plan(stores, [_work(memory, add("alpha")), _work(user, add("who", target="user"))], failed={memory: error})
    assert [error, None] == [answer.error for answer in group.answers]
    assert [user] == list(group.drafts)


def test_a_group_is_bounded_in_operations(stores: tuple[MemoryStore, MemoryStore]) -> None:
    """One batch always fits."""
    memory, _ = stores
    operations = tuple(Operation("add", content="the same") for _ in range(GROUP_OPERATIONS))
    batch = with_fields(add("x"), operations=operations, batch=True)
    group = _plan([memory], [_work(memory, batch), _work(memory, add("later"))])
    assert 1 == len(group.answers)


def test_settled_work_is_passed_over(stores: tuple[MemoryStore, MemoryStore]) -> None:
    """It was taken out in time."""
    memory, _ = stores
    work = _work(memory, add("alpha"))
    work.ticket.withdraw(IoFailure("late"))
    assert [] == _plan([memory], [work]).answers


@pytest.mark.parametrize(
    ("mutation", "needed"),
    [
        (add("alpha"), True),
        (replace("x", "y"), False),
        (change("add", content="there"), False),
        (change("add", content="there", request_id="r"), True),
    ],
)
def test_whether_anything_has_to_become_durable(
    stores: tuple[MemoryStore, MemoryStore], mutation: Mutation, needed: bool
) -> None:
    """A change, or an answer that is remembered under an id."""
    memory, _ = stores
    first = _plan([memory], [_work(memory, add("there"))])
    draft = first.drafts[memory]
    draft.finish()
    draft.settle()
    group = _plan([memory], [_work(memory, mutation)], data=b"there\n")
    assert needed == group.needs_commit


def test_a_refused_text_is_kept_as_its_hash() -> None:
    """Without outer blanks."""
    assert text_hash("text") == text_hash(" text\n")
    assert 32 == len(text_hash("caf\udce9"))
