"""The room that is kept for removing things on a full disk."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from memd.store.reserve import Reserve

if TYPE_CHECKING:
    from pathlib import Path


class FullReserve(Reserve):
    """A disk without room."""

    def _allocate(self, descriptor: int) -> None:
        os.write(descriptor, b"half")
        raise OSError(28, "No space left on device")


def test_the_room_is_kept_and_spent_once(tmp_path: Path) -> None:
    """Blocks are allocated, not only promised; spending gives them back."""
    reserve = Reserve(tmp_path / "reserve", size=65_536)
    assert reserve.keep()
    assert reserve.keep()
    status = reserve.path.stat()
    assert (65_536, 0o600) == (status.st_size, status.st_mode & 0o777)
    assert status.st_blocks * 512 >= 65_536
    assert "kept" in repr(reserve)
    assert reserve.spend()
    assert not reserve.path.exists()
    assert not reserve.spend()
    assert "spent" in repr(reserve)


def test_a_full_disk_has_none(tmp_path: Path) -> None:
    """Half a reserve is not left behind."""
    reserve = FullReserve(tmp_path / "reserve", size=65_536)
    assert not reserve.keep()
    assert not reserve.path.exists()


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    """What it leads to stays as it is."""
    target = tmp_path / "target"
    target.write_text("mine")
    (tmp_path / "reserve").symlink_to(target)
    assert not Reserve(tmp_path / "reserve", size=65_536).keep()
    assert "mine" == target.read_text()
