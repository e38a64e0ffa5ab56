package memd

import (
	"net"
	"syscall"
)

// peerUID is the user of the process at the other end.
func peerUID(connection *net.UnixConn) (int, error) {
	raw, err := connection.SyscallConn()
	if err != nil {
		return 0, err
	}
	var credentials *syscall.Ucred
	var inner error
	err = raw.Control(func(fd uintptr) {
		credentials, inner = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err != nil {
		return 0, err
	}
	if inner != nil {
		return 0, inner
	}
	return int(credentials.Uid), nil
}
