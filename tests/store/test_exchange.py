"""Two names swapped in one step, by the real system."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from memd.store.exchange import UNSUPPORTED, _missing, exchange, rename_new

if TYPE_CHECKING:
    from pathlib import Path


def test_names_are_exchanged(tmp_path: Path) -> None:
    """Files keep their inodes, only the names change places; a directory may be one of them."""
    first, second = tmp_path / "first", tmp_path / "ünïcode"
    first.write_text("1")
    second.mkdir()
    inode = first.stat().st_ino
    exchange(str(first), str(second))
    assert first.is_dir()
    assert ("1", inode) == (second.read_text(), second.stat().st_ino)


def test_both_have_to_exist(tmp_path: Path) -> None:
    """Otherwise nothing happens, and the error names both."""
    (tmp_path / "first").write_text("1")
    with pytest.raises(FileNotFoundError) as caught:
        exchange(str(tmp_path / "first"), str(tmp_path / "second"))
    assert str(tmp_path / "second") == caught.value.filename2
    assert "1" == (tmp_path / "first").read_text()


def test_a_new_name_replaces_nothing(tmp_path: Path) -> None:
    """The target stays if there is one."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("new")
    target.write_text("old")
    with pytest.raises(FileExistsError):
        rename_new(str(source), str(target))
    assert "old" == target.read_text()
    target.unlink()
    rename_new(str(source), str(target))
    assert "new" == target.read_text()


def test_a_library_without_the_call_says_so() -> None:
    """As an error for which there is another way."""
    assert -1 == _missing(b"", b"", 0, 0)
    assert errno.ENOSYS in UNSUPPORTED
