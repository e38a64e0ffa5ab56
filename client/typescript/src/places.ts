/** Where the sockets are, in the order of PROTOCOL.md. */

import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";

export type Env = Record<string, string | undefined>;

/** Where to look for the agent socket. A path that was asked for, or MEMD_SOCKET, is the only one. */
export function agentSockets(env: Env, argument?: string): string[] {
  const chosen = argument || env["MEMD_SOCKET"];
  if (chosen) return [resolve(chosen)];
  return [...inRuntimeDir(env, "memd"), join(stateHome(env), "memd", "run", "memd.sock")];
}

/** Where to look for the operator socket. */
export function operatorSockets(env: Env): string[] {
  const state = join(stateHome(env), "memd-operator", "run", "memd.sock");
  return env["MEMD_SOCKET"] ? [state] : [...inRuntimeDir(env, "memd-operator"), state];
}

/** XDG_STATE_HOME, else ~/.local/state. The XDG specification says to ignore relative values. */
function stateHome(env: Env): string {
  const chosen = env["XDG_STATE_HOME"] ?? "";
  if (isAbsolute(chosen)) return chosen;
  const home = env["HOME"] ?? "";
  return join(isAbsolute(home) ? home : homedir(), ".local", "state");
}

function inRuntimeDir(env: Env, folder: string): string[] {
  const runtime = env["XDG_RUNTIME_DIR"] ?? "";
  return isAbsolute(runtime) ? [join(runtime, folder, "memd.sock")] : [];
}
