"""memd.store.attributes: what people put on a file is on the one that takes its place, or it is not replaced."""

from __future__ import annotations

import errno

import pytest

from memd.store.attributes import copy_attributes

SOURCE, DESCRIPTOR = "/p/MEMORY.md", 7
ACL = "system.posix_acl_access"


class FakeAttributes:
    """Attributes of one file, copied to another; ``fails``: which call on which name has which errno."""

    def __init__(self, *names: str, fails: dict[tuple[str, str], int] | None = None) -> None:
        self.names = names
        self.copied: dict[str, bytes] = {}
        self._fails = fails or {}

    def listxattr(self, path: str, *, follow_symlinks: bool) -> list[str]:
        assert (SOURCE, False) == (path, follow_symlinks)
        self._meet("list", "")
        return list(self.names)

    def getxattr(self, path: str, name: str, *, follow_symlinks: bool) -> bytes:
        assert (SOURCE, False) == (path, follow_symlinks)
        self._meet("get", name)
        return f"value of {name}".encode()

    def setxattr(self, descriptor: int, name: str, value: bytes) -> None:
        assert descriptor == DESCRIPTOR
        self._meet("set", name)
        self.copied[name] = value

    def _meet(self, call: str, name: str) -> None:
        if (call, name) in self._fails:
            raise OSError(self._fails[call, name], "as told")


class NoAttributes:
    """A system that has none."""


def test_all_are_copied() -> None:
    calls = FakeAttributes("user.tag", ACL)
    copy_attributes(SOURCE, DESCRIPTOR, calls=calls)
    assert {"user.tag": b"value of user.tag", ACL: b"value of system.posix_acl_access"} == calls.copied


@pytest.mark.parametrize(
    ("call", "name", "number"),
    [
        ("list", "", errno.EIO),
        ("get", ACL, errno.EIO),
        ("set", ACL, errno.EIO),
        ("set", "user.tag", errno.ENOSPC),
        ("set", "user.tag", errno.EPERM),
    ],
)
def test_one_that_cannot_be_kept_is_an_error(call: str, name: str, number: int) -> None:
    """Access that somebody was given or denied is not lost unseen."""
    calls = FakeAttributes("user.tag", ACL, fails={(call, name): number})
    with pytest.raises(OSError, match="as told") as caught:
        copy_attributes(SOURCE, DESCRIPTOR, calls=calls)
    assert number == caught.value.errno


@pytest.mark.parametrize("number", [errno.ENOTSUP, errno.ENOSYS, errno.ENOENT])
def test_where_there_are_none(number: int) -> None:
    """A file system without them, or a file that is gone: nothing is left out."""
    calls = FakeAttributes("user.tag", fails={("list", ""): number})
    copy_attributes(SOURCE, DESCRIPTOR, calls=calls)
    assert {} == calls.copied
    copy_attributes(SOURCE, DESCRIPTOR, calls=NoAttributes())


def test_what_the_kernel_keeps_for_itself_may_be_left_out() -> None:
    calls = FakeAttributes("security.label", "user.tag", fails={("set", "security.label"): errno.EPERM})
    copy_attributes(SOURCE, DESCRIPTOR, calls=calls)
    assert ["user.tag"] == list(calls.copied)


def test_one_that_was_taken_away_meanwhile() -> None:
    """It is not missed."""
    calls = FakeAttributes("user.gone", "user.tag", fails={("get", "user.gone"): errno.ENODATA})
    copy_attributes(SOURCE, DESCRIPTOR, calls=calls)
    assert ["user.tag"] == list(calls.copied)
