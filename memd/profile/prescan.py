"""Prescan: texts whose scan would hold up the event loop are scanned in a thread before they are needed.

What comes in: work that waits, drafts that were planned. What goes out: results in the caches of the profiles. What must not be
here: what follows from a finding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memd.profile.draft import Draft
    from memd.profile.policy import Guard
    from memd.profile.scans import Scans
    from memd.profile.work import Work
    from memd.store.threads import Runner


class Prescan:
    """Scans for one writer."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def __repr__(self) -> str:
        return f"<Prescan with {self._runner!r}>"

    async def work(self, waiting: Iterable[Work]) -> None:
        """Scan what waits to be written, if that takes long."""
        wanted: dict[Scans, list[str]] = {}
        for one in waiting:
            asked = one.plan.texts()
            if asked is not None:
                wanted.setdefault(asked[0], []).extend(asked[0].unknown(asked[1]))
        for scans, texts in wanted.items():
            await self.texts(scans, texts)

    async def drafts(self, drafts: Iterable[Draft]) -> None:
        """Scan what others wrote into the files, for every profile that has them, if that takes long."""
        for draft in drafts:
            if draft.adopted:
                await self.entries(draft.store.guards, (entry.text for entry in draft.document.entries))

    async def entries(self, guards: Iterable[Guard], texts: Iterable[str]) -> None:
        """Scan the texts of a store under the rules of some profiles, if that takes long."""
        found = list(texts)
        for scans in dict.fromkeys(guard.scans for guard in guards):
            await self.texts(scans, scans.unknown(found))

    async def texts(self, scans: Scans, texts: list[str]) -> None:
        """Scan texts that are not known yet, if that takes long."""
        if scans.is_slow(texts):
            scans.keep(await self._runner.run(scans.scan_all, texts))
