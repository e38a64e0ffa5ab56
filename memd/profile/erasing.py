"""Erasing: a redaction seen through all memory files and then the journal.

What comes in: the profiles, the committer, what to redact. What goes out: how many places it was taken out of, or an error
after which it can be run again. What must not be here: sessions (their owner sees to them in between), wire types.

First the files: only when no file holds the text any longer is the journal masked, or what is in a file would be taken for
an outside edit and come back into the journal.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import trio
from msgspec.structs import replace

from memd.errors import Busy, IoFailure, NoSpace, NoSuchRevision, WireError
from memd.profile.content import text_hash
from memd.profile.redacting import Redact, mask_of_revision, mask_of_text
from memd.profile.values import Notice
from memd.profile.work import Work
from memd.store import queries, redaction
from memd.store.masking import Mask

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memd.profile.memory_store import MemoryStore
    from memd.profile.profiles import Profiles
    from memd.profile.values import Caller, Committed
    from memd.store.committer import Committer
    from memd.store.redaction import Redacted
    from memd.store.threads import Runner

LET_GO_S = 10.0
"""How long to wait for displaced files, each of which is kept for a second: somebody may still write to it."""


class Erasing:
    """One redaction. Call ``choose``, ``from_files``, then ``from_journal``, all in ``as_one``; each may be repeated.

    ``changed``: something is not as it was, so that no error may say that nothing is done.
    """

    def __init__(self, profiles: Profiles, committer: Committer, runner: Runner) -> None:
        self.mask = Mask(())
        self.stubs: frozenset[int] = frozenset()
        self.changed = False
        self._profiles = profiles
        self._committer = committer
        self._runner = runner

    def __repr__(self) -> str:
        return f"<Erasing {self.mask!r}>"

    @contextmanager
    def as_one(self) -> Iterator[None]:
        """An error in here has ``outcome`` "unknown" once anything was changed: it is half done, and has to be run again."""
        try:
            yield
        except WireError as error:
            if self.changed:
                error.outcome = "unknown"
            raise

    async def choose(self, profile: str, *, text: str | None, revision: int | None) -> None:
        """Settle what is redacted: a text, or what a revision of a profile holds.

        Raises:
            InvalidParams: The text is too short.
            NoSuchRevision: Not one of this profile.
            Conflict: All that the revision holds is live.
        """
        if revision is None:
            self.mask = mask_of_text(text or "")
            return
        record = await self._committer.query(queries.revision, self._committer.journal, revision)
        stores = self._profiles.by_name[profile].stores.values()
        if record is None or record.store not in {store.id for store in stores}:
            raise NoSuchRevision(revision)
        self.mask = mask_of_revision(record, [store.state for store in self._stores()])
        self.stubs = frozenset({revision})

    async def from_files(self, caller: Caller) -> list[Committed]:
        """Mask the live entries of every store, each by a revision of its own, and see the displaced files gone.

        Raises:
            WireError: A store cannot be written now, or is written to by others all the time. Those before it are done.
        """
        caller = replace(caller, reason=caller.reason and self.mask.text(caller.reason))
        done: list[Committed] = []
        for profile, store in self._enabled():
            writer = self._profiles.by_name[profile].writer
            committed: Committed = await writer.submit(Work(Redact(store, self.mask, caller), profile, caller)).wait()
            if committed.changed:
                self.changed = True
                done.append(committed)
        for _, store in self._enabled():
            await self._wait_let_go(store)
        return done

    async def from_journal(self) -> Redacted:
        """Mask every row, then the answers remembered in memory.

        Raises:
            StoreError: With ``outcome`` "none" or "unknown"; run it all again.
        """
        await self._committer.settle()  # what nobody waits for may hold the text, too
        live = frozenset(text_hash(entry.text) for store in self._stores() for entry in store.document.entries)
        work = partial(redaction.redact, self._committer.journal, self.mask, stubs=self.stubs, live=live)
        try:
            found: Redacted = await self._committer.query(work)
        except NoSpace:
            reserve = self._committer.reserve
            if reserve is None or not await self._runner.run(reserve.spend):
                raise
            found = await self._committer.query(work)
        self._profiles.requests.redact(self.mask, found.revisions)
        for profile in self._profiles.by_name.values():
            profile.guard.proposals.redact(self.mask.text)
        for store in self._stores():
            store.approved &= live
        await self._require_gone()
        return found

    def notices(self) -> Iterator[Notice]:
        """Files that could not be looked at."""
        for name, error in self._profiles.problems.items():
            message = f"profile {name} cannot be served now ({error.message}): its files were not looked at"
            yield Notice("not_redacted", message, {"profile": name})
        for store in self._stores():
            if not store.enabled:
                message = f"{store.place.path} was not looked at: the store is switched off"
                yield Notice("not_redacted", message, {"path": store.place.path})

    def _stores(self) -> list[MemoryStore]:
        return list(dict.fromkeys(store for item in self._profiles.by_name.values() for store in item.stores.values()))

    def _enabled(self) -> list[tuple[str, MemoryStore]]:
        """Each store once, with a profile that has it."""
        found: dict[MemoryStore, str] = {}
        for name, profile in self._profiles.by_name.items():
            for store in profile.stores.values():
                if store.enabled:
                    found.setdefault(store, name)
        return [(name, store) for store, name in found.items()]

    async def _wait_let_go(self, store: MemoryStore) -> None:
        """See every file gone that a swap displaced until now. What comes to light in one is adopted, and journaled whole.

        Raises:
            Busy: With ``outcome`` "unknown".
        """
        displaced = list(store.lingering)
        with trio.move_on_after(LET_GO_S):
            while store.foreign or store.leftovers or any(one is two for one in displaced for two in store.lingering):  # noqa: ASYNC110 - the writer looks at them by its own clock
                await trio.sleep(0.1)
            return
        msg = f"what others wrote into {store.place.path} meanwhile is not taken in yet: redact again in a moment"
        raise Busy(msg, path=store.place.path, outcome="unknown")

    async def _require_gone(self) -> None:
        """Refuse to call it done if somebody has put the text back, or a displaced file is still there."""
        directories = {store.place.directory for _, store in self._enabled()}
        names = {store.place.name for _, store in self._enabled()}
        for files in {store.files for _, store in self._enabled()}:
            await self._runner.run(files.tidy)
        left = await self._runner.run(_files_with, directories, names, self.mask)
        if left:
            msg = f"the text is in {', '.join(left)} again or still: redact it once more"
            raise IoFailure(msg, path=left[0], outcome="unknown")


def _files_with(directories: set[str], names: set[str], mask: Mask) -> list[str]:
    """Memory files, and memd's own beside them, that hold what was to be redacted.

    Raises:
        IoFailure: With ``outcome`` "unknown": one of them cannot be looked at.
    """
    try:
        return list(_holders(directories, names, mask))
    except OSError as error:
        where = error.filename or ", ".join(sorted(directories))
        msg = f"{where} cannot be looked at ({error.strerror}), and may hold the text: redact it once more"
        raise IoFailure(msg, path=str(where), errno=error.errno, outcome="unknown") from error


def _holders(directories: set[str], names: set[str], mask: Mask) -> Iterator[str]:
    for directory in sorted(directories):
        for path in sorted(Path(directory).iterdir()):
            ours = path.name in names or any(path.name.startswith(f".{name}.memd-") for name in names)
            if ours and path.is_file() and mask.found(path.read_bytes()):
                yield str(path)
