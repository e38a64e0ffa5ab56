/** A daemon of its own for a test. MEMD_BIN says which memd is tested. */

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { Client, type Options } from "../src/index.js";

export class Home {
  readonly dir = mkdtempSync("/tmp/memd-node-"); // short: a socket's path has 107 bytes
  readonly env: Record<string, string>;
  readonly #clients: Client[] = [];

  constructor() {
    const bin = process.env["MEMD_BIN"];
    if (!bin) throw new Error("MEMD_BIN is not set: it names the memd to test with");
    this.env = { HOME: this.dir, PATH: process.env["PATH"] ?? "", MEMD_BIN: bin, LANG: "C.UTF-8" };
  }

  client(options: Options = {}): Client {
    const client = new Client({ name: "node-test", timeoutMs: 60_000, env: this.env, ...options });
    this.#clients.push(client);
    return client;
  }

  memd(...args: string[]): string {
    return spawnSync(this.env["MEMD_BIN"] as string, args, { env: this.env, encoding: "utf8" }).stdout;
  }

  end(): void {
    for (const client of this.#clients) client.close();
    this.memd("stop");
    rmSync(this.dir, { recursive: true, force: true });
  }
}
