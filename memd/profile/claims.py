"""The directories that this daemon owns, and whether it still does.

What comes in: real directories to claim. What goes out: typed refusals, and which claims were lost to another memd. What
must not be here: what happens to the stores in them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import trio

from memd.errors import StoreError
from memd.profile.opening import ANSWER_S
from memd.store.locks import Ownership
from memd.store.place import identity

if TYPE_CHECKING:
    from memd.store.place import Place
    from memd.store.threads import Runner

Directory = tuple[int, int]
"""A directory's device and inode."""


class Claims:
    """One ``Ownership`` for each directory. ``lost``: why those that another memd has taken are not ours any more."""

    def __init__(self, runner: Runner) -> None:
        self.lost: dict[Directory, StoreError] = {}
        self._runner = runner
        self._owned: dict[Directory, Ownership] = {}
        self._failed: dict[
            Directory, Ownership
        ] = {}  # one that failed half way may hold a lock that it alone can give back
        self._hanging: set[Directory] = set()
        self._round = 0

    def __repr__(self) -> str:
        return f"<Claims on {len(self._owned)} directories, {len(self.lost)} lost>"

    def claim(self, place: Place) -> None:
        """Claim the directory of a place, once. Blocks.

        Raises:
            ProfileOwned: Another daemon has it.
            StoreError: Its lock file cannot be made.
        """
        key = (place.device, place.inode)
        if key not in self._owned:
            self._failed.setdefault(key, Ownership(place.directory)).claim()
            self._owned[key] = self._failed.pop(key)

    def directory(self, key: Directory) -> str:
        """The path of a claimed directory."""
        return os.path.dirname(self._owned[key].path)

    async def check(self) -> None:
        """Find out which are ``lost``. A directory that does not answer keeps nobody waiting, and no other from its check.

        A lock file that was only removed is made and locked again. A directory that was replaced shows at the next
        access to a file in it, and is fine again when it comes back.
        """
        self._round += 1
        with trio.move_on_after(ANSWER_S):
            await self._runner.ask(self._check_all, self._round)

    def release(self) -> None:
        """Give the directories back."""
        for ownership in (*self._owned.values(), *self._failed.values()):
            ownership.release()
        self._owned.clear()
        self._failed.clear()

    def _check_all(self, this: int) -> None:
        """Check all but those that earlier rounds still wait for. Blocks; ends once a later round has overtaken it."""
        for key, ownership in list(self._owned.items()):
            if key in self._hanging:
                continue
            self._hanging.add(key)
            self._check_one(key, ownership)
            self._hanging.discard(key)
            if this != self._round:
                return

    def _check_one(self, key: Directory, ownership: Ownership) -> None:
        if key in self.lost or ownership.still_held() or identity(self.directory(key)) != key:
            return
        try:
            ownership.release()
            ownership.claim()
        except StoreError as error:
            self.lost[key] = error
