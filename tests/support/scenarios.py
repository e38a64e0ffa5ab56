"""Stories of a commit, for faults to be put into: what is asked, and what a hand does meanwhile.

What comes in: a life of a host. What goes out: what was asked and answered, told as it happens; what is there at the end.
What must not be here: faults, expectations.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import trio
from support.hosts import CALLER, change
from support.promises import Found

from memd.errors import MemdError
from memd.profile.entries import parse
from memd.profile.history import Selector
from memd.store import queries
from memd.store.place import fsync_directory
from memd.store.records import EventRecord, Part

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from support.hosts import Ending, Life

    from memd.profile.profile import Profile
    from memd.profile.values import Mutation, Target

PATIENCE_S = 60
Say = Literal["done", "none", "unknown"]


@dataclass
class Run:
    """One life, through which changes are asked for, each told before and after."""

    life: Life
    tell: Callable[..., None]
    paused: Callable[[], AbstractContextManager[None]] = nullcontext
    doubtful: list[tuple[Profile, Mutation, str | None, str | None]] = field(default_factory=list)
    done: set[str] = field(default_factory=set)

    async def add(self, text: str, *, profile: str = "p", target: Target = "memory") -> None:
        """Add an entry."""
        await self._ask(profile, change("add", content=text, target=target, request_id=f"add {text}"), text, None)

    async def remove(self, text: str, *, profile: str = "p") -> None:
        """Remove an entry."""
        await self._ask(profile, change("remove", old_text=text, request_id=f"remove {text}"), None, text)

    async def replace(self, old: str, new: str, *, profile: str = "p") -> None:
        """Put an entry in the place of another."""
        mutation = change("replace", old_text=old, content=new, request_id=f"replace {old}")
        await self._ask(profile, mutation, new, old)

    async def undo(self, text: str) -> None:
        """Undo the newest change, if it is the one that added this."""
        if text not in self.done:
            return
        self.tell("asked", None, text)
        profile = self.life.profiles.by_name["p"]
        await self._answer(lambda: profile.undo(Selector(last=1), CALLER), None, text)

    async def together(self, *asks: Awaitable[None]) -> None:
        """All of these at once."""

        async def one(ask: Awaitable[None]) -> None:
            await ask

        async with trio.open_nursery() as nursery:
            for ask in asks:
                nursery.start_soon(one, ask)

    def append_by_hand(self, text: str) -> None:
        """A careful hand appends to the file, and sees to it that it is on the disk."""
        with self.paused():
            with self.life.host.memory.open("a") as file:
                file.write(f"§\n{text}\n")
                file.flush()
                os.fsync(file.fileno())
            fsync_directory(self.life.host.directory)
        self.tell("saved", text)

    async def ask_again(self) -> None:
        """Whatever nobody knows is asked again under its id, until it is known."""
        for profile, mutation, come, gone in self.doubtful:
            if self._stopped(profile):
                continue
            for _ in range(20):
                if await self._answer(lambda: profile.submit(mutation).wait(), come, gone) != "unknown":  # noqa: B023
                    break
                await trio.sleep(1)
            else:
                self.tell("broken", f"never known: {mutation.request_id}")

    async def next_write_works(self) -> None:
        """Once the disk is well again, a write is taken within a few seconds."""
        await self.life.profiles.open_refused()  # as the daemon does each second
        for name, profile in self.life.profiles.by_name.items():
            if self._stopped(profile):
                continue
            text = f"afterwards in {name} of {self.life.host.boot} {os.getpid()}"
            mutation = change("add", content=text, request_id=text)
            self.tell("asked", text, None)
            for _ in range(20):
                if await self._answer(lambda: profile.submit(mutation).wait(), text, None) == "done":  # noqa: B023
                    break
                await trio.sleep(1)
            else:
                self.tell("broken", f"{name} takes no writes any more")
        for name, error in self.life.profiles.problems.items():
            self.tell("broken", f"{name} is not served: {error}")

    def _stopped(self, profile: Profile) -> bool:
        """Whether a store has stopped writing, since neither a swap nor taking it back was possible; it says so."""
        broken = [store.broken for store in profile.stores.values() if store.broken is not None]
        if broken:
            self.tell("stopped", broken[0].message)
        return bool(broken)

    async def _ask(self, name: str, mutation: Mutation, come: str | None, gone: str | None) -> None:
        profile = self.life.profiles.by_name.get(name)
        if profile is None:
            return  # refused at the start
        self.tell("asked", come, gone)
        if await self._answer(lambda: profile.submit(mutation).wait(), come, gone) == "unknown":
            self.doubtful.append((profile, mutation, come, gone))

    async def _answer(self, ask: Callable[[], Awaitable[Any]], come: str | None, gone: str | None) -> Say:
        outcome: Say = "done"
        try:
            with trio.fail_after(PATIENCE_S):
                await ask()
        except MemdError as error:
            outcome = "unknown" if getattr(error, "outcome", None) == "unknown" else "none"
        except trio.TooSlowError:
            self.tell("broken", f"no answer about {come or gone}")
            outcome = "unknown"
        self.tell("answered", come, gone, outcome)
        if outcome == "done" and come is not None:
            self.done.add(come)
        return outcome


@dataclass(frozen=True)
class Scenario:
    """``before``: an earlier life, which ends in its own way; ``prepare`` and ``body``: the life in which calls fail, from its
    start (``at_start``) or from the body on, until the body's end or the life's (``at_end``).
    """

    body: Callable[[Run], Awaitable[None]]
    prepare: Callable[[Run], Awaitable[None]] | None = None
    before: Callable[[Run], Awaitable[None]] | None = None
    ending: Ending = "stop"
    at_start: bool = False
    at_end: bool = False


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
    return Found(tuple(published), tuple(in_files), b"\n".join(recorded).decode("utf-8", "replace"), tuple(trouble))


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


async def _session(run: Run) -> None:
    await run.add("beside a session")
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
    "a part nobody waits for": Scenario(_session, prepare=_one),
    "stop": Scenario(_one, prepare=_three, at_end=True),
    "start": Scenario(_first_write, before=_three, at_start=True),
    "start after a crash": Scenario(_first_write, before=_three, ending="crash", at_start=True),
}
