/** One connection: MessagePack-RPC over a Unix socket. No reconnecting, repeating or starting here. */

import { decodeMultiStream, encode } from "@msgpack/msgpack";
import { lstatSync } from "node:fs";
import { createConnection, type Socket } from "node:net";
import { dirname } from "node:path";
import { fromWire, type MemdError, trouble } from "./errors.js";

const REQUEST = 0;
const REPLY = 1;
const NOTIFICATION = 2;

/** How many notifications wait for a reader; memd itself keeps no more than a thousand for one that is slow. */
const NOTES = 1000;

export type Note = { method: string; params: unknown[] };

type Waiting = { done: (result: unknown) => void; fail: (error: MemdError) => void };

/** A message as bytes. */
export function packed(message: unknown[]): Uint8Array {
  return encode(message, { ignoreUndefined: true });
}

/**
 * Connect.
 *
 * Node cannot ask for the peer's credentials, so that the socket and its directory have to be ours or root's, and the
 * directory closed to others: nobody else can listen there then.
 */
export async function dial(path: string, signal: AbortSignal): Promise<Wire> {
  checkOwner(path);
  const socket = createConnection(path);
  const aborted = () => socket.destroy(trouble("timeout", `${path}: not accepted in time`, false));
  signal.addEventListener("abort", aborted, { once: true });
  try {
    await new Promise<void>((done, fail) => {
      socket.once("connect", done);
      socket.once("error", (error) => fail(error.name === "timeout" ? error : refused(path, error)));
    });
  } finally {
    signal.removeEventListener("abort", aborted);
  }
  return new Wire(socket, path);
}

/** One connection. After it is lost it stays lost. It keeps the process alive only while a reply is waited for. */
export class Wire {
  lost: MemdError | undefined;
  onNote: (() => void) | undefined;
  readonly notes: Note[] = [];
  #last = 0;
  readonly #waiting = new Map<number, Waiting>();

  constructor(
    readonly socket: Socket,
    readonly path: string,
  ) {
    socket.unref();
    socket.on("error", (error) => this.lose(trouble("connection_lost", `${path}: ${error.message}`, true, error)));
    socket.on("close", () => this.lose(trouble("connection_lost", `${path}: memd closed the connection`, true)));
    void this.#read();
  }

  /** End it; whoever waits gets `connection_lost`. */
  close(): void {
    this.lose(trouble("connection_lost", `${this.path}: closed by this client`, true));
  }

  /** Send a request and wait for its reply, until the signal. */
  async call(method: string, params: object, signal: AbortSignal): Promise<unknown> {
    if (this.lost) throw trouble(this.lost.name, this.lost.message, false);
    const msgid = (this.#last = (this.#last + 1) % 2 ** 32);
    const message = packed([REQUEST, msgid, method, [params]]);
    let aborted: (() => void) | undefined;
    try {
      this.socket.ref();
      return await new Promise((done, fail) => {
        this.#waiting.set(msgid, { done, fail });
        aborted = () => {
          this.socket.write(packed([NOTIFICATION, "rpc.cancel", [{ msgid }]])); // nobody waits any more
          fail(trouble("timeout", `no reply to ${method} in time`, true));
        };
        signal.addEventListener("abort", aborted, { once: true });
        this.socket.write(message);
        if (signal.aborted) aborted();
      });
    } finally {
      if (aborted) signal.removeEventListener("abort", aborted);
      this.#waiting.delete(msgid);
      if (this.#waiting.size === 0 && !this.onNote) this.socket.unref();
    }
  }

  /** It is over, for everybody who waits. The first reason stays. */
  lose(reason: MemdError): void {
    if (this.lost) return;
    this.lost = reason;
    this.socket.destroy();
    for (const waiting of this.#waiting.values()) waiting.fail(reason);
    this.onNote?.();
  }

  async #read(): Promise<void> {
    try {
      for await (const message of decodeMultiStream(this.socket)) this.take(message);
    } catch (error) {
      this.lose(trouble("connection_lost", `${this.path}: ${(error as Error).message}`, true, error));
    }
  }

  /** A whole message. What is of no kind that this client knows is passed over. */
  take(message: unknown): void {
    if (!Array.isArray(message)) return;
    const [kind, first, second, third] = message as unknown[];
    if (kind === REPLY && message.length === 4) {
      const waiting = this.#waiting.get(Number(first));
      if (second !== null && second !== undefined) waiting?.fail(fromWire(second));
      else waiting?.done(third);
    } else if (kind === NOTIFICATION && message.length === 3) {
      this.#note(String(first), Array.isArray(second) ? second : []);
    }
  }

  #note(method: string, params: unknown[]): void {
    if (method === "rpc.protocol_error") {
      const problem = fromWire(params[0]);
      if (problem.name === "too_many_requests") this.lose(problem); // refused as a whole: nothing was taken
    } else if (this.onNote) {
      if (this.notes.length < NOTES) this.notes.push({ method, params });
      this.onNote();
    }
  }
}

function checkOwner(path: string): void {
  const uid = process.geteuid?.();
  for (const [where, mask] of [[path, 0], [dirname(path), 0o022]] as const) {
    let found;
    try {
      found = lstatSync(where);
    } catch (error) {
      throw refused(path, error as NodeJS.ErrnoException);
    }
    const sticky = found.mode & 0o1000; // in /tmp and the like others can add, but not replace
    if ((found.uid !== uid && found.uid !== 0) || (found.mode & mask && !sticky)) {
      throw trouble("untrusted", `${where} is not yours alone; nothing was sent`, false);
    }
  }
}

function refused(path: string, error: NodeJS.ErrnoException): MemdError {
  return trouble("not_running", `no memd listens at ${path} (${error.code ?? error.message})`, false, error);
}
