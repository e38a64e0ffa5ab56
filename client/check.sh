#!/usr/bin/env bash
# Every client's own suite (vectors, certification, a killed daemon) and its page's first example, against one memd.
#
# MEMD_BIN names the memd; without it, .venv/bin/memd. Arguments name the clients; without any, all of them. Nothing is
# skipped: a toolchain that is missing is a failure. What is built stays in each client's own build folder.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export MEMD_BIN=${MEMD_BIN:-$here/../.venv/bin/memd}
python=$(dirname "$MEMD_BIN")/python
scratch=$(mktemp -d /tmp/memd-clients-XXXXXX) # short: a socket's path has 107 bytes
trap 'HOME=$scratch "$MEMD_BIN" stop >/dev/null 2>&1 || :; rm -rf "$scratch"' EXIT
unset MEMD_SOCKET MEMD_AUTOSTART XDG_RUNTIME_DIR XDG_STATE_HOME XDG_CONFIG_HOME XDG_DATA_HOME
failed=()

example() { # LANGUAGE: the first block of its page
  sed -n '/^```/,/^```$/p' "$here/$1/README.md" | sed -e 1d -e '/^```$/,$d'
}

at_home() { # COMMAND …: with a scratch home, but the toolchain's own caches
  env "HOME=$scratch" "CARGO_HOME=${CARGO_HOME:-$HOME/.cargo}" "RUSTUP_HOME=${RUSTUP_HOME:-$HOME/.rustup}" \
    "GOPATH=$(go env GOPATH 2>/dev/null || echo "$HOME/go")" "GOCACHE=$(go env GOCACHE 2>/dev/null || echo "$scratch/go")" "$@"
}

check_python() {
  at_home "$python" -m memd_client.certify
  example python >"$scratch/example.py"
  at_home "$python" "$scratch/example.py"
}

check_go() {
  cd "$here/go"
  [[ -z $(gofmt -l .) ]] && go vet ./... && go test -count=1 ./...
  mkdir "$scratch/go-example" && cd "$scratch/go-example"
  example go >main.go
  go mod init example && go mod edit -require memd@v0.0.0 -replace "memd=$here/go" && go mod tidy
  at_home go run .
}

check_typescript() {
  cd "$here/typescript"
  npm ci --no-audit --no-fund && npm test
  example typescript >dist/example.mjs # without types it is JavaScript
  at_home node dist/example.mjs
}

check_rust() {
  cd "$here/rust"
  cargo fmt --check && cargo clippy --all-targets --quiet -- -D warnings && cargo test --quiet
  mkdir -p examples && example rust >examples/readme.rs
  at_home cargo run --quiet --example readme
}

check_c() {
  cd "$here/c"
  make clean && make PYTHON="$python" check
  make clean && make PYTHON="$python" CFLAGS='-g -fsanitize=address,undefined' LDFLAGS='-fsanitize=address,undefined' check
  make clean && make
  example c >"$scratch/example.c"
  "${CC:-cc}" -I. -o "$scratch/c-example" "$scratch/example.c" libmemd.a -lmsgpackc
  at_home "$scratch/c-example"
}

check_neovim() {
  cd "$here/neovim"
  nvim --headless --clean --cmd "set rtp+=." -c "luafile tests/run.lua"
  example neovim >"$scratch/example.lua"
  at_home nvim --headless --clean --cmd "set rtp+=." -c "luafile $scratch/example.lua" -c qa!
}

for client in "${@:-python go typescript rust c neovim}"; do
  for one in $client; do
    printf '\n== %s\n' "$one"
    start=$SECONDS
    (check_"$one") </dev/null & # in the background, because `||` would switch `set -e` off inside
    wait $! || failed+=("$one")
    printf '== %s took %s s\n' "$one" $((SECONDS - start))
  done
done

echo
if ((${#failed[@]})); then
  echo "failed: ${failed[*]}"
  exit 1
fi
echo "every client passed"
