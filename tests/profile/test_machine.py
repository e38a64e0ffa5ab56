"""A whole profile as a state machine: writes, hand edits, crashes at every step, failing journals, restarts.

What it is: hypothesis makes up lives of a daemon and what people do to its file; a model of plain sets says what has to be
there. What comes in: a scratch directory. What goes out: the shortest story that breaks a promise. What must not be here:
how any of it is done.

The promises: an acknowledged write is in file and journal, once, in order; what was refused for certain never shows up;
what a hand wrote is there and what it deleted is gone; the file parses to the published entries; no temp file stays; undoing
everything leads back to the start.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from support.faults import CrashingFiles, FailingJournal, RacingHand, TornSwap
from support.hosts import CALLER, Host, Life, add, remove, replace
from support.stories import BY_HAND, CRASHES, ENDINGS, HANDS, OPERATIONS, Model
from trio.testing import MockClock

from memd.errors import Conflict, CurationError, StoreError, WireError
from memd.profile.entries import parse
from memd.profile.history import Selector
from memd.store.files import Files

if TYPE_CHECKING:
    from memd.profile.values import Mutation


class ProfileMachine(RuleBasedStateMachine):
    """Each rule is a whole life of the daemon, or what happens to the file while there is none."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="memd-machine-"))
        self.plan = FailingJournal()
        self.host = Host(self.root, connect=self.plan.connect)
        self.host.lag_s = 60  # entries are older than the file that a hand writes next
        self.model = Model()
        self.seen: bytes | None = b""
        self.crashed = False

    def teardown(self) -> None:
        """Undo everything, at last."""
        try:
            trio.run(self._undo_everything, clock=MockClock(autojump_threshold=0))
        finally:
            shutil.rmtree(self.root)

    @rule(operations=OPERATIONS, ending=ENDINGS)
    def live(self, operations: list[tuple[object, ...]], ending: str) -> None:
        """A daemon lives, does and sees things, and ends."""
        trio.run(self._live, operations, ending, clock=MockClock(autojump_threshold=0))

    @rule(hand=HANDS)
    def edit_while_stopped(self, hand: tuple[object, ...]) -> None:
        """A person edits the file while no daemon runs. Writes of unknown outcome are cleared up before.

        After a crash, a file that lacks what came last may be the state before it: it is rolled forward.
        """
        if not self.model.pending and (not self.crashed or hand[0] in {"append", "edit"}):
            self._hand(hand)

    @invariant()
    def no_refused_text_is_in_the_file(self) -> None:
        """Whatever else is unknown after a crash."""
        found = self._file()
        assert self.model.never.isdisjoint(found)
        assert len(found) == len(set(found))

    # -- lives --------------------------------------------------------------------------------------------------

    async def _live(self, operations: list[tuple[object, ...]], ending: str) -> None:
        self.host.files = Files()
        self.plan.heal()
        async with self.host.life("crash" if ending == "crash" else "stop") as life:
            await self._clear_up(life)
            await self._check(life)
            for operation in operations:
                await self._operate(life, operation)
            if ending in CRASHES:
                await self._die(life, ending)
            elif ending == "stop":
                await self._check(life)
            elif any(name in {"delete", "truncate"} for name, *_ in operations):
                await life.look()  # else it may be the state before the last group
        self.crashed = ending != "stop"
        if self.crashed and any(name in BY_HAND for name, *_ in operations):
            self.seen = None  # by memd, perhaps
        else:
            self.seen = self._bytes()
        if not self.crashed:
            assert [] == self.host.temps()

    async def _clear_up(self, life: Life) -> None:
        """Repeat what nobody knows the outcome of; now it is done, once."""
        for mutation in self.model.pending:
            await life.do(mutation)
            self.model.apply(mutation)
        self.model.pending = []

    async def _die(self, life: Life, step: str) -> None:
        mutation = add(self.model.text(), request_id=self.model.request())
        self.model.pending.append(mutation)
        await life.look()
        life.store.files = CrashingFiles(step)
        await life.do(mutation)

    async def _operate(self, life: Life, operation: tuple[object, ...]) -> None:
        name = operation[0]
        if name in BY_HAND:
            await life.look()  # two changes that memd sees as one may be read in more than one way
            self.seen = self._bytes()
            self._hand(operation, bare=True)
        else:
            await getattr(self, f"_do_{name}")(life, *operation[1:])

    async def _check(self, life: Life) -> None:
        await life.look()
        await trio.sleep(2)  # second looks
        await life.look()
        texts = life.texts()
        assert sorted(self.model.present) == sorted(texts)
        mine = [text for text in texts if text not in self.model.by_hand]
        assert [text for text in self.model.present if text not in self.model.by_hand] == mine
        assert texts == self._file()
        head = life.journal.head(life.store.id)
        self.seen = self._bytes()
        assert (head.data if head else b"") == self.seen
        rows, _ = await life.profile.list_revisions(limit=1000)
        added = [
            change.after
            for row in rows
            if row.record.kind == "change" and row.record.undone_by is None
            for change in row.record.changes
            if change.action == "add"
        ]
        assert len(added) == len(set(added))

    async def _undo_everything(self) -> None:
        self.host.files = Files()
        self.plan.heal()
        async with self.host.life() as life:
            await self._clear_up(life)
            await self._check(life)
            for _ in range(1000):
                try:
                    done = await life.profile.undo(Selector(last=1), CALLER)
                except WireError:
                    break
                assert () == done.conflicts
            assert [] == life.texts()
        assert [] == self._file()

    # -- what clients do ----------------------------------------------------------------------------------------

    def _mutation(self, write: tuple[object, ...]) -> Mutation:
        model = self.model
        name, at = write[0], write[1] if len(write) > 1 else 0
        if name in {"replace", "remove"} and model.present:
            assert isinstance(at, int)
            old = model.present[at % len(model.present)]
            if name == "remove":
                return remove(old, request_id=model.request())
            return replace(old, model.text(), request_id=model.request())
        return add(model.text(), request_id=model.request())

    async def _submit(self, life: Life, mutation: Mutation) -> None:
        """Make a change; a definite error is believed, an unknown one is asked about until it is known."""
        for _ in range(20):
            try:
                await life.do(mutation)
            except StoreError as error:
                if error.outcome == "none":
                    if mutation.operations[0].content:
                        self.model.never.add(mutation.operations[0].content)
                    return
                await trio.sleep(1)
            else:
                self.model.apply(mutation)
                return
        raise AssertionError

    async def _do_add(self, life: Life) -> None:
        await self._submit(life, self._mutation(("add",)))

    async def _do_burst(self, life: Life, count: int) -> None:
        """Pipelined: one connection, answers in any order, applied in this one."""
        mutations = [self._mutation(("add",)) for _ in range(count)]
        tickets = [life.submit(mutation) for mutation in mutations]
        for mutation, ticket in zip(mutations, tickets, strict=True):
            try:
                await ticket.wait()
            except StoreError as error:
                if error.outcome == "unknown":
                    await trio.sleep(5)
                    await self._submit(life, mutation)
                else:
                    self.model.never.add(str(mutation.operations[0].content))
            else:
                self.model.apply(mutation)

    async def _do_replace(self, life: Life, at: int) -> None:
        await self._submit(life, self._mutation(("replace", at)))

    async def _do_remove(self, life: Life, at: int) -> None:
        await self._submit(life, self._mutation(("remove", at)))

    async def _do_again(self, life: Life, at: int) -> None:
        """The same call under the same id is answered again and not done again."""
        if self.model.acknowledged:
            mutation = list(self.model.acknowledged.values())[at % len(self.model.acknowledged)]
            assert (await life.do(mutation)).replayed

    async def _do_reuse(self, life: Life, at: int) -> None:
        """Another call under the same id is a conflict."""
        if self.model.acknowledged:
            request_id = list(self.model.acknowledged)[at % len(self.model.acknowledged)]
            text = self.model.text()
            self.model.never.add(text)
            await self._refused(life, add(text, request_id=request_id), Conflict)

    async def _do_refused(self, life: Life) -> None:
        text = self.model.text()
        self.model.never.add(text)
        await self._refused(life, replace("no such entry", text), CurationError)

    async def _refused(self, life: Life, mutation: Mutation, kind: type[WireError]) -> None:
        try:
            await life.do(mutation)
        except kind:
            return
        raise AssertionError

    async def _do_undo_redo(self, life: Life) -> None:
        """Back and forth is where we were."""
        await life.look()
        try:
            undone = await life.profile.undo(Selector(last=1), CALLER)
        except WireError:
            return
        assert () == undone.conflicts
        redone = await life.profile.undo(Selector(last=1), CALLER, redo=True)
        assert () == redone.conflicts

    async def _do_wait(self, life: Life, seconds: float) -> None:
        assert life is not None
        await trio.sleep(seconds)

    async def _do_look(self, life: Life) -> None:
        await life.look()

    async def _do_fault(self, life: Life, fault: tuple[str, str, bool, int], write: tuple[object, ...]) -> None:
        """The journal fails at a statement; the outcome is told as it is."""
        at, name, done, opening = fault
        await life.look()
        self.plan.fail(at, name=name, done=done, opening=opening)
        await getattr(self, f"_do_{write[0]}")(life, *write[1:])
        self.plan.heal()
        await trio.sleep(3)

    async def _do_torn_swap(self, life: Life, write: tuple[object, ...]) -> None:
        """The file cannot be replaced; the change is taken back."""
        await life.look()
        life.store.files = TornSwap()
        await getattr(self, f"_do_{write[0]}")(life, *write[1:])
        life.store.files = Files()

    async def _do_raced(self, life: Life, write: tuple[object, ...]) -> None:
        """A hand appends between our look and our swap."""
        text = self.model.text()

        def append(path: str) -> None:
            self.model.saved.append({*self._file(), text})
            with open(path, "ab") as file:
                file.write(f"\n§\n{text}\n".encode())

        await life.look()
        files = RacingHand(append)
        life.store.files = files
        await getattr(self, f"_do_{write[0]}")(life, *write[1:])
        life.store.files = Files()
        if not files.edits:
            self._written(text)
        await life.look()  # else the next hand would not know of it

    # -- what hands do ------------------------------------------------------------------------------------------

    def _bytes(self) -> bytes:
        return self.host.memory.read_bytes() if self.host.memory.exists() else b""

    def _file(self) -> list[str]:
        return [entry.text for entry in parse(self._bytes()).entries]

    def _save(self, texts: list[str]) -> None:
        self.model.saved.append(set(texts))
        self.host.write("\n§\n".join(texts) + ("\n" if texts else ""))

    def _written(self, text: str) -> None:
        self.model.present.append(text)
        self.model.by_hand.add(text)

    def _hand(self, operation: tuple[object, ...], *, bare: bool = False) -> None:
        """``bare``: what is appended has no border before it, which only memd can tell, and only if it looks then."""
        name, at = operation[0], operation[1] if len(operation) > 1 else 0
        texts, model = self._file(), self.model
        assert isinstance(at, int)
        if self.seen != self._bytes() and name != "truncate":
            return
        if name == "truncate":
            if texts:
                self.host.write("")
            model.present.clear()
        elif name == "append":
            text = model.text()
            self.host.directory.mkdir(exist_ok=True)
            self.host.append(text + "\n" if bare else f"\n§\n{text}\n")
            model.saved.append(set(self._file()))
            self._written(text)
        elif name in {"edit", "delete"} and texts:
            self._change(texts, at, delete=name == "delete")
        elif name in {"open_editor", "save_editor"}:
            self._use_editor(texts, save=name == "save_editor")

    def _change(self, texts: list[str], at: int, *, delete: bool) -> None:
        """A person alters an entry or deletes it."""
        model, old = self.model, texts[at % len(texts)]
        if not delete:
            new = old + " x"
            self._save([new if text == old else text for text in texts])
            model.present[model.present.index(old)] = new
            model.by_hand.add(new)
        elif set(texts) - {old} not in model.saved:
            # Else it could be the program that saved just this before, and does so again without having looked.
            self._save([text for text in texts if text != old])
            model.present.remove(old)

    def _use_editor(self, texts: list[str], *, save: bool) -> None:
        """An editor shows a version, and is saved later with a line more; it deletes nothing that it never showed."""
        if not save:
            self.model.opened = texts
        elif self.model.opened:
            text = self.model.text()
            self._save([*self.model.opened, text])
            self._written(text)
            self.model.opened = None


def test_every_promise_is_kept_in_a_few_stories() -> None:
    """Enough to see at once that something is wrong."""
    run_state_machine_as_test(ProfileMachine, settings=settings(max_examples=12, stateful_step_count=5))


@pytest.mark.slow
def test_every_promise_is_kept_in_many_stories() -> None:
    """``--profile=long`` makes up many more."""
    run_state_machine_as_test(ProfileMachine, settings=settings(stateful_step_count=8))
