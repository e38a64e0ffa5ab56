/** The client: calls that survive a restart of the daemon. */

import { randomUUID } from "node:crypto";
import { start } from "./autostart.js";
import { MemdError, trouble } from "./errors.js";
import { EventStream } from "./events.js";
import { type HelloResult, Methods, MUTATIONS, PROTOCOL_VERSION, REPEATABLE, type Topic } from "./generated.js";
import { agentSockets, type Env } from "./places.js";
import { dial, type Wire } from "./wire.js";

export const VERSION = "0.1.0";

const TIMEOUT_MS = 10_000;
const PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 500;
/** What the daemon's own answer about a deadline gets to arrive: it says more than our giving up. */
const MARGIN_MS = 250;
const PASSING = new Set(["shutting_down", "busy", "too_many_requests"]);
const TROUBLE = new Set(["not_running", "connection_lost", "timeout", "untrusted"]);

/** Where memd is and who calls. Without any it is a client for the user's own daemon. */
export interface Options {
  /** Path of the socket; left out, the places of the protocol are looked at. */
  socket?: string;
  /** Needed only where several are configured. */
  profile?: string;
  /** Recorded with every change. */
  name?: string;
  context?: "primary" | "subagent" | "cron" | "job";
  /** Less than the context has. */
  access?: "none" | "read" | "add";
  /** Milliseconds that a call may take, reconnecting and repeating included. */
  timeoutMs?: number;
  /** False leaves a daemon that is not running alone, as MEMD_AUTOSTART=0 does; a function starts one and gives its socket. */
  autostart?: boolean | ((signal: AbortSignal) => Promise<string>);
  env?: Env;
}

/** A client; it connects when first used, and again when it must. Calls may be made at the same time. */
export class Client extends Methods {
  readonly #options: Options;
  readonly #env: Env;
  #wire: Wire | undefined;
  #hello: HelloResult | undefined;
  #opening: Promise<Wire> | undefined;
  #met = false;
  #closed = false;

  constructor(options: Options = {}) {
    super();
    this.#options = options;
    this.#env = options.env ?? process.env;
  }

  /** Close the connection; calls under way fail with `connection_lost`. */
  close(): void {
    this.#closed = true;
    this.#wire?.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  /** What the handshake settled; connects if that has not been done. */
  async hello(): Promise<HelloResult> {
    await this.request("rpc.ping"); // over a restart too
    return this.#hello as HelloResult;
  }

  get timeoutMs(): number {
    return this.#options.timeoutMs ?? TIMEOUT_MS;
  }

  /** Call any method, also one this client does not know; parameters that are undefined are left out. */
  async request(method: string, params: object = {}): Promise<unknown> {
    const until = Date.now() + this.timeoutMs + ((params as { timeout_ms?: number }).timeout_ms ?? 0);
    const signal = AbortSignal.timeout(until - Date.now());
    const sent: Record<string, unknown> = { ...params };
    if (MUTATIONS.has(method)) sent["request_id"] ??= randomUUID();
    let doubt = false; // whether the daemon may have carried out an earlier attempt
    for (let pause = PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      try {
        const wire = await this.#connected(signal);
        const left = until - Date.now() - ((params as { timeout_ms?: number }).timeout_ms ?? 0);
        const deadline_ms = Math.max(1, Math.floor(left - Math.min(MARGIN_MS, left / 10)));
        return await wire.call(method, { deadline_ms, ...sent }, signal);
      } catch (error) {
        if (!(error instanceof MemdError)) throw error;
        if (doubt && method === "session.close" && error.name === "no_such_session") return {}; // by the attempt before
        doubt ||= error.sent;
        if (!this.#again(method, error) || Date.now() + pause >= until) throw final(error, sent, doubt);
      }
      await new Promise((done) => setTimeout(done, pause));
    }
  }

  /** Events as they happen, over a connection of their own; no topics means all. With `since`, those after it come first. */
  async events(topics: Topic[] = [], since?: number): Promise<EventStream> {
    return EventStream.open((signal, mayStart) => this.#open(signal, mayStart), topics, since, this.timeoutMs);
  }

  #again(method: string, error: MemdError): boolean {
    if (error.name === "not_running") return this.#met && !this.#closed;
    const safe = MUTATIONS.has(method) || REPEATABLE.has(method);
    if (error.name === "connection_lost") return !this.#closed && (safe || !error.sent);
    if (!PASSING.has(error.name)) return false;
    if (error.name === "shutting_down") this.#wire?.close();
    return safe || error.outcome !== "unknown";
  }

  async #connected(signal: AbortSignal): Promise<Wire> {
    if (this.#closed) throw new MemdError("invalid_request", "this client is closed");
    if (this.#wire && !this.#wire.lost) return this.#wire;
    this.#opening ??= this.#open(signal, true).then(({ wire, hello }) => {
      this.#wire = wire;
      this.#hello = hello;
      this.#met = true;
      if (this.#closed) wire.close();
      return wire;
    });
    try {
      return await this.#opening;
    } finally {
      this.#opening = undefined;
    }
  }

  async #open(signal: AbortSignal, mayStart: boolean): Promise<{ wire: Wire; hello: HelloResult }> {
    const wire = await this.#reach(signal, mayStart);
    const { profile, context, access, name = "memd-node" } = this.#options;
    const protocol = [PROTOCOL_VERSION, PROTOCOL_VERSION];
    const params = { client: { name, version: VERSION }, protocol, profile, context, access };
    try {
      return { wire, hello: (await wire.call("hello", params, signal)) as HelloResult };
    } catch (error) {
      wire.close();
      const gone = error instanceof MemdError && error.name === "connection_lost";
      throw gone ? trouble(error.name, error.message, false, error) : error; // nothing but hello was sent
    }
  }

  async #reach(signal: AbortSignal, mayStart: boolean): Promise<Wire> {
    let first: unknown;
    for (const path of agentSockets(this.#env, this.#options.socket)) {
      try {
        return await dial(path, signal);
      } catch (error) {
        if (!(error instanceof MemdError) || error.name !== "not_running") throw error;
        first ??= error;
      }
    }
    const { autostart = true, socket } = this.#options;
    if (!mayStart || !autostart || this.#env["MEMD_AUTOSTART"] === "0") throw first;
    const path = autostart === true ? await start(this.#env, socket, signal) : await autostart(signal);
    return dial(path, signal);
  }
}

/**
 * The error, made to say what is known of a mutation over all attempts, and with which request_id to ask again. A reply about the
 * mutation itself is the last word.
 */
function final(error: MemdError, params: Record<string, unknown>, doubt: boolean): MemdError {
  if (params["request_id"] === undefined || !(PASSING.has(error.name) || TROUBLE.has(error.name))) return error;
  const outcome = doubt || error.outcome === "unknown" ? "unknown" : "none";
  return error.with({ outcome, request_id: params["request_id"] });
}
