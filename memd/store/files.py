"""The memory files: read whole, written beside themselves, swapped in.

What comes in: a ``Place`` and bytes. What goes out: images of what is on disk, and what a swap displaced. What must not
be here: entries, locks, the journal. Every call blocks; run it in a thread.

A swap exchanges names, so that the file an outside program wrote between our look and our rename is not destroyed but
handed back: whatever was displaced is compared with what was expected by the caller, and looked at once more later
through its descriptor (a shell that had it open may still append).

A new version is written as ``.new`` and becomes ``.tmp`` just before the exchange. So what a crash leaves tells what it
is: a ``.new`` was never in the file and belongs to no durable group; a ``.tmp`` may be what a person wrote.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat

import msgspec

from memd.errors import IoFailure, ReadOnly, StoreUnreadable, file_facts, from_oserror
from memd.store.attributes import copy_attributes
from memd.store.exchange import UNSUPPORTED, exchange, rename_new
from memd.store.place import Place, fsync_directory, is_mount_point, let_go
from memd.store.whole import READ_LIMIT, read_all, write_all

FILE_MODE = 0o600
_NEW = ".new"
_TEMP = ".tmp"
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Signature(msgspec.Struct, frozen=True):
    """What a stat tells of a file: good for noticing a change cheaply, never for trusting that there is none."""

    device: int = 0
    inode: int = 0
    size: int = -1
    mtime_ns: int = 0
    ctime_ns: int = 0


class Image(msgspec.Struct, frozen=True):
    """A memory file as it was read. ``data`` is None if there is no file.

    ``in_place``: the file has several links or is a mount point, so that it has to be rewritten where it is.
    """

    data: bytes | None
    signature: Signature = Signature()
    mode: int = FILE_MODE
    uid: int = -1
    gid: int = -1
    in_place: bool = False


class Displaced(msgspec.Struct):
    """The file that a swap took out: its bytes when we looked, and the descriptor for a second look (-1: none).

    ``path``: its name, kept because its bytes are not the expected ones; to be discarded once they are durable elsewhere.
    """

    data: bytes | None
    descriptor: int = -1
    path: str = ""

    def look_again(self) -> bytes | None:
        """Read through the descriptor again; None if there is none or it cannot be read."""
        if self.descriptor < 0:
            return None
        try:
            return read_all(self.descriptor)
        except OSError:
            return None

    def written_us(self) -> int:
        """When its bytes were written last, in microseconds since the epoch; 0 if that cannot be told."""
        if self.descriptor < 0:
            return 0
        try:
            return os.fstat(self.descriptor).st_mtime_ns // 1000
        except OSError:
            return 0

    def close(self) -> None:
        """Close the descriptor."""
        if self.descriptor >= 0:
            let_go(self.descriptor)
            self.descriptor = -1


class Files:
    """The file operations as one object, so that faults can be injected by a subclass in tests."""

    def __init__(self) -> None:
        self._undiscarded: set[str] = set()

    def read(self, place: Place) -> Image:
        """The file's bytes and metadata.

        Raises:
            StoreUnreadable: Not readable, not a regular file, or larger than ``READ_LIMIT``. The bytes are untouched.
        """
        try:
            descriptor = os.open(place.path, _READ_FLAGS)
        except FileNotFoundError:
            if not os.path.isdir(place.directory):
                msg = f"the directory {place.directory} is missing"
                raise StoreUnreadable(msg, path=place.path) from None
            return Image(None)
        except OSError as error:
            raise _unreadable(error, place.path) from error
        try:
            return self._read_open(descriptor, place)
        except OSError as error:
            raise _unreadable(error, place.path) from error
        finally:
            let_go(descriptor)

    def signature(self, place: Place) -> Signature:
        """The stat of the file; an empty signature if there is none or it cannot be looked at."""
        try:
            return _signature(os.stat(place.path, follow_symlinks=False))
        except OSError:
            return Signature()

    def write_temp(self, place: Place, data: bytes, like: Image) -> str:
        """Write ``data`` to a new file beside the target, with the target's mode, owner, ACL and attributes.

        Returns:
            The temp file's path; it is not fsynced (the journal is the log). ``swap`` or ``discard`` takes it.

        Raises:
            ReadOnly: Owner, group, ACL or attributes cannot be kept, or the directory cannot be written.
            NoSpace, IoFailure: The temp file has been removed again.
        """
        if like.data is not None and _is_read_only(place.path):
            raise from_oserror(PermissionError(errno.EACCES, "read-only"), place.path, step="write")
        self.tidy()
        path = f"{place.directory}/.{place.name}.memd-{os.getpid():x}-{os.urandom(4).hex()}{_NEW}"
        try:
            descriptor = os.open(path, _WRITE_FLAGS, FILE_MODE)
        except OSError as error:
            raise from_oserror(error, place.path, step="write a new version beside") from error
        try:
            self._fill(descriptor, data, place, like)
        except BaseException:
            self.discard(path)
            raise
        return path

    def swap(self, place: Place, temp: str, *, exists: bool, expected: bytes | None = None) -> Displaced:
        """Put the temp file in the target's place and hand back what was there.

        Args:
            place: The target.
            temp: From ``write_temp``.
            exists: Whether there was a file when the caller looked.
            expected: What the caller saw in it.

        Raises:
            StoreError: The target is as it was; the temp file has been removed.
        """
        displaced = f"{temp.removesuffix(_NEW)}{_TEMP}"
        try:
            if not exists and self._put_new(place, temp):
                return Displaced(None)
            os.rename(temp, displaced)
            return self._exchange(place, displaced, expected)
        except OSError as error:
            self.discard(temp)
            raise from_oserror(error, place.path, step="replace") from error

    def rewrite(self, place: Place, data: bytes) -> None:
        """Rewrite a file where it is (several links, or a mount point) and fsync it.

        Raises:
            StoreError: With ``outcome`` "unknown": the file may hold a mixture; its pre-image is in the journal.
        """
        try:
            descriptor = os.open(place.path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                write_all(descriptor, data)
                os.ftruncate(descriptor, len(data))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise from_oserror(error, place.path, step="rewrite") from error

    def checkpoint(self, place: Place) -> None:
        """Make the file and its name durable, and see to what should be gone.

        Raises:
            IoFailure: A failed fsync; it is never retried on the same descriptor.
        """
        try:
            self.tidy()
            with contextlib.suppress(FileNotFoundError):
                descriptor = os.open(place.path, _READ_FLAGS)
                try:
                    os.fsync(descriptor)
                finally:
                    let_go(descriptor)
            fsync_directory(place.directory)
        except OSError as error:
            msg = f"fsync {place.path}: {error.strerror}"
            raise IoFailure(msg, path=place.path, errno=error.errno) from error

    def leftovers(self, place: Place) -> list[tuple[str, bytes | None]]:
        """Temp files a crash left beside the target, with the bytes that may be a person's (None: unreadable)."""
        prefix = f".{place.name}.memd-"
        found: list[tuple[str, bytes | None]] = []
        with contextlib.suppress(OSError):
            for name in sorted(os.listdir(place.directory)):
                path = f"{place.directory}/{name}"
                if name.startswith(prefix) and name.endswith(_NEW):
                    found.append((path, b""))
                if name.startswith(prefix) and name.endswith(_TEMP):
                    try:
                        image = self.read(msgspec.structs.replace(place, name=name))
                        found.append((path, image.data))
                    except StoreUnreadable:
                        found.append((path, None))
        return found

    def discard(self, path: str) -> None:
        """Remove a temp file; one that is gone already is fine. One that cannot be removed now is seen to by ``tidy``."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        except OSError:
            self._undiscarded.add(path)
            return
        self._undiscarded.discard(path)

    def tidy(self) -> None:
        """Remove what could not be removed when it should have been."""
        for path in tuple(self._undiscarded):
            self.discard(path)

    # -- the two system calls that not every file system has ------------------------------------------------------

    def exchange(self, first: str, second: str) -> None:
        """Swap two names atomically; ``OSError``, see ``exchange.exchange``."""
        exchange(first, second)

    def rename_new(self, source: str, target: str) -> None:
        """Rename unless the target exists; ``OSError``, see ``exchange.rename_new``."""
        rename_new(source, target)

    # -- inside -------------------------------------------------------------------------------------------------

    def _read_open(self, descriptor: int, place: Place) -> Image:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            kind = "a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            msg = f"{place.path} is {kind}"
            raise StoreUnreadable(msg, path=place.path, **file_facts(place.path))
        if status.st_size > READ_LIMIT:
            msg = (
                f"{place.path} has {status.st_size:,} bytes, more than the {READ_LIMIT:,} that are read: "
                "it is left untouched"
            )
            raise StoreUnreadable(msg, path=place.path, **file_facts(place.path))
        return Image(
            read_all(descriptor),
            _signature(status),
            stat.S_IMODE(status.st_mode),
            status.st_uid,
            status.st_gid,
            status.st_nlink > 1 or status.st_dev != place.device or is_mount_point(descriptor, place.directory),
        )

    def _fill(self, descriptor: int, data: bytes, place: Place, like: Image) -> None:
        """Fill and close a temp file. A close that fails counts: some file systems tell only then that there is no room."""
        try:
            try:
                write_all(descriptor, data)
                self._make_alike(descriptor, place, like)
            except BaseException:
                let_go(descriptor)
                raise
            os.close(descriptor)
        except OSError as error:
            raise from_oserror(error, place.path, step="write a new version beside") from error

    def _make_alike(self, descriptor: int, place: Place, like: Image) -> None:
        if like.data is None:
            os.fchmod(descriptor, FILE_MODE)
            return
        if (like.uid, like.gid) != (os.geteuid(), os.fstat(descriptor).st_gid):
            self._keep_owner(descriptor, place, like)
        os.fchmod(descriptor, like.mode)
        copy_attributes(place.path, descriptor)

    def _keep_owner(self, descriptor: int, place: Place, like: Image) -> None:
        try:
            os.fchown(descriptor, like.uid, like.gid)
        except OSError as error:
            msg = f"{place.path} belongs to uid {like.uid}, gid {like.gid}, which memd cannot keep when writing it"
            raise ReadOnly(msg, path=place.path, errno=error.errno, **file_facts(place.path)) from error

    def _put_new(self, place: Place, temp: str) -> bool:
        """Give the temp file the target's name where there is none; False if somebody made one since we looked."""
        try:
            self.rename_new(temp, place.path)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in UNSUPPORTED:
                raise
            try:
                os.link(temp, place.path)
            except FileExistsError:
                return False
            os.unlink(temp)
        return True

    def _exchange(self, place: Place, temp: str, expected: bytes | None) -> Displaced:
        try:
            kept = self._exchange_names(place, temp)
        except OSError:
            self.discard(temp)
            raise
        return self._take_out(place, kept, expected) if kept else Displaced(None)

    def _exchange_names(self, place: Place, temp: str) -> str:
        """Put the temp file in place; returns the name of what was there, ``""`` if nothing was."""
        try:
            self.exchange(temp, place.path)
        except FileNotFoundError:  # deleted since we looked: the newer content stands
            if self._put_new(place, temp):
                return ""
            self.exchange(temp, place.path)  # and made again
        except OSError as error:
            if error.errno not in UNSUPPORTED:
                raise
            kept = f"{temp.removesuffix(_TEMP)}-old{_TEMP}"
            try:
                os.link(place.path, kept)
            except FileNotFoundError:
                if self._put_new(place, temp):
                    return ""
                os.link(place.path, kept)
            os.replace(temp, place.path)
            return kept
        return temp

    def _take_out(self, place: Place, kept: str, expected: bytes | None) -> Displaced:
        """Read what a swap displaced and keep its descriptor; if it cannot be read, put it back.

        Its name goes, unless the bytes are a surprise: a crash before they are adopted must not lose them.
        """
        descriptor = -1
        try:
            descriptor = os.open(kept, _READ_FLAGS)
            data = read_all(descriptor)
        except OSError:
            if descriptor >= 0:
                let_go(descriptor)
            self._put_back(place, kept)
            raise
        if data != expected:
            return Displaced(data, descriptor, kept)
        self.discard(kept)
        return Displaced(data, descriptor)

    def _put_back(self, place: Place, kept: str) -> None:
        try:
            self.exchange(kept, place.path)  # whatever it is: a directory cannot replace a file
        except OSError:
            os.replace(kept, place.path)
        else:
            self.discard(kept)


def _is_read_only(path: str) -> bool:
    """True for a file that is there and may not be written; one that git or an editor takes away and makes anew may be."""
    return not os.access(path, os.W_OK) and os.access(path, os.F_OK) and not os.access(path, os.W_OK)


def _unreadable(error: OSError, path: str) -> StoreUnreadable:
    facts = file_facts(path)
    detail = f", mode {facts['mode']}, owner {facts['owner']}" if facts else ""
    label = errno.errorcode.get(error.errno or 0, "?")
    msg = f"{path} cannot be read: {error.strerror} ({label}{detail})"
    return StoreUnreadable(msg, path=path, errno=error.errno, **facts)


def _signature(status: os.stat_result) -> Signature:
    return Signature(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
