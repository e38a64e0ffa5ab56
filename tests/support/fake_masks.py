"""Masking as a profile does it, without threads: longer texts take a turn of the event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from support.judged import SCANS

if TYPE_CHECKING:
    from collections.abc import Sequence

SLOW = 2000


class Masks:
    """The masking half of a profile in memory."""

    def masking_is_slow(self, texts: Sequence[str]) -> bool:
        return sum(map(len, texts)) > SLOW

    def mask_all(self, texts: Sequence[str]) -> list[str]:
        return [SCANS.masked(text) for text in texts]

    async def masked(self, texts: Sequence[str]) -> list[str]:
        await trio.lowlevel.checkpoint()
        return self.mask_all(texts)
