/** Starting memd when nobody listens. */

import { spawn } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";
import { trouble } from "./errors.js";
import type { Env } from "./places.js";

/** The command gives up after ten seconds by itself. */
const START_MS = 15_000;
const WRITABLE_BY_OTHERS = 0o022;

/** Have memd started, in a session of its own; gives the path of a socket that answers. */
export async function start(env: Env, socket: string | undefined, signal: AbortSignal): Promise<string> {
  const program = findMemd(env);
  const args = ["socket", "--start", ...(socket ? ["--socket", socket] : [])];
  const child = spawn(program, args, { env, detached: true, stdio: ["ignore", "pipe", "pipe"], signal, timeout: START_MS });
  const said = { out: "", err: "" };
  child.stdout.on("data", (data: Buffer) => (said.out += data.toString()));
  child.stderr.on("data", (data: Buffer) => (said.err += data.toString()));
  const status = await new Promise<number | string>((done) => {
    child.on("error", (error) => done(error.message));
    child.on("close", (code, killed) => done(code ?? killed ?? "no status"));
  });
  const path = said.out.trim();
  if (status !== 0 || !path) {
    throw trouble("not_running", `memd is not running and could not be started: ${said.err.trim() || status}`, false);
  }
  return path;
}

/** MEMD_BIN, else the first memd in an entry of PATH that only we or root can have put there. */
export function findMemd(env: Env): string {
  const chosen = env["MEMD_BIN"];
  if (chosen) {
    if (isAbsolute(chosen)) return chosen;
    throw trouble("not_running", `memd is not running, and MEMD_BIN=${chosen} is not an absolute path`, false);
  }
  for (const folder of (env["PATH"] ?? "").split(delimiter)) {
    const path = join(folder, "memd");
    if (isAbsolute(folder) && isTrusted(folder) && isTrusted(path) && isExecutable(path)) return path;
  }
  const advice = "no trusted memd is on PATH to start it; run `memd serve`, or set MEMD_BIN";
  throw trouble("not_running", `memd is not running, and ${advice}`, false);
}

function isTrusted(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  return !!found && [0, process.geteuid?.()].includes(found.uid) && !(found.mode & WRITABLE_BY_OTHERS);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
