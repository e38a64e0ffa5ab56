"""One life through which changes are asked for, each told before and after it is answered.

What comes in: a life of a host, texts. What goes out: what was asked and answered, as lines for a ``Ledger``. What must not be
here: faults, expectations, the stories themselves (``scenarios.py``).
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import trio
from msgspec.structs import replace
from support import judged
from support.hosts import CALLER, change

from memd.errors import MemdError
from memd.profile.erasing import Erasing
from memd.profile.history import Selector
from memd.profile.work import entry_by_id
from memd.sessions import OpenRequest, SessionRegistry
from memd.store.place import fsync_directory

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from support.hosts import Life

    from memd.profile.profile import Profile
    from memd.profile.values import Mutation, Target

    Ask = Callable[[], Awaitable[Any]]

PATIENCE_S = 60
TRIES = 20
"""A second apart, as the daemon tries."""
Say = Literal["done", "none", "unknown"]


@dataclass
class Run:
    """One life, through which changes are asked for, each told before and after."""

    life: Life
    tell: Callable[..., None]
    paused: Callable[[], AbstractContextManager[None]] = nullcontext
    doubtful: list[tuple[Profile, Callable[[], Awaitable[Say]]]] = field(default_factory=list)
    done: set[str] = field(default_factory=set)
    proposals: dict[str, str] = field(default_factory=dict)

    @property
    def profile(self) -> Profile:
        """The first profile."""
        return self.life.profiles.by_name["p"]

    async def add(
        self, text: str, *, profile: str = "p", target: Target = "memory", session: str | None = None
    ) -> None:
        """Add an entry, in a session if one is named."""
        mutation = change("add", content=text, target=target, request_id=f"add {text}")
        mutation = replace(mutation, caller=replace(CALLER, session=session))
        await self._ask(profile, mutation, text, None)

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
        await self._answer(lambda: self.profile.undo(Selector(last=1), CALLER), None, text)

    async def undo_session(self, session: str, *texts: str) -> None:
        """Undo what a session did, if it is these texts that it added, as one change."""
        if not self.done.issuperset(texts):
            return
        for text in texts:
            self.tell("asked", None, text)
        self.tell("as_one", *texts)

        async def undo() -> Say:
            selector, request = Selector(session=session), f"undo {session}"
            outcome = await self._outcome(lambda: self.profile.undo(selector, CALLER, request_id=request), request)
            for text in texts:
                self.tell("answered", None, text, outcome)
            return outcome

        if await undo() == "unknown":
            self.doubtful.append((self.profile, undo))

    # -- what is no entry ---------------------------------------------------------------------------------------

    async def propose(self, text: str) -> None:
        """A tool proposes an entry, which waits for a person."""
        mutation = judged.mutation(judged.add(text), caller=judged.TOOL, request_id=f"propose {text}")
        self.tell("answered", text, None, "none")  # whatever happens, it is no entry

        async def ask() -> None:
            staged = (await self.profile.submit(mutation).wait()).staged
            if staged is None:
                self.tell("broken", f"not staged: {text}")
            else:
                self.proposals[text] = staged

        await self._become(f"proposal: {text}", "pending", ask)

    async def approve(self, text: str) -> None:
        """A person lets a proposal in, if it is known to be there."""
        if text not in self.proposals:
            return
        approvals, known = self.profile.approvals, self.proposals[text]
        self.tell("asked", text, None)

        async def ask() -> None:
            await approvals.approve(known, judged.DECIDER, request_id=f"approve {text}", fingerprint=b"f").wait()

        await self._become(f"proposal: {text}", "approved", ask, lambda said: self.tell("answered", text, None, said))

    async def reject(self, text: str) -> None:
        """A person rejects a proposal, if it is known to be there."""
        if text not in self.proposals:
            return
        approvals, known = self.profile.approvals, self.proposals[text]
        await self._become(
            f"proposal: {text}",
            "rejected",
            lambda: approvals.reject(known, judged.DECIDER, request_id=f"reject {text}"),
        )

    async def let_in(self, text: str) -> None:
        """A person lets an entry into prompts that the scan keeps out of them."""
        state = self.profile.state("memory")
        found = [key for key in state.withheld if (entry := entry_by_id(state.document, key)) and entry.text == text]
        if not found:
            return
        approvals = self.profile.approvals
        await self._become(
            f"in prompts: {text}", "shown", lambda: approvals.approve(found[0], judged.DECIDER, fingerprint=b"f").wait()
        )

    async def sessions(self, key: str, *, close: bool = False) -> None:
        """A session is opened and a turn begun, then it is closed if so wished."""
        registry = SessionRegistry(self.life.committer, clock=self.life.clock.now_us, token=os.urandom)

        async def opened() -> None:
            session = registry.open(self.profile, OpenRequest(key=key), may_read=True).session
            if session.saved is not None:
                await session.saved.wait()

        async def turned() -> None:
            session = registry.open(self.profile, OpenRequest(key=key), may_read=True).session
            await registry.begin_turn(session, "t1", user=True, counted=True).wait()

        async def closed() -> None:
            session = registry.open(self.profile, OpenRequest(key=key), may_read=True).session
            await registry.close(session).wait()

        await self._become(f"session: {key}", "open", opened)
        await self._become(f"session: {key}", "open", turned)
        if close:
            await self._become(f"session: {key}", None, closed)

    async def redact(self, word: str, entry: str) -> None:
        """Hide a word for good, which is in this entry if anywhere."""
        if entry not in self.done:
            return
        left = entry.replace(word, "[redacted]")
        self.tell("asked", left, entry)

        async def ask() -> None:
            erasing = Erasing(self.life.profiles, self.life.committer, self.life.host.runner)
            with erasing.as_one():
                await erasing.choose("p", text=word, revision=None)
                await erasing.from_files(CALLER)
                await erasing.from_journal()

        doubt = False

        async def erase() -> Say:
            nonlocal doubt
            outcome = await self._outcome(ask, entry)
            if doubt and outcome == "none":
                outcome = "unknown"  # it has no request id: this says nothing of what the call before has done
            doubt = outcome == "unknown"
            self.tell("answered", left, entry, outcome)
            if outcome == "done":
                self.tell("redacted", word)
            return outcome

        if await erase() == "unknown":
            self.doubtful.append((self.profile, erase))

    # -- together, by hand, and again ---------------------------------------------------------------------------

    async def together(self, *asks: Awaitable[None]) -> None:
        """All of these at once."""

        async def one(ask: Awaitable[None]) -> None:
            await ask

        async with trio.open_nursery() as nursery:
            for ask in asks:
                nursery.start_soon(one, ask)

    def append_by_hand(self, text: str, *, withheld: bool = False) -> None:
        """A careful hand appends to the file, and sees to it that it is on the disk; ``withheld``: the scan knows better."""
        with self.paused():
            with self.life.host.memory.open("a") as file:
                file.write(f"§\n{text}\n")
                file.flush()
                os.fsync(file.fileno())
            fsync_directory(self.life.host.directory)
        self.tell("saved", text)
        if withheld:
            self.tell("becoming", f"in prompts: {text}", "withheld")
            self.tell("became", f"in prompts: {text}", "withheld", "done")

    async def ask_again(self) -> None:
        """Whatever nobody knows is asked again under its id, until it is known."""
        for profile, ask in self.doubtful:
            if self._stopped(profile):
                continue
            for _ in range(TRIES):
                if await ask() != "unknown":
                    break
                await trio.sleep(1)
            else:
                self.tell("broken", f"never known in {profile.name}")

    async def next_write_works(self) -> None:
        """Once the disk is well again, a write is taken within a few seconds."""
        for _ in range(TRIES):
            await self.life.profiles.open_refused()  # as the daemon does each second
            if not self.life.profiles.problems:
                break
            await trio.sleep(1)
        for name, profile in self.life.profiles.by_name.items():
            if self._stopped(profile):
                continue
            text = f"afterwards in {name} of {self.life.host.boot} {os.getpid()}"
            mutation = change("add", content=text, request_id=text)
            self.tell("asked", text, None)
            for _ in range(TRIES):
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

        def ask() -> Awaitable[Say]:
            return self._answer(lambda: profile.submit(mutation).wait(), come, gone)

        if await ask() == "unknown":
            self.doubtful.append((profile, ask))

    async def _answer(self, ask: Ask, come: str | None, gone: str | None) -> Say:
        outcome = await self._outcome(ask, str(come or gone))
        self.tell("answered", come, gone, outcome)
        if outcome == "done" and come is not None:
            self.done.add(come)
        return outcome

    async def _become(
        self, thing: str, state: str | None, ask: Ask, also: Callable[[Say], None] = lambda _: None
    ) -> None:
        """Ask for something other than an entry, again later if need be; ``also`` is told the outcome before."""

        async def become() -> Say:
            outcome = await self._outcome(ask, thing)
            also(outcome)
            self.tell("became", thing, state, outcome)
            return outcome

        self.tell("becoming", thing, state)
        if await become() == "unknown":
            self.doubtful.append((self.profile, become))

    async def _outcome(self, ask: Ask, about: str) -> Say:
        try:
            with trio.fail_after(PATIENCE_S):
                await ask()
        except MemdError as error:
            return "unknown" if getattr(error, "outcome", None) == "unknown" else "none"
        except trio.TooSlowError:
            self.tell("broken", f"no answer about {about}")
            return "unknown"
        return "done"
