"""Stories of a commit, for faults to be put into: what is asked, and what a hand does meanwhile.

What comes in: a life of a host. What goes out: what was asked and answered, told as it happens; what is there at the end.
What must not be here: faults, expectations.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import trio
from support.judged import DOUBTFUL
from support.promises import Found

from memd.profile.entries import parse
from memd.sessions.frozen import decode
from memd.store import queries
from memd.store.place import fsync_directory
from memd.store.records import EventRecord, Part

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from support.asking import Run
    from support.hosts import Ending, Life

    from memd.profile.profile import Profile
    from memd.store.journal import Journal
    from memd.store.reserve import Reserve


@dataclass(frozen=True)
class Scenario:
    """``before``: an earlier life, which ends in its own way; ``prepare`` and ``body``: the life in which calls fail, from its
    start (``at_start``) or from the body on, until the body's end or the life's (``at_end``). ``reserve``: it keeps room for a
    full disk. ``damaged``: the earlier life's journal is, when the next begins.
    """

    body: Callable[[Run], Awaitable[None]]
    prepare: Callable[[Run], Awaitable[None]] | None = None
    before: Callable[[Run], Awaitable[None]] | None = None
    ending: Ending = "stop"
    at_start: bool = False
    at_end: bool = False
    reserve: bool = False
    damaged: bool = False


async def recovered(life: Life) -> Found:
    """What is there, over all profiles."""
    published: list[str] = []
    in_files: list[str] = []
    recorded: list[bytes] = []
    for profile in life.profiles.by_name.values():
        for store in profile.stores.values():
            published += [entry.text for entry in store.state.document.entries]
            data = _bytes(Path(store.place.path))
            in_files += [entry.text for entry in parse(data).entries]
            saved = await life.committer.query(queries.preimages, life.journal, store.id)
            recorded += [data, *(bytes_ for _, _, bytes_ in saved)]
        rows, _ = await profile.list_revisions(limit=1000)
        recorded += [text for row in rows for item in row.record.changes for text in (item.before, item.after) if text]
    trouble = [f"{name} is not served: {error}" for name, error in life.profiles.problems.items()]
    states = dict(await life.committer.query(_sessions, life.journal))
    for profile in life.profiles.by_name.values():
        states.update(_judgements(profile))
    text = b"\n".join(recorded).decode("utf-8", "replace")
    return Found(tuple(published), tuple(in_files), text, tuple(trouble), states)


def _sessions(journal: Journal) -> Iterator[tuple[str, str]]:
    """What became of sessions: one without its snapshot is of no use."""
    records, snapshots, _ = journal.sessions()
    for record in records:
        try:
            decode(snapshots[record.snapshot].body)
        except (KeyError, msgspec.DecodeError):
            yield f"session: {record.key}", "damaged"
        else:
            yield f"session: {record.key}", "open"


def _judgements(profile: Profile) -> Iterator[tuple[str, str]]:
    """What became of proposals, and which texts are in prompts."""
    for proposal in profile.guard.proposals.everything():
        yield f"proposal: {proposal.operations[0].content}", proposal.state
    for target in profile.stores:
        state = profile.state(target)
        for entry in state.document.entries:
            yield f"in prompts: {entry.text}", "withheld" if entry.id in state.withheld else "shown"


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


async def _one(run: Run) -> None:
    await run.add("the first")


async def _three(run: Run) -> None:
    for text in ("one", "two", "three"):
        await run.add(text)


async def _first_write(run: Run) -> None:
    await run.add("the very first")


async def _ordinary(run: Run) -> None:
    await run.add("new")
    await run.replace("one", "other")
    await run.remove("two")


async def _group(run: Run) -> None:
    await run.together(
        run.add("in p"), run.add("beside it"), run.add("in q", profile="q"), run.add("in r", profile="r", target="user")
    )


async def _adoption(run: Run) -> None:
    run.append_by_hand("by hand")
    await run.add("beside the hand")


async def _adoption_alone(run: Run) -> None:
    run.append_by_hand("by hand alone")
    await run.life.look()


async def _checkpoint(run: Run) -> None:
    await run.add("checkpointed")
    await trio.sleep(7)


async def _linked(run: Run) -> None:
    await _three(run)
    os.link(run.life.host.memory, run.life.host.root / "another name")
    fsync_directory(run.life.host.root)


async def _to_nothing(run: Run) -> None:
    await run.together(run.remove("one"), run.remove("two"), run.remove("three"))


async def _undo(run: Run) -> None:
    await run.undo("three")


async def _both_stores(run: Run) -> None:
    await run.add("user", target="user")
    await run.add("memory")
    await run.undo("memory")


async def _two_stores(run: Run) -> None:
    await run.add("in memory", session="s")
    await run.add("in user", target="user", session="s")
    await run.undo_session("s", "in memory", "in user")


async def _sessions_open(run: Run) -> None:
    await run.sessions("the first")
    await run.sessions("the second", close=True)


async def _reserve(run: Run) -> None:
    reserve = _reserve_of(run)
    await run.life.committer.query(reserve.keep)
    await run.add("four")
    await run.remove("one")
    await run.life.committer.query(reserve.keep)  # as the daemon does from time to time


async def _keep(run: Run) -> None:
    await _three(run)
    await run.life.committer.query(_reserve_of(run).keep)


def _reserve_of(run: Run) -> Reserve:
    assert run.life.host.reserve is not None
    return run.life.host.reserve


async def _proposal(run: Run) -> None:
    await run.propose("proposed")


async def _proposed(run: Run) -> None:
    await run.propose("let in")
    await run.propose("turned down")


async def _decisions(run: Run) -> None:
    await run.approve("let in")
    await run.reject("turned down")


async def _withheld(run: Run) -> None:
    run.append_by_hand(DOUBTFUL, withheld=True)
    await run.life.look()
    await run.let_in(DOUBTFUL)


async def _to_redact(run: Run) -> None:
    await run.add("one")
    await run.add("the word is hunter2")


async def _redact(run: Run) -> None:
    await run.redact("hunter2", "the word is hunter2")
    await run.add("after it")


async def _unwaited(run: Run) -> None:
    await run.add("beside a part")
    run.life.committer.add(Part(events=[EventRecord(us=1, topic="store.state", profile="p")]))
    await trio.sleep(2)


SCENARIOS: dict[str, Scenario] = {
    "first write": Scenario(_first_write),
    "ordinary": Scenario(_ordinary, prepare=_three),
    "group": Scenario(_group, prepare=_one),
    "adoption": Scenario(_adoption, prepare=_three),
    "adoption alone": Scenario(_adoption_alone, prepare=_three),
    "checkpoint": Scenario(_checkpoint, prepare=_one),
    "in place": Scenario(_ordinary, prepare=_linked),
    "to nothing": Scenario(_to_nothing, prepare=_three),
    "undo": Scenario(_undo, prepare=_three),
    "both stores": Scenario(_both_stores, prepare=_three),
    "undo over two stores": Scenario(_two_stores, prepare=_one),
    "a part nobody waits for": Scenario(_unwaited, prepare=_one),
    "sessions": Scenario(_sessions_open, prepare=_one),
    "reserve": Scenario(_reserve, prepare=_three, reserve=True),
    "reserve spent": Scenario(_to_nothing, prepare=_keep, reserve=True),
    "proposal": Scenario(_proposal, prepare=_one),
    "decisions": Scenario(_decisions, prepare=_proposed),
    "withheld": Scenario(_withheld, prepare=_one),
    "redact": Scenario(_redact, prepare=_to_redact),
    "stop": Scenario(_one, prepare=_three, at_end=True),
    "start": Scenario(_first_write, before=_three, at_start=True),
    "start on a damaged journal": Scenario(_first_write, before=_three, at_start=True, damaged=True),
    "start after a crash": Scenario(_first_write, before=_three, ending="crash", at_start=True),
}
