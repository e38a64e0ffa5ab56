package memd

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// startLimit bounds a start; the command gives up after ten seconds by itself.
const startLimit = 15 * time.Second

// writableByOthers are the bits that make a file anybody's.
const writableByOthers = 0o022

// start has memd started and returns the path of its socket. The command gets a session of its own and none of our descriptors.
func start(ctx context.Context, socket string, env func(string) string) (string, error) {
	program, err := findMemd(env)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	arguments := []string{"socket", "--start"}
	if socket != "" {
		arguments = append(arguments, "--socket", socket)
	}
	command := exec.CommandContext(ctx, program, arguments...)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var said strings.Builder
	command.Stderr = &said
	output, err := command.Output()
	path := strings.TrimSpace(string(output))
	if err != nil || path == "" {
		return "", failure(ErrNotRunning, false, err, "memd is not running and could not be started: %s", strings.TrimSpace(said.String()))
	}
	return path, nil
}

// findMemd gives $MEMD_BIN, else the first memd in an entry of PATH that only we or root can have put there.
func findMemd(env func(string) string) (string, error) {
	if chosen := env("MEMD_BIN"); chosen != "" {
		if filepath.IsAbs(chosen) {
			return chosen, nil
		}
		return "", failure(ErrNotRunning, false, nil, "memd is not running, and MEMD_BIN=%s is not an absolute path", chosen)
	}
	for _, folder := range filepath.SplitList(env("PATH")) {
		path := filepath.Join(folder, "memd")
		if filepath.IsAbs(folder) && trusted(folder) && trusted(path) && executable(path) {
			return path, nil
		}
	}
	return "", failure(ErrNotRunning, false, nil, "memd is not running, and no trusted memd is on PATH to start it; run `memd serve`, or set MEMD_BIN")
}

func trusted(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	status, ok := info.Sys().(*syscall.Stat_t)
	return ok && (status.Uid == uint32(os.Geteuid()) || status.Uid == 0) && info.Mode().Perm()&writableByOthers == 0
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}
