"""Claiming a path, giving it back, and taking over what a service manager opened. Real sockets, no daemon."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import stat
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memd.errors import SocketUnusable
from memd.transport.listener import SUN_PATH_BYTES, Listener, adopt, claim

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory with a path short enough for sockets, wherever pytest keeps its own."""
    path = Path(tempfile.mkdtemp(prefix="memd-"))
    yield path
    shutil.rmtree(path)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def leave_stale(path: Path) -> None:
    """What a killed daemon leaves behind."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(path))


def answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as sock:
        return sock.connect_ex(str(path)) == 0


class TestClaim:
    @pytest.mark.parametrize("umask", [0o000, 0o077, 0o777])
    def test_modes_whatever_the_umask(self, home: Path, umask: int) -> None:
        """Every directory made is 0700, the socket 0600, and the umask is as it was."""
        path = home / "a" / "b" / "memd.sock"
        before = os.umask(umask)
        try:
            listener = claim(str(path), "agent")
            assert umask == os.umask(umask)
        finally:
            os.umask(before)
        assert [0o600, 0o700, 0o700] == [mode(path), mode(path.parent), mode(path.parent.parent)]
        assert answers(path)
        listener.close()

    def test_the_path_is_given_back(self, home: Path) -> None:
        path = home / "memd.sock"
        listener = claim(str(path), "agent")
        listener.close()
        listener.close()
        assert not path.exists()

    def test_a_successors_socket_is_left_alone(self, home: Path) -> None:
        """A daemon that stops late must not remove the socket of the one that took its place."""
        path = home / "memd.sock"
        first = claim(str(path), "agent")
        path.unlink()
        second = claim(str(path), "agent")
        first.close()
        assert answers(path)
        second.close()
        assert not path.exists()

    def test_closing_after_the_directory_is_gone(self, home: Path) -> None:
        listener = claim(str(home / "run" / "memd.sock"), "agent")
        shutil.rmtree(home / "run")
        listener.close()

    def test_a_stale_socket_is_cleared(self, home: Path) -> None:
        path = home / "memd.sock"
        leave_stale(path)
        listener = claim(str(path), "agent")
        assert answers(path)
        listener.close()

    def test_a_socket_in_use_is_not_touched(self, home: Path) -> None:
        path = home / "memd.sock"
        first = claim(str(path), "agent")
        with pytest.raises(SocketUnusable, match="in use"):
            claim(str(path), "agent")
        assert answers(path)
        first.close()

    def test_a_socket_whose_backlog_is_full_is_in_use(self, home: Path) -> None:
        """A busy daemon is not a dead one."""
        path = home / "memd.sock"
        with socket.socket(socket.AF_UNIX) as busy, socket.socket(socket.AF_UNIX) as one:
            busy.bind(str(path))
            busy.listen(0)
            one.connect(str(path))
            with pytest.raises(SocketUnusable, match="in use"):
                claim(str(path), "agent")
            assert path.exists()

    def test_a_file_is_not_touched(self, home: Path) -> None:
        path = home / "memd.sock"
        path.write_text("precious")
        with pytest.raises(SocketUnusable, match="no socket; move it away"):
            claim(str(path), "agent")
        assert "precious" == path.read_text()

    def test_a_link_is_not_followed(self, home: Path) -> None:
        """Wherever it leads, even to a stale socket."""
        leave_stale(home / "real")
        (home / "memd.sock").symlink_to(home / "real")
        with pytest.raises(SocketUnusable, match="no socket"):
            claim(str(home / "memd.sock"), "agent")

    def test_a_path_that_is_too_long_names_what_shortens_it(self, home: Path) -> None:
        """One byte less fits."""
        room = SUN_PATH_BYTES - 1 - len(str(home)) - 1
        with pytest.raises(SocketUnusable, match=r"XDG_RUNTIME_DIR") as caught:
            claim(str(home / ("x" * (room + 1))), "agent")
        assert str(SUN_PATH_BYTES) in str(caught.value)
        claim(str(home / ("x" * room)), "agent").close()

    def test_length_is_counted_in_bytes(self, home: Path) -> None:
        with pytest.raises(SocketUnusable, match="bytes"):
            claim(str(home / ("ü" * 54)), "agent")

    @pytest.mark.parametrize("permissions", [0o770, 0o707, 0o1777])
    def test_a_directory_that_others_may_write_is_refused(self, home: Path, permissions: int) -> None:
        """/tmp is such a one."""
        shared = home / "shared"
        shared.mkdir()
        shared.chmod(permissions)
        with pytest.raises(SocketUnusable, match="may be written by others"):
            claim(str(shared / "memd.sock"), "agent")

    def test_a_missing_directory_that_cannot_be_made(self, home: Path) -> None:
        (home / "file").write_text("")
        with pytest.raises(SocketUnusable, match=r"cannot listen on .*ENOTDIR|EEXIST"):
            claim(str(home / "file" / "memd.sock"), "agent")

    def test_of_many_at_once_one_gets_it(self, home: Path) -> None:
        """All find the same stale socket; none takes away what another has just bound."""
        path = home / "memd.sock"
        leave_stale(path)
        won: list[Listener] = []
        lost: list[SocketUnusable] = []

        def attempt() -> None:
            try:
                won.append(claim(str(path), "agent"))
            except SocketUnusable as error:
                lost.append(error)

        threads = [threading.Thread(target=attempt) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (1, 7) == (len(won), len(lost))
        assert answers(path)
        won[0].close()

    def test_repr(self, home: Path) -> None:
        listener = claim(str(home / "s"), "operator")
        assert f"<Listener operator {home}/s fd {listener.sock.fileno()}>" == repr(listener)
        listener.close()


class TestAdopt:
    @pytest.fixture
    def inherited(self, home: Path) -> Iterator[list[int]]:
        """Two listening sockets side by side at descriptors that nobody else has, as a service manager leaves them."""
        first = 300
        for index, name in enumerate(("memd", "memd-operator")):
            with socket.socket(socket.AF_UNIX) as sock:
                sock.bind(str(home / f"{name}.sock"))
                sock.listen()
                os.dup2(sock.fileno(), first + index, inheritable=True)
        yield [first, first + 1]
        for fd in (first, first + 1):
            with contextlib.suppress(OSError):  # the test's listener had it
                os.close(fd)

    def environ(self, **changes: str) -> dict[str, str]:
        return {"LISTEN_PID": "7", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "memd:memd-operator", "HOME": "/", **changes}

    @pytest.mark.parametrize("names", ["memd:memd-operator", "memd.socket:memd-operator.socket"])
    def test_both_sockets_by_their_names(self, inherited: list[int], home: Path, names: str) -> None:
        """By FileDescriptorName= or by the units' own."""
        environ = self.environ(LISTEN_FDNAMES=names)
        listeners = adopt(environ, pid=7, first_fd=inherited[0])
        assert [("agent", f"{home}/memd.sock"), ("operator", f"{home}/memd-operator.sock")] == [
            (listener.role, listener.path) for listener in listeners
        ]
        assert {"HOME": "/"} == environ
        for listener in listeners:
            assert fcntl.fcntl(listener.sock, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
            assert not listener.sock.getblocking()
            listener.close()

    def test_the_path_stays_when_it_closes(self, inherited: list[int], home: Path) -> None:
        """It belongs to the service manager, which goes on listening."""
        for listener in adopt(self.environ(), pid=7, first_fd=inherited[0]):
            listener.close()
        assert (home / "memd.sock").exists()

    @pytest.mark.parametrize(
        "changes", [{"LISTEN_PID": "8"}, {"LISTEN_PID": ""}, {"LISTEN_FDS": "x"}, {"LISTEN_FDS": "0"}]
    )
    def test_nothing_is_taken_that_is_meant_for_another(self, inherited: list[int], changes: dict[str, str]) -> None:
        environ = self.environ(**changes)
        assert [] == adopt(environ, pid=7, first_fd=inherited[0])
        assert {"HOME": "/"} == environ

    @pytest.mark.parametrize("names", ["web:memd", "", "unknown:"])
    def test_a_name_that_says_no_role(self, inherited: list[int], names: str) -> None:
        """Which of both an unnamed socket is cannot be guessed."""
        with pytest.raises(SocketUnusable, match="FileDescriptorName="):
            adopt(self.environ(LISTEN_FDNAMES=names), pid=7, first_fd=inherited[0])

    def test_a_descriptor_that_does_not_listen(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            with pytest.raises(SocketUnusable, match="no listening Unix stream socket"):
                adopt(self.environ(LISTEN_FDS="1"), pid=7, first_fd=ours.detach())

    def test_a_descriptor_that_is_not_open(self) -> None:
        with pytest.raises(SocketUnusable, match=r"inherited descriptor 999 .*Bad file descriptor"):
            adopt(self.environ(LISTEN_FDS="1"), pid=7, first_fd=999)

    def test_a_descriptor_that_is_no_socket(self) -> None:
        fd = os.open("/dev/null", os.O_RDONLY)
        with pytest.raises(SocketUnusable, match=f"inherited descriptor {fd}"):
            adopt(self.environ(LISTEN_FDS="1"), pid=7, first_fd=fd)
        os.close(fd)
