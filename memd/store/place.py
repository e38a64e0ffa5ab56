"""Where a memory file really is: links resolved and judged, directories made and identified.

What comes in: a profile's directory and a file name. What goes out: a ``Place`` (real directory, real name, identity).
What must not be here: reading or writing the file itself.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

import msgspec

from memd.errors import StoreUnreadable, from_oserror

DIRECTORY_MODE = 0o700
_MAX_LINKS = 16
_O_PATH = getattr(os, "O_PATH", 0)


class Place(msgspec.Struct, frozen=True):
    """A memory file's real position. ``device`` and ``inode`` are those of the real directory."""

    configured: str
    directory: str
    name: str
    device: int
    inode: int

    @property
    def path(self) -> str:
        """The real path of the file."""
        return f"{self.directory}/{self.name}"


def make_directory(path: Path) -> None:
    """Create a directory and its missing parents 0700 whatever the umask, each made durable in its parent.

    Raises:
        StoreError: Typed, naming the step that failed; directories made so far stay.
    """
    missing: list[Path] = []
    current = path
    try:
        while not current.exists():
            missing.append(current)
            current = current.parent
    except OSError as error:
        raise from_oserror(error, current, step="look for the directory") from error
    for directory in reversed(missing):
        try:
            with contextlib.suppress(FileExistsError):  # somebody else was faster: their mode stands
                directory.mkdir(mode=DIRECTORY_MODE)
                directory.chmod(DIRECTORY_MODE)
            fsync_directory(directory.parent)
        except OSError as error:
            raise from_oserror(error, directory, step="create the directory") from error


def fsync_directory(path: Path | str) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        let_go(descriptor)


def let_go(descriptor: int) -> None:
    """Close a descriptor through which nothing was written, or all of it synced: what close says of it changes nothing.

    It is closed whatever close says.
    """
    with contextlib.suppress(OSError):
        os.close(descriptor)


def locate(
    directory: str, name: str, *, roots: tuple[str, ...] = (), uid: int | None = None, home: str | None = None
) -> Place:
    """Find the real file behind ``directory/name``.

    A link is followed if it and its target belong to us and the target lies in the link's own directory, in the home
    directory or under one of ``roots``.

    Raises:
        StoreUnreadable: The directory is missing or no directory, the link dangles, leads outside or is not ours.
    """
    uid = os.geteuid() if uid is None else uid
    roots = (*roots, os.path.expanduser("~") if home is None else home)
    configured = f"{directory}/{name}"
    try:
        real_directory = os.path.realpath(directory, strict=True)
        target = _follow(f"{real_directory}/{name}", roots, uid)
        parent, final = os.path.split(target)
        status = os.stat(parent)
    except OSError as error:
        message = f"the directory of {configured} cannot be used: {error.strerror}"
        raise StoreUnreadable(message, path=configured, errno=error.errno) from error
    if not stat.S_ISDIR(status.st_mode):
        msg = f"{parent} is not a directory"
        raise StoreUnreadable(msg, path=parent)
    return Place(configured, parent, final, status.st_dev, status.st_ino)


def identity(directory: str) -> tuple[int, int]:
    """(device, inode) of a directory; (0, 0) if it is not there."""
    try:
        status = os.stat(directory)
    except OSError:
        return (0, 0)
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else (0, 0)


def is_mount_point(descriptor: int, directory: str) -> bool:
    """True if an open file is mounted over its name in the directory: such a name can be neither exchanged nor renamed.

    A file of the same file system has the same device, so that only the mount's own number tells (Linux; else False).
    """
    try:
        parent = os.open(directory, _O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return _mount_of(descriptor) != _mount_of(parent)
    finally:
        let_go(parent)


def in_git_work_tree(directory: str) -> bool:
    """True if the directory or one above it is the top of a Git work tree."""
    path = Path(directory)
    return any(os.path.exists(parent / ".git") for parent in (path, *path.parents))


def _mount_of(descriptor: int) -> bytes:
    """The number of the mount that an open file is reached through; empty where the system does not tell."""
    try:
        info = os.open(f"/proc/self/fdinfo/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(info, 512).partition(b"mnt_id:")[2].partition(b"\n")[0]
    finally:
        let_go(info)


def _follow(path: str, roots: tuple[str, ...], uid: int) -> str:
    """The path with its last component's links resolved one at a time, each of them judged."""
    origin = os.path.dirname(path)
    for _ in range(_MAX_LINKS):
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            return path
        if not stat.S_ISLNK(status.st_mode):
            return path
        path = _judge_link(path, status.st_uid, (origin, *roots), uid)
    msg = f"{path}: too many links"
    raise StoreUnreadable(msg, path=path)


def _judge_link(path: str, owner: int, roots: tuple[str, ...], uid: int) -> str:
    """The target of a link that may be followed."""
    target = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
    if owner != uid:
        msg = f"{path} is a link that belongs to uid {owner}, not to us: it is not followed"
        raise StoreUnreadable(msg, path=path)
    parent = os.path.realpath(os.path.dirname(target))
    if not os.path.isdir(parent):
        msg = f"{path} is a link to {target}, whose directory does not exist"
        raise StoreUnreadable(msg, path=path)
    target = os.path.join(parent, os.path.basename(target))
    allowed = [os.path.realpath(root) for root in roots]
    if not any(parent == root or parent.startswith(root.rstrip("/") + "/") for root in allowed):
        msg = f"{path} leads to {target}, outside its directory and your home: allow it with [daemon] symlink_roots"
        raise StoreUnreadable(
            msg,
            path=path,
        )
    try:
        status = os.lstat(target)
    except FileNotFoundError:
        msg = f"{path} is a link to {target}, which does not exist"
        raise StoreUnreadable(msg, path=path) from None
    if status.st_uid != uid:
        msg = f"{path} leads to {target}, which belongs to uid {status.st_uid}"
        raise StoreUnreadable(msg, path=path)
    return target
