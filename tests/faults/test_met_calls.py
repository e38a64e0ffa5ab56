"""The faults of ``every_call.c`` meet everything that memd, Python and SQLite ask of the kernel about files.

Two witnesses who know nothing of the library: the kernel's own record of a story (``strace``), call by call, and the symbols that
Python and SQLite import from libc.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import interposer
from support.scenarios import SCENARIOS

if TYPE_CHECKING:
    from collections.abc import Iterable

TESTS = Path(__file__).parents[1]
ABOUT = "memd-sweep-"
"""What the name of every host's directory begins with."""
NEVER_FAILS = {
    "lseek": "moves a number in an open regular file",
    "ioctl": "asks whether a file is a terminal",
    "fcntl": "but for locks, flags of a descriptor",
    "epoll_ctl": "no file",
    "dup": "no file",
}
LISTS = "getdents64"
"""One of these is several ``readdir``s, or none."""
LOCKS = re.compile(r"F_(OFD_)?(GET|SET)LKW?\b")

FILES = re.compile(
    r"^(__)?(f|l|fx|lx)?(open|creat|p?read|p?write|stat|sync|datasync|lock|cntl|truncate|allocate|chmod|chown|link|unlink|symlink"
    r"|readlink|rename|mkdir|rmdir|mknod|mkfifo|opendir|readdir|dopendir|closedir|scandir|access|getxattr|setxattr|listxattr"
    r"|removexattr|utim|close|copy_file|sendfile|splice|tee|realpath|mmap|msync|posix_fallocate)"
)
NOT_FILES = re.compile(r"^(close_range|closefrom|closelog|flockfile|openlog|openpty)$")
"""Of the same letters, and about other things."""
UNUSED = {
    "fopen64": "Python opens files by open; this one is for its own configuration",
    "fclose": "as fopen64",
    "fread": "as fopen64",
    "fwrite": "as fopen64",
    "fstatvfs64": "memd does not ask for the room there is: it preallocates",
    "statvfs64": "as fstatvfs64",
    "closedir": "cannot fail in a way that matters",
    "lockf64": "memd and filelock use flock, SQLite fcntl",
    "mmap64": "the journal has one process, which keeps SQLite's index in its own memory",
    "copy_file_range": "memd copies no file",
    "sendfile64": "as copy_file_range",
    "splice": "as copy_file_range",
    "readv": "memd reads and writes one buffer at a time",
    "writev": "as readv",
    "preadv64v2": "as readv",
    "pwritev64v2": "as readv",
    "truncate64": "memd truncates open files only",
    "mkfifo": "memd makes none",
    "mkfifoat": "as mkfifo",
    "mknod": "as mkfifo",
    "mknodat": "as mkfifo",
    "symlinkat": "memd makes no links by directory",
    "realpath": "Python's own start; os.path.realpath asks by lstat and readlink",
    "__realpath_chk": "as realpath",
    "sync": "of the whole machine",
    "futimens": "memd sets no times",
    "utimensat": "as futimens",
    "utime": "SQLite's dot-file locks, which are not in use",
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return interposer.build(tmp_path_factory.mktemp("library"))


def symbols(*options: str, of: Path) -> set[str]:
    done = subprocess.run(["nm", "-D", *options, of], capture_output=True, text=True, check=True)
    return {line.split()[-1].partition("@")[0] for line in done.stdout.splitlines()}


def of_files(names: Iterable[str]) -> set[str]:
    return {name for name in names if FILES.match(name) and not NOT_FILES.match(name)}


def loaded() -> list[Path]:
    """Python, SQLite and the modules between, as this process has them."""
    __import__("sqlite3"), __import__("fcntl"), __import__("ctypes")
    mapped = {Path(line.split()[-1]) for line in Path("/proc/self/maps").read_text().splitlines() if "/" in line}
    names = re.compile(r"^(python3[\d.]*|libpython.*|libsqlite3.*|_sqlite3.*|fcntl.*|_ctypes\..*|_io\..*|_posix.*)$")
    return sorted(path for path in mapped if names.match(path.name))


@pytest.mark.skipif(shutil.which("nm") is None, reason="needs nm of binutils")
def test_every_symbol_is_met_or_known_not_to_matter(library: Path) -> None:
    """A Python or SQLite that learns to ask by another name is found out."""
    met = symbols("--defined-only", of=library)
    files = loaded()
    assert {"libsqlite3", "_sqlite3"} <= {path.name.partition(".")[0] for path in files}
    asked = {name for path in files for name in of_files(symbols("--undefined-only", of=path))}
    assert {"open64", "pwrite64", "fsync", "fcntl64", "flock", "fstat64", "posix_fallocate64"} <= asked & met
    assert set() == asked - met - UNUSED.keys()
    assert set() == UNUSED.keys() & met


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace, which .ci/run installs")
@pytest.mark.parametrize("scenario", list(SCENARIOS))
def test_the_kernel_counts_the_same_calls(library: Path, tmp_path: Path, scenario: str) -> None:
    """One story in which nothing fails: as many calls on the host's files as the library has counted."""
    record = tmp_path / "record"
    env = {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": str(TESTS)}
    nothing = str(1 << 40)
    story = [sys.executable, "-m", "support.sweep", scenario, "4", "1", "1", nothing]
    follow = ["strace", "-f", "-y", "-qq", "-e", "trace=%file,%desc", "-o", str(record)]
    done = subprocess.run([*follow, *story], env=env, capture_output=True, text=True, check=False)
    if "ptrace" in done.stderr:
        pytest.skip(f"nobody may follow a process here: {done.stderr.strip()}")
    assert (0, "") == (done.returncode, done.stderr)
    found = calls_on_files(record)
    if LISTS not in found:
        assert json.loads(done.stdout)["calls"] == len(found)
    assert json.loads(done.stdout)["calls"] > 20
    assert set() == set(found) - WORDS


WORDS = {
    "access", "chmod", "close", "fallocate", "fchmod", "fchown", "fcntl", "fdatasync", "flock", "fsync", "ftruncate", LISTS,
    "llistxattr", "lgetxattr", "fsetxattr", "mkdir", "newfstatat", "open", "openat", "pread64", "pwrite64", "read", "readlink",
    "rename", "renameat2", "rmdir", "unlink", "write", "fstat", "lstat", "stat",
}  # fmt: skip
"""The kernel's names of what the library meets."""


def calls_on_files(record: Path) -> list[str]:
    """The kernel's names of the calls on files of a host while calls were counted."""
    found, counting = [], False
    for line in record.read_text(errors="replace").splitlines():
        _, _, call = line.partition(" ")
        name, _, rest = call.strip().partition("(")
        if '"/fault-' in rest:
            counting = "armed" in rest and "disarmed" not in rest
        elif counting and ABOUT in rest and _may_fail(name, rest):
            found.append(name)
    return found


def _may_fail(name: str, rest: str) -> bool:
    if rest.startswith('"/proc/self/fd/'):
        return False  # the library's own question
    return name not in NEVER_FAILS or (name == "fcntl" and LOCKS.search(rest) is not None)
