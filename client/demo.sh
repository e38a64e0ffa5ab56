#!/bin/sh
# The main job in a scratch home: an existing memory file, two clients that write at once, an edit by hand, a killed daemon.
# Nothing of yours is touched. Needs `memd` in .venv/bin or in PATH.
set -eu

PATH="$(cd "$(dirname "$0")/.." && pwd)/.venv/bin:$PATH"
HOME=$(mktemp -d)
export PATH HOME
unset XDG_CONFIG_HOME XDG_DATA_HOME XDG_RUNTIME_DIR XDG_STATE_HOME MEMD_SOCKET MEMD_AUTOSTART 2>/dev/null || :
cd "$HOME"
trap 'memd stop >/dev/null 2>&1 || :; rm -rf "$HOME"' EXIT

title() { printf '\n\033[1m# %s\033[0m\n' "$*"; }
run() {
	printf '$ %s\n' "$*"
	"$@"
}

title "An agent already keeps its notes here, entries separated by a line with §:"
mkdir -p agent .config/memd
printf 'The project uses pytest -x\n§\nDeploys go through the staging host first\n' >agent/MEMORY.md
run cat agent/MEMORY.md

title "One setting makes them a profile of memd; the first command starts the daemon:"
(umask 077 && printf '[profiles.demo]\ndir = "~/agent"\n' >.config/memd/config.toml)
run cat .config/memd/config.toml
run memd socket --start

title "Two clients write at once, five facts each, and every write is acknowledged only when it is on disk:"
for client in A B; do
	for fact in 1 2 3 4 5; do memd add "client $client learned fact $fact" >/dev/null; done &
done
title "Meanwhile a person adds a line by hand:"
printf '§\nEdited by hand: prefers short answers\n' >>agent/MEMORY.md
wait
run memd read memory

title "The daemon is killed and started again; nothing that was acknowledged is gone:"
run kill -9 "$(memd --json status | sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' | head -n 1)"
run memd add "written after the crash"
run cat agent/MEMORY.md

title "The block that a session puts into its prompt, frozen for that session:"
run memd snapshot --key demo

title "Who changed what, and taking the last change back:"
run memd history
run memd undo --last 1
run memd status
