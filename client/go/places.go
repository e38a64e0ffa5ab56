package memd

import (
	"os"
	"path/filepath"
)

// Sockets lists where the agent socket may be, in order. A path that was asked for, or $MEMD_SOCKET, is the only one.
func Sockets(argument string, env func(string) string) []string {
	if argument == "" {
		argument = env("MEMD_SOCKET")
	}
	if argument != "" {
		return []string{absolute(argument)}
	}
	state := filepath.Join(stateHome(env), "memd", "run", "memd.sock")
	if runtime := env("XDG_RUNTIME_DIR"); filepath.IsAbs(runtime) {
		return []string{filepath.Join(runtime, "memd", "memd.sock"), state}
	}
	return []string{state}
}

// OperatorSockets lists where the operator socket may be, in order.
func OperatorSockets(env func(string) string) []string {
	state := filepath.Join(stateHome(env), "memd-operator", "run", "memd.sock")
	runtime := env("XDG_RUNTIME_DIR")
	if env("MEMD_SOCKET") != "" || !filepath.IsAbs(runtime) {
		return []string{state}
	}
	return []string{filepath.Join(runtime, "memd-operator", "memd.sock"), state}
}

// stateHome is $XDG_STATE_HOME, or ~/.local/state. The XDG specification says to ignore relative values.
func stateHome(env func(string) string) string {
	if chosen := env("XDG_STATE_HOME"); filepath.IsAbs(chosen) {
		return chosen
	}
	home := env("HOME")
	if !filepath.IsAbs(home) {
		home, _ = os.UserHomeDir()
	}
	return filepath.Join(home, ".local", "state")
}

func absolute(path string) string {
	if found, err := filepath.Abs(path); err == nil {
		return found
	}
	return path
}
