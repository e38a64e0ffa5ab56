"""Ownership of a directory, and the lock that is shared with other programs."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from support.hosts import held

from memd.errors import Busy, ProfileOwned, StoreError
from memd.store import locks
from memd.store.locks import OWNER_FILE, OutsideLock, Ownership, lock_holder

if TYPE_CHECKING:
    from pathlib import Path

locked = fcntl.flock

HOLD = """
import fcntl, os, sys
descriptor = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(descriptor, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_one_owner_at_a_time(tmp_path: Path) -> None:
    """The second hears who it is; the file stays for the next."""
    first, second = Ownership(str(tmp_path)), Ownership(str(tmp_path))
    first.claim()
    with pytest.raises(ProfileOwned, match=f"pid {os.getpid()}") as caught:
        second.claim()
    assert os.getpid() == caught.value.extra["pid"]
    assert first.still_held()
    assert 0o600 == (tmp_path / OWNER_FILE).stat().st_mode & 0o777
    first.release()
    second.claim()
    assert "held" in repr(second)
    second.release()
    second.release()
    assert "not held" in repr(second)
    assert (tmp_path / OWNER_FILE).exists()


def test_a_lock_that_cannot_be_given_back_yet_is_taken_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that takes nothing: the claim fails once it has the lock, and so does giving it back."""
    owner = Ownership(str(tmp_path))

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as broken:
        broken.setattr(locks, "os", SimpleNamespace(path=os.path, getpid=os.getpid, stat=fail))
        broken.setattr(fcntl, "flock", lambda fd, how: fail() if how == fcntl.LOCK_UN else locked(fd, how))
        with pytest.raises(StoreError):
            owner.claim()
        with pytest.raises(StoreError):
            owner.claim()
    with pytest.raises(ProfileOwned):
        Ownership(str(tmp_path)).claim()
    owner.claim()
    assert owner.still_held()
    owner.release()


def test_an_owner_sees_that_its_file_was_replaced(tmp_path: Path) -> None:
    """Whoever locks the new one owns the directory, too."""
    owner = Ownership(str(tmp_path))
    owner.claim()
    (tmp_path / OWNER_FILE).unlink()
    assert not owner.still_held()
    (tmp_path / OWNER_FILE).write_text("")
    assert not owner.still_held()
    owner.release()


def test_a_lock_file_that_cannot_be_made_is_a_typed_error(tmp_path: Path) -> None:
    """A directory in its place, for example."""
    (tmp_path / OWNER_FILE).mkdir()
    with pytest.raises(StoreError):
        Ownership(str(tmp_path)).claim()


def test_the_holder_is_known_without_the_kernels_table(tmp_path: Path) -> None:
    """From the pid that it wrote; rubbish is nobody."""
    owner = Ownership(str(tmp_path))
    assert 0 == owner.holder()
    (tmp_path / OWNER_FILE).write_text("4711\n")
    assert 4711 == owner.holder()
    (tmp_path / OWNER_FILE).write_text("rubbish\n")
    assert 0 == owner.holder()


def test_the_outside_lock_is_beside_the_configured_file(tmp_path: Path) -> None:
    """0600 whatever the umask; it can be taken again and again, and the file stays."""
    before = os.umask(0o777)
    try:
        lock = OutsideLock(str(tmp_path / "MEMORY.md"))
        lock.acquire()
    finally:
        os.umask(before)
    path = tmp_path / "MEMORY.md.lock"
    assert 0o600 == path.stat().st_mode & 0o777
    lock.release()
    lock.acquire()
    lock.release()
    assert path.exists()
    assert lock.usable
    assert f"<OutsideLock {path}>" == repr(lock)


def test_a_lock_that_is_held_is_busy_at_once(tmp_path: Path) -> None:
    """The holder is named by its pid; then it is free again."""
    lock = OutsideLock(str(tmp_path / "MEMORY.md"))
    with held(tmp_path / "MEMORY.md.lock"):
        with pytest.raises(Busy, match=f"pid {os.getpid()}") as caught:
            lock.acquire()
        assert os.getpid() == caught.value.extra["holder"]
    lock.acquire()
    lock.release()


def test_others_are_kept_out_while_we_hold_it(tmp_path: Path) -> None:
    """It is the flock that other programs take."""
    lock = OutsideLock(str(tmp_path / "MEMORY.md"))
    lock.acquire()
    with pytest.raises(BlockingIOError), held(tmp_path / "MEMORY.md.lock"):
        pass
    lock.release()


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    """What it leads to is neither locked nor emptied; writing goes on without the lock."""
    (tmp_path / "target").write_text("mine")
    (tmp_path / "MEMORY.md.lock").symlink_to("target")
    lock = OutsideLock(str(tmp_path / "MEMORY.md"))
    lock.acquire()
    assert not lock.usable
    assert "mine" == (tmp_path / "target").read_text()
    assert "unusable" in repr(lock)
    lock.release()


def test_a_lock_file_keeps_its_content(tmp_path: Path) -> None:
    """It may be another program's, and say who it is."""
    (tmp_path / "MEMORY.md.lock").write_text("theirs")
    lock = OutsideLock(str(tmp_path / "MEMORY.md"))
    lock.acquire()
    lock.release()
    assert "theirs" == (tmp_path / "MEMORY.md.lock").read_text()


def test_where_nothing_can_be_locked_writing_goes_on(tmp_path: Path) -> None:
    """In a directory without write permission, or with a directory where the lock should be."""
    (tmp_path / "MEMORY.md.lock").mkdir()
    lock = OutsideLock(str(tmp_path / "MEMORY.md"))
    lock.acquire()
    assert not lock.usable


def test_nobody_holds_a_file_that_is_not_there(tmp_path: Path) -> None:
    """Nor one that is free."""
    assert 0 == lock_holder(str(tmp_path / "gone"))
    (tmp_path / "free").write_text("")
    assert 0 == lock_holder(str(tmp_path / "free"))


@pytest.mark.slow
def test_another_process_is_named(tmp_path: Path) -> None:
    """By the pid that the kernel has for it; it is free once that is gone."""
    path = tmp_path / "MEMORY.md.lock"
    lock = OutsideLock(str(tmp_path / "MEMORY.md"))
    with subprocess.Popen([sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert b"held\n" == other.stdout.readline()
        with pytest.raises(Busy) as caught:
            lock.acquire()
        assert other.pid == caught.value.extra["holder"]
        other.kill()
    lock.acquire()
    lock.release()
